//! Statements and what the parser makes of them, as texts.
//!
//! A case is one line of SQL (`\n`, `\t` and `\0` escaped), then `=> ` and the parsed statement printed with
//! every operator in parentheses, or `!! offset message`. `IOLITE_REFRESH=1 cargo test` rewrites the answers.

mod lengthy;

use iolite_base::Limits;
use iolite_sql::{complete, parse_expr, parse_next, parse_stmt, print};
use std::fmt::Write;
use std::path::Path;

fn unescape(line: &str) -> String {
    line.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0")
}

fn answer(sql: &str) -> String {
    let mut out = String::new();
    let mut rest = sql;
    loop {
        match parse_next(rest, &Limits::default()) {
            Ok(None) => return out,
            Ok(Some((p, used))) => {
                let _ = writeln!(out, "=> {}", print::parsed_explicit(&p));
                assert_same(&p, &print::parsed(&p));
                assert_same(&p, &print::parsed_explicit(&p));
                rest = &rest[used..];
            }
            Err(e) => {
                let offset = e.offset().map_or("-".into(), |o| o.to_string());
                let _ = writeln!(out, "!! {offset} {}", e.message());
                return out;
            }
        }
    }
}

/// Printed SQL parses to the same tree, spans aside.
fn assert_same(p: &iolite_sql::ast::Parsed, printed: &str) {
    let again = parse_stmt(printed).unwrap_or_else(|e| panic!("{printed}: {e}"));
    assert_eq!(shape(p), shape(&again), "{printed}");
}

/// The tree without the places of its parts.
fn shape(p: &iolite_sql::ast::Parsed) -> String {
    let mut text = format!("{p:?}");
    while let Some(from) = text.find("Span {") {
        let to = from + text[from..].find('}').unwrap();
        text.replace_range(from..=to, "");
    }
    let mut parts = text.split("at: ");
    let mut out = parts.next().unwrap().to_string();
    for part in parts {
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let refresh = std::env::var_os("IOLITE_REFRESH").is_some();
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let old = std::fs::read_to_string(&path).unwrap();
        let mut new = String::new();
        for line in old.lines() {
            if line.starts_with("=> ") || line.starts_with("!! ") {
                continue;
            }
            new.push_str(line);
            new.push('\n');
            if !line.is_empty() && !line.starts_with('#') {
                new.push_str(&answer(&unescape(line)));
            }
        }
        if refresh {
            std::fs::write(&path, &new).unwrap();
        } else {
            for (i, (a, b)) in old.lines().zip(new.lines()).enumerate() {
                assert_eq!(a, b, "{}:{}", path.display(), i + 1);
            }
            assert_eq!(old.lines().count(), new.lines().count(), "{}", path.display());
        }
        files += 1;
    }
    assert!(files >= 4);
}

#[test]
fn statements_are_taken_one_at_a_time() {
    let limits = Limits::default();
    let sql = ";; SELECT 1; -- one\nSELECT 2 /* two */ ; \n;";
    let (p, used) = parse_next(sql, &limits).unwrap().unwrap();
    assert_eq!((p.span.of(sql), used), ("SELECT 1", 12));
    let rest = &sql[used..];
    let (p, used) = parse_next(rest, &limits).unwrap().unwrap();
    assert_eq!(p.span.of(rest), "SELECT 2");
    assert!(parse_next(&rest[used..], &limits).unwrap().is_none());
    assert_eq!(parse_stmt("SELECT 1;;").unwrap().span.end, 8);
    assert!(parse_stmt("SELECT 1; x").is_err());
    assert!(parse_stmt("").is_err());
}

#[test]
fn parameters_get_their_numbers_in_the_order_of_the_text() {
    let names = |sql: &str| -> Vec<Option<String>> {
        parse_stmt(sql).unwrap().variables.iter().map(|v| v.as_deref().map(String::from)).collect()
    };
    let some = |s: &str| Some(s.to_string());
    assert_eq!(names("SELECT ?, ?, :a, ?"), [None, None, some(":a"), None]);
    assert_eq!(names("SELECT :a, @a, :a, ?4"), [some(":a"), some("@a"), None, some("?4")]);
    assert_eq!(names("SELECT ?3, ?"), [None, None, some("?3"), None]);
    let mut limits = Limits::default();
    limits.set(iolite_base::Limit::VariableNumber, 2);
    assert!(parse_next("SELECT ?, ?", &limits).is_ok());
    assert_eq!(parse_next("SELECT ?, ?, ?", &limits).unwrap_err().message(), "too many SQL variables");
    let e = parse_next("SELECT ?3", &limits).unwrap_err();
    assert_eq!((e.message(), e.offset()), ("variable number must be between ?1 and ?2", Some(7)));
}

#[test]
fn spans_are_what_users_see_as_names() {
    use iolite_sql::ast::*;
    let sql = "SELECT  a + 1 /* c */ , 'x' y FROM t";
    let Stmt::Select(s) = parse_stmt(sql).unwrap().stmt else { panic!() };
    let SelectCore::Query(q) = s.first else { panic!() };
    let spans: Vec<&str> = q
        .columns
        .iter()
        .map(|c| match c {
            ResultColumn::Expr { span, .. } => span.of(sql),
            _ => "",
        })
        .collect();
    assert_eq!(spans, ["a + 1 /* c */", "'x'"]);
}

#[test]
fn an_expression_alone() {
    assert_eq!(print::expr(&parse_expr("a+b * (c-1)").unwrap()), "a + b * (c - 1)");
    assert_eq!(print::expr(&parse_expr("(a+b)||- -c").unwrap()), "(a + b) || - -c");
    assert_eq!(parse_expr("a b").unwrap_err().message(), "near \"b\": syntax error");
}

#[test]
fn a_shell_knows_when_a_statement_ends() {
    for text in [
        "SELECT 1;",
        "SELECT 1; -- x",
        "SELECT 1; /* x */ ",
        ";",
        "SELECT ';';\n",
        "CREATE TABLE t(a);",
        "CREATE TRIGGER a AFTER INSERT ON b BEGIN SELECT 1; END;",
        "EXPLAIN CREATE TEMP TRIGGER a BEGIN x; END ;",
        "CREATE TRIGGER a BEGIN SELECT 1; END a; ; END;",
    ] {
        assert!(complete(text), "{text}");
    }
    for text in [
        "",
        "  ",
        "-- x",
        "SELECT 1",
        "SELECT ';",
        "SELECT 1; /* x",
        "SELECT [;",
        "CREATE TRIGGER a BEGIN x;",
        "CREATE TRIGGER a AFTER INSERT ON b BEGIN SELECT 1; END",
        "EXPLAIN CREATE TEMP TRIGGER x; END",
        "SELECT 1; x",
    ] {
        assert!(!complete(text), "{text}");
    }
}
