//! Draws a sequence of calls: a setting (memory, files in both journal modes, a shared cache, UTF-16), a schema, then calls of all
//! kinds in any order, right and wrong ones. The same number always gives the same sequence.

use iolite_conform::differ::rng::Rng;

const SCHEMA: &[&str] = &[
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE, c NUMERIC, d REAL DEFAULT 1.5)",
    "CREATE TABLE u(x INT NOT NULL, y VARCHAR(10) COLLATE NOCASE, z BLOB, CHECK(x<1000))",
    "CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID",
    "CREATE TABLE log(n INTEGER PRIMARY KEY AUTOINCREMENT, what)",
    "CREATE INDEX uy ON u(y)",
    "CREATE VIEW v AS SELECT a, b||'!' AS bb, y FROM t LEFT JOIN u ON x=a",
    "CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO log(what) VALUES(new.b); END",
    "CREATE TRIGGER td BEFORE DELETE ON u WHEN old.x=13 BEGIN SELECT RAISE(ABORT,'thirteen'); END",
    "CREATE TRIGGER vi INSTEAD OF INSERT ON v BEGIN INSERT INTO u(x,y) VALUES(new.a,new.bb); END",
    "CREATE TABLE parent(id INTEGER PRIMARY KEY, n UNIQUE)",
    "CREATE TABLE child(id INTEGER PRIMARY KEY, p REFERENCES parent(id) ON DELETE CASCADE, q REFERENCES parent(n) DEFERRABLE INITIALLY DEFERRED)",
    "CREATE TABLE g(a INT, b INT AS (a*2) STORED, c AS (a+1))",
    "INSERT INTO t(a,b,c) VALUES(1,'one',1),(2,'two',2.5),(3,NULL,'x'),(7,'seven',NULL)",
    "INSERT INTO u VALUES(1,'Ab',x'0102'),(2,'cd',zeroblob(20)),(13,'no','text'),(3,NULL,NULL)",
    "INSERT INTO w VALUES('k1',1),('k2','v'),('k3',NULL)",
    "INSERT INTO parent VALUES(1,10),(2,20); INSERT INTO child VALUES(1,1,10),(2,2,NULL)",
    "INSERT INTO g VALUES(1),(5)",
];

const QUERIES: &[&str] = &[
    "SELECT * FROM t",
    "SELECT a,b,c FROM t WHERE a<# ORDER BY a DESC",
    "SELECT rowid,* FROM u ORDER BY x",
    "SELECT count(*),max(b),min(c) FROM t",
    "SELECT t.a,u.y,u.z FROM t JOIN u ON u.x=t.a ORDER BY 1,2",
    "SELECT * FROM v ORDER BY a",
    "SELECT bb AS name FROM main.v WHERE a=#",
    "SELECT ?1,?2+1,typeof(?1),?3",
    "SELECT :n,@m,$k,?7",
    "SELECT b||?,c FROM t WHERE a=?",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<#) SELECT i FROM n",
    "SELECT k,v FROM w ORDER BY k",
    "SELECT v FROM w WHERE k='k#'",
    "SELECT 1/0, NULL, x'00ff', 1.5, 'é𐍈x', 9223372036854775807, '12abc', -0.0, 1e300*1e300",
    "SELECT abs(-9223372036854775808)",
    "SELECT a FROM t WHERE a=abs(-9223372036854775808+a-a)",
    "SELECT y,count(*) FROM u GROUP BY y HAVING count(*)>0 ORDER BY y",
    "SELECT DISTINCT c FROM t ORDER BY 1",
    "SELECT a FROM t UNION SELECT x FROM u ORDER BY 1",
    "SELECT (SELECT max(x) FROM u WHERE x<=a), a FROM t ORDER BY a",
    "SELECT a, row_number() OVER (ORDER BY a DESC) FROM t ORDER BY a",
    "SELECT name, sql FROM sqlite_schema ORDER BY rowid",
    "SELECT what FROM log ORDER BY n",
    "SELECT * FROM child ORDER BY id",
    "SELECT * FROM g ORDER BY a",
    "SELECT a, b COLLATE mine FROM t ORDER BY b COLLATE mine, a",
    "SELECT f(a) FROM t ORDER BY a",
    "SELECT f(a,b), f(1,2,3) FROM t ORDER BY a LIMIT 2",
    "SELECT f(?1), f('const',a) FROM t WHERE a<3 ORDER BY a",
    "SELECT f()",
    "SELECT agg(a) FROM t",
    "SELECT c IS NULL, agg(a) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT a, agg(a) OVER (ORDER BY a ROWS 1 PRECEDING) FROM t ORDER BY a",
    "SELECT * FROM n#",
    "SELECT * FROM aux.e ORDER BY 1",
    "SELECT * FROM tt",
    "SELECT * FROM json_each('[1,\"a\",null]')",
    "SELECT changes(), total_changes(), last_insert_rowid()",
    "SELECT t.rowid AS r, _rowid_, u.oid FROM t, u WHERE r=x",
    "VALUES(1,2),(3,4)",
];

