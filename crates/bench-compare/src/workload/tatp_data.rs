//! TATP: the schema, a generator with fixed seeds, and the seven transactions.

use iolite_bench::engine::{Database, Kind, Query, Result, Value, int, text};
use iolite_bench::random::Random;

/// The four tables; DuckDB understands the text too.
pub const SCHEMA: &str = "
CREATE TABLE subscriber(s_id INTEGER PRIMARY KEY, sub_nbr TEXT NOT NULL UNIQUE,
  bit_1 INTEGER, bit_2 INTEGER, bit_3 INTEGER, bit_4 INTEGER, bit_5 INTEGER, bit_6 INTEGER, bit_7 INTEGER,
  bit_8 INTEGER, bit_9 INTEGER, bit_10 INTEGER, hex_1 INTEGER, hex_2 INTEGER, hex_3 INTEGER, hex_4 INTEGER,
  hex_5 INTEGER, hex_6 INTEGER, hex_7 INTEGER, hex_8 INTEGER, hex_9 INTEGER, hex_10 INTEGER,
  byte2_1 INTEGER, byte2_2 INTEGER, byte2_3 INTEGER, byte2_4 INTEGER, byte2_5 INTEGER, byte2_6 INTEGER,
  byte2_7 INTEGER, byte2_8 INTEGER, byte2_9 INTEGER, byte2_10 INTEGER,
  msc_location INTEGER, vlr_location INTEGER);
CREATE TABLE access_info(s_id INTEGER NOT NULL, ai_type INTEGER NOT NULL, data1 INTEGER, data2 INTEGER,
  data3 TEXT, data4 TEXT, PRIMARY KEY(s_id, ai_type));
CREATE TABLE special_facility(s_id INTEGER NOT NULL, sf_type INTEGER NOT NULL, is_active INTEGER NOT NULL,
  error_cntrl INTEGER, data_a INTEGER, data_b TEXT, PRIMARY KEY(s_id, sf_type));
CREATE TABLE call_forwarding(s_id INTEGER NOT NULL, sf_type INTEGER NOT NULL, start_time INTEGER NOT NULL,
  end_time INTEGER, numberx TEXT, PRIMARY KEY(s_id, sf_type, start_time));
";

/// The number of a subscriber as a text of 15 digits.
pub fn number(s_id: i64) -> Value {
    text(format!("{s_id:015}"))
}

/// Some of the types 1 to 4, from one to all, in order.
fn types(r: &mut Random) -> Vec<i64> {
    let mut all = vec![1, 2, 3, 4];
    for _ in 0..r.range(0, 3) {
        let out = r.range(0, all.len() as i64 - 1) as usize;
        all.remove(out);
    }
    all
}

/// Queues rows of one subscriber until the engine asks for them.
fn per_subscriber(
    n: i64,
    seed: u64,
    f: impl Fn(&mut Random, i64) -> Vec<Vec<Value>>,
) -> impl FnMut(&mut Vec<Value>) -> bool {
    let mut r = Random(seed);
    let mut id = 0;
    let mut waiting = std::collections::VecDeque::new();
    move |row| {
        while waiting.is_empty() {
            if id == n {
                return false;
            }
            id += 1;
            waiting.extend(f(&mut r, id));
        }
        row.extend(waiting.pop_front().unwrap_or_default());
        true
    }
}

/// Makes the database of `n` subscribers.
pub fn load(db: &dyn Database, n: i64) -> Result<()> {
    db.batch(SCHEMA)?;
    db.load(
        "subscriber",
        34,
        &mut per_subscriber(n, 11, |r, id| {
            let mut row = vec![int(id), number(id)];
            row.extend((0..10).map(|_| int(r.range(0, 1))));
            row.extend((0..10).map(|_| int(r.range(0, 15))));
            row.extend((0..10).map(|_| int(r.range(0, 255))));
            row.extend([int(r.range(1, i32::MAX as i64)), int(r.range(1, i32::MAX as i64))]);
            vec![row]
        }),
    )?;
    db.load(
        "access_info",
        6,
        &mut per_subscriber(n, 12, |r, id| {
            let of = |t| {
                vec![
                    int(id),
                    int(t),
                    int(r.range(0, 255)),
                    int(r.range(0, 255)),
                    text(r.letters(3)),
                    text(r.letters(5)),
                ]
            };
            types(&mut Random(id as u64)).into_iter().map(of).collect()
        }),
    )?;
    db.load(
        "special_facility",
        6,
        &mut per_subscriber(n, 13, |r, id| {
            let mut of = |t| {
                let active = (r.range(1, 100) <= 85) as i64;
                vec![
                    int(id),
                    int(t),
                    int(active),
                    int(r.range(0, 255)),
                    int(r.range(0, 255)),
                    text(r.letters(5)),
                ]
            };
            facilities(id).into_iter().map(&mut of).collect()
        }),
    )?;
    db.load(
        "call_forwarding",
        5,
        &mut per_subscriber(n, 14, |r, id| {
            let mut out = Vec::new();
            for t in facilities(id) {
                for start in types(r).into_iter().filter(|s| *s < 4).map(|s| (s - 1) * 8) {
                    out.push(vec![
                        int(id),
                        int(t),
                        int(start),
                        int(start + r.range(1, 8)),
                        number(r.range(1, 1 << 30)),
                    ]);
                }
            }
            out
        }),
    )?;
    Ok(())
}

