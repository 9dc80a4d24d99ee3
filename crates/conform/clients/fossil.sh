#!/bin/sh
# Fossil, whose repositories are SQLite databases: commits, branches, merges, tickets, wiki, full-text search, clones, bundles.
# Times, hashes and passwords are taken out of what it prints; Debian's package is installed.
rm -rf fossil.out && mkdir -p fossil.out/home && cd fossil.out || exit 1
export HOME="$PWD/home" USER=anna

run() {
    echo "$ $*"
    "$@" 2>&1 | sed -E 's/[0-9a-f]{40,64}/HASH/g; s/\<[0-9a-f]{10,16}\>/HASH/g; s/[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]*)?/DATE/g
        s/[0-9]{2}:[0-9]{2}:[0-9]{2}/TIME/g; s/[0-9]{7}\.[0-9]+/DAY/g; s/wire bytes.*//; s/(password|project-|server-|checkout:|config-db:|repository:|local-root:).*//; s/ pw .*//'
}

run fossil init --admin-user anna r.fossil
mkdir work && cd work || exit 1
run fossil open ../r.fossil --nested
for i in 1 2 3 4 5; do seq $((i * 10)) $((i * 10 + 200)) >f$i.txt; done
mkdir notes && echo hello >notes/x.md
run fossil add .
run fossil commit -m first --no-warnings --user-override anna
echo more >>f1.txt
run fossil diff --internal
run fossil commit -m second --branch feature --no-warnings
for k in $(seq 1 25); do
    echo "line $k" >>f2.txt
    fossil commit -m "step $k" --no-warnings >/dev/null 2>&1
done
run fossil update trunk
echo trunk >>f3.txt
run fossil commit -m third --no-warnings
run fossil merge feature
run fossil commit -m merged --no-warnings
run fossil timeline -n 40
run fossil finfo f2.txt
run fossil annotate f2.txt
run fossil tag add v1 trunk
run fossil tag list
run fossil ls -v
run fossil wiki create Home notes/x.md
run fossil wiki export Home -
run fossil ticket add title "a defect" status Open
run fossil ticket list fields
run fossil fts-config index on
run fossil fts-config enable cdtwe
run fossil fts-config reindex
run fossil search merged
run fossil search -W 200 hello
run fossil sql "select count(*), sum(size) > 100 from blob; select name from sqlite_schema order by 1; pragma integrity_check"
run fossil test-integrity ../r.fossil
run fossil rebuild ../r.fossil --vacuum --analyze --stats --wal
run fossil clone ../r.fossil ../r2.fossil
run fossil sync ../r2.fossil --verbose
run fossil bundle export ../b.bundle --branch feature
run fossil bundle ls ../b.bundle
run fossil export --git | grep -c '^commit'
run fossil dbstat --db-check
run fossil tarball trunk ../t.tgz --name t
tar tzf ../t.tgz | sort
run fossil sql -R ../r2.fossil "pragma integrity_check; select count(*) from event"
