//! The tidy test: what the compiler does not see of the house rules.

mod circles;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Floors, lowest first: a crate uses only crates on lower floors.
const FLOORS: &[&[&str]] = &[
    &["base", "tokenize"],
    &["os", "value", "sql"],
    &["pager", "ext"],
    &["btree", "func", "catalog", "bytecode"],
    &["vdbe", "modules", "fts", "fts3", "vector", "rtree", "session"],
    &["plan"],
    &["codegen", "columnar"],
    &["iolite"],
    &["capi", "replicate"],
    &["cli", "server"],
];

/// Tools stand beside the house and may use all of it.
const TOOLS: &[&str] = &["testkit", "stock", "sim", "conform", "bench", "bench-compare", "xtask"];

/// Words that must not stand in the sources of a crate, and why.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[(
    "codegen",
    &["Binder", "Planner", "iolite_sql", "Catalog"],
    "plans are made before code is: see `iolite_plan::compile`",
)];

/// How many modules of a crate are in circles of imports. The numbers may only fall; crates that are not named have none.
const CIRCLES: &[(&str, usize)] = &[
    ("btree", 3),
    ("capi", 9),
    ("catalog", 2),
    ("cli", 8),
    ("func", 2),
    ("pager", 5),
    ("sim", 3),
    ("vdbe", 5),
];

/// The longest a file may be, in lines.
const MAX_LINES: usize = 1500;

/// Files that may contain `unsafe`; a folder stands for all in it.
const UNSAFE: &[&str] = &[
    "crates/base/src/bytes.rs",
    "crates/base/src/pool.rs",
    "crates/base/src/slab.rs",
    "crates/base/src/small_str.rs",
    "crates/base/src/zeroed.rs",
    "crates/os/src",
    "crates/func/src/math.rs",
    "crates/iolite/src/api/connection.rs",
    "crates/pager/src/cache.rs",
    "crates/pager/src/table.rs",
    "crates/pager/src/wal/index.rs",
    "crates/pager/src/wal/sum.rs",
    "crates/capi/src",
    "crates/conform/src/bin/cdiffer",
    "crates/conform/src/bin/storm",
    "crates/stock/src",
    "crates/testkit/src",
    "crates/sim/src",
    "crates/cli/src/signal.rs",
    "crates/columnar/src/kernel",
    "crates/columnar/src/star/threads.rs",
    "crates/vector/src/dot",
    "crates/vector/src/dot.rs",
    "crates/bench-compare/src/native",
];

/// Runs all checks; prints what is wrong.
pub fn run(root: &Path) -> bool {
    let mut wrong: Vec<String> = Vec::new();
    layers(root, &mut wrong);
    let files = sources(root);
    for f in &files {
        source(root, f, &mut wrong);
    }
    circles::check(root, &files, CIRCLES, &mut wrong);
    crate::faults::misplaced(root, &mut wrong);
    for w in &wrong {
        println!("tidy: {w}");
    }
    println!("tidy: {} findings", wrong.len());
    wrong.is_empty()
}

fn floor_of(name: &str) -> Option<usize> {
    FLOORS.iter().position(|f| f.contains(&name))
}

/// Each crate's dependencies lie on lower floors.
fn layers(root: &Path, wrong: &mut Vec<String>) {
    let Ok(list) = std::fs::read_dir(root.join("crates")) else {
        wrong.push("no folder crates".into());
        return;
    };
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for e in list.flatten() {
        let name = e.file_name().to_string_lossy().into_owned();
        let Ok(manifest) = std::fs::read_to_string(e.path().join("Cargo.toml")) else { continue };
        crates.insert(name, dependencies(&manifest));
    }
    for (name, deps) in &crates {
        if TOOLS.contains(&name.as_str()) {
            continue;
        }
        let Some(own) = floor_of(name) else {
            wrong.push(format!("crate {name} has no floor"));
            continue;
        };
        for d in deps {
            match floor_of(d) {
                Some(f) if f < own => {}
                Some(f) => wrong.push(format!("{name} (floor {own}) uses {d} (floor {f})")),
                None if TOOLS.contains(&d.as_str()) => wrong.push(format!("{name} uses the tool {d}")),
                None => wrong.push(format!("{name} uses {d}, which has no floor")),
            }
        }
    }
}

/// The workspace crates that a manifest names under `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut out = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
            continue;
        }
        let key = line.split(['=', '.', ' ']).next().unwrap_or("");
        if inside && key == "iolite" {
            out.push("iolite".to_string());
        } else if inside && let Some(n) = key.strip_prefix("iolite-") {
            out.push(n.to_string());
        }
    }
    out
}

fn sources(root: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut stack = vec![root.join("crates")];
    while let Some(d) = stack.pop() {
        let Ok(list) = std::fs::read_dir(&d) else { continue };
        for e in list.flatten() {
            let p = e.path();
            if p.is_dir() {
                stack.push(p);
            } else if p.extension().is_some_and(|x| x == "rs") {
                out.push(p);
            }
        }
    }
    out.sort();
    out
}

/// A source without its comments.
fn code_of(text: &str) -> String {
    text.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

fn source(root: &Path, f: &Path, wrong: &mut Vec<String>) {
    let Ok(text) = std::fs::read_to_string(f) else { return };
    let short = f.strip_prefix(root).unwrap_or(f).to_string_lossy().into_owned();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        wrong.push(format!("{short} has {lines} lines, more than {MAX_LINES}"));
    }
    if short.ends_with("xtask/src/tidy.rs") {
        return;
    }
    let test = short.contains("/tests/") || short.contains("/examples/");
    for (owner, words, why) in FORBIDDEN.iter().filter(|f| short.starts_with(&format!("crates/{}/src/", f.0)))
    {
        for w in words.iter().filter(|w| code_of(&text).contains(**w)) {
            wrong.push(format!("{short} mentions {w}, which {owner} must not know: {why}"));
        }
    }
    let may = UNSAFE.iter().any(|u| short.starts_with(u)) || test;
    let named = text.lines().any(|l| {
        // Not what stands in comments and in texts.
        let code: String = l.split("//").next().unwrap_or("").split('"').step_by(2).collect();
        code.contains("unsafe ") && !code.contains("unsafe_")
    });
    if named && !may {
        wrong.push(format!("{short} contains unsafe code"));
    }
    for word in ["TODO", "FIXME", "XXX", "HACK", "todo!(", "unimplemented!("] {
        if text.contains(word) {
            wrong.push(format!("{short} contains {word}"));
        }
    }
    let root_file = short.ends_with("/lib.rs") || short.ends_with("/main.rs");
    if root_file && !test && !text.starts_with("//!") {
        wrong.push(format!("{short} does not say what it is"));
    }
}