const WRITES: &[&str] = &[
    "INSERT INTO t(b) VALUES('n#')",
    "INSERT INTO t VALUES(#,'m#',#,#)",
    "INSERT OR REPLACE INTO t(a,b) VALUES(#,'one')",
    "INSERT OR IGNORE INTO t(a,b) VALUES(#,'two')",
    "INSERT OR FAIL INTO t(a,b) SELECT x+#,y FROM u",
    "INSERT OR ROLLBACK INTO t(a,b) VALUES(1,'one')",
    "INSERT INTO t(a,b) VALUES(#,?) RETURNING a,b,d",
    "INSERT INTO t(a,b) VALUES(?1,?2) ON CONFLICT(a) DO UPDATE SET c=excluded.a, b=b||'+'",
    "INSERT INTO u VALUES(#,'y#',?)",
    "INSERT INTO u VALUES(NULL,1,2)",
    "INSERT INTO u VALUES(#00,1,2)",
    "INSERT INTO u(x,z) VALUES(#,zeroblob(5000))",
    "INSERT INTO w VALUES('k#',#)",
    "REPLACE INTO w VALUES('k#',?)",
    "INSERT INTO v(a,bb) VALUES(#,'via')",
    "INSERT INTO log(what) SELECT b FROM t",
    "INSERT INTO child VALUES(NULL,#,NULL)",
    "INSERT INTO child VALUES(NULL,NULL,#)",
    "DELETE FROM parent WHERE id=#",
    "UPDATE parent SET n=n+1",
    "UPDATE t SET c=c+1 WHERE a<#",
    "UPDATE t SET a=a+1",
    "UPDATE t SET b='one' WHERE a=#",
    "UPDATE OR IGNORE t SET b='two'",
    "UPDATE u SET y=?, z=x WHERE x<# RETURNING *",
    "UPDATE u SET x=x",
    "UPDATE u SET y=(SELECT b FROM t WHERE a=x)",
    "UPDATE w SET v=k WHERE k>'k1'",
    "UPDATE t SET c=u.x FROM u WHERE u.x=t.a",
    "DELETE FROM t WHERE a=#",
    "DELETE FROM t",
    "DELETE FROM u WHERE x>#",
    "DELETE FROM u",
    "DELETE FROM w WHERE k='k#'",
    "DELETE FROM t WHERE a IN (SELECT x FROM u) RETURNING a",
    "UPDATE t SET c=f(a)",
    "INSERT INTO g(a) VALUES(#)",
    "INSERT INTO n#(x) VALUES(1)",
    "INSERT INTO aux.e VALUES(#)",
    "INSERT INTO tt VALUES(#)",
    "UPDATE sqlite_sequence SET seq=seq+1",
];

