//! Scripts that grow: many statements, tables, terms, rows, or long values, as programs and dumps have them. For the program `times`, which
//! asks how the time grows with them: what is quadratic here and not on stock shows at once, what is merely slower by the ratio.
//!
//! What always holds: a script hangs on its size alone, and does about ten times as much work at ten times the size, on stock.

/// A script in two parts; only the second is timed.
pub struct Script {
    /// What grows.
    pub title: &'static str,
    /// What has to be there.
    pub setup: String,
    /// What is timed.
    pub work: String,
}

/// `f` of each number below `n`, one after the other.
fn each(n: usize, f: impl Fn(usize) -> String) -> String {
    (0..n).map(f).collect()
}

/// The same with something between.
fn list(n: usize, between: &str, f: impl Fn(usize) -> String) -> String {
    (0..n).map(f).collect::<Vec<_>>().join(between)
}

/// The numbers from 1 to `n` as rows `s(i)`, before a query.
fn rows(n: usize) -> String {
    format!("WITH RECURSIVE s(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM s WHERE i < {n}) ")
}

fn within(work: String) -> String {
    format!("BEGIN; {work} COMMIT;")
}

/// All scripts of a size, from some hundreds on.
pub fn scripts(n: usize) -> Vec<Script> {
    // As many as limits allow.
    let terms = (n / 8).min(900);
    let tables = (n / 50).clamp(4, 60);
    let table = |rest: &str| format!("CREATE TABLE t(a INTEGER PRIMARY KEY, b INT, c); {rest}");
    let filled = |rows_of: usize, rest: &str| {
        table(&format!(
            "{}INSERT INTO t SELECT i, i * 7919 % 20011, 'text ' || i FROM s; {rest}",
            rows(rows_of)
        ))
    };
    let many =
        |n: usize| within(each(n, |i| format!("CREATE TABLE t{i}(a INTEGER PRIMARY KEY, b UNIQUE, c);")));
    let json = format!("'[{}]'", list(10 * n, ",", |i| format!("{{\"k\":{i}}}")));
    let cases: Vec<(&'static str, String, String)> = vec![
        ("statements of a text", table(""), within(each(n, |i| format!("INSERT INTO t(b) VALUES('text; {i}');\n")))),
        ("tables made", String::new(), many(n / 8)),
        ("tables made, a transaction each", String::new(), each(n / 16, |i| format!("CREATE TABLE t{i}(a, b);"))),
        ("tables dropped", many(n / 8), within(each(n / 8, |i| format!("DROP TABLE t{i};")))),
        ("views and triggers made", table(""), within(each(n / 8, |i| {
            format!("CREATE VIEW v{i} AS SELECT a FROM t; CREATE TRIGGER g{i} AFTER INSERT ON t BEGIN SELECT {i}; END;")
        }))),
        ("a schema rolled back", many(n / 16), each(10, |_| "BEGIN; CREATE TABLE more(a); ROLLBACK; SELECT * FROM t1;".into())),
        ("columns added to many tables", many(n / 32), within(each(n / 32, |i| format!("ALTER TABLE t{i} ADD COLUMN d;")))),
        ("many tables analysed", many(n / 16) + &each(n / 16, |i| format!("INSERT INTO t{i} VALUES(1, 2, 3);")), "ANALYZE".into()),
        ("temporary tables", String::new(), each(n / 8, |_| "CREATE TEMP TABLE x(a); INSERT INTO x VALUES(1); DROP TABLE x;".into())),
        ("triggers of a table", table(&each(tables, |i| {
            format!("CREATE TRIGGER g{i} AFTER INSERT ON t WHEN new.a % 7 = {i} BEGIN UPDATE t SET c = {i} WHERE a = new.a; END;")
        })), rows(n) + "INSERT INTO t SELECT i, i, i FROM s"),
        ("terms of a constant", String::new(), each(10, |k| format!("SELECT {};", list(terms, "||", |i| format!("'{k} {i}'"))))),
        ("conditions", filled(100, ""), format!("SELECT count(*) FROM t WHERE {}", list(terms, " AND ", |i| format!("b <> {i}")))),
        ("arms of OR on an index", filled(n, "CREATE INDEX tb ON t(b);"),
            format!("SELECT count(*) FROM t WHERE {}", list(terms, " OR ", |i| format!("b = {}", 3 * i)))),
        ("values of IN", filled(n, ""), format!("SELECT count(*) FROM t WHERE b IN ({})", list(4 * n, ",", |i| (i * 2).to_string()))),
        ("values of IN as results, and of NOT IN", filled(n, ""), {
            let (reals, texts) = (list(n, ",", |i| format!("{i}.5")), list(n, ",", |i| format!("'text {i}'")));
            each(3, |k| format!("SELECT sum(b IN ({reals}, {k})), sum(c IN ({texts})) FROM t WHERE a NOT IN ({reals}, {k}) AND c NOT IN ({texts}, '{k}');"))
        }),
        ("short ranges in another order", filled(n, "CREATE INDEX tb ON t(b);"),
            "SELECT sum((SELECT count(DISTINCT u.b) FROM t u WHERE u.a BETWEEN t.a AND t.a + 5)) FROM t".into()),
        ("the first rows of a query in FROM", filled(10 * n, "CREATE INDEX tb ON t(b);"),
            each(n / 10, |i| format!("SELECT max(c) FROM (SELECT * FROM t ORDER BY b LIMIT 10 OFFSET {i});"))),
        ("rows by small sets", filled(10 * n, ""),
            each(n / 10, |i| format!("SELECT sum(b) FROM t WHERE a IN (SELECT b FROM t WHERE a BETWEEN {i} AND {i} + 5);"))),
        ("sets asked of a view", filled(10 * n, "CREATE INDEX tb ON t(b); CREATE TABLE u AS SELECT * FROM t; CREATE INDEX ub ON u(b); \
            CREATE VIEW v AS SELECT a, b FROM t UNION ALL SELECT a, b FROM u;"),
            each(n / 10, |i| format!("SELECT count(*) FROM v WHERE b IN (SELECT b FROM t WHERE a BETWEEN {i} AND {i} + 3);"))),
        ("a table expression in several places", filled(n, ""), "WITH x AS (SELECT b % 10 AS g, count(*) AS m FROM t GROUP BY 1) \
            SELECT sum((SELECT m FROM x WHERE g = t.b % 10)), sum(a > (SELECT avg(m) FROM x)) FROM t".into()),
        ("a tree in order", format!("{}INSERT INTO t SELECT i, i / 2, i FROM s; CREATE INDEX tb ON t(b);", table("") + &rows(10 * n)),
            "WITH RECURSIVE x(a, l) AS (SELECT 1, 0 UNION ALL SELECT t.a, l + 1 FROM x JOIN t ON t.b = x.a ORDER BY 2 DESC, 1) \
            SELECT sum(l), count(*) FROM x".into()),
        ("texts of UTF-16", "PRAGMA encoding = 'UTF-16le'; ".to_string() + &filled(10 * n, ""), "CREATE INDEX tc ON t(c); CREATE INDEX tn ON t(c COLLATE \
            NOCASE); SELECT count(*) FROM (SELECT c, b FROM t ORDER BY c DESC, b LIMIT -1 OFFSET 1); SELECT max(c), sum(c > 'text 5') FROM t".into()),
        ("columns of a table", String::new(), format!("CREATE TABLE w({}); SELECT * FROM w; ALTER TABLE w ADD COLUMN z; SELECT z FROM w",
            list((n / 6).min(1900), ",", |i| format!("column_{i} INT")))),
        ("rows of VALUES", table(""), format!("INSERT INTO t(b, c) VALUES {}", list(4 * n, ",", |i| format!("({i}, 'x{i}')")))),
        ("arms of UNION", filled(50, ""), list((n / 16).min(400), " UNION ", |i| format!("SELECT a, b + {i} FROM t"))),
        ("tables of a join", each(tables, |i| format!("CREATE TABLE t{i}(a INTEGER PRIMARY KEY, b); INSERT INTO t{i} VALUES(1, 1);")),
            format!("SELECT count(*) FROM {} WHERE {}", list(tables, ",", |i| format!("t{i}")),
                list(tables - 1, " AND ", |i| format!("t{}.a = t{i}.b", i + 1)))),
        ("nested views", table(&each(tables, |i| {
            let from = if i == 0 { "t".into() } else { format!("v{}", i - 1) };
            format!("CREATE VIEW v{i} AS SELECT a, b + 1 AS b FROM {from};")
        })), each(10, |k| format!("SELECT sum(b) FROM v{} WHERE a > {k};", tables - 1))),
        ("savepoints within each other", table(""),
            each(n / 4, |i| format!("SAVEPOINT s{i}; INSERT INTO t(b) VALUES({i});")) + "RELEASE s0"),
        ("rolled back to a savepoint", filled(10 * n, "BEGIN; UPDATE t SET b = b + 1; SAVEPOINT s;"),
            each(n, |i| format!("UPDATE t SET b = 0 WHERE a = {}; ROLLBACK TO s;", 1 + i * 13 % n))),
        ("auto-vacuum", "PRAGMA auto_vacuum = 1; ".to_string() + &filled(10 * n, ""),
            each(n / 10, |i| format!("DELETE FROM t WHERE a BETWEEN {} AND {};", i * 100, i * 100 + 50))),
        ("indexes of a table", table(&each(tables, |i| format!("CREATE INDEX t{i} ON t(b, c, {i});"))),
            rows(n) + "INSERT INTO t SELECT i, i * 7919 % 20011, i FROM s"),
        ("conflicts", filled(10 * n, "CREATE UNIQUE INDEX tc ON t(c);"),
            "INSERT OR IGNORE INTO t(b, c) SELECT b, c FROM t; INSERT OR REPLACE INTO t(b, c) SELECT b, c FROM t".into()),
        ("a cascade", "PRAGMA foreign_keys = 1; CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE t(a INTEGER PRIMARY KEY, p INTEGER REFERENCES p \
            ON DELETE CASCADE); CREATE INDEX tp ON t(p);".to_string()
            + &format!("{}INSERT INTO p SELECT i FROM s; {}INSERT INTO t SELECT i, 1 + i % {n} FROM s;", rows(n), rows(10 * n)),
            "DELETE FROM p".into()),
        ("children without a usable index", "PRAGMA foreign_keys = 1; CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE t(a, p REFERENCES p);".to_string()
            + &format!("{}INSERT INTO p SELECT i FROM s; {}INSERT INTO t SELECT i, i + 200 FROM s WHERE i < {n} - 200;", rows(n), rows(n)),
            each(100, |i| format!("DELETE FROM p WHERE id = {};", i + 1))),
        ("integrity_check", filled(20 * n, "CREATE INDEX tb ON t(b); CREATE UNIQUE INDEX tc ON t(c, a);"), "PRAGMA integrity_check".into()),
        ("lengths of long values", format!("{}{}INSERT INTO t SELECT i, zeroblob(20000), i FROM s;", table(""), rows(n / 4)),
            "SELECT count(*), sum(c), sum(length(b)), sum(b IS NULL), count(DISTINCT typeof(b)) FROM t".into()),
        ("long texts", String::new(), format!("SELECT {}", ["replace(x, 'a', 'bc')", "hex(x)", "upper(x)", "instr(x, 'zz')", "trim(x, 'ab')",
            "x LIKE '%_z'", "x GLOB '*[y]?'", "substr(x, -5)", "quote(x)", "length(x)", "unicode(x)"].map(|f| format!("length({f})")).join(", "))
            + &format!(" FROM (SELECT replace(hex(zeroblob({})), '00', 'abcd') AS x)", 20 * n)),
        ("zeros", table(""), format!("INSERT INTO t VALUES(1, zeroblob({}), 1)", 5000 * n)),
        ("a JSON array", String::new(), format!("SELECT count(*), sum(value ->> 'k') FROM json_each({json}); \
            SELECT length(json_set({json}, '$[3]', 1)), json_extract({json}, '$[#-1].k'), json_array_length({json})")),
        ("a JSON array that grows", "CREATE TABLE t(j); INSERT INTO t VALUES('[]');".into(),
            within(each(n / 2, |i| format!("UPDATE t SET j = json_insert(j, '$[#]', {i});")))),
        ("texts put together", String::new(), rows(50 * n) + "SELECT length(group_concat(i)), length(json_group_array(i)) FROM s"),
        ("sliding windows", filled(10 * n, ""), "SELECT sum(b) FROM (SELECT min(b) OVER w AS b FROM t WINDOW w AS (ORDER BY a \
            ROWS BETWEEN 500 PRECEDING AND CURRENT ROW))".into()),
        ("a tree", format!("{}INSERT INTO t SELECT i, i / 2, i FROM s; CREATE INDEX tb ON t(b);", table("") + &rows(10 * n)),
            "WITH RECURSIVE x(a, l) AS (SELECT 1, 0 UNION SELECT t.a, l + 1 FROM x JOIN t ON t.b = x.a) SELECT max(l), count(*) FROM x".into()),
        ("wide rows sorted", format!("{}{}INSERT INTO t SELECT i, i * 7919 % 2003, zeroblob(10000) FROM s;", table(""), rows(n / 2)),
            "SELECT count(*) FROM (SELECT b, c FROM t ORDER BY b LIMIT -1 OFFSET 1)".into()),
        ("documents", "CREATE VIRTUAL TABLE f USING fts5(x);".into(),
            within(rows(2 * n) + "INSERT INTO f SELECT 'word' || (i % 97) || ' ' || (i * 7919 % 2003) || ' some more words' FROM s;")
                + "SELECT count(*) FROM f WHERE f MATCH 'word5 OR more'; DELETE FROM f WHERE rowid % 3 = 0"),
    ];
    cases.into_iter().map(|(title, setup, work)| Script { title, setup, work }).collect()
}
