//! Circles of imports within a crate: a module that imports another, which imports it in turn, perhaps by way of others.
//!
//! A module is a file or folder beside `lib.rs`; what it imports are the `crate::name` in its sources. The crate's root
//! is no module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Imports = BTreeMap<String, BTreeSet<String>>;

/// Holds the number of modules in circles against the allowed numbers.
pub fn check(root: &Path, files: &[PathBuf], allowed: &[(&str, usize)], wrong: &mut Vec<String>) {
    let mut crates: BTreeMap<String, Imports> = BTreeMap::new();
    for f in files {
        let Ok(short) = f.strip_prefix(root.join("crates")) else { continue };
        let parts: Vec<String> = short.iter().map(|p| p.to_string_lossy().into_owned()).collect();
        let [name, src, module, ..] = &parts[..] else { continue };
        let module = module.trim_end_matches(".rs");
        if src != "src" || matches!(module, "lib" | "main" | "bin") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(f) else { continue };
        let found = crates.entry(name.clone()).or_default().entry(module.to_string()).or_default();
        imports(&super::code_of(&text), found);
    }
    for (name, imports) in &crates {
        let most = allowed.iter().find(|a| a.0 == name).map_or(0, |a| a.1);
        let inside = in_circles(imports);
        if inside.len() > most {
            wrong.push(format!(
                "{name} has {} modules in circles of imports, more than {most}: {}",
                inside.len(),
                inside.join(", ")
            ));
        } else if inside.len() < most {
            let now = inside.len();
            wrong.push(format!(
                "{name} has {now} modules in circles of imports: say so in CIRCLES, not {most}"
            ));
        }
    }
}

/// The names behind `crate::`.
fn imports(code: &str, out: &mut BTreeSet<String>) {
    let word = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => {
                out.insert(word(rest));
            }
            Some(list) => {
                let list = list.split('}').next().unwrap_or("");
                out.extend(list.split(',').map(|n| word(n.trim())));
            }
        }
    }
}

/// The modules that can be reached from themselves.
fn in_circles(imports: &Imports) -> Vec<String> {
    let reaches_itself = |start: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start.to_string()];
        while let Some(m) = open.pop() {
            for next in imports.get(&m).into_iter().flatten().filter(|n| **n != m && imports.contains_key(*n))
            {
                if next == start {
                    return true;
                }
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        false
    };
    imports.keys().filter(|m| reaches_itself(m)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(&str, &str)]) -> Imports {
        let mut g = Imports::new();
        for (from, code) in arrows {
            imports(code, g.entry((*from).to_string()).or_default());
        }
        g
    }

    #[test]
    fn modules_in_circles_are_found_and_no_others() {
        let g = graph(&[
            ("a", "use crate::b::X; use std::fmt;"),
            ("b", "use crate::{c, d::Y};"),
            ("c", "fn f() -> crate::a::Z {}"),
            ("d", "use crate::d::own; use crate::macro_of_the_root;"),
        ]);
        assert_eq!(in_circles(&g), ["a", "b", "c"]);
    }
}