const SCHEMA_CHANGES: &[&str] = &[
    "CREATE TABLE n#(x)",
    "CREATE TABLE IF NOT EXISTS n#(x, y DEFAULT 5)",
    "CREATE TABLE n# AS SELECT a,b FROM t",
    "DROP TABLE n#",
    "DROP TABLE IF EXISTS n#",
    "DROP TABLE u",
    "ALTER TABLE u ADD COLUMN e# DEFAULT 9",
    "ALTER TABLE t RENAME COLUMN c TO cc",
    "ALTER TABLE t RENAME COLUMN cc TO c",
    "ALTER TABLE u DROP COLUMN z",
    "ALTER TABLE w RENAME TO w2",
    "ALTER TABLE w2 RENAME TO w",
    "CREATE INDEX i# ON t(c)",
    "CREATE UNIQUE INDEX ux ON u(x)",
    "CREATE INDEX IF NOT EXISTS pi ON t(b) WHERE a>2",
    "DROP INDEX i#",
    "DROP INDEX uy",
    "CREATE VIEW v# AS SELECT a FROM t",
    "DROP VIEW v",
    "DROP TRIGGER tr",
    "CREATE TRIGGER tr# AFTER UPDATE OF c ON t BEGIN DELETE FROM log; END",
    "CREATE TEMP TABLE tt(x)",
    "CREATE TEMP TRIGGER tg AFTER DELETE ON main.t BEGIN INSERT INTO log(what) VALUES('gone'); END",
    "CREATE TEMP VIEW tv AS SELECT * FROM t",
    "ANALYZE",
    "ANALYZE t",
    "REINDEX",
    "REINDEX t",
    "REINDEX nocase",
    "VACUUM",
];

const TRANSACTIONS: &[&str] = &[
    "BEGIN",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "BEGIN EXCLUSIVE",
    "COMMIT",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s1",
    "SAVEPOINT s2",
    "RELEASE s1",
    "RELEASE s2",
    "ROLLBACK TO s1",
    "ROLLBACK TO s2",
    "END",
];

const PRAGMAS: &[&str] = &[
    "PRAGMA user_version=#",
    "PRAGMA user_version",
    "PRAGMA foreign_keys=1",
    "PRAGMA foreign_keys=0",
    "PRAGMA foreign_keys",
    "PRAGMA read_uncommitted=1",
    "PRAGMA read_uncommitted=0",
    "PRAGMA recursive_triggers=1",
    "PRAGMA count_changes=1",
    "PRAGMA count_changes=0",
    "PRAGMA table_info(t)",
    "PRAGMA index_list('u')",
    "PRAGMA journal_mode",
    "PRAGMA journal_mode=DELETE",
    "PRAGMA journal_mode=WAL",
    "PRAGMA journal_mode=MEMORY",
    "PRAGMA journal_mode=PERSIST",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA wal_checkpoint",
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA locking_mode=NORMAL",
    "PRAGMA data_version",
    "PRAGMA integrity_check",
    "PRAGMA foreign_key_check",
    "PRAGMA defer_foreign_keys=1",
    "PRAGMA schema_version",
    "PRAGMA query_only=1",
    "PRAGMA query_only=0",
    "PRAGMA cache_size=5",
    "PRAGMA page_count",
    "PRAGMA encoding",
    "PRAGMA synchronous=OFF",
    "PRAGMA nosuch",
    "PRAGMA short_column_names=1",
    "PRAGMA writable_schema=1",
    "PRAGMA writable_schema=0",
    "PRAGMA auto_vacuum=1",
    "PRAGMA incremental_vacuum",
    "PRAGMA freelist_count",
    "PRAGMA database_list",
    "PRAGMA max_page_count=#00",
    "PRAGMA trusted_schema=0",
];

const WRONG: &[&str] = &[
    "SELEC 1",
    "SELECT * FROM",
    "SELECT nosuch FROM t",
    "SELECT a FROM t, t AS t2",
    "SELECT f(",
    "INSERT INTO t VALUES(1)",
    "SELECT x'1'",
    "SELECT nosuch(1)",
    "SELECT max()",
    "INSERT INTO v2 VALUES(1)",
    "UPDATE t SET q=1",
    "DELETE FROM v",
    "SELECT 'abc",
    "",
    "  ",
    "-- only a comment",
    "/* open",
    ";",
    "SELECT 1; SELECT 2",
    "SELECT 1 ;; x",
    "DROP TABLE nosuch",
    "CREATE TABLE t(x)",
    "SELECT * FROM t WHERE b MATCH 'x'",
    "SELECT sum(a) FROM t WHERE sum(a)>1",
    "SELECT 1 LIMIT 'x'",
    "RELEASE nosuch",
    "SELECT é FROM t",
    "SELECT ?0",
    "ATTACH 'x' AS main",
    "DETACH main",
    "ATTACH ':memory:' AS aux; CREATE TABLE aux.e(x)",
    "ATTACH 'file:DIR/second.db' AS aux",
    "DETACH aux",
    "SELECT * FROM aux.nosuch",
    "SELECT a b c FROM t",
    "SELECT * FROM t ORDER BY 9",
    "SELECT (SELECT 1,2)",
    "CREATE INDEX t ON u(x)",
    "SELECT group_concat(DISTINCT a,b) FROM t",
    "SELECT raise(ignore)",
    "WITH c AS (SELECT 1) DELETE FROM c",
    "SELECT count(*) FILTER (WHERE 1) OVER w FROM t",
    "SELECT 1 FROM t WHERE b COLLATE nosuch>1",
    "VALUES(1),(2,3)",
];

