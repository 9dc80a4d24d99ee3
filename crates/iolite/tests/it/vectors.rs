//! Vectors: `vec0` tables against a scan of a plain table with the same rows, answers of the functions, hybrid search, damage.
//!
//! The answers of functions and the texts of errors were seen at sqlite-vec 0.1.9.

use crate::draw::Draw;
use iolite::engine::{Connection, Value};

fn one(c: &Connection, sql: &str) -> String {
    let text = |v: &Value| match v {
        Value::Null => "NULL".into(),
        Value::Real(r) => format!("{r:?}"),
        Value::Blob(b, _) => format!("x'{}'", b.iter().map(|b| format!("{b:02x}")).collect::<String>()),
        v => v.to_string_lossy(),
    };
    match c.query(sql, &[]) {
        Ok(rows) => {
            let row = |r: &Vec<Value>| r.iter().map(text).collect::<Vec<_>>().join(",");
            rows.iter().map(row).collect::<Vec<_>>().join("|")
        }
        Err(e) => format!("error: {}", e.message()),
    }
}

#[test]
fn functions_answer_as_in_sqlite_vec() {
    let c = Connection::open_in_memory().unwrap();
    for (sql, answer) in [
        ("vec_f32('[1,2.5,-3]')", "x'0000803f00002040000040c0'"),
        ("vec_f32('[1 2')", "x'0000803f00000040'"),
        ("vec_f32('[]')", "error: zero-length vectors are not supported."),
        ("vec_f32('[1;2]')", "error: JSON parsing error"),
        ("vec_f32('1')", "error: JSON array parsing error: Input does not start with '['"),
        ("vec_f32(x'0000')", "error: invalid float32 vector BLOB length. Must be divisible by 4, found 2"),
        ("vec_f32(1)", "error: Input must have type BLOB (compact format) or TEXT (JSON), found INTEGER"),
        ("vec_f32('[0x10,inf,1e-42]')", "x'000080410000807fca020000'"),
        ("subtype(vec_f32('[1]')), subtype(vec_bit(x'01')), subtype(vec_int8('[1]'))", "223,224,225"),
        ("vec_int8('[1,2,-3]')", "x'0102fd'"),
        ("vec_int8('[128]')", "error: JSON parsing error: value out of range for int8"),
        ("vec_bit('[1]')", "error: Unknown type for bitvector."),
        ("vec_length('[1,2]'), vec_length(vec_bit(x'0102')), vec_type(vec_int8(x'01'))", "2,16,int8"),
        ("vec_to_json('[1,0.1]'), vec_to_json(vec_bit(x'05'))", "[1.000000,0.100000],[1,0,1,0,0,0,0,0]"),
        ("vec_to_json(x'0000c07f'), json_array(vec_to_json('[1]'))", "[null],[[1.000000]]"),
        (
            "vec_add('[1,2]','[3,4]'), vec_sub(vec_int8('[-100]'),vec_int8('[100]'))",
            "x'000080400000c040',x'38'",
        ),
        (
            "vec_add('[1]',vec_bit(x'01'))",
            "error: Vector type mistmatch. First vector has type float32, while the second has type bit.",
        ),
        ("vec_normalize('[3,4]'), vec_normalize('[0]')", "x'9a99193fcdcc4c3f',x'0000c0ff'"),
        ("vec_quantize_binary('[1,-1,0,2,3,4,5,-6]')", "x'79'"),
        ("vec_quantize_int8('[1,-1,0.5,0,-0.3,0.999]','unit')", "x'7e803f00da7e'"),
        ("vec_slice('[1,2,3,4]',1,3)", "x'0000004000004040'"),
        (
            "vec_slice('[1,2,3,4]',2,2)",
            "error: slice 'start' index is equal to the 'end' index, vectors must have non-zero length",
        ),
        ("vec_distance_l2('[1,2]','[3,4]'), vec_distance_l1('[1,2]','[3,4]')", "2.8284270763397217,4.0"),
        ("vec_distance_cosine('[1,2]','[3,4]')", "0.01613008975982666"),
        ("vec_distance_l1(vec_int8('[1,2]'),vec_int8('[3,4]'))", "4"),
        ("vec_distance_hamming(vec_bit(x'0f'),vec_bit(x'ff'))", "4.0"),
        (
            "vec_distance_l2('[1]',x'00')",
            "error: Error reading 2nd vector: invalid float32 vector BLOB length. Must be divisible by 4, found 1",
        ),
        ("group_concat(value) FROM vec_each('[1,2.5]')", "1.0,2.5"),
    ] {
        assert_eq!(one(&c, &format!("SELECT {sql}")), answer, "{sql}");
    }
}

