//! Virtual tables: table-valued functions, and modules of a user's own from creation to removal.

use iolite::engine::{
    Connection, Constraint, Declared, Error, FilterArgs, Function, FunctionFlags, Host, Implementation,
    IndexInfo, Module, ModuleKind, Result, TableArgs, Trust, Value, VirtualCursor, VirtualTable,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Rows as the shell shows them, a line each; an error's message.
fn answer(c: &Connection, sql: &str) -> String {
    match c.query(sql, &[]) {
        Ok(rows) => {
            let line =
                |r: &Vec<Value>| r.iter().map(|v| v.text_carried().to_string()).collect::<Vec<_>>().join("|");
            rows.iter().map(line).collect::<Vec<_>>().join(" ")
        }
        Err(e) => e.message().to_string(),
    }
}

/// Each statement with its answer.
fn check(c: &Connection, list: &[(&str, &str)]) {
    for (sql, want) in list {
        assert_eq!(answer(c, sql), *want, "{sql}");
    }
}

fn with_documents() -> Connection {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, j TEXT);
         INSERT INTO t VALUES(1, '[1,2,{\"a\":3,\"b c\":[4,null]}]'), (2, '{\"x\":true}'), (3, NULL), (4, '7');
         CREATE INDEX tj ON t(j);",
    )
    .unwrap();
    c
}

#[test]
fn elements_of_json_are_rows() {
    let c = with_documents();
    check(
        &c,
        &[
            (
                r#"SELECT key, value, type, atom, fullkey, path FROM json_each('[1,2.5,"x",null,true,{"a":1}]')"#,
                r#"0|1|integer|1|$[0]|$ 1|2.5|real|2.5|$[1]|$ 2|x|text|x|$[2]|$ 3||null||$[3]|$ 4|1|true|1|$[4]|$ 5|{"a":1}|object||$[5]|$"#,
            ),
            (
                r#"SELECT key, atom, fullkey, path FROM json_tree('{"a":[1,{"b":2}],"c d":3,"e_f":4}')"#,
                r#"||$|$ a||$.a|$ 0|1|$.a[0]|$.a 1||$.a[1]|$.a b|2|$.a[1].b|$.a[1] c d|3|$."c d"|$ e_f|4|$."e_f"|$"#,
            ),
            (
                r#"SELECT key, value, fullkey, path, root FROM json_each('{"a":{"b":[1,2]}}', '$.a.b')"#,
                "0|1|$.a.b[0]|$.a.b|$.a.b 1|2|$.a.b[1]|$.a.b|$.a.b",
            ),
            ("SELECT count(*) FROM json_tree('[[1],[2]]') WHERE parent IS NULL", "1"),
            (
                "SELECT a.value FROM json_tree('[[1],[2]]') a JOIN json_tree('[[1],[2]]') b ON b.id = a.parent AND b.key = 1",
                "2",
            ),
            ("SELECT typeof(value), json(value) FROM jsonb_each('[[1]]')", "blob|[1]"),
            ("SELECT typeof(value) FROM json_each('[[1]]')", "text"),
            ("SELECT key, value FROM json_each('5')", "|5"),
            ("SELECT count(*) FROM json_each(NULL)", "0"),
            ("SELECT count(*) FROM json_each('[1]', NULL)", "0"),
            ("SELECT count(*) FROM json_each", "0"),
            ("SELECT value FROM json_each WHERE json = '[1,2]'", "1 2"),
            ("SELECT value FROM json_each WHERE json IN ('[1,2]', '[3]') ORDER BY 1", "1 2 3"),
            ("SELECT value FROM json_each('[1]') WHERE json = '[2]'", ""),
            ("SELECT * FROM json_each('bad')", "malformed JSON"),
            ("SELECT * FROM json_each(1, 2, 3)", "too many arguments on json_each() - max 2"),
            ("DELETE FROM json_each", "table json_each may not be modified"),
            ("SELECT * FROM t(1)", "'t' is not a function"),
        ],
    );
}