fn sql(r: &mut Rng) -> String {
    let list = match r.below(100) {
        0..35 => QUERIES,
        35..63 => WRITES,
        63..72 => SCHEMA_CHANGES,
        72..84 => TRANSACTIONS,
        84..92 => PRAGMAS,
        _ => WRONG,
    };
    let template = *r.pick::<&str>(list);
    fill(r, template)
}

/// Each `#` becomes a small number.
fn fill(r: &mut Rng, template: &str) -> String {
    let mut out = String::new();
    for ch in template.chars() {
        match ch {
            '#' => out += &r.below(9).to_string(),
            _ => out.push(ch),
        }
    }
    out
}

fn bind(r: &mut Rng, s: usize) -> String {
    let i = *r.pick(&[1, 1, 1, 2, 2, 3, 0, 7, -1]);
    let kind = *r.pick(&[
        "null",
        "int",
        "int",
        "int64",
        "double",
        "text",
        "text",
        "text",
        "text64",
        "text16",
        "text16le",
        "blob",
        "blob64",
        "zeroblob",
        "zeroblob64",
        "pointer",
        "value",
    ]);
    let how = *r.pick(&["transient", "static", "own", "own", "null"]);
    let x = *r.pick(&[0i64, 1, 2, 3, 7, -1, 13, 100, 4_000_000_000]);
    let t = *r.pick(&[
        "",
        "one",
        "12",
        "1e3",
        "é𐍈",
        "long text that is longer than what is kept in place",
        "k1",
        " 7x",
    ]);
    format!("bind s{s} {i} {kind} {how} {x} | {t}")
}

fn hook(r: &mut Rng, c: usize) -> String {
    let on = r.below(3);
    match r.below(16) {
        0 => format!("commit_hook c{c} {on}"),
        1 => format!("rollback_hook c{c} {on}"),
        2 | 3 => format!("update_hook c{c} {on}"),
        4 | 5 => format!("preupdate_hook c{c} {on}"),
        6 => format!("wal_hook c{c} {on}"),
        // How many instructions a statement takes differs: it is stopped at once or never.
        7 => format!("progress c{c} {} {} 1", r.pick(&[0, 1]), 1_000_000),
        8 | 9 => format!("trace c{c} {}", r.pick(&[0, 1, 2, 4, 7, 15])),
        10 => format!("needed c{c} {on}"),
        11 => format!("unlock c{c} {on}"),
        _ => {
            let action = *r.pick(&[
                20, 20, 20, 21, 18, 23, 9, 31, 19, 22, 24, 32, 2, 1, 11, 26, 33, 27, 28, 8, 7, 29, 5, 3,
            ]);
            let (at, answer) = (0, *r.pick(&[0, 0, 1, 2, 2, 3]));
            format!("authorizer c{c} {} {action} {at} {answer}", r.pick(&[0, 1, 1, 1, 2]))
        }
    }
}