#[test]
fn tables_are_made_and_refused_as_by_sqlite_vec() {
    let c = Connection::open_in_memory().unwrap();
    let refused = |args: &str, why: &str| {
        let told = one(&c, &format!("CREATE VIRTUAL TABLE t USING vec0({args})"));
        assert_eq!(told, format!("error: vec0 constructor error: {why}"), "{args}");
    };
    refused("", "At least one vector column is required");
    refused("a float[0]", "could not parse vector column 'a float[0]'");
    refused("a float[8193]", "Dimension on vector column too large, provided 8193, maximum 8192");
    refused("a float[4], a float[4]", "could not declare virtual table, 'duplicate column name: a'");
    refused("a float[4], chunk_size=7", "chunk_size must be divisible by 8");
    refused("a float[4], foo=8", "Unknown table option: foo");
    refused("'x'", "Could not parse ''x''");
    c.execute_batch(
        "CREATE VIRTUAL TABLE t USING vec0(id text primary key, p text partition key, a float[2] distance_metric=cosine, \
         b int8[4], c bit[8], m integer, n text, o float, r boolean, +x text, chunk_size=8); \
         INSERT INTO t(id,p,a,b,c,m,n,o,r,x) VALUES('k','P','[1,2]',vec_int8('[1,2,3,4]'),vec_bit(x'07'),5,'longer than twelve',2.5,1,'aux')",
    )
    .unwrap();
    assert_eq!(
        one(&c, "SELECT * FROM t"),
        "k,P,x'0000803f00000040',x'01020304',x'07',5,longer than twelve,2.5,1,aux"
    );
    assert_eq!(one(&c, "SELECT chunk_id,size,partition00,hex(validity) FROM t_chunks"), "1,8,P,01");
    assert_eq!(one(&c, "SELECT * FROM t_metadatatext01"), "1,longer than twelve");
    c.execute_batch("UPDATE t SET n = 'short', m = -1, a = '[3,4]' WHERE id = 'k'").unwrap();
    assert_eq!(one(&c, "SELECT n, m, vec_to_json(a), x FROM t"), "short,-1,[3.000000,4.000000],aux");
    assert_eq!(one(&c, "SELECT count(*) FROM t_metadatatext01"), "0");
    let moved = one(&c, "UPDATE t SET p = 'Q'");
    assert_eq!(moved, "error: UPDATE on partition key columns are not supported yet. ");
    c.execute_batch("ALTER TABLE t RENAME TO u").unwrap();
    assert_eq!(one(&c, "SELECT id, distance FROM u WHERE c MATCH vec_bit(x'00') AND k = 1"), "k,3.0");
    c.execute_batch("DELETE FROM u").unwrap();
    assert_eq!(one(&c, "SELECT (SELECT count(*) FROM u_chunks), count(*) FROM u_vector_chunks00"), "0,0");
    c.execute_batch("DROP TABLE u").unwrap();
    assert_eq!(one(&c, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'u%' OR name LIKE 't%'"), "0");
}

/// Of few values, so that distances are often equal.
fn vector(draw: &mut Draw) -> String {
    draw.vector(5, 3)
}

const METRICS: [&str; 3] = ["l2", "l1", "cosine"];

/// One search, by the table and by a scan of the plain one.
fn compare(c: &Connection, draw: &mut Draw, metric: &str, story: &str) {
    let (v, k, m) = (vector(draw), 1 + draw.below(12), draw.below(40) as i64 - 5);
    let filter = match draw.below(7) {
        0 => format!("AND m > {m}"),
        1 => format!("AND m <= {m} AND p = {}", m % 3),
        2 => format!("AND n >= 'text {}'", m.abs()),
        3 => format!("AND n IN ('text 3', 'text {m} that is a longer one', 'text 11')"),
        4 => format!("AND id IN ({m}, 3, 4, 5, 99, {})", m + 9),
        5 => "AND r = 1".into(),
        _ => String::new(),
    };
    let plain = format!(
        "SELECT id, vec_distance_{metric}(a, '{v}') AS d FROM plain WHERE 1 {filter} ORDER BY d IS NULL, d, id LIMIT {k}"
    );
    let near = format!("SELECT id, distance FROM t WHERE a MATCH '{v}' AND k = {k} {filter}");
    assert_eq!(one(c, &near), one(c, &plain), "{near}\n{story}");
}

#[test]
fn histories_of_changes_leave_what_a_scan_finds() {
    for seed in 0..6u64 {
        let metric = METRICS[seed as usize % 3];
        let dir = std::env::temp_dir().join(format!("iolite-vectors-{}-{seed}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("db");
        let open = || Connection::open(file.to_str().unwrap()).unwrap();
        let both = [open(), open()];
        if seed > 2 {
            both[0].execute_batch("PRAGMA journal_mode = wal").unwrap();
        }
        both[0]
            .execute_batch(&format!(
                "CREATE VIRTUAL TABLE t USING vec0(id integer primary key, p integer partition key, \
                 a float[5] distance_metric={metric}, m integer, n text, r boolean, +x integer, chunk_size=8); \
                 CREATE TABLE plain(id INTEGER PRIMARY KEY, p, a, m, n, r, x)"
            ))
            .unwrap();
        let (mut draw, mut who, mut open_txn, mut story) = (Draw(seed), 0, false, String::new());
        for step in 0..400 {
            if !open_txn && draw.below(4) == 0 {
                who = 1 - who;
            }
            let c = &both[who];
            let id = draw.below(60);
            let long = if draw.below(3) == 0 { " that is a longer one" } else { "" };
            let values = format!(
                "{id}, {}, vec_f32('{}'), {}, 'text {}{long}', {}, {step}",
                draw.below(3),
                vector(&mut draw),
                draw.below(40),
                draw.below(40),
                draw.below(2)
            );
            let names = "(id,p,a,m,n,r,x)";
            let both_tables = |f: &dyn Fn(&str) -> String| [f("t"), f("plain")];
            let sql = match draw.below(12) {
                0..=3 => both_tables(&|t| format!("INSERT INTO {t}{names} VALUES({values})")),
                4 => both_tables(&|t| format!("INSERT OR REPLACE INTO {t}{names} VALUES({values})")),
                5 => both_tables(&|t| format!("DELETE FROM {t} WHERE id = {id}")),
                6 => {
                    let v = vector(&mut draw);
                    both_tables(&|t| {
                        format!("UPDATE {t} SET a = vec_f32('{v}'), n = 'text {step}{long}' WHERE id = {id}")
                    })
                }
                7 => both_tables(&|t| format!("UPDATE {t} SET m = m + 1, x = x - 1 WHERE m > {id}")),
                8 if !open_txn => {
                    open_txn = true;
                    ["BEGIN".into(), "SAVEPOINT s".into()]
                }
                8 => ["SAVEPOINT s".into(), "SELECT 1".into()],
                9 if open_txn => ["ROLLBACK TO s".into(), "SELECT 1".into()],
                10 if open_txn => {
                    open_txn = false;
                    let end = if draw.below(2) == 0 { "ROLLBACK" } else { "COMMIT" };
                    [end.into(), "SELECT 1".into()]
                }
                _ if draw.below(20) == 0 && !open_txn => ["VACUUM".into(), "SELECT 1".into()],
                _ => ["SELECT 1".into(), "SELECT 1".into()],
            };
            let done = sql.each_ref().map(|s| c.execute_batch(s).is_ok());
            story += &format!("{who}: {}; {}\n", sql[0], sql[1]);
            assert_eq!(done[0], done[1], "{story}");
            // Several searches of a state make a copy of the vectors, which further ones use.
            for _ in 0..if step % 3 == 0 { 9 } else { 1 } {
                compare(c, &mut draw, metric, &story);
            }
            if step % 20 == 0 {
                let all = |t: &str| one(c, &format!("SELECT id,p,vec_f32(a),m,n,r,x FROM {t} ORDER BY id"));
                assert_eq!(all("t"), all("plain"), "{story}");
            }
        }
        if open_txn {
            both[who].execute_batch("COMMIT").unwrap();
        }
        for c in &both {
            compare(c, &mut draw, metric, &story);
            assert_eq!(one(c, "PRAGMA integrity_check"), "ok");
        }
        drop(both);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// What is kept in memory serves a transaction, too: it looks at the chunks that it has changed, and not at all.
#[test]
fn a_transaction_searches_what_it_has_changed() {
    for index in ["", "index=hnsw(train=0)"] {
        let dir =
            std::env::temp_dir().join(format!("iolite-vectors-txn-{}-{}", std::process::id(), index.len()));
        std::fs::create_dir_all(&dir).unwrap();
        let c = Connection::open(dir.join("db").to_str().unwrap()).unwrap();
        c.execute_batch(&format!(
            "CREATE VIRTUAL TABLE t USING vec0(a float[2] {index}, chunk_size=8); \
             WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i < 4000) \
             INSERT INTO t(rowid, a) SELECT i, '[' || i || ',' || (i % 10) || ']' FROM s"
        ))
        .unwrap();
        if !index.is_empty() {
            c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        }
        let near = |at: i32| one(&c, &format!("SELECT rowid FROM t WHERE a MATCH '[{at},0]' AND k = 1"));
        for at in 0..10 {
            near(10 * at + 10);
        }
        let steps = std::rc::Rc::new(std::cell::Cell::new(0));
        let counted = steps.clone();
        let count = move || {
            counted.set(counted.get() + 1);
            false
        };
        c.progress_handler_every(1, Some(std::rc::Rc::new(count)));
        let few = |at: i32| {
            steps.set(0);
            let found = near(at);
            assert!(steps.get() < 6000, "{} instructions", steps.get());
            found
        };
        assert_eq!(few(2000), "2000");
        c.execute_batch("BEGIN; UPDATE t SET a = '[2000.5,0]' WHERE rowid = 77").unwrap();
        assert_eq!(few(2001), "77");
        assert_eq!(few(80), "80");
        c.execute_batch(
            "SAVEPOINT s; DELETE FROM t WHERE rowid = 80; INSERT INTO t(rowid, a) VALUES(9000, '[3000.5,0]')",
        )
        .unwrap();
        assert_eq!((few(80), few(3001), few(2001)), ("81".into(), "9000".into(), "77".into()));
        c.execute_batch("ROLLBACK TO s").unwrap();
        assert_eq!((few(80), few(3000), few(2001)), ("80".into(), "3000".into(), "77".into()));
        c.execute_batch("ROLLBACK").unwrap();
        assert_eq!((few(80), few(2000)), ("80".into(), "2000".into()));
        drop(c);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// The first search of a state looks at all vectors as they are stored, later ones at a copy with fewer bits.
#[test]
fn later_searches_of_a_state_answer_as_the_first() {
    let c = Connection::open_in_memory().unwrap();
    let mut draw = Draw(77);
    for (kind, metric) in
        [("float", "l2"), ("float", "cosine"), ("int8", "l2"), ("int8", "cosine"), ("float", "l1")]
    {
        c.execute_batch(&format!(
            "CREATE VIRTUAL TABLE w USING vec0(a {kind}[100] distance_metric={metric})"
        ))
        .unwrap();
        let float = kind == "float";
        let vector = |draw: &mut Draw| -> String {
            // Some are alike, some of a size of their own, some nothing, some no numbers.
            let (size, shape) = (draw.below(12), draw.below(9));
            let numbers = (0..100u64).map(|i| {
                let x = draw.below(2001) as f32 / 1000.0 - 1.0 + if shape < 4 { (i % 7) as f32 } else { 0.0 };
                match size {
                    _ if !float => return format!("{:02x}", (x * 12.0) as i8),
                    0 => x * 1e30,
                    1 => x * 1e-30,
                    2 => 0.0,
                    3 if i == 50 => f32::NAN,
                    4 if i == 50 => f32::INFINITY,
                    5 => x * 1000.0 * draw.below(2) as f32,
                    _ => x,
                }
                .to_le_bytes()
                .map(|b| format!("{b:02x}"))
                .concat()
            });
            let hex: String = numbers.collect();
            if float { format!("x'{hex}'") } else { format!("vec_int8(x'{hex}')") }
        };
        for id in 0..700 {
            c.execute_batch(&format!("INSERT INTO w(rowid, a) VALUES({id}, {})", vector(&mut draw))).unwrap();
        }
        for k in [1, 2, 10, 699, 700, 900] {
            let near =
                format!("SELECT rowid, distance FROM w WHERE a MATCH {} AND k = {k}", vector(&mut draw));
            c.execute_batch("CREATE TABLE IF NOT EXISTS other(x); INSERT INTO other VALUES(1)").unwrap();
            let first = one(&c, &near);
            for _ in 0..9 {
                assert_eq!(one(&c, &near), first, "{kind} {metric} {k}");
            }
        }
        c.execute_batch("DROP TABLE w").unwrap();
    }
}

#[test]
fn damaged_shadow_tables_are_errors() {
    let damages = [
        "UPDATE t_chunks SET validity = x'ff'",
        "UPDATE t_chunks SET validity = 'x', rowids = 5",
        "UPDATE t_chunks SET rowids = zeroblob(7)",
        "UPDATE t_chunks SET size = -8",
        "UPDATE t_chunks SET size = 9223372036854775807",
        "UPDATE t_chunks SET size = 4096",
        "UPDATE t_chunks SET validity = zeroblob(1)",
        "DELETE FROM t_chunks",
        "DELETE FROM t_vector_chunks00",
        "UPDATE t_vector_chunks00 SET vectors = x'00'",
        "UPDATE t_vector_chunks00 SET vectors = 'text'",
        "UPDATE t_rowids SET chunk_id = 77",
        "UPDATE t_rowids SET chunk_offset = -1",
        "UPDATE t_rowids SET chunk_offset = 4000",
        "UPDATE t_rowids SET chunk_offset = 'x', chunk_id = NULL",
        "DELETE FROM t_rowids",
        "UPDATE t_metadatachunks00 SET data = x''",
        "UPDATE t_metadatachunks01 SET data = zeroblob(3)",
        "DELETE FROM t_metadatatext00",
        "UPDATE t_metadatachunks00 SET data = CAST(x'ffffffff' || data AS BLOB)",
        "UPDATE t_metadatachunks00 SET data = x'ffffff7f' || substr(data, 5)",
        "DROP TABLE t_rowids",
        "DROP TABLE t_vector_chunks00",
        "DELETE FROM t_auxiliary",
    ];
    for damage in damages {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(
            "CREATE VIRTUAL TABLE t USING vec0(a float[2], n text, m integer, +x text, chunk_size=8); \
             WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i<11) \
             INSERT INTO t(rowid,a,n,m,x) SELECT i, '['||i||',0]', 'a text of some length '||i, i, 'x' FROM s",
        )
        .unwrap();
        c.execute_batch(damage).unwrap();
        for sql in [
            "SELECT * FROM t",
            "SELECT * FROM t WHERE rowid = 3",
            "SELECT rowid, distance FROM t WHERE a MATCH '[1,1]' AND k = 5",
            "SELECT rowid FROM t WHERE a MATCH '[1,1]' AND k = 5 AND n > 'a text of some length 2' AND m > 2",
            "INSERT INTO t(a,n,m) VALUES('[1,2]','y',1)",
            "UPDATE t SET a = '[1,2]', n = 'another text of some length' WHERE rowid = 4",
            "DELETE FROM t WHERE rowid = 5",
            "DELETE FROM t",
            "DROP TABLE t",
        ] {
            // An error or not, but an answer.
            let _ = one(&c, sql);
        }
    }
}

#[test]
fn hybrid_is_the_sum_of_both_orders() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE VIRTUAL TABLE f USING fts5(body); CREATE VIRTUAL TABLE v USING vec0(e float[2]); \
         WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i<50) \
         INSERT INTO f(rowid, body) SELECT i, 'word' || (i % 5) || printf(' %.*c', i, 'x') FROM s; \
         WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i<50) \
         INSERT INTO v(rowid, e) SELECT i, '[' || (i * 7 % 50) || ',' || i || ']' FROM s",
    )
    .unwrap();
    let hybrid = one(
        &c,
        "SELECT rowid, score, text_rank, vector_rank FROM hybrid('f', 'word3', 'v', '[10,10]', 6, 'candidates=24')",
    );
    let sql = "WITH a AS (SELECT rowid AS id, row_number() OVER (ORDER BY rank, rowid) AS r FROM f('word3') ORDER BY rank, rowid LIMIT 24), \
         b AS (SELECT rowid AS id, row_number() OVER (ORDER BY distance, rowid) AS r FROM v WHERE e MATCH '[10,10]' AND k = 24) \
         SELECT id, coalesce(1.0/(60+a.r),0)+coalesce(1.0/(60+b.r),0) AS s, a.r, b.r FROM a FULL JOIN b USING(id) \
         ORDER BY s DESC, id LIMIT 6";
    assert_eq!(hybrid, one(&c, sql));
    let weighted = "SELECT rowid FROM hybrid('f','word3','v','[10,10]',3,'fusion=weighted,text_weight=0')";
    let near = "SELECT rowid FROM v WHERE e MATCH '[10,10]' AND k = 3";
    assert_eq!(one(&c, weighted), one(&c, near));
    let unknown = one(&c, "SELECT * FROM hybrid('f','word3','v','[1,2]',3,'x=1')");
    assert_eq!(unknown, "error: hybrid: unknown option: x=1");
    let missing = one(&c, "SELECT * FROM hybrid('f','word3','nothing','[1,2]',3)");
    assert_eq!(missing, "error: hybrid: no such vec0 table: nothing");
}
