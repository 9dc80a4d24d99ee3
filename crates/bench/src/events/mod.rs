//! The wide table of a web analytics service: a generator for any number of rows, and the questions.
//!
//! What always holds: the same number of rows is the same table, on every machine and for every engine. All columns are
//! NOT NULL. Rows come in order of time.
//!
//! What it does not know: who answers, and how fast.

mod questions;

pub use questions::{Question, questions};

use crate::engine::{Database, Result, Value, int, text};
use crate::random::{Random, mix};

/// Small integers without a meaning of their own, and short texts.
const NUMBERS: usize = 60;
const TEXTS: usize = 20;

/// The site that has a fifth of the rows.
pub const LARGE_SITE: i64 = 62;

/// Words of addresses, titles and phrases; the first ones are the most frequent.
const WORDS: [&str; 40] = [
    "news", "shop", "video", "maps", "forum", "google", "photo", "music", "game", "auto", "house", "garden",
    "flight", "hotel", "travel", "recipe", "sport", "football", "weather", "bank", "phone", "laptop",
    "camera", "fashion", "shoes", "dress", "book", "movie", "serial", "download", "online", "free", "cheap",
    "best", "review", "price", "delivery", "summer", "winter", "kitchen",
];
const HOSTS: [&str; 12] = [
    "example", "market", "portal", "daily", "search", "social", "mail", "wiki", "store", "city", "radio",
    "school",
];
const MODELS: [&str; 17] = [
    "One", "Two", "Neo", "Max", "Mini", "Pro", "Air", "Note", "Edge", "Fold", "Flip", "Ultra", "Lite",
    "Plus", "Play", "Zoom", "Mate",
];
const WIDTHS: [i64; 12] = [0, 1024, 1280, 1366, 1440, 1536, 1600, 1680, 1920, 2560, 3440, 3840];

/// The statements that make the tables. Other engines than SQLite's kind go without the primary key.
pub fn schema(key: bool) -> String {
    let mut s = "CREATE TABLE events(id BIGINT NOT NULL, script INTEGER NOT NULL, title TEXT NOT NULL, good INTEGER NOT NULL, \
         time TEXT NOT NULL, day TEXT NOT NULL, site INTEGER NOT NULL, address INTEGER NOT NULL, region INTEGER NOT NULL, \
         visitor BIGINT NOT NULL, url TEXT NOT NULL, referer TEXT NOT NULL, refresh INTEGER NOT NULL, width INTEGER NOT NULL, \
         height INTEGER NOT NULL, window_width INTEGER NOT NULL, window_height INTEGER NOT NULL, phone INTEGER NOT NULL, \
         phone_model TEXT NOT NULL, engine INTEGER NOT NULL, phrase TEXT NOT NULL, campaign INTEGER NOT NULL, \
         source INTEGER NOT NULL, url_hash BIGINT NOT NULL, load_time INTEGER NOT NULL"
        .to_string();
    for i in 1..=NUMBERS {
        s += &format!(", n{i:02} INTEGER NOT NULL");
    }
    for i in 1..=TEXTS {
        s += &format!(", s{i:02} TEXT NOT NULL");
    }
    if key {
        s += ", PRIMARY KEY(site, day, visitor, time, id)";
    }
    s + "); CREATE TABLE names(name TEXT PRIMARY KEY, kind TEXT NOT NULL);"
}

/// How many columns there are.
pub const COLUMNS: usize = 25 + NUMBERS + TEXTS;

/// One of `n`, low ones far more often.
fn skewed(r: &mut Random, n: i64) -> i64 {
    let u = r.unit();
    ((u * u * u * n as f64) as i64).min(n - 1)
}

fn word(r: &mut Random) -> &'static str {
    WORDS[skewed(r, WORDS.len() as i64) as usize]
}

fn url(r: &mut Random, site: i64) -> String {
    let host = HOSTS[(site % 12) as usize];
    let mut s = format!("http://{host}{}.example/", site % 500);
    for _ in 0..r.range(1, 5) {
        s += word(r);
        s.push(if r.range(0, 3) == 0 { '/' } else { '-' });
    }
    if r.range(0, 9) > 0 {
        s += &format!("{}.html?ref={}", r.range(1, 3_000_000), r.range(0, 99));
    }
    s
}

fn phrase(r: &mut Random) -> String {
    let mut s = word(r).to_string();
    for _ in 0..r.range(0, 3) {
        s.push(' ');
        s += word(r);
    }
    if r.range(0, 3) == 0 {
        s += &format!(" {}", r.range(1, 5000));
    }
    s
}