fn define(r: &mut Rng, c: usize) -> String {
    let encoding = *r.pick(&[1, 1, 1, 2, 4, 0x801, 0x80001, 0x200001, 99]);
    match r.below(7) {
        0 | 1 => format!("function c{c} f {} scalar {encoding}", r.pick(&[-1, -1, 0, 1, 2])),
        2 => format!(
            "function c{c} agg {} {} {encoding}",
            r.pick(&[-1, 1]),
            r.pick(&["aggregate", "window", "window"])
        ),
        3 => format!(
            "function c{c} {} {} {} {encoding}",
            r.pick(&["f", "abs", "agg"]),
            r.pick(&[-1, 1, 200]),
            r.pick(&["wrong", "none", "scalar"])
        ),
        4 | 5 => format!(
            "collation c{c} {} {} {}",
            r.pick(&["mine", "mine", "nocase"]),
            r.pick(&[1, 1, 2, 4, 9]),
            r.pick(&[0, 1, 1, 1])
        ),
        _ => format!("overload c{c} {} {}", r.pick(&["f", "abs", "nosuch"]), r.pick(&[-1, 1, 2])),
    }
}

fn column(r: &mut Rng, s: usize) -> String {
    let mut line = format!("column s{s} {}", r.pick(&[0, 0, 0, 1, 1, 2, 3, 9, -1]));
    for _ in 0..r.range(1, 4) {
        line += " ";
        line += r.pick::<&str>(&[
            "type", "int", "int64", "double", "bytes", "bytes16", "blob", "text", "text16", "value",
        ]);
    }
    line
}

/// `shared`: in a shared cache, where stock deadlocks with itself in a backup from one connection to another.
fn other(r: &mut Rng, c: usize, s: usize, connections: usize, shared: bool) -> String {
    let db = *r.pick(&["main", "main", "main", "temp", "aux", "none"]);
    let from = r.below(connections);
    match r.below(30) {
        0..3 => {
            let (t, column, row) = *r.pick(&[
                ("u", "z", 1),
                ("u", "z", 2),
                ("u", "z", 4),
                ("t", "b", 1),
                ("t", "a", 1),
                ("t", "c", 1),
                ("w", "v", 1),
                ("v", "bb", 1),
                ("t", "nosuch", 1),
                ("nosuch", "x", 1),
                ("u", "y", 1),
                ("u", "z", 99),
                ("g", "b", 1),
                ("child", "p", 1),
            ]);
            format!("blob c{c} b{} {db} {t} {column} {row} {}", r.below(2), r.below(2))
        }
        3..5 => format!(
            "read b{} {} {}",
            r.below(2),
            r.pick(&[0, 1, 2, 20, 21, -1]),
            r.pick(&[0, 0, 1, 19, 20, -1])
        ),
        5 => format!("write b{} {} | {}", r.below(2), r.pick(&[0, 0, 1, 18, -1]), r.pick(&["", "a", "xyz"])),
        6 => format!("reopen b{} {}", r.below(2), r.pick(&[1, 2, 4, 99])),
        7 => format!("{} b{}", r.pick(&["size", "close"]), r.below(2)),
        8 if !shared => format!("backup c{c} {db} c{from} {}", r.pick(&["main", "main", "aux", "temp"])),
        9 | 10 => format!("copy k0 {}", r.pick(&[-1, 1, 2, 0])),
        11 => "finish k0".into(),
        12 => format!(
            "image c{c} {db} c{from} {} {} {}",
            r.pick(&["main", "aux", "temp"]),
            r.pick(&[0, 0, 0, 1]),
            r.pick(&[0, 4])
        ),
        13 | 14 => format!(
            "metadata c{c} {} {} {}",
            r.pick(&["-", "main", "aux", "temp"]),
            r.pick(&["t", "u", "w", "v", "g", "nosuch", "sqlite_schema"]),
            r.pick(&["a", "b", "x", "y", "k", "rowid", "nosuch", "-", "z"])
        ),
        15 => format!(
            "limit c{c} {} {}",
            r.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 99]),
            r.pick(&[-1, -1, 3, 10, 1000])
        ),
        16 | 17 => format!(
            "config c{c} {} {}",
            r.pick(&[
                1002, 1003, 1004, 1006, 1007, 1009, 1010, 1011, 1013, 1014, 1015, 1016, 1017, 1019, 1020,
                1021, 1022, 1, 2
            ]),
            r.pick(&[-1, 0, 1])
        ),
        18 => format!("checkpoint c{c} {} {db}", r.pick(&[0, 1, 2, 3, 9, -1])),
        19 => format!("autocheckpoint c{c} {}", r.pick(&[0, 1, 1000])),
        20 => format!("busy c{c} {}", r.pick(&[0, 1, 3])),
        21 => format!("set_rowid c{c} {}", r.below(9)),
        22 => format!("readonly c{c}"),
        23 => format!("next c{c}"),
        24 => format!("{} c{c}", r.pick(&["interrupt", "flush", "errmsg16"])),
        25 => format!("extended c{c} {}", r.below(2)),
        26 => format!("explain s{s} {}", r.pick(&[0, 3])),
        27 => format!("status s{s} {}", r.below(2)),
        28 => format!("transfer s{s} s{}", r.below(super::side::STATEMENTS)),
        _ => format!("table c{c} | {}", sql(r)),
    }
}

