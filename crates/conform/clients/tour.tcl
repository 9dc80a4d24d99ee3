# A tour of what Tcl's package for SQLite offers; what it prints is compared between two libraries.
package require sqlite3
proc try_ {what script} {
    set code [catch {uplevel 1 $script} said]
    puts "$what: $code $said"
}
file delete tour.db tour2.db
sqlite3 db tour.db
db eval {CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c)}
foreach {b c} {one 1 two 2.5 three {} "fo ur" x'y {fünf €} {a b}} {
    try_ "insert $b" {db eval {INSERT INTO t(b, c) VALUES($b, $c)}}
    puts "rowid [db last_insert_rowid] changes [db changes] total [db total_changes]"
}
set blob [binary format H* 00ff10]
db eval {INSERT INTO t(b, c) VALUES('blob', @blob)}
db eval {SELECT * FROM t ORDER BY a} row { puts "row [lsort [array names row]] $row(*) $row(a) $row(b) [string length $row(c)]" }
puts [db eval {SELECT b, c FROM t WHERE a < 4}]
puts "one [db onecolumn {SELECT b FROM t WHERE a = 2}] exists [db exists {SELECT 1 FROM t WHERE a = 99}]"
db nullvalue NULL
puts [db eval {SELECT NULL, 1}]
db function twice -deterministic {apply {{x} {expr {2 * $x}}}}
db function fails {error oops}
db function kind -returntype text {apply {{x} {return $x}}}
try_ function {db eval {SELECT twice(21), typeof(kind(5))}}
try_ failing {db eval {SELECT fails(1)}}
puts "code [db errorcode]"
db collate backwards {apply {{x y} {string compare $y $x}}}
try_ collate {db eval {SELECT b FROM t ORDER BY b COLLATE backwards}}
db collation_needed {apply {{name} {db collate $name {string compare}}}}
try_ needed {db eval {SELECT b FROM t ORDER BY b COLLATE other}}
try_ syntax {db eval {SELEC 1}}
try_ missing {db eval {SELECT * FROM nosuch}}
try_ duplicate {db eval {INSERT INTO t(a) VALUES(1)}}
puts "code [db errorcode] complete [db complete {SELECT 1;}] [db complete {SELECT 1}]"
try_ transaction {db transaction {
    db eval {UPDATE t SET c = 0}
    db transaction { db eval {DELETE FROM t WHERE a > 2} }
    error back
}}
puts [db eval {SELECT count(*), sum(c) FROM t}]
try_ immediate {db transaction immediate {db eval {INSERT INTO t(b) VALUES('kept')}}}
set ::log {}
db authorizer {apply {{code args} {lappend ::log $code; return [expr {$code eq "SQLITE_DELETE" ? "SQLITE_DENY" : "SQLITE_OK"}]}}}
try_ authorizer {db eval {DELETE FROM t}}
try_ read {db eval {SELECT a FROM t LIMIT 1}}
puts [lsort -unique $::log]
db authorizer {}
set ::log {}
db commit_hook {lappend ::log commit; expr 0}
db rollback_hook {lappend ::log rollback}
db update_hook {lappend ::log}
try_ hooks {db eval {BEGIN; INSERT INTO t(b) VALUES('h'); ROLLBACK; UPDATE t SET c = 1 WHERE a = 1; DELETE FROM t WHERE a = 2}}
puts $::log
set ::log {}
db trace {apply {{sql} {lappend ::log $sql}}}
db eval {SELECT twice(a) FROM t WHERE a = 1}
db trace {}
puts $::log
sqlite3 other tour.db -readonly 1
try_ readonly {other eval {DELETE FROM t}}
db eval {BEGIN EXCLUSIVE}
other busy {apply {{n} {expr {$n > 2}}}}
try_ busy {other eval {SELECT 1 FROM t}}
db eval {COMMIT}
other close
set channel [db incrblob t c 6]
fconfigure $channel -translation binary
puts "blob [binary encode hex [read $channel]]"
seek $channel 1
puts -nonewline $channel A
close $channel
puts [db eval {SELECT hex(c) FROM t WHERE a = 6}]
try_ backup {db backup tour2.db}
sqlite3 copy tour2.db
puts [copy eval {SELECT count(*) FROM t; PRAGMA integrity_check}]
try_ restore {copy restore tour.db}
copy close
set image [db serialize]
sqlite3 memory :memory:
try_ deserialize {memory deserialize $image}
puts "[string length $image] [memory eval {SELECT count(*) FROM t}]"
memory close
try_ progress {db progress 10 {expr 1}; db eval {WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n}}
db progress 0 {}
db preupdate hook {apply {{args} {lappend ::log $args}}}
set ::log {}
try_ preupdate {db eval {UPDATE t SET b = 'p' WHERE a = 1}}
puts $::log
db preupdate hook {}
puts "[db status step] [db cache size 5] [db interrupt]"
db close