/// The facilities of a subscriber, the same for the two tables that need them.
fn facilities(id: i64) -> Vec<i64> {
    types(&mut Random(id as u64 + 1_000_000_007))
}

/// The transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Kind7 {
    GetSubscriberData,
    GetNewDestination,
    GetAccessData,
    UpdateSubscriberData,
    UpdateLocation,
    InsertCallForwarding,
    DeleteCallForwarding,
}

/// All of them with their shares.
pub const MIX: [(Kind7, &str, i64); 7] = [
    (Kind7::GetSubscriberData, "GET_SUBSCRIBER_DATA", 35),
    (Kind7::GetNewDestination, "GET_NEW_DESTINATION", 10),
    (Kind7::GetAccessData, "GET_ACCESS_DATA", 35),
    (Kind7::UpdateSubscriberData, "UPDATE_SUBSCRIBER_DATA", 2),
    (Kind7::UpdateLocation, "UPDATE_LOCATION", 14),
    (Kind7::InsertCallForwarding, "INSERT_CALL_FORWARDING", 2),
    (Kind7::DeleteCallForwarding, "DELETE_CALL_FORWARDING", 2),
];

/// A client with its statements.
pub struct Client<'d> {
    db: &'d dyn Database,
    begin: &'static str,
    statements: Vec<Box<dyn Query + 'd>>,
    random: Random,
    subscribers: i64,
    spread: i64,
}

const STATEMENTS: [&str; 9] = [
    "SELECT * FROM subscriber WHERE s_id = ?",
    "SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf WHERE sf.s_id = ? AND sf.sf_type = ? \
     AND sf.is_active = 1 AND cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type AND cf.start_time <= ? AND ? < cf.end_time",
    "SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = ? AND ai_type = ?",
    "UPDATE subscriber SET bit_1 = ? WHERE s_id = ?",
    "UPDATE special_facility SET data_a = ? WHERE s_id = ? AND sf_type = ?",
    "UPDATE subscriber SET vlr_location = ? WHERE sub_nbr = ?",
    "SELECT s_id FROM subscriber WHERE sub_nbr = ?",
    "INSERT INTO call_forwarding VALUES(?, ?, ?, ?, ?)",
    "DELETE FROM call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?",
];
const FACILITIES: &str = "SELECT sf_type FROM special_facility WHERE s_id = ?";