/// The setting: which connections, on what.
fn open(r: &mut Rng) -> (Vec<String>, usize) {
    let rwc = 0x46;
    let mut out = Vec::new();
    let mut connections = 1;
    match r.below(10) {
        0..3 => out.push(format!("open c0 {rwc} | :memory:")),
        3 => {
            out.push("open c0 wide | :memory:".into());
        }
        4..8 => {
            connections = r.range(1, 2);
            for c in 0..connections {
                out.push(format!("open c{c} {rwc} | file:DIR/first.db"));
            }
        }
        _ => {
            connections = r.range(2, 3);
            let name = *r.pick(&["file:shTAG?mode=memory&cache=shared", "file:DIR/first.db?cache=shared"]);
            for c in 0..connections {
                out.push(format!("open c{c} {rwc} | {name}"));
            }
        }
    }
    if r.chance(12) {
        out.push(format!("exec c0 | PRAGMA encoding='UTF-16{}'", r.pick(&["", "le", "be"])));
    }
    if r.chance(35) {
        out.push("exec c0 | PRAGMA journal_mode=WAL".into());
    }
    if r.chance(10) {
        out.push("exec c0 | PRAGMA page_size=512".into());
    }
    for s in SCHEMA {
        if r.chance(93) {
            out.push(format!("exec c0 | {s}"));
        }
    }
    if r.chance(40) {
        out.push("exec c0 | ATTACH 'file:DIR/second.db' AS aux; CREATE TABLE aux.e(x UNIQUE); INSERT INTO aux.e VALUES(1),(2)".into());
    }
    if r.chance(50) {
        out.push("function c0 f -1 scalar 1".into());
        out.push("function c0 agg -1 window 1".into());
    }
    (out, connections)
}

/// The sequence of this number.
pub fn sequence(seed: u64) -> Vec<String> {
    let mut r = Rng::new(seed);
    let (mut out, connections) = open(&mut r);
    let shared = out[0].contains("cache=shared");
    for _ in 0..r.range(20, 60) {
        let r = &mut r;
        let c = r.below(connections);
        let s = r.below(super::side::STATEMENTS);
        let line = match r.below(100) {
            0..20 => {
                let how = *r.pick(&["v2", "v2", "v2", "v2", "v2", "v2", "v3", "v1", "16v2", "16v3", "16v3"]);
                let flags = *r.pick(&[0, 0, 0, 1, 2, 4, 16]);
                let length = *r.pick(&[-1, -1, -1, -1, -1, 0, 10, 500]);
                let text = sql(r);
                out.push(format!("prepare c{c} s{s} {how} {flags} {length} | {text}"));
                if !text.starts_with("PRAGMA") {
                    continue;
                }
                // Some take effect when they are prepared, in stock more of them (pragma, "some pragmas run during the
                // SQL compilation stage"); one that is not run is nothing to compare.
                format!("run s{s}")
            }
            20..43 => format!("step s{s} {}", (r.below(4) == 0) as u8),
            43..48 => format!("run s{s}"),
            48..54 => bind(r, s),
            54..60 => column(r, s),
            60..64 => format!("reset s{s}"),
            64..66 => format!("{} s{s}", r.pick(&["clear", "finalize", "about", "about"])),
            66..84 => format!("exec c{c} | {}", sql(r)),
            84..88 => hook(r, c),
            88..91 => define(r, c),
            91 if r.chance(15) => format!("close c{c} {}", r.pick(&["v1", "v2"])),
            _ => other(r, c, s, connections, shared),
        };
        out.push(line);
    }
    out
}
