//! A table in memory, written through the public traits alone: what it is told, what takes part in transactions, what a query
//! asks of it, and what happens when its code fails, panics or comes back to the connection.

use iolite::engine::{
    Change, Code, Connection, ConstraintOp, Declared, Error, FilterArgs, Function, FunctionFlags, Host,
    Implementation, IndexInfo, Module, ModuleKind, OrderUse, Overload, Participant, Result, TableArgs, Trust,
    Value, VirtualCursor, VirtualTable,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

type Row = (i64, Vec<Value>);

/// What the tables of one module have in common.
#[derive(Default)]
struct Shared {
    log: RefCell<Vec<String>>,
    /// What fails, and whether by a panic.
    fails: Cell<&'static str>,
    panics: Cell<bool>,
    /// A statement that is run in the midst of this call.
    runs: RefCell<Option<(&'static str, String)>>,
    /// What `best_index` takes over.
    takes: Cell<Takes>,
    rows: RefCell<BTreeMap<String, Vec<Row>>>,
}

#[derive(Clone, Copy, Default)]
struct Takes {
    conditions: bool,
    limit: bool,
    lists: bool,
    order: bool,
}

struct Memory(Rc<Shared>);

struct Table {
    shared: Rc<Shared>,
    host: Weak<dyn Host>,
    name: String,
    columns: usize,
    before: RefCell<Vec<Vec<Row>>>,
}

impl Shared {
    fn at(&self, host: Option<&dyn Host>, call: &'static str, what: impl Into<String>) -> Result<()> {
        self.log.borrow_mut().push(format!("{call} {}", what.into()).trim_end().into());
        if self.fails.get() == call {
            assert!(!self.panics.get(), "{call} panics");
            return Err(Error::new(Code::ConstraintVtab, format!("{call} failed")));
        }
        let sql = self.runs.borrow().as_ref().filter(|r| r.0 == call).map(|r| r.1.clone());
        match (host, sql) {
            (Some(h), Some(sql)) => h.query(&sql, &[]).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn take(&self) -> String {
        self.log.take().join(", ")
    }
}

impl Module for Memory {
    fn kind(&self) -> ModuleKind {
        ModuleKind::Eponymous
    }
    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let columns = if args.args.is_empty() { "a, b TEXT, c HIDDEN".into() } else { args.args.join(", ") };
        let keyed = if columns.contains("PRIMARY KEY") { " WITHOUT ROWID" } else { "" };
        let table = Table {
            shared: self.0.clone(),
            host: Rc::downgrade(host),
            name: format!("{}.{}", args.database, args.table),
            columns: columns.split(',').count(),
            before: RefCell::default(),
        };
        Ok(Declared::new(format!("CREATE TABLE x({columns}){keyed}"), Rc::new(table)))
    }
    fn is_shadow(&self, suffix: &str) -> bool {
        suffix == "data"
    }
}

impl Table {
    fn at(&self, call: &'static str, what: impl Into<String>) -> Result<()> {
        self.shared.at(self.host.upgrade().as_deref(), call, what)
    }

    fn rows(&self) -> Vec<Row> {
        self.shared.rows.borrow().get(&self.name).cloned().unwrap_or_default()
    }

    fn set(&self, rows: Vec<Row>) {
        self.shared.rows.borrow_mut().insert(self.name.clone(), rows);
    }
}

fn text(v: &Value) -> String {
    v.text_carried().to_string()
}

fn texts(list: &[Value]) -> String {
    list.iter().map(text).collect::<Vec<_>>().join("|")
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let takes = self.shared.takes.get();
        let mut shown = Vec::new();
        let mut n = 0;
        info.ordered = takes.order && info.order_by.iter().all(|o| o.column == -1 && !o.desc);
        let first = takes.limit && (info.ordered || info.order_by.is_empty());
        for (c, u) in info.constraints.iter().zip(&mut info.usage) {
            shown.push(format!("{}{:?}", c.column, c.op));
            let counts = matches!(c.op, ConstraintOp::Limit | ConstraintOp::Offset);
            if c.usable && (if counts { first } else { takes.conditions }) {
                n += 1;
                (u.arg, u.omit, u.list) = (n, counts, takes.lists && c.is_in);
                info.index_str += &format!("{},{};", c.column, c.op.code());
            }
        }
        info.cost = 1000.0 / (n + 1) as f64;
        if info.order_use != OrderUse::Sorted {
            shown.push(format!("{:?}", info.order_use));
        }
        self.at("index", shown.join(" "))
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        self.at("open", "")?;
        let (shared, host) = (self.shared.clone(), self.host.clone());
        Ok(Box::new(Rows { shared, host, rows: self.rows(), at: 0 }))
    }

    fn writable(&self) -> bool {
        true
    }

    fn update(&self, c: &Change<'_>) -> Result<i64> {
        let old = c.old.map_or("new".into(), text);
        let shown = |(k, v): (usize, &Value)| if c.is_unchanged(k) { "=".into() } else { text(v) };
        let new = c.new.map(|(key, row)| {
            format!(" {}: {}", text(key), row.iter().enumerate().map(shown).collect::<Vec<_>>().join("|"))
        });
        self.at("update", format!("{old}{}", new.unwrap_or_default()))?;
        let mut rows = self.rows();
        let keyed = self.columns == 2;
        let find = |rows: &[Row], key: &Value| {
            rows.iter().position(|r| if keyed { text(&r.1[0]) == text(key) } else { r.0 == key.to_int() })
        };
        let found = c.old.and_then(|k| find(&rows, k));
        let Some((key, row)) = c.new else {
            found.map(|k| rows.remove(k));
            self.set(rows);
            return Ok(0);
        };
        let wanted = if keyed { &row[0] } else { key };
        if let Some(k) = find(&rows, wanted).filter(|k| !wanted.is_null() && Some(*k) != found) {
            if c.conflict != iolite::engine::OnConflict::Replace {
                return Err(Error::new(Code::ConstraintVtab, "taken"));
            }
            rows.remove(k);
        }
        let id = match (found.map(|k| rows[k].0), key.is_null() || keyed) {
            (Some(id), true) => id,
            (None, true) => rows.iter().map(|r| r.0).max().unwrap_or(0) + 1,
            (_, false) => key.to_int(),
        };
        let mut new = row.to_vec();
        match c.old.and_then(|k| find(&rows, k)) {
            Some(k) => {
                (0..new.len())
                    .filter(|c2| c.is_unchanged(*c2))
                    .for_each(|c2| new[c2] = rows[k].1[c2].clone());
                rows[k] = (id, new);
            }
            None => rows.push((id, new)),
        }
        self.set(rows);
        Ok(id)
    }

    fn participant(self: Rc<Self>) -> Option<Rc<dyn Participant>> {
        Some(self)
    }

    fn rename(&self, name: &str) -> Result<()> {
        self.at("rename", name)?;
        let rows = self.rows();
        self.shared.rows.borrow_mut().insert(format!("main.{name}"), rows);
        Ok(())
    }

    fn function(&self, name: &str, args: usize) -> Option<Overload> {
        let imp = Implementation::Scalar(|ctx, args| {
            let cursor = ctx.cursor.and_then(|c| c.as_any()).and_then(|c| c.downcast_ref::<Rows>());
            let at = cursor.map_or(-1, |c| c.at as i64);
            Value::text(format!("{at}:{}", text(&args[0])))
        });
        let function =
            Function { name: name.into(), args: args as i16, flags: FunctionFlags::default(), imp };
        let known = matches!(name, "place" | "near");
        known.then(|| Overload { function: Rc::new(function), constraint: (name == "near").then_some(160) })
    }

    fn integrity(&self, quick: bool) -> Result<Option<String>> {
        self.at("integrity", quick.to_string())?;
        Ok((self.rows().len() > 2).then(|| format!("too many rows in {}", self.name)))
    }
}

impl Participant for Table {
    fn begin(&self) -> Result<()> {
        self.before.replace(vec![self.rows()]);
        self.at("begin", "")
    }
    fn sync(&self) -> Result<()> {
        self.at("sync", "")
    }
    fn commit(&self) {
        let _ = self.at("commit", "");
    }
    fn rollback(&self) {
        let first = self.before.borrow().first().cloned();
        self.set(first.unwrap_or_default());
        let _ = self.at("rollback", "");
    }
    fn savepoint(&self, n: i32) -> Result<()> {
        let rows = self.rows();
        self.before.borrow_mut().resize(n as usize + 2, rows);
        self.at("savepoint", n.to_string())
    }
    fn release(&self, n: i32) -> Result<()> {
        self.before.borrow_mut().truncate(n as usize + 1);
        self.at("release", n.to_string())
    }
    fn rollback_to(&self, n: i32) -> Result<()> {
        let rows = self.before.borrow().get((n + 1) as usize).cloned();
        self.set(rows.unwrap_or_default());
        self.at("back", n.to_string())
    }
}

struct Rows {
    shared: Rc<Shared>,
    host: Weak<dyn Host>,
    rows: Vec<Row>,
    at: usize,
}

impl Rows {
    fn at(&self, call: &'static str, what: impl Into<String>) -> Result<()> {
        self.shared.at(self.host.upgrade().as_deref(), call, what)
    }
}

impl VirtualCursor for Rows {
    fn filter(&mut self, _: i32, plan: &str, args: &FilterArgs<'_>) -> Result<()> {
        let list = |k: usize| args.list(k).map(|l| format!("[{}]", texts(l)));
        let shown = (0..args.len()).map(|k| list(k).unwrap_or_else(|| text(&args[k])));
        self.at("filter", shown.collect::<Vec<_>>().join(" "))?;
        for (k, term) in plan.split_terminator(';').enumerate() {
            match term {
                "0,74" => drop(self.rows.drain(..(args[k].to_int() as usize).min(self.rows.len()))),
                "0,73" => self.rows.truncate(args[k].to_int() as usize),
                _ => {}
            }
        }
        self.at = 0;
        Ok(())
    }
    fn next(&mut self) -> Result<()> {
        self.at("next", "")?;
        self.at += 1;
        Ok(())
    }
    fn eof(&self) -> bool {
        self.at >= self.rows.len()
    }
    fn column(&self, n: usize) -> Result<Value> {
        self.at("column", n.to_string())?;
        Ok(self.rows[self.at].1.get(n).cloned().unwrap_or_default())
    }
    fn column_unchanged(&self, _: usize) -> Result<Option<Value>> {
        Ok(None)
    }
    fn rowid(&self) -> Result<i64> {
        self.at("rowid", "")?;
        Ok(self.rows[self.at].0)
    }
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

fn answer(c: &Connection, sql: &str) -> String {
    match c.query(sql, &[]) {
        Ok(rows) => rows.iter().map(|r| texts(r)).collect::<Vec<_>>().join(" "),
        Err(e) => e.message().to_string(),
    }
}

fn check(c: &Connection, list: &[(&str, &str)]) {
    for (sql, want) in list {
        assert_eq!(answer(c, sql), *want, "{sql}");
    }
}

/// What a statement makes of the table, but for the reading of its rows.
fn heard(c: &Connection, shared: &Shared, sql: &str) -> String {
    shared.log.take();
    let answered = c.execute_batch(sql).map_or_else(|e| format!("; {}", e.message()), |_| String::new());
    let read = |l: &&String| {
        !["index", "open", "next", "column", "rowid", "filter"].iter().any(|w| l.starts_with(w))
    };
    let log = shared.log.take();
    log.iter().filter(read).cloned().collect::<Vec<_>>().join(", ") + &answered
}

fn connection() -> (Connection, Rc<Shared>) {
    let c = Connection::open_in_memory().unwrap();
    let shared = Rc::new(Shared::default());
    c.create_module("mem", Rc::new(Memory(shared.clone())));
    (c, shared)
}

fn with_rows() -> (Connection, Rc<Shared>) {
    let (c, shared) = connection();
    c.execute_batch(
        "CREATE VIRTUAL TABLE v USING mem; INSERT INTO v VALUES(1, 'one'), (2, 'two'), (3, 'three');
         CREATE TABLE t(x, y); INSERT INTO t VALUES(2, 'zwei'), (3, 'drei'), (9, 'neun');",
    )
    .unwrap();
    shared.log.take();
    (c, shared)
}

#[test]
fn a_table_is_told_of_changes() {
    let (c, shared) = connection();
    for (sql, want) in [
        ("CREATE VIRTUAL TABLE v USING mem", "sync, commit"),
        ("INSERT INTO v VALUES(1, 'one')", "begin, update new : 1|one|, sync, commit"),
        ("INSERT INTO v(c, rowid) VALUES('h', 7)", "begin, update new 7: ||h, sync, commit"),
        ("UPDATE v SET a = 5 WHERE rowid = 7", "begin, update 7 7: 5|=|=, sync, commit"),
        ("UPDATE v SET rowid = 8, b = a WHERE a = 5", "begin, update 7 8: =|5|=, sync, commit"),
        ("REPLACE INTO v(rowid) VALUES(1)", "begin, update new 1: ||, sync, commit"),
        ("INSERT INTO v(rowid) VALUES(1)", "begin, update new 1: ||, rollback; taken"),
        (
            "INSERT OR IGNORE INTO v(rowid) VALUES(1), (2)",
            "begin, update new 1: ||, update new 2: ||, sync, commit",
        ),
        ("DELETE FROM v WHERE rowid > 1", "begin, update 2, update 8, sync, commit"),
        (
            "BEGIN; INSERT INTO v VALUES(1, 2); SAVEPOINT s; DELETE FROM v; ROLLBACK TO s; COMMIT",
            "begin, update new : 1|2|, savepoint 0, savepoint 1, update 1, update 2, release 1, back 0, sync, commit",
        ),
        (
            "SAVEPOINT s; DELETE FROM v WHERE rowid = 1; ROLLBACK TO s; RELEASE s",
            "begin, savepoint 0, update 1, release 0, back -1, sync, commit",
        ),
        ("INSERT INTO mem VALUES('own', 'name')", "begin, update new : own|name|, sync, commit"),
    ] {
        assert_eq!(heard(&c, &shared, sql), want, "{sql}");
    }
    check(
        &c,
        &[
            ("SELECT rowid, a, b, c FROM v", "1||| 2|1|2|"),
            ("SELECT * FROM mem", "own|name"),
            ("INSERT INTO v(rowid, a) VALUES(20, '7') RETURNING rowid, a, b", "20|7|"),
            ("INSERT INTO v VALUES(7, 8) RETURNING rowid, typeof(b)", "-1|text"),
            ("UPDATE v SET a = 1 RETURNING a", "UPDATE RETURNING is not available on virtual tables"),
            ("DELETE FROM v RETURNING a", "DELETE RETURNING is not available on virtual tables"),
            (
                "INSERT INTO v VALUES(1, 2) ON CONFLICT DO NOTHING",
                "UPSERT not implemented for virtual table \"v\"",
            ),
            ("CREATE VIRTUAL TABLE g USING mem(a, b AS (a))", "virtual tables cannot use computed columns"),
            (
                "CREATE TRIGGER r AFTER INSERT ON v BEGIN SELECT 1; END",
                "cannot create triggers on virtual tables",
            ),
        ],
    );
    assert_eq!((c.changes(), c.last_insert_rowid()), (1, 21));
}

#[test]
fn rows_may_be_named_by_a_key() {
    let (c, shared) = connection();
    c.execute_batch("CREATE VIRTUAL TABLE k USING mem('k PRIMARY KEY', v)").unwrap_err();
    c.execute_batch("CREATE VIRTUAL TABLE k USING mem(k PRIMARY KEY, v)").unwrap();
    for (sql, want) in [
        ("INSERT INTO k VALUES('x', 1), ('y', 2)", "begin, update new : x|1, update new : y|2, sync, commit"),
        ("UPDATE k SET v = 3 WHERE k = 'x'", "begin, update x : =|3, sync, commit"),
        ("UPDATE k SET k = 'z' WHERE v = 2", "begin, update y z: z|=, sync, commit"),
        ("INSERT INTO k VALUES('z', 1)", "begin, update new : z|1, rollback; taken"),
        ("DELETE FROM k WHERE v = 3", "begin, update x, sync, commit"),
        ("SELECT rowid FROM k", "; no such column: rowid"),
    ] {
        assert_eq!(heard(&c, &shared, sql), want, "{sql}");
    }
    check(&c, &[("SELECT * FROM k", "z|2"), ("SELECT x.k FROM (SELECT 1) LEFT JOIN k x", "z")]);
}

#[test]
fn what_is_changed_may_be_found_in_other_tables() {
    let (c, _) = with_rows();
    check(
        &c,
        &[
            ("UPDATE v SET b = y FROM t WHERE a = x", ""),
            ("SELECT * FROM v", "1|one 2|zwei 3|drei"),
            ("DELETE FROM v WHERE a IN (SELECT x FROM t WHERE y > 'e')", ""),
            ("SELECT * FROM v", "1|one 3|drei"),
            ("INSERT INTO v SELECT x, y FROM t UNION ALL SELECT a, b FROM v", ""),
            ("SELECT * FROM v", "1|one 3|drei 2|zwei 3|drei 9|neun 1|one 3|drei"),
            ("CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO v VALUES(new.x, 'by trigger'); END", ""),
            ("INSERT INTO t VALUES(50, ''), (51, '')", ""),
            ("SELECT a FROM v WHERE b = 'by trigger'", "50 51"),
        ],
    );
}

#[test]
fn the_right_side_of_a_join_may_be_virtual() {
    let (c, _) = with_rows();
    check(
        &c,
        &[
            ("SELECT x, a FROM t RIGHT JOIN v ON a = x ORDER BY a", "|1 2|2 3|3"),
            ("SELECT x, a FROM t FULL JOIN v ON a = x ORDER BY coalesce(x, a)", "|1 2|2 3|3 9|"),
            ("SELECT x, value FROM t RIGHT JOIN json_each('[1,2]') j ON value = x", "2|2 |1"),
            (
                "SELECT x, value FROM t FULL JOIN json_each('[1,2]') j ON value = x ORDER BY 1, 2",
                "|1 2|2 3| 9|",
            ),
            (
                "SELECT x, value FROM t FULL JOIN generate_series(1, 3) ON value = x WHERE value > 1 ORDER BY value",
                "2|2 3|3",
            ),
            (
                "SELECT x, v.a, w.a FROM t FULL JOIN v ON v.a = x FULL JOIN v w ON w.a = v.a + 1 ORDER BY 1, 2, 3",
                "||1 |1|2 2|2|3 3|3| 9||",
            ),
            (
                "SELECT x, v.a, e.value FROM t RIGHT JOIN v ON x = a, json_each('[1,3]') e WHERE e.value = v.a",
                "3|3|3 |1|1",
            ),
            ("CREATE VIRTUAL TABLE k USING mem(k PRIMARY KEY, v)", ""),
            ("INSERT INTO k VALUES(2, 'two'), (5, 'five')", ""),
            ("SELECT x, k FROM t FULL JOIN k ON k = x ORDER BY coalesce(x, k)", "2|2 3| |5 9|"),
        ],
    );
}

#[test]
fn a_module_may_take_conditions_limits_and_order_over() {
    let (c, shared) = with_rows();
    let all = Takes { conditions: true, limit: true, lists: true, order: true };
    let filtered = |takes: Takes, sql: &str| {
        shared.takes.set(takes);
        shared.log.take();
        let rows = answer(&c, sql);
        let log = shared.log.take();
        let filters = log.iter().filter(|l| l.starts_with("filter")).cloned().collect::<Vec<_>>();
        format!("{}; {rows}", filters.join(", "))
    };
    for (sql, want) in [
        ("SELECT a FROM v LIMIT 1 OFFSET 1", "filter 1 1; 2"),
        ("SELECT a FROM v WHERE a IN (3, 1, 7)", "filter [1|3|7]; 1 3"),
        ("SELECT a FROM v WHERE a IN (SELECT x FROM t)", "filter [2|3|9]; 2 3"),
        ("SELECT a FROM v WHERE a + 1 > 2 LIMIT 1", "filter; 2"),
        ("SELECT a FROM v ORDER BY rowid LIMIT 2", "filter 2; 1 2"),
        ("SELECT a FROM v ORDER BY a DESC LIMIT 2", "filter; 3 2"),
        ("SELECT a FROM v UNION ALL SELECT a FROM v LIMIT 4", "filter 4, filter 4; 1 2 3 1"),
        ("SELECT a, x FROM v, t WHERE a = x LIMIT 1", "filter; 2|2"),
        ("SELECT count(*) FROM v LIMIT 1", "filter; 3"),
        ("SELECT b FROM v WHERE b LIKE 'T%'", "filter T u T%; two three"),
        ("SELECT place(a), place(b) FROM v WHERE near(b, 'x')", "filter x; 1:2|1:two 2:3|2:three"),
        ("SELECT place(1)", "; no such function: place"),
    ] {
        let known = Connection::has_function(&c, "place", 1);
        if !known && !sql.contains("place(1)") && sql.contains("place") {
            let imp = Implementation::Scalar(|_, _| Ok(Value::Null));
            let f = |name: &str, args| Function {
                name: name.into(),
                args,
                flags: FunctionFlags::default(),
                imp: imp.clone(),
            };
            c.create_function(f("place", 1));
            c.create_function(f("near", 2));
        }
        if sql.contains("place(1)") {
            c.remove_function("place", 1);
        }
        assert_eq!(filtered(all, sql), want, "{sql}");
    }
    let lists = Takes { lists: false, limit: false, ..all };
    assert_eq!(filtered(lists, "SELECT a FROM v WHERE a IN (3, 1)"), "filter 1, filter 3; 1 3");
    shared.takes.set(Takes::default());
    for (sql, want) in [
        ("SELECT DISTINCT b FROM v", "index Distinct"),
        ("SELECT DISTINCT b FROM v ORDER BY a", "index DistinctSorted"),
        ("SELECT count(*) FROM v GROUP BY b", "index Grouped"),
        ("SELECT a FROM v ORDER BY b", "index"),
        ("SELECT a FROM v WHERE a <> 1 LIMIT 2 OFFSET 1", "index 0Ne 0Offset 0Limit"),
    ] {
        shared.log.take();
        answer(&c, sql);
        assert_eq!(shared.log.borrow()[0], want, "{sql}");
    }
}

#[test]
fn a_table_may_be_renamed_checked_and_dropped() {
    let (c, shared) = with_rows();
    check(
        &c,
        &[
            ("CREATE VIEW w AS SELECT a FROM v", ""),
            ("ALTER TABLE v RENAME TO n", ""),
            ("SELECT * FROM w", "1 2 3"),
            ("SELECT sql FROM sqlite_master WHERE name = 'n'", "CREATE VIRTUAL TABLE \"n\" USING mem"),
            ("ALTER TABLE n ADD COLUMN z", "virtual tables may not be altered"),
            ("PRAGMA integrity_check", "too many rows in main.n"),
            ("PRAGMA integrity_check(t)", "ok"),
            ("PRAGMA quick_check(n)", "too many rows in main.n"),
            ("DROP VIEW w", ""),
            ("DROP TABLE n", ""),
            ("PRAGMA integrity_check", "ok"),
        ],
    );
    shared.fails.set("rename");
    check(
        &c,
        &[
            ("CREATE VIRTUAL TABLE r USING mem", ""),
            ("ALTER TABLE r RENAME TO q", "rename failed"),
            ("SELECT count(*) FROM r", "0"),
        ],
    );
}

#[test]
fn shadow_tables_belong_to_their_module_on_a_defensive_connection() {
    let (c, shared) = with_rows();
    check(&c, &[("CREATE TABLE v_data(x)", ""), ("SELECT type FROM pragma_table_list('v_data')", "shadow")]);
    c.switch(iolite::engine::Switch::Defensive, Some(true));
    check(
        &c,
        &[
            ("INSERT INTO v_data VALUES(1)", "table v_data may not be modified"),
            ("DROP TABLE v_data", "table v_data may not be dropped"),
            ("ALTER TABLE v_data ADD COLUMN y", "table v_data may not be altered"),
            (
                "CREATE TRIGGER r AFTER INSERT ON v_data BEGIN SELECT 1; END",
                "cannot create triggers on shadow tables",
            ),
            ("CREATE VIRTUAL TABLE w USING mem", ""),
            ("CREATE TABLE w_data(x)", "object name reserved for internal use: w_data"),
            ("CREATE TABLE w_other(x)", ""),
        ],
    );
    shared.runs.replace(Some(("update", "INSERT INTO v_data VALUES(1)".into())));
    check(&c, &[("INSERT INTO v VALUES(4, 'four')", ""), ("SELECT count(*) FROM v_data", "1")]);
}

#[test]
fn triggers_write_only_to_tables_that_are_trusted() {
    struct Risky(Rc<Shared>, Trust);
    impl Module for Risky {
        fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
            Ok(Declared { trust: self.1, ..Memory(self.0.clone()).connect(host, args)? })
        }
    }
    for (trust, on, off) in
        [(Trust::Innocuous, true, true), (Trust::Normal, true, false), (Trust::DirectOnly, false, false)]
    {
        let (c, shared) = connection();
        c.create_module("risky", Rc::new(Risky(shared, trust)));
        c.execute_batch(
            "CREATE VIRTUAL TABLE v USING risky; CREATE TABLE t(x);
             CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO v VALUES(new.x, 2); END; INSERT INTO v VALUES(1, 1);",
        )
        .unwrap();
        for (setting, allowed) in [("ON", on), ("OFF", off)] {
            c.execute_batch(&format!("PRAGMA trusted_schema = {setting}")).unwrap();
            let want = if allowed { "" } else { "unsafe use of virtual table \"v\"" };
            check(&c, &[("INSERT INTO t VALUES(1)", want)]);
        }
    }
}

#[test]
fn a_failing_call_undoes_what_it_belongs_to() {
    for (at, sql, left) in [
        ("update", "INSERT INTO v VALUES(4, 4), (5, 5)", "1 2 3"),
        ("begin", "INSERT INTO v VALUES(4, 4)", "1 2 3"),
        ("sync", "INSERT INTO v VALUES(4, 4)", "1 2 3"),
        ("index", "UPDATE v SET a = 1", "1 2 3"),
        ("open", "UPDATE v SET a = 1", "1 2 3"),
        ("filter", "DELETE FROM v", "1 2 3"),
        ("next", "DELETE FROM v", "1 2 3"),
        ("rowid", "DELETE FROM v", "1 2 3"),
        ("column", "DELETE FROM v WHERE a > 1", "1 2 3"),
    ] {
        let (c, shared) = with_rows();
        shared.fails.set(at);
        assert_eq!(answer(&c, sql), format!("{at} failed"), "{at}");
        shared.fails.set("");
        assert!(c.is_autocommit());
        check(
            &c,
            &[("SELECT a FROM v", left), ("INSERT INTO v VALUES(8, 8)", ""), ("SELECT max(a) FROM v", "8")],
        );
    }
}

#[test]
fn a_panic_in_a_call_leaves_a_connection_that_can_be_closed() {
    for at in
        ["update", "begin", "sync", "index", "open", "filter", "next", "rowid", "column", "savepoint", "back"]
    {
        let (c, shared) = with_rows();
        shared.fails.set(at);
        shared.panics.set(true);
        let sql = "BEGIN; INSERT INTO v VALUES(4, 4); SAVEPOINT s; DELETE FROM v WHERE a > 0; ROLLBACK TO s; COMMIT";
        let run = || c.execute_batch(sql);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err(), "{at}");
        shared.panics.set(false);
        shared.fails.set("");
        let _ = c.execute_batch("ROLLBACK");
        check(&c, &[("SELECT count(*) FROM t", "3")]);
        let _ = c.close();
    }
}

#[test]
fn code_may_come_back_to_its_own_table() {
    for at in ["index", "open", "filter", "next", "column", "rowid", "update", "sync", "begin"] {
        let (c, shared) = with_rows();
        shared.runs.replace(Some((at, "INSERT INTO t VALUES('nested', (SELECT count(*) FROM t))".into())));
        answer(&c, "UPDATE v SET b = b || '!' WHERE a > 1");
        shared.runs.take();
        check(&c, &[("SELECT b FROM v", "one two! three!"), ("SELECT count(*) > 3 FROM t", "1")]);
    }
    let (c, shared) = with_rows();
    shared.runs.replace(Some(("column", "SELECT a, b FROM mem".into())));
    check(&c, &[("SELECT a FROM v", "1 2 3")]);
    for sql in ["DROP TABLE v", "ALTER TABLE v RENAME TO u", "VACUUM", "COMMIT", "BEGIN", "DETACH main"] {
        shared.runs.replace(Some(("column", sql.into())));
        let _ = answer(&c, "SELECT a FROM v");
        shared.runs.take();
        let _ = answer(&c, "SELECT 1 FROM v");
    }
    check(&c, &[("SELECT count(*) FROM t", "3"), ("PRAGMA integrity_check(t)", "ok")]);
}

#[test]
fn a_module_may_be_replaced_while_its_tables_are_in_use() {
    let (c, shared) = with_rows();
    let mut s = c.prepare("SELECT a FROM v").unwrap();
    s.step().unwrap();
    let other = Rc::new(Shared::default());
    c.create_module("mem", Rc::new(Memory(other.clone())));
    assert_eq!(texts(s.row()), "1");
    s.step().unwrap();
    assert_eq!(texts(s.row()), "2");
    drop(s);
    check(&c, &[("SELECT count(*) FROM v", "3"), ("CREATE VIRTUAL TABLE n USING mem", "")]);
    assert!(other.take().contains("sync"));
    c.remove_module("mem");
    check(
        &c,
        &[("SELECT count(*) FROM v", "3"), ("CREATE VIRTUAL TABLE m USING mem", "no such module: mem")],
    );
    assert!(!shared.take().is_empty());
}