#[test]
fn arguments_may_be_columns_of_tables_before() {
    let c = with_documents();
    check(
        &c,
        &[
            ("SELECT t.id, key FROM t, json_each(t.j) ORDER BY 1, 2", "1|0 1|1 1|2 2|x 4|"),
            ("SELECT t.id, e.key FROM t LEFT JOIN json_each(t.j) e ORDER BY 1, 2", "1|0 1|1 1|2 2|x 3| 4|"),
            (
                "SELECT t.id, e.key FROM t LEFT JOIN json_each(t.j) e ON e.type = 'integer' ORDER BY 1, 2",
                "1|0 1|1 2| 3| 4|",
            ),
            ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM json_each(t.j) WHERE value = 2)", "1"),
            ("SELECT (SELECT count(*) FROM json_tree(j) WHERE atom > 1) FROM t ORDER BY t.id", "3 0 0 1"),
            ("SELECT a.value, b.value FROM generate_series(1,2) a, generate_series(a.value,2) b", "1|1 1|2 2|2"),
            ("SELECT value FROM generate_series(1,3) NATURAL JOIN generate_series(2,5)", "2 3"),
            ("CREATE VIEW v AS SELECT t.id, key FROM t, json_each(j)", ""),
            ("SELECT count(*) FROM v", "5"),
            (
                "CREATE TRIGGER r AFTER INSERT ON t BEGIN
                   UPDATE t SET j = (SELECT group_concat(value) FROM json_each(new.j)) WHERE id = new.id; END",
                "",
            ),
            ("INSERT INTO t VALUES(9, '[7,8]')", ""),
            ("SELECT j FROM t WHERE id = 9", "7,8"),
        ],
    );
}

#[test]
fn series() {
    let c = Connection::open_in_memory().unwrap();
    check(
        &c,
        &[
            ("SELECT value FROM generate_series(1, 10, 3)", "1 4 7 10"),
            ("SELECT value FROM generate_series(10, 1, -4)", "10 6 2"),
            ("SELECT value FROM generate_series(10, 1, -4) ORDER BY value", "2 6 10"),
            ("SELECT value FROM generate_series(1, 10, 4) ORDER BY value DESC", "9 5 1"),
            ("SELECT value FROM generate_series(1, 10) WHERE value BETWEEN 3 AND 5", "3 4 5"),
            ("SELECT value FROM generate_series(1, 10) WHERE value > 7.5", "8 9 10"),
            ("SELECT value FROM generate_series(1, 10) WHERE value = '3'", ""),
            ("SELECT value FROM generate_series(1, 100, 7) WHERE value IN (8, 9, 15)", "8 15"),
            ("SELECT value, start, stop, step FROM generate_series(1, 2)", "1|1|2|1 2|1|2|1"),
            ("SELECT value FROM generate_series(1) LIMIT 3", "1 2 3"),
            ("SELECT count(*) FROM generate_series(NULL, 3)", "0"),
            ("SELECT count(*) FROM generate_series(5, 1)", "0"),
            ("SELECT count(*) FROM generate_series(1, 5, 0)", "5"),
            (
                "SELECT value FROM generate_series(9223372036854775806, 9223372036854775807)",
                "9223372036854775806 9223372036854775807",
            ),
            (
                "SELECT value FROM generate_series(-9223372036854775808, 9223372036854775807, 9223372036854775807)",
                "-9223372036854775808 -1 9223372036854775806",
            ),
            ("SELECT value FROM generate_series(1, 3, -9223372036854775808)", ""),
            ("SELECT value % 2, count(*) FROM generate_series(1, 9) GROUP BY 1", "0|4 1|5"),
            ("SELECT value, count(*) FROM generate_series(1, 3) GROUP BY value", "1|1 2|1 3|1"),
            ("SELECT max(value), min(value) FROM generate_series(1, 3)", "3|1"),
            ("SELECT max(value) FROM generate_series(1, 3)", "3"),
            (
                "SELECT value FROM generate_series",
                "first argument to \"generate_series()\" missing or unusable",
            ),
        ],
    );
}

#[test]
fn pragmas_that_read_are_tables() {
    let c = with_documents();
    check(
        &c,
        &[
            ("SELECT name, type FROM pragma_table_info('t')", "id|INTEGER j|TEXT"),
            ("SELECT name, arg, schema FROM pragma_table_info('t', 'main')", "id|t|main j|t|main"),
            ("SELECT m.name, i.name FROM sqlite_master m, pragma_table_info(m.name) i", "t|id t|j"),
            ("SELECT name FROM pragma_index_info('tj')", "j"),
            ("SELECT count(*) FROM pragma_table_info('nosuch')", "0"),
            ("SELECT * FROM pragma_user_version, pragma_encoding", "0|UTF-8"),
            ("SELECT integrity_check FROM pragma_integrity_check", "ok"),
            ("SELECT name, ncol FROM pragma_table_list('t')", "t|2"),
            ("SELECT * FROM pragma_table_info('t\"); DROP TABLE t; --')", ""),
            ("SELECT count(*) FROM t", "4"),
            // One that does something is no table.
            ("SELECT * FROM pragma_wal_checkpoint", "no such table: pragma_wal_checkpoint"),
        ],
    );
}

