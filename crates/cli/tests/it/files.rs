//! Command line, files, exit codes.

use crate::{run, scratch};

#[test]
fn arguments() {
    let dir = scratch("arguments");
    let r = run(
        &dir,
        &["-json", "x.db", "create table t(a,b); insert into t values(1,'x')", "select * from t"],
        "",
    );
    assert_eq!((r.out.as_str(), r.code), ("[{\"a\":1,\"b\":\"x\"}]\n", 0), "{}", r.err);
    let r = run(&dir, &["x.db", "selec 1"], "");
    assert_eq!(r.err, "Error: in prepare, near \"selec\": syntax error\n  selec 1\n  ^--- error here\n");
    assert_eq!(r.code, 1);
    let r = run(&dir, &["x.db", "create unique index i on t(b); insert into t values(2,'x')"], "");
    assert_eq!(r.err, "Error: stepping, UNIQUE constraint failed: t.b (19)\n");
    assert_eq!(r.code, 19);
    let r = run(&dir, &["--nosuch"], "");
    assert_eq!(r.code, 1);
    let r = run(&dir, &["-header", "-csv", "x.db", ".mode", "select a, b from t"], "");
    assert_eq!(r.out, "current output mode: csv\na,b\r\n1,x\r\n");
    let r = run(&dir, &["-cmd", ".headers on", "x.db", "select a from t"], "");
    assert_eq!(r.out, "a\n1\n");
    assert_eq!(run(&dir, &["x.db", ".exit 7"], "").code, 7);
}

#[test]
fn defaults() {
    let dir = scratch("defaults");
    let mode =
        "create table if not exists t(a); pragma journal_mode; pragma synchronous; pragma busy_timeout;";
    assert_eq!(run(&dir, &["new.db"], mode).out, "wal\n1\n5000\n");
    assert_eq!(run(&dir, &["-compat", "old.db"], mode).out, "delete\n2\n0\n");
    // An existing file keeps its mode.
    assert_eq!(run(&dir, &["old.db"], "pragma journal_mode").out, "delete\n");
    // Looking is not writing.
    run(&dir, &["none.db"], "select 1; .tables");
    assert!(std::fs::metadata(dir.join("none.db")).map_or(0, |m| m.len()) == 0);
}

#[test]
fn what_cannot_be_opened() {
    let dir = scratch("open");
    std::fs::write(dir.join("notadb"), "no database, but long enough to be read as one ".repeat(30)).unwrap();
    let r = run(&dir, &["notadb"], "select * from sqlite_master;\nselect 1;");
    assert_eq!(r.err.lines().next(), Some("Parse error near line 1: file is not a database (26)"));
    assert_eq!(r.code, 1);
    let r = run(&dir, &["no/such/folder.db", "select 1"], "");
    assert_eq!(r.err, "Error: unable to open database \"no/such/folder.db\": unable to open database file\n");
    assert_eq!(r.code, 1);
    run(&dir, &["r.db"], "create table t(a);");
    let r = run(&dir, &["-readonly", "r.db"], "insert into t values(1);");
    assert_eq!(r.err, "Runtime error near line 1: attempt to write a readonly database (8)\n");
}

#[test]
fn a_full_disk_under_the_output() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let dir = scratch("full");
    let r = run(&dir, &[], ".output /dev/full\nselect 1;\n");
    assert_eq!(r.code, 1);
    assert!(r.err.contains("cannot write"), "{}", r.err);
}

#[test]
fn backup_and_restore() {
    let dir = scratch("backup");
    let r =
        run(&dir, &["a.db"], "create table t(a); insert into t values(1),(2);\n.backup b.db\n.save c.db\n");
    assert_eq!((r.err.as_str(), r.code), ("", 0));
    assert_eq!(run(&dir, &["b.db", "select sum(a) from t"], "").out, "3\n");
    let r = run(&dir, &[], ".restore c.db\nselect count(*) from t;\n");
    assert_eq!((r.out.as_str(), r.err.as_str()), ("2\n", ""));
}