impl<'d> Client<'d> {
    /// A client of a database of `subscribers`; `begin` begins writing transactions of two statements.
    pub fn new(db: &'d dyn Database, subscribers: i64, seed: u64, begin: &'static str) -> Result<Client<'d>> {
        let all = STATEMENTS.iter().chain([&FACILITIES]);
        let statements = all.map(|s| db.prepare(s)).collect::<Result<Vec<_>>>()?;
        let spread = if subscribers <= 1_000_000 { 65_535 } else { 1_048_575 };
        Ok(Client { db, begin, statements, random: Random(seed), subscribers, spread })
    }

    /// A subscriber, drawn as the specification says.
    fn subscriber(&mut self) -> i64 {
        let a = self.random.range(0, self.spread);
        let b = self.random.range(1, self.subscribers);
        (a | b) % self.subscribers + 1
    }

    /// Draws the next transaction.
    pub fn draw(&mut self) -> usize {
        let mut x = self.random.range(0, 99);
        for (i, (_, _, share)) in MIX.iter().enumerate() {
            x -= share;
            if x < 0 {
                return i;
            }
        }
        0
    }

    /// Runs a transaction; answers the sum of what it read. A violated constraint is an ordinary outcome.
    pub fn run(&mut self, which: usize) -> Result<i64> {
        let id = self.subscriber();
        let kind = MIX[which].0;
        let r = &mut self.random;
        let st = &mut self.statements;
        match kind {
            Kind7::GetSubscriberData => st[0].run(&[int(id)]),
            Kind7::GetNewDestination => {
                let (t, s) = (r.range(1, 4), r.range(0, 2) * 8);
                let e = r.range(1, 24);
                st[1].run(&[int(id), int(t), int(s), int(e)])
            }
            Kind7::GetAccessData => {
                let t = r.range(1, 4);
                st[2].run(&[int(id), int(t)])
            }
            Kind7::UpdateSubscriberData => {
                let (bit, t, a) = (r.range(0, 1), r.range(1, 4), r.range(0, 255));
                self.transaction(|st| {
                    st[3].run(&[int(bit), int(id)])?;
                    st[4].run(&[int(a), int(id), int(t)])?;
                    Ok(0)
                })
            }
            Kind7::UpdateLocation => {
                let place = r.range(1, i32::MAX as i64);
                st[5].run(&[int(place), number(id)]).map(|_| 0)
            }
            Kind7::InsertCallForwarding => {
                let (t, s) = (r.range(1, 4), r.range(0, 2) * 8);
                let (e, n) = (s + r.range(1, 8), number(r.range(1, 1 << 30)));
                self.transaction(|st| {
                    let found = st[6].run(&[number(id)])?;
                    let kinds = st[9].run(&[int(found)])?;
                    st[7].run(&[int(found), int(t), int(s), int(e), n])?;
                    Ok(found.wrapping_add(kinds))
                })
            }
            Kind7::DeleteCallForwarding => {
                let (t, s) = (r.range(1, 4), r.range(0, 2) * 8);
                self.transaction(|st| {
                    let found = st[6].run(&[number(id)])?;
                    st[8].run(&[int(found), int(t), int(s)])?;
                    Ok(found)
                })
            }
        }
    }

    /// Draws what a writing transaction does, as statements with their parameters: for those who run it elsewhere.
    pub fn script(&mut self, which: usize) -> Vec<(&'static str, Vec<Value>)> {
        let id = self.subscriber();
        let r = &mut self.random;
        let seek = (STATEMENTS[6], vec![number(id)]);
        match MIX[which].0 {
            Kind7::UpdateSubscriberData => {
                let (bit, t, a) = (r.range(0, 1), r.range(1, 4), r.range(0, 255));
                vec![(STATEMENTS[3], vec![int(bit), int(id)]), (STATEMENTS[4], vec![int(a), int(id), int(t)])]
            }
            Kind7::UpdateLocation => {
                vec![(STATEMENTS[5], vec![int(r.range(1, i32::MAX as i64)), number(id)])]
            }
            Kind7::InsertCallForwarding => {
                let (t, s) = (r.range(1, 4), r.range(0, 2) * 8);
                let (e, n) = (s + r.range(1, 8), number(r.range(1, 1 << 30)));
                vec![
                    seek,
                    (FACILITIES, vec![int(id)]),
                    (STATEMENTS[7], vec![int(id), int(t), int(s), int(e), n]),
                ]
            }
            Kind7::DeleteCallForwarding => {
                let (t, s) = (r.range(1, 4), r.range(0, 2) * 8);
                vec![seek, (STATEMENTS[8], vec![int(id), int(t), int(s)])]
            }
            _ => Vec::new(),
        }
    }

    fn transaction(&mut self, f: impl FnOnce(&mut [Box<dyn Query + 'd>]) -> Result<i64>) -> Result<i64> {
        self.db.batch(self.begin)?;
        match f(&mut self.statements) {
            Ok(n) => {
                self.db.batch("COMMIT")?;
                Ok(n)
            }
            Err(e) => {
                let undone = self.db.batch("ROLLBACK");
                if e.kind != Kind::Constraint {
                    return Err(e);
                }
                undone.map(|()| -1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_bench::engine::{find, show};
    use std::path::Path;

    #[test]
    fn a_fixed_seed_gives_fixed_contents_and_both_engines_agree() {
        let mut seen = Vec::new();
        for e in ["stock", "iolite"] {
            let db = find(e).unwrap().open(Path::new(":memory:")).unwrap();
            load(&*db, 500).unwrap();
            let sums = "SELECT (SELECT count(*) || ' ' || sum(msc_location) FROM subscriber), \
                        (SELECT count(*) || ' ' || sum(data1) FROM access_info), \
                        (SELECT count(*) || ' ' || sum(data_a) FROM special_facility), \
                        (SELECT count(*) || ' ' || sum(end_time) FROM call_forwarding)";
            let loaded = show(&db.rows(sums).unwrap()[0]);
            let mut c = Client::new(&*db, 500, 3, "BEGIN").unwrap();
            let mut sum = 0i64;
            for _ in 0..2_000 {
                let t = c.draw();
                sum = sum.wrapping_add(c.run(t).unwrap());
            }
            drop(c);
            seen.push((loaded, sum, show(&db.rows(sums).unwrap()[0])));
        }
        assert_eq!(seen[0], seen[1]);
        assert_eq!(seen[0].0.split('|').next().unwrap().split(' ').next(), Some("500"));
    }

    #[test]
    fn shares_are_a_hundred() {
        assert_eq!(MIX.iter().map(|m| m.2).sum::<i64>(), 100);
    }
}