#[test]
fn pages_of_the_file_are_rows() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "PRAGMA page_size = 1024; CREATE TABLE t(id INTEGER PRIMARY KEY, b); CREATE TABLE w(k PRIMARY KEY) WITHOUT ROWID;
         INSERT INTO t SELECT value, zeroblob(100) FROM generate_series(1, 20);
         INSERT INTO t VALUES(50, zeroblob(3000)); INSERT INTO w SELECT 'key' || value FROM generate_series(1, 3);",
    )
    .unwrap();
    check(
        &c,
        &[
            (
                "SELECT name, path, pagetype, ncell, payload, mx_payload FROM dbstat WHERE name = 'w'",
                "w|/|leaf|3|18|6",
            ),
            (
                "SELECT name, count(*), sum(ncell), max(mx_payload) FROM dbstat GROUP BY name ORDER BY 1",
                "sqlite_schema|1|2|57 t|7|24|3004 w|1|3|6",
            ),
            (
                "SELECT path, payload FROM dbstat WHERE pagetype = 'overflow'",
                "/003/000+000000|1020 /003/000+000001|1020",
            ),
            (
                "SELECT name, path, pageno, ncell, pgsize FROM dbstat WHERE aggregate = 1",
                "sqlite_schema||1|2|1024 t||7|24|7168 w||1|3|1024",
            ),
            (
                "SELECT count(*), sum(pgsize) = sum(length(data)) FROM dbstat JOIN sqlite_dbpage ON pgno = pageno",
                "9|1",
            ),
            ("SELECT count(*) FROM dbstat('none')", "0"),
            ("SELECT pgno, length(data) FROM sqlite_dbpage WHERE pgno IN (1, 99)", "1|1024"),
            ("SELECT substr(data, 1, 15) FROM sqlite_dbpage LIMIT 1", "SQLite format 3"),
            ("CREATE VIEW d AS SELECT * FROM dbstat", ""),
            ("SELECT * FROM d", "unsafe use of virtual table \"dbstat\""),
        ],
    );
}

/// What happened to the tables of a module, in order.
#[derive(Default)]
struct Log(RefCell<Vec<String>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.borrow_mut().push(what.into());
    }

    fn take(&self) -> String {
        self.0.take().join(", ")
    }
}

/// Tables that keep their rows in a table of their own beside them, `NAME_data`.
struct Beside {
    log: Rc<Log>,
    fails: Rc<Cell<&'static str>>,
}

struct Table {
    log: Rc<Log>,
    fails: Rc<Cell<&'static str>>,
    host: std::rc::Weak<dyn Host>,
    data: String,
}

struct Rows {
    host: Rc<dyn Host>,
    data: String,
    rows: Vec<Vec<Value>>,
    at: usize,
}

fn fail(fails: &Cell<&'static str>, at: &str) -> Result<()> {
    if fails.get() == at { Err(Error::sql(format!("{at} failed"))) } else { Ok(()) }
}

impl Beside {
    fn table(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        // Whoever is called may call back.
        let imp = Implementation::Scalar(|_, _| Ok(Value::Int(42)));
        host.add_function(Function { name: "made".into(), args: 0, flags: FunctionFlags::INNOCUOUS, imp })?;
        host.query("SELECT count(*) FROM sqlite_master", &[])?;
        let table = Table {
            log: self.log.clone(),
            fails: self.fails.clone(),
            host: Rc::downgrade(host),
            data: format!("\"{}\".\"{}_data\"", args.database, args.table),
        };
        Ok(Declared::new("CREATE TABLE x(a INTEGER, b TEXT COLLATE NOCASE, c HIDDEN)", Rc::new(table)))
    }
}

impl Module for Beside {
    fn create(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        self.log.note(format!("create {}.{} {:?}", args.database, args.table, args.args));
        let data = format!("\"{}\".\"{}_data\"", args.database, args.table);
        host.query(&format!("CREATE TABLE {data}(a, b)"), &[])?;
        host.query(
            &format!("INSERT INTO {data} VALUES(1, 'one'), (2, 'two'), (?, 'many')"),
            &[Value::Int(3)],
        )?;
        fail(&self.fails, "create")?;
        self.table(host, args)
    }

    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        self.log.note(format!("connect {}", args.table));
        fail(&self.fails, "connect")?;
        self.table(host, args)
    }
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let shown = |c: &Constraint| format!("{}{:?}{}", c.column, c.op, if c.usable { "" } else { "!" });
        let all: Vec<String> = info.constraints.iter().map(shown).collect();
        self.log.note(format!("index {}", all.join(" ")));
        self.host.upgrade().unwrap().query("SELECT 1", &[])?;
        fail(&self.fails, "best_index")
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        fail(&self.fails, "open")?;
        let host = self.host.upgrade().unwrap();
        Ok(Box::new(Rows { host, data: self.data.clone(), rows: Vec::new(), at: 0 }))
    }

    fn destroy(&self) -> Result<()> {
        self.log.note("destroy");
        fail(&self.fails, "destroy")?;
        self.host.upgrade().unwrap().query(&format!("DROP TABLE {}", self.data), &[]).map(|_| ())
    }
}