#[test]
fn csv_with_quotes() {
    let dir = scratch("csv");
    let text = "id,name,note\r\n1,\"a \"\"b\"\", c\",x\r\n2,\"two lines, \",\r\n3,short\r\n4,a,b,c\r\n";
    std::fs::write(dir.join("in.csv"), text).unwrap();
    let script = ".import --csv in.csv t\n.mode quote\nselect * from t;\n.schema t\n";
    let r = run(&dir, &[], script);
    assert_eq!(
        r.err,
        "in.csv:4: expected 3 columns but found 2 - filling the rest with NULL\n\
         in.csv:5: expected 3 columns but found 4 - extras ignored\n"
    );
    assert!(r.out.starts_with("1,'a \"b\", c','x'\n"), "{}", r.out);
    assert!(r.out.contains("3,'short',NULL\n4,'a','b'\n"), "{}", r.out);
    let r =
        run(&dir, &[], "create table t(a,b,c);\n.import --csv --skip 1 in.csv t\nselect count(*) from t;\n");
    assert_eq!(r.out, "4\n");
}

/// Rows after another in the same places: longer and shorter texts, absent fields, rows that are refused.
#[test]
fn imported_rows_do_not_leave_traces_in_the_next_ones() {
    let dir = scratch("lengths");
    let (mut text, mut want) = (String::new(), String::new());
    for i in 0..700 {
        let long = "x".repeat(i * 37 % 90 + if i % 100 == 7 { 5_000 } else { 0 });
        let (line, row) = match i % 6 {
            0 => (format!("{i},{long},-{i}"), format!("{i}|{long}|-{i}|text")),
            1 => (format!("{i},{long}"), format!("{i}|{long}|NULL|text")),
            2 => (format!("{i}"), format!("{i}|NULL|NULL|null")),
            3 => (format!("{i},\"q,{long}\",12345678901"), format!("{i}|q,{long}|12345678901|text")),
            4 => (format!("{},twice,1", i - 1), String::new()),
            _ => (format!("{i},,x{long}"), format!("{i}||x{long}|text")),
        };
        text.push_str(&format!("{line}\n"));
        if !row.is_empty() {
            want.push_str(&format!("{}\n", row.replace("-0|", "0|")));
        }
    }
    std::fs::write(dir.join("in.csv"), text).unwrap();
    let script = "create table t(a int unique, b text, c int);\n.import --csv in.csv t\n.nullvalue NULL\n.mode list\n\
                  select a, b, c, typeof(b) from t order by rowid;\n";
    let r = run(&dir, &[], script);
    assert_eq!(r.err.matches("INSERT failed: UNIQUE constraint failed: t.a").count(), 33, "{}", r.err);
    assert!(r.out == want, "{} rows", r.out.lines().count());
}

#[test]
fn output_to_files_and_commands() {
    let dir = scratch("output");
    let r =
        run(&dir, &[], ".once o.txt\nselect 1;\nselect 2;\n.output |cat\nselect 3;\n.output\nselect 4;\n");
    assert_eq!(r.out, "2\n3\n4\n");
    assert_eq!(std::fs::read_to_string(dir.join("o.txt")).unwrap(), "1\n");
    std::fs::write(dir.join("s.sql"), "select 5;\n.read s2.sql\n").unwrap();
    let r = run(
        &dir,
        &[],
        ".read s.sql\n.read '|echo select 6;'\nselect writefile('w', 'abc'), readfile('w');\n",
    );
    assert_eq!(r.out, "5\n6\n3|abc\n");
    assert_eq!(r.err, "Error: cannot open \"s2.sql\"\n");
    assert_eq!(r.code, 1);
}

#[test]
fn a_dump_is_a_script() {
    let dir = scratch("dump");
    let make = "create table t(a int primary key, b text, c as (a+1)); insert into t(a,b) values(1,'it''s'),(2,null);\
                create table w(x integer primary key autoincrement, y blob); insert into w values(9,x'00ff');\
                create index i on t(b); create view v as select * from t;";
    let dump = run(&dir, &["a.db"], &format!("{make}\n.dump\n")).out;
    let again = run(&dir, &["b.db"], &format!("{dump}\n.dump\n"));
    assert_eq!(again.err, "");
    assert_eq!(again.out, dump);
}