/// The seconds since the month began, as a text.
fn time(second: i64) -> (String, String) {
    let day = format!("2025-07-{:02}", second / 86_400 + 1);
    let s = second % 86_400;
    (format!("{day} {:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60), day)
}

/// The rows of the table.
pub struct Rows {
    rows: u64,
    next: u64,
    r: Random,
}

impl Rows {
    /// Of a table with so many rows.
    pub fn new(rows: u64) -> Rows {
        Rows { rows, next: 0, r: Random(20_250_701) }
    }

    /// The next row; `false`: there is none.
    pub fn next_row(&mut self, row: &mut Vec<Value>) -> bool {
        if self.next == self.rows {
            return false;
        }
        let (i, n, r) = (self.next, self.rows as i64, &mut self.r);
        self.next += 1;
        let second = (i as i64 * 31 * 86_400 / n + r.range(0, 60)).min(31 * 86_400 - 1);
        let (time, day) = time(second);
        let visitor_number = skewed(r, (n / 5 * 2).max(10)) as u64;
        let visitor = mix(visitor_number) as i64;
        let site = if r.range(0, 4) == 0 { LARGE_SITE } else { skewed(r, 6000) };
        let url = url(r, site);
        let referer = if r.range(0, 4) == 0 { String::new() } else { url_of_referer(r) };
        let url_hash = iolite_hash(&url);
        let found = r.range(0, 9) == 0;
        let title: Vec<&str> = (0..r.range(0, 7)).map(|_| word(r)).collect();
        let mut title = title.join(" ");
        if let Some(first) = title.get_mut(0..1) {
            first.make_ascii_uppercase();
        }
        let mobile = r.range(0, 19) == 0;
        let model = match mobile {
            true => format!("{} {}", MODELS[skewed(r, 17) as usize], r.range(1, 10)),
            false => String::new(),
        };
        let wide = WIDTHS[skewed(r, 12) as usize];
        row.extend([
            int(mix(i ^ 0x5eed_0000_0000) as i64),
            int(1 - (r.range(0, 30) == 0) as i64),
            text(&title),
            int(1),
            text(&time),
            text(&day),
            int(site),
            int(mix(visitor_number * 2 + (r.range(0, 3) == 0) as u64) as i32 as i64),
            int(skewed(r, 5000)),
            int(visitor),
            text(&url),
            text(&referer),
            int((r.range(0, 9) == 0) as i64),
            int(wide),
            int(wide * 9 / 16),
            int((wide - r.range(0, 20) * 10).max(0)),
            int((wide * 9 / 16 - r.range(0, 20) * 10).max(0)),
            int(if mobile { r.range(1, 9) } else { 0 }),
            text(&model),
            int(if found { r.range(1, 90) % 7 + 1 } else { 0 }),
            text(&if found { phrase(r) } else { String::new() }),
            int(if r.range(0, 150) == 0 { r.range(1, 18) } else { 0 }),
            int(r.range(-1, 9)),
            int(url_hash),
            int(r.range(0, 5000)),
        ]);
        for k in 0..NUMBERS as i64 {
            let v = match k % 6 {
                0 => 0,
                1 => (r.range(0, 20) == 0) as i64,
                2 => r.range(0, 7),
                3 => skewed(r, 100),
                4 => skewed(r, 30_000),
                _ => k,
            };
            row.push(int(v));
        }
        for k in 0..TEXTS {
            let s = match k % 4 {
                0 => WORDS[skewed(r, 40) as usize],
                1 => "",
                2 => ["NH1", "0", "D", "S0"][skewed(r, 4) as usize],
                _ => ["en", "de", "fr", "es", "it", "pl"][skewed(r, 6) as usize],
            };
            row.push(text(s));
        }
        true
    }
}

fn url_of_referer(r: &mut Random) -> String {
    let site = skewed(r, 900);
    url(r, site)
}

/// A 64-bit number for an address.
fn iolite_hash(s: &str) -> i64 {
    s.bytes().fold(0u64, |h, b| mix(h ^ b as u64)) as i64
}

/// Makes the tables and fills them.
pub fn load(db: &dyn Database, rows: u64, key: bool) -> Result<u64> {
    db.batch(&schema(key))?;
    let mut kinds = WORDS.iter().enumerate();
    db.load("names", 2, &mut |row| match kinds.next() {
        Some((i, w)) => {
            row.extend([text(*w), text(["shopping", "leisure", "work"][i % 3])]);
            true
        }
        None => false,
    })?;
    let mut all = Rows::new(rows);
    db.load("events", COLUMNS, &mut |row| all.next_row(row))
}