impl VirtualCursor for Rows {
    fn filter(&mut self, _: i32, _: &str, _: &FilterArgs<'_>) -> Result<()> {
        self.rows = self.host.query(&format!("SELECT a, b FROM {} ORDER BY rowid", self.data), &[])?;
        self.at = 0;
        Ok(())
    }
    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
    fn eof(&self) -> bool {
        self.at >= self.rows.len()
    }
    fn column(&self, n: usize) -> Result<Value> {
        Ok(self.rows[self.at].get(n).cloned().unwrap_or(Value::Null))
    }
    fn rowid(&self) -> Result<i64> {
        Ok(self.at as i64)
    }
}

fn with_module(c: &Connection) -> (Rc<Log>, Rc<Cell<&'static str>>) {
    let (log, fails) = (Rc::new(Log::default()), Rc::new(Cell::new("")));
    c.create_module("beside", Rc::new(Beside { log: log.clone(), fails: fails.clone() }));
    (log, fails)
}

#[test]
fn a_table_of_a_module_lives_from_create_to_drop() {
    let c = Connection::open_in_memory().unwrap();
    let (log, _) = with_module(&c);
    check(
        &c,
        &[
            ("CREATE VIRTUAL TABLE v USING beside(x, y = 2)", ""),
            (
                "SELECT type, rootpage, sql FROM sqlite_master WHERE name = 'v'",
                "table|0|CREATE VIRTUAL TABLE v USING beside(x, y = 2)",
            ),
            ("CREATE VIRTUAL TABLE v USING beside", "table v already exists"),
            ("CREATE VIRTUAL TABLE IF NOT EXISTS v USING beside", ""),
            ("SELECT *, made() FROM v", "1|one|42 2|two|42 3|many|42"),
            ("SELECT name, hidden FROM pragma_table_xinfo('v')", "a|0 b|0 c|1"),
            ("SELECT type, ncol FROM pragma_table_list('v')", "virtual|3"),
            ("SELECT a FROM v WHERE b = 'TWO'", "2"),
            ("SELECT v.a, w.a FROM v LEFT JOIN v w ON w.a = v.a + 1", "1|2 2|3 3|"),
            ("INSERT INTO v VALUES(1, 2)", "table v may not be modified"),
            ("CREATE INDEX i ON v(a)", "virtual tables may not be indexed"),
            ("PRAGMA integrity_check", "ok"),
            ("VACUUM", ""),
            ("SELECT count(*) FROM v", "3"),
        ],
    );
    assert!(log.take().starts_with("create main.v [\"x\", \"y = 2\"], index"));
    check(
        &c,
        &[
            ("DROP TABLE v", ""),
            ("SELECT count(*) FROM sqlite_master", "0"),
            ("SELECT * FROM v", "no such table: v"),
        ],
    );
    assert!(log.take().ends_with("destroy"));
}

#[test]
fn what_a_query_says_of_a_column_is_offered() {
    let c = Connection::open_in_memory().unwrap();
    let (log, _) = with_module(&c);
    c.execute_batch("CREATE VIRTUAL TABLE v USING beside").unwrap();
    log.take();
    for (condition, want) in [
        ("a = 1", "0Eq"),
        ("a IS 1", "0Is"),
        ("a IS NOT 1", "0IsNot"),
        ("a <> 1", "0Ne"),
        ("a IS NULL", "0IsNull"),
        ("a IS NOT NULL", "0IsNotNull"),
        ("1 < a", "0Gt"),
        ("a BETWEEN 1 AND 2", "0Ge 0Le"),
        ("a IN (1, 2)", "0Eq"),
        ("rowid = 1", "-1Eq"),
        ("b LIKE 'o%'", "1Ge 1Lt 1Like"),
        ("b GLOB 'o*'", "1Ge 1Lt 1Glob"),
        ("a + 1 = 2", ""),
    ] {
        c.query(&format!("SELECT a FROM v WHERE {condition}"), &[]).unwrap();
        let first = log.take();
        assert_eq!(first.trim_start_matches("index").trim_start(), want, "{condition}");
    }
    assert_eq!(answer(&c, "SELECT a FROM v WHERE a IS NOT 1 AND b LIKE 'T%' AND a IN (1, 2, 3)"), "2");
}

