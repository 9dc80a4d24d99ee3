//! A process with two connections of one engine, which does what it is told, an order at a time.
//!
//! An order is a line: the connection, a verb and its texts, with tabs between; so is the answer: result code, whether the
//! connection is in autocommit mode, the statement that failed (its first word), and the last row or the message. What stays open between
//! orders, a statement half way or a backup, is the loop's own: orders within are read by a loop inside of it, so that the
//! last one opened is the first to be finished.

use iolite_conform::engine::Db;
use iolite_stock::Value;
use std::io::{BufRead, Write};
use std::rc::Rc;

/// Why something was not done: code, first word of the statement, message.
struct Refusal(u32, String, String);

type Answer = Result<String, Refusal>;

impl From<iolite::engine::Error> for Refusal {
    fn from(e: iolite::engine::Error) -> Refusal {
        Refusal(e.number(), String::new(), e.message().to_string())
    }
}

impl From<iolite_stock::Error> for Refusal {
    fn from(e: iolite_stock::Error) -> Refusal {
        Refusal(e.code as u32, String::new(), e.message)
    }
}

/// Carries orders out until there are none.
pub fn serve(engine: &'static str) {
    let mut agent = Agent { engine, slots: [None, None] };
    agent.orders(&mut |_| Err(Refusal(21, String::new(), "nothing is open".into())));
}

struct Agent {
    engine: &'static str,
    slots: [Option<Rc<Db>>; 2],
}

impl Agent {
    /// Carries orders out until `finish`, or the end. `more` goes on with what is open.
    fn orders(&mut self, more: &mut dyn FnMut(&str) -> Answer) {
        let mut line = String::new();
        loop {
            line.clear();
            if !std::io::stdin().lock().read_line(&mut line).is_ok_and(|n| n > 0) {
                return;
            }
            let mut words = line.trim_end_matches('\n').split('\t');
            let slot: usize = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
            let (verb, one, two) =
                (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next().unwrap_or(""));
            let answer = match verb {
                "open" => Db::open(self.engine, one)
                    .map_err(|e| Refusal(14, "open".into(), e))
                    .map(|db| self.slots[slot] = Some(Rc::new(db)))
                    .map(|()| String::new()),
                "close" => {
                    self.slots[slot] = None;
                    Ok(String::new())
                }
                "more" => more(one),
                "finish" => {
                    let done = more("");
                    self.answer(slot, done);
                    return;
                }
                _ => match self.slots[slot].clone() {
                    None => Err(Refusal(21, String::new(), "not open".into())),
                    Some(db) => match verb {
                        "hold" => self.hold(slot, &db, one),
                        "backup" => self.back_up(slot, &db, one, two),
                        "image" => image(&db, one, two),
                        _ => run(&db, one),
                    },
                },
            };
            // What was open has answered itself.
            if !(matches!(verb, "hold" | "backup") && answer.is_ok()) {
                self.answer(slot, answer);
            }
        }
    }

    fn answer(&self, slot: usize, answer: Answer) {
        let auto = self.slots[slot].as_ref().is_none_or(|db| match &**db {
            Db::Iolite(c) => c.is_autocommit(),
            Db::Stock(c) => c.is_autocommit(),
        });
        let (code, head, text) = match answer {
            Ok(text) => (0, String::new(), text),
            Err(Refusal(code, head, text)) => (code, head, text),
        };
        let line = format!("{code}\t{}\t{head}\t{}\n", auto as u8, text.replace(['\n', '\t'], " "));
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }

    /// Steps a query to its first row, and reads on when it is told to finish.
    fn hold(&mut self, slot: usize, db: &Db, sql: &str) -> Answer {
        match db {
            Db::Iolite(c) => {
                let mut s = c.prepare(sql)?;
                let mut step = || -> Answer {
                    let more = s.step()? == iolite::engine::Step::Row;
                    Ok(if more { row_of(s.row().iter().map(|v| v.to_string_lossy())) } else { String::new() })
                };
                self.rows(slot, &mut step)
            }
            Db::Stock(c) => {
                let mut s = c.prepare(sql)?;
                let mut step = || -> Answer {
                    Ok(if s.step()? { row_of(s.row().iter().map(text)) } else { String::new() })
                };
                self.rows(slot, &mut step)
            }
        }
    }

