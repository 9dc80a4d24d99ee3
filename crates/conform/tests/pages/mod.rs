//! The texts of the documentation's pages hold on both engines, ours in rows and in columns, and `docs/compatibility.md`
//! is what they give.

use iolite_conform::pages::{Item, files, read, report, run};
use std::path::Path;

fn all(columns: bool) {
    let mut found = String::new();
    for (name, path) in files() {
        let items = read(&path);
        let facts = items.iter().filter_map(|i| match i {
            Item::Fact { text, known, .. } => Some((text, known)),
            _ => None,
        });
        for ((text, known), v) in facts.zip(run(&name, &items, columns)) {
            if let Some(why) = &v.stock {
                found += &format!("{name}: on stock: {text}\n{why}\n");
            }
            match (&v.ours, known) {
                (Some(why), None) => found += &format!("{name}: {text}\n{why}\n"),
                (None, Some(_)) if !columns => found += &format!("{name}: no longer differs: {text}\n"),
                _ => {}
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn facts_hold() {
    all(false);
}

#[test]
fn facts_hold_in_columns() {
    all(true);
}

#[test]
fn the_report_is_what_the_texts_give() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let got = report();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &got).expect("the report can be written");
    }
    assert_eq!(got, std::fs::read_to_string(&path).unwrap_or_default(), "UPDATE=1 writes it anew");
}
