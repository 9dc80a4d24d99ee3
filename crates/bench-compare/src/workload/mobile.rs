//! The shape of a mobile trace: three reads for each write; mostly key lookups, some ranges and aggregates, a tail of joins of
//! five and more tables; writes are mostly UPSERTs, with INSERTs, UPDATEs and DELETEs whose condition holds a nested query.

use super::{Seat, TUNED, TUNED_KEEPS, compare, in_turn, timed};
use crate::Options;
use crate::envelope::Run;
use iolite_bench::engine::{Database, Query, Result, find, int, text};
use iolite_bench::random::Random;

const SCHEMA: &str = "
CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT, kind INTEGER);
CREATE TABLE contact(id INTEGER PRIMARY KEY, account_id INTEGER, name TEXT, phone TEXT UNIQUE);
CREATE TABLE thread(id INTEGER PRIMARY KEY, account_id INTEGER, subject TEXT, updated INTEGER);
CREATE TABLE member(thread_id INTEGER, contact_id INTEGER, PRIMARY KEY(thread_id, contact_id));
CREATE TABLE message(id INTEGER PRIMARY KEY, thread_id INTEGER, sender_id INTEGER, sent INTEGER, body TEXT);
CREATE TABLE attachment(id INTEGER PRIMARY KEY, message_id INTEGER, kind TEXT, bytes INTEGER);
CREATE TABLE setting(key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE seen(message_id INTEGER PRIMARY KEY, at INTEGER, times INTEGER DEFAULT 1);
CREATE INDEX contact_account ON contact(account_id);
CREATE INDEX thread_updated ON thread(updated);
CREATE INDEX message_thread ON message(thread_id, sent);
CREATE INDEX attachment_message ON attachment(message_id);
CREATE INDEX member_contact ON member(contact_id);
";
const MESSAGES: i64 = 40_000;

/// A statement with its share in a thousand and how its parameters are drawn.
type Shape = (&'static str, i64, &'static str, fn(&mut Random) -> Vec<iolite_bench::engine::Value>);

const SHAPES: &[Shape] = &[
    ("message by key", 260, "SELECT * FROM message WHERE id = ?1", |r| vec![int(r.range(1, MESSAGES))]),
    ("setting by key", 200, "SELECT value FROM setting WHERE key = ?1", |r| {
        vec![text(format!("key {}", r.range(1, 300)))]
    }),
    ("contact by phone", 100, "SELECT id, name FROM contact WHERE phone = ?1", |r| {
        vec![text(format!("+{:010}", r.range(1, 2_000)))]
    }),
    (
        "last messages",
        80,
        "SELECT id, body FROM message WHERE thread_id = ?1 ORDER BY sent DESC LIMIT 20",
        |r| vec![int(r.range(1, 1_000))],
    ),
    (
        "unseen count",
        40,
        "SELECT count(*) FROM message m WHERE thread_id = ?1 AND NOT EXISTS (SELECT 1 FROM seen s WHERE s.message_id = m.id)",
        |r| vec![int(r.range(1, 1_000))],
    ),
    ("newest threads", 30, "SELECT id, subject FROM thread ORDER BY updated DESC LIMIT 25", |_| vec![]),
    (
        "join of five",
        30,
        "SELECT m.body, c.name, t.subject, a.name, x.kind FROM message m JOIN thread t ON t.id = m.thread_id JOIN contact c ON c.id = m.sender_id JOIN account a ON a.id = t.account_id LEFT JOIN attachment x ON x.message_id = m.id WHERE m.thread_id = ?1 ORDER BY m.sent DESC LIMIT 10",
        |r| vec![int(r.range(1, 1_000))],
    ),
    (
        "join of seven",
        10,
        "SELECT c2.name, count(*), max(m.sent), sum(x.bytes) FROM contact c JOIN member b ON b.contact_id = c.id JOIN thread t ON t.id = b.thread_id JOIN message m ON m.thread_id = t.id JOIN contact c2 ON c2.id = m.sender_id LEFT JOIN attachment x ON x.message_id = m.id LEFT JOIN seen s ON s.message_id = m.id WHERE c.id = ?1 AND s.at IS NULL GROUP BY c2.id ORDER BY 2 DESC, 1 LIMIT 5",
        |r| vec![int(r.range(1, 2_000))],
    ),
    (
        "UPSERT of a setting",
        80,
        "INSERT INTO setting VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
        |r| vec![text(format!("key {}", r.range(1, 330))), text(r.letters(20))],
    ),
    (
        "UPSERT of seen",
        80,
        "INSERT INTO seen(message_id, at) VALUES(?1, ?2) ON CONFLICT(message_id) DO UPDATE SET times = times + 1, at = excluded.at",
        |r| vec![int(r.range(1, MESSAGES)), int(r.range(1, 1 << 30))],
    ),
    (
        "INSERT of a message",
        40,
        "INSERT INTO message(thread_id, sender_id, sent, body) VALUES(?1, ?2, ?3, ?4)",
        |r| {
            vec![
                int(r.range(1, 1_000)),
                int(r.range(1, 2_000)),
                int(r.range(1, 1 << 30)),
                text(r.letters(60)),
            ]
        },
    ),
    ("UPDATE of a thread", 30, "UPDATE thread SET updated = ?2 WHERE id = ?1", |r| {
        vec![int(r.range(1, 1_000)), int(r.range(1, 1 << 30))]
    }),
    (
        "DELETE by nested query",
        20,
        "DELETE FROM seen WHERE message_id IN (SELECT m.id FROM message m JOIN thread t ON t.id = m.thread_id WHERE t.id = ?1 AND m.sent < ?2)",
        |r| vec![int(r.range(1, 1_000)), int(r.range(1, 1 << 30))],
    ),
];

fn fill(db: &dyn Database) -> Result<()> {
    db.batch(SCHEMA)?;
    let mut r = Random(77);
    let mut table =
        |name: &str,
         columns: usize,
         rows: i64,
         f: &mut dyn FnMut(&mut Random, i64) -> Vec<iolite_bench::engine::Value>| {
            let mut i = 0;
            db.load(name, columns, &mut |row| {
                i += 1;
                if i > rows {
                    return false;
                }
                row.extend(f(&mut r, i));
                true
            })
        };
    table("account", 3, 5, &mut |_, i| vec![int(i), text(format!("account {i}")), int(i % 2)])?;
    table("contact", 4, 2_000, &mut |r, i| {
        vec![int(i), int(r.range(1, 5)), text(r.letters(12)), text(format!("+{i:010}"))]
    })?;
    table("thread", 4, 1_000, &mut |r, i| {
        vec![int(i), int(r.range(1, 5)), text(r.letters(20)), int(r.range(1, 1 << 30))]
    })?;
    table("member", 2, 3_000, &mut |r, i| {
        vec![int(i % 1_000 + 1), int((i / 1_000) * 600 + r.range(1, 600))]
    })?;
    table("message", 5, MESSAGES, &mut |r, i| {
        vec![
            int(i),
            int(r.range(1, 1_000)),
            int(r.range(1, 2_000)),
            int(r.range(1, 1 << 30)),
            text(r.letters(60)),
        ]
    })?;
    table("attachment", 4, 8_000, &mut |r, i| {
        vec![
            int(i),
            int(r.range(1, MESSAGES)),
            text(["image", "video", "text"][r.range(0, 2) as usize]),
            int(r.range(1_000, 9_000_000)),
        ]
    })?;
    table("setting", 2, 300, &mut |r, i| vec![text(format!("key {i}")), text(r.letters(20))])?;
    table("seen", 3, 15_000, &mut |r, i| vec![int(i * 2), int(r.range(1, 1 << 30)), int(1)])?;
    db.batch("ANALYZE")
}

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 9, 5);
    let steps = o.number("steps", 5_000, 2_000);
    let names = ["stock", "iolite"];
    let mut seats = Vec::new();
    for n in names {
        run.set("", n, TUNED, TUNED_KEEPS);
        let s = Seat::open(&*find(n)?, n, "mobile", TUNED)?;
        fill(&*s.db)?;
        seats.push(s);
    }
    {
        let new = |s: &Seat| -> Result<Vec<Vec<iolite_bench::engine::Value>>> {
            let mut r = Random(5);
            let mut out = Vec::new();
            for _ in 0..3_000 {
                let (title, _, sql, draw) = SHAPES[pick(&mut r)];
                let params = draw(&mut r);
                out.extend(s.db.prepare(sql)?.rows(&params).map_err(|e| e.at(title))?);
            }
            Ok(out)
        };
        let answers = [("stock", new(&seats[0])?), ("iolite", new(&seats[1])?)];
        crate::gate::equal("3,000 statements", &answers, false)?;
        for t in ["seen", "setting", "message", "thread"] {
            compare(&seats, t, &format!("SELECT * FROM {t}"), true)?;
        }
        run.gates.push("answers of 3,000 statements and four tables afterwards are equal".into());
    }
    let [a, b] = &seats[..] else { return Err("two engines are wanted".into()) };
    let mut statements = [prepare(a)?, prepare(b)?];
    let mut draws = [Random(9), Random(9)];
    let mut each = vec![vec![Vec::new(); SHAPES.len()]; 2];
    let rates = in_turn(2, turns, |k, _| {
        let mut us = vec![(0.0, 0u32); SHAPES.len()];
        let r = &mut draws[k];
        let mut total = 0.0;
        for _ in 0..steps {
            let i = pick(r);
            let params = (SHAPES[i].3)(r);
            let (_, s) = timed(|| statements[k][i].run(&params))?;
            us[i] = (us[i].0 + s * 1e6, us[i].1 + 1);
            total += s;
        }
        for (i, (sum, n)) in us.into_iter().enumerate() {
            if n > 0 {
                each[k][i].push(sum / n as f64);
            }
        }
        Ok(steps as f64 / total)
    })?;
    drop(statements);
    for (k, samples) in rates.into_iter().enumerate() {
        run.more("statements", "the whole mix", names[k], "op/s", samples);
    }
    for (i, s) in SHAPES.iter().enumerate() {
        for (k, list) in each.iter_mut().enumerate() {
            run.less(s.0, &format!("share {} of 1,000", s.1), names[k], "us", std::mem::take(&mut list[i]));
        }
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

fn prepare(s: &Seat) -> Result<Vec<Box<dyn Query + '_>>> {
    SHAPES.iter().map(|x| s.db.prepare(x.2)).collect()
}

fn pick(r: &mut Random) -> usize {
    let mut x = r.range(0, 999);
    for (i, s) in SHAPES.iter().enumerate() {
        x -= s.1;
        if x < 0 {
            return i;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_a_thousand_and_three_quarters_read() {
        assert_eq!(SHAPES.iter().map(|s| s.1).sum::<i64>(), 1_000);
        let reads: i64 = SHAPES.iter().filter(|s| s.2.starts_with("SELECT")).map(|s| s.1).sum();
        assert_eq!(reads, 750);
    }
}
