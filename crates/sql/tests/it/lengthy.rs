//! Deep and damaged texts: errors, never a panic or an exhausted stack.

use iolite_base::{Limit, Limits};
use iolite_sql::{complete, parse_next, print};

#[test]
fn deep_nesting_is_an_error() {
    let shapes = [
        ("SELECT ", "(", "1", ")"),
        ("SELECT ", "- ", "1", ""),
        ("SELECT ", "NOT ", "1", ""),
        ("SELECT ", "1+(", "1", ")"),
        ("SELECT ", "1||", "1", ""),
        ("SELECT ", "abs(", "1", ")"),
        ("SELECT ", "CASE WHEN 1 THEN ", "1", " END"),
        ("SELECT ", "CAST(", "1", " AS INT)"),
        ("SELECT ", "(SELECT ", "1", ")"),
        ("SELECT * FROM ", "(SELECT * FROM ", "t", ")"),
        ("SELECT * FROM ", "(", "t", ")"),
        ("SELECT * FROM ", "t JOIN (", "t", ")"),
        ("SELECT ", "1 IN (", "1", ")"),
        ("SELECT ", "1 IN f(", "1", ")"),
        ("SELECT ", "1 IN (SELECT ", "1", ")"),
        ("", "WITH x AS (", "SELECT 1", ") SELECT 1"),
        ("SELECT ", "1 BETWEEN 1 AND (", "1", ")"),
        ("SELECT ", "1 LIKE 1 ESCAPE (", "1", ")"),
        ("SELECT ", "sum(1) OVER (ORDER BY ", "1", ")"),
        ("SELECT ", "sum(1) FILTER (WHERE ", "1", ")"),
        ("SELECT ", "(1, ", "1", ")"),
    ];
    for (before, open, middle, close) in shapes {
        let sql = |n: usize| format!("{before}{}{middle}{}", open.repeat(n), close.repeat(n));
        let (deepest, _) = [60, 150, 300, 800, 990, 2400]
            .map(|n| (n, parse_next(&sql(n), &Limits::default())))
            .into_iter()
            .rfind(|(_, r)| r.is_ok())
            .unwrap();
        assert!(deepest >= 150, "{open} fails at {deepest}");
        let e = parse_next(&sql(100_000), &Limits::default()).unwrap_err();
        let known = ["Recursion limit", "Expression tree is too large (maximum depth 1000)"];
        assert!(known.contains(&e.message()), "{open}: {e}");
    }
}

#[test]
fn a_low_limit_leaves_what_everybody_writes() {
    let mut limits = Limits::default();
    limits.set(Limit::ParserDepth, 0);
    let nested = |n: usize| format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(n), ")".repeat(n));
    assert!(parse_next(&nested(5), &limits).is_ok());
    assert_eq!(parse_next(&nested(50), &limits).unwrap_err().message(), "Recursion limit");
}

#[test]
fn long_chains_are_too_large() {
    let chain = |n: usize| format!("SELECT 1{}", " AND 1".repeat(n));
    assert!(parse_next(&chain(999), &Limits::default()).is_ok());
    let e = parse_next(&chain(1000), &Limits::default()).unwrap_err();
    assert_eq!(e.message(), "Expression tree is too large (maximum depth 1000)");
}

#[test]
fn many_rows_are_no_nesting() {
    let sql = format!("INSERT INTO t VALUES (1){}", ", (1)".repeat(100_000));
    assert!(parse_next(&sql, &Limits::default()).is_ok());
    let compound = |n: usize| format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(n));
    assert!(parse_next(&compound(499), &Limits::default()).is_ok());
    let e = parse_next(&compound(500), &Limits::default()).unwrap_err();
    assert_eq!(e.message(), "too many terms in compound SELECT");
}

#[test]
fn damaged_text_never_panics() {
    let pieces = [
        "SELECT ",
        "(",
        ")",
        "'",
        "\"",
        "[",
        "]",
        "`",
        "x'",
        "0x",
        "1e",
        "_",
        ".",
        ",",
        ";",
        "--",
        "/*",
        "*/",
        "*",
        "?",
        ":",
        "$a(",
        "#",
        "\0",
        "\u{feff}",
        "é",
        "CASE ",
        "CAST(",
        "FROM ",
        "CREATE TABLE ",
        "AS ",
        "OVER ",
        "FILTER(",
        "WINDOW ",
        "IN ",
        "NOT ",
        "BEGIN ",
        "END ",
        "TRIGGER ",
        "VALUES ",
        "GENERATED ALWAYS ",
        "->",
        "!",
        "\u{7f}",
        "1",
        "a ",
        "DEFAULT ",
        "CONSTRAINT ",
        "CHECK(",
        "WITH ",
        "UNION ",
    ];
    let mut state = 0x1234_5678_9abc_def1u64;
    for _ in 0..30_000 {
        let mut text = String::new();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for i in 0..(state >> 60) + 1 {
            text.push_str(pieces[((state >> (i * 3 % 50)) as usize ^ (i as usize * 7)) % pieces.len()]);
            state = state.rotate_left(11).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        complete(&text);
        if let Ok(Some((p, used))) = parse_next(&text, &Limits::default()) {
            assert!(used <= text.len());
            print::parsed(&p);
        }
    }
}