    fn rows(&mut self, slot: usize, step: &mut dyn FnMut() -> Answer) -> Answer {
        let first = step()?;
        self.answer(slot, Ok(first));
        // The first row counts, too.
        let (mut count, mut over) = (1, false);
        self.orders(&mut |_| {
            while !over {
                over = step()?.is_empty();
                count += !over as usize;
            }
            Ok(count.to_string())
        });
        Ok(String::new())
    }

    /// A backup into a new file, whose steps are told.
    fn back_up(&mut self, slot: usize, db: &Db, database: &str, to: &str) -> Answer {
        match db {
            Db::Iolite(c) => {
                let target = iolite::engine::Connection::open(to)?;
                let mut b = target.backup("main", c, database)?;
                // Who wrote the copy goes on with it.
                self.steps(slot, &mut |pages| match b.step(pages)? {
                    false => Ok(false),
                    true => match target.query("PRAGMA integrity_check", &[])?[0][0].to_string_lossy() {
                        ok if ok == "ok" => Ok(true),
                        found => Err(Refusal(11, "copy".into(), found)),
                    },
                })
            }
            Db::Stock(c) => {
                let target = iolite_stock::Connection::open(to)?;
                let mut b = c.backup(database, &target)?;
                self.steps(slot, &mut |pages| Ok(b.step(pages)?))
            }
        }
    }

    fn steps(&mut self, slot: usize, step: &mut dyn FnMut(i32) -> Result<bool, Refusal>) -> Answer {
        self.answer(slot, Ok(String::new()));
        let mut done = false;
        self.orders(&mut |pages| {
            done = done || step(pages.parse().unwrap_or(-1))?;
            Ok((done as u8).to_string())
        });
        Ok(String::new())
    }
}

/// Writes the database's image to a file; only ours has that here, stock copies it by VACUUM INTO.
fn image(db: &Db, database: &str, to: &str) -> Answer {
    match db {
        Db::Iolite(c) => {
            let bytes = c.serialize(database)?;
            std::fs::write(to, bytes).map_err(|e| Refusal(10, "image".into(), e.to_string()))?;
            Ok(String::new())
        }
        Db::Stock(_) => run(db, &format!("VACUUM {database} INTO '{to}'")),
    }
}

fn row_of(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join("|")
}

/// A value as text.
pub fn text(v: &Value) -> String {
    match v {
        Value::Null => String::new(),
        Value::Int(n) => n.to_string(),
        Value::Real(r) => r.to_string(),
        Value::Text(b) | Value::Blob(b) => String::from_utf8_lossy(b).into_owned(),
    }
}

/// Runs statements one after the other: the last row of all.
fn run(db: &Db, sql: &str) -> Answer {
    let (mut last, mut rest) = (String::new(), sql);
    while !rest.trim().is_empty() {
        let head = || rest.split_whitespace().next().unwrap_or("").to_string();
        let at = |r: Refusal| Refusal(r.0, head(), r.2);
        match db {
            Db::Iolite(c) => {
                let Some((mut s, tail)) = c.prepare_next(rest).map_err(|e| at(e.into()))? else { break };
                while s.step().map_err(|e| at(e.into()))? == iolite::engine::Step::Row {
                    last = row_of(s.row().iter().map(|v| v.to_string_lossy()));
                }
                rest = tail;
            }
            Db::Stock(c) => {
                let Some((mut s, used)) = c.prepare_next(rest).map_err(|e| at(e.into()))? else { break };
                while s.step().map_err(|e| at(e.into()))? {
                    last = row_of(s.row().iter().map(text));
                }
                rest = &rest[used..];
            }
        }
    }
    Ok(last)
}
