//! `pages [--report FILE] [--update] [--columns] [NAME...]`: runs the texts of the documentation's pages on stock SQLite
//! and on iolite and prints what differs. `--update` writes stock's answers into the texts; `--report` writes the table
//! of `docs/compatibility.md`.

use iolite_conform::pages::{Item, files, print, read, report, run};

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let worker = std::thread::Builder::new().stack_size(64 << 20).spawn(work);
    let failed = worker.expect("threads can be started").join().unwrap_or(true);
    std::process::exit(i32::from(failed));
}

fn work() -> bool {
    let (mut update, mut columns, mut names) = (false, false, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        match a.as_str() {
            "--update" => update = true,
            "--columns" => columns = true,
            "--report" => {
                let to = args.next().unwrap_or_default();
                if let Err(e) = std::fs::write(&to, report()) {
                    eprintln!("pages: {to}: {e}");
                    return true;
                }
                return false;
            }
            _ => names.push(a),
        }
    }
    let mut failed = false;
    for (name, path) in files() {
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        let items = read(&path);
        let verdicts = run(&name, &items, columns);
        let facts = items.iter().filter_map(|i| match i {
            Item::Fact { text, known, .. } => Some((text, known)),
            _ => None,
        });
        let (mut all, mut good) = (0, 0);
        for ((text, known), v) in facts.zip(&verdicts) {
            all += 1;
            good += usize::from(v.ours.is_none());
            if let (Some(why), false) = (&v.stock, update) {
                println!("{name}: {text}\n{why}\n");
                failed = true;
            }
            match (&v.ours, known) {
                (Some(why), None) => {
                    println!("{name}: {text}\n{why}\n");
                    failed = true;
                }
                (None, Some(_)) if !columns => println!("{name}: no longer differs: {text}\n"),
                _ => {}
            }
        }
        println!("{name}: {good} of {all} facts");
        if update && let Err(e) = std::fs::write(&path, print(&items, &verdicts)) {
            println!("{}: {e}", path.display());
            failed = true;
        }
    }
    failed
}