#[test]
fn errors_of_a_module_leave_nothing_behind() {
    let c = Connection::open_in_memory().unwrap();
    let (_, fails) = with_module(&c);
    fails.set("create");
    check(
        &c,
        &[
            ("CREATE VIRTUAL TABLE v USING beside", "create failed"),
            ("SELECT count(*) FROM sqlite_master", "0"),
            ("CREATE VIRTUAL TABLE v USING nosuch", "no such module: nosuch"),
            ("CREATE VIRTUAL TABLE v USING json_each", "no such module: json_each"),
            ("SELECT count(*) FROM sqlite_master", "0"),
        ],
    );
    fails.set("");
    check(&c, &[("CREATE VIRTUAL TABLE v USING beside", ""), ("BEGIN", "")]);
    for at in ["best_index", "open", "destroy"] {
        fails.set(at);
        let sql = if at == "destroy" { "DROP TABLE v" } else { "SELECT count(*) FROM v" };
        assert_eq!(answer(&c, sql), format!("{at} failed"));
        fails.set("");
        assert_eq!(answer(&c, "SELECT count(*) FROM v"), "3", "{at}");
    }
    check(
        &c,
        &[
            ("DROP TABLE v", ""),
            ("ROLLBACK", ""),
            ("SELECT count(*) FROM v", "3"),
            ("BEGIN", ""),
            ("CREATE VIRTUAL TABLE w USING beside", ""),
            ("SELECT count(*) FROM w", "3"),
            ("ROLLBACK", ""),
            ("SELECT count(*) FROM w", "no such table: w"),
            ("SELECT name FROM sqlite_master ORDER BY 1", "v v_data"),
        ],
    );
}

#[test]
fn another_connection_connects_to_what_is_there() {
    let dir = iolite_testkit::Scratch::new();
    let name = dir.name("x.db");
    let c = Connection::open(&name).unwrap();
    let (_, _) = with_module(&c);
    check(
        &c,
        &[
            ("CREATE VIRTUAL TABLE v USING beside", ""),
            ("ATTACH ':memory:' AS other", ""),
            ("CREATE VIRTUAL TABLE other.o USING beside", ""),
            ("CREATE VIRTUAL TABLE temp.o USING beside", ""),
            ("SELECT count(*) FROM v JOIN other.o USING (a) JOIN temp.o AS p USING (a)", "3"),
        ],
    );
    let d = Connection::open(&name).unwrap();
    check(
        &d,
        &[
            ("SELECT * FROM v", "no such module: beside"),
            ("SELECT count(*) FROM v_data", "3"),
            ("DROP TABLE v", "no such module: beside"),
        ],
    );
    let (log, fails) = with_module(&d);
    fails.set("connect");
    check(&d, &[("SELECT count(*) FROM v", "connect failed")]);
    fails.set("");
    check(&d, &[("SELECT count(*) FROM v", "3"), ("SELECT a FROM v", "1 2 3")]);
    assert_eq!(log.take().matches("connect").count(), 2);
    check(&c, &[("DROP TABLE v", "")]);
    check(&d, &[("SELECT * FROM v", "no such table: v")]);
}

/// Tables that may be named in statements only, or anywhere.
struct Trusted(Trust);

impl Module for Trusted {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }
    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let beside = Beside { log: Rc::default(), fails: Rc::default() };
        Ok(Declared { trust: self.0, ..beside.table(host, args)? })
    }
}

#[test]
fn views_name_only_tables_that_are_trusted() {
    for (trust, trusted, untrusted) in
        [(Trust::Innocuous, true, true), (Trust::Normal, true, false), (Trust::DirectOnly, false, false)]
    {
        let c = Connection::open_in_memory().unwrap();
        c.create_module("m", Rc::new(Trusted(trust)));
        c.execute_batch("CREATE TABLE m_data(a, b); CREATE VIEW v AS SELECT a FROM m;").unwrap();
        for (setting, allowed) in [("ON", trusted), ("OFF", untrusted)] {
            c.execute_batch(&format!("PRAGMA trusted_schema = {setting}")).unwrap();
            let want = if allowed { "" } else { "unsafe use of virtual table \"m\"" };
            check(&c, &[("SELECT * FROM v", want), ("SELECT a FROM m", "")]);
        }
    }
}
