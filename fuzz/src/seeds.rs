//! `seeds FOLDER`: writes what fuzzing begins with, a folder for each target: the texts of the conformance suite, and files, nodes,
//! blocks and changesets as the engine itself makes them.

use iolite::engine::{Connection, Switch, Value};
// What counts the branches that are taken is in there.
use libfuzzer_sys as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The texts of the conformance suite.
const TEXTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/conform/tests");

struct Seeds {
    folder: PathBuf,
    made: usize,
}

impl Seeds {
    fn of(root: &Path, target: &str) -> Seeds {
        let folder = root.join(target);
        fs::create_dir_all(&folder).expect("the folder of seeds");
        Seeds { folder, made: 0 }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.made += 1;
        fs::write(self.folder.join(format!("seed-{}", self.made)), bytes).expect("a seed");
    }
}

fn main() {
    let root = PathBuf::from(std::env::args().nth(1).expect("usage: seeds FOLDER"));
    sql(Seeds::of(&root, "sql"));
    files(Seeds::of(&root, "file"));
    json(Seeds::of(&root, "json"));
    nodes(Seeds::of(&root, "rtree"));
    text_indexes(Seeds::of(&root, "text_index"));
    vectors(Seeds::of(&root, "vector_index"));
    changesets(Seeds::of(&root, "changeset"));
}

/// All texts below a folder.
fn texts(folder: &Path, out: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, out);
        } else if path.extension().is_some_and(|e| e == "sql") {
            out.extend(fs::read_to_string(path));
        }
    }
}

/// Each text in pieces that are small enough to be changed often.
fn sql(mut seeds: Seeds) {
    let mut all = Vec::new();
    texts(Path::new(TEXTS), &mut all);
    words(&seeds.folder.with_extension("words"), &all.concat());
    for text in all {
        let lines: Vec<&str> = text.lines().collect();
        lines.chunks(6).for_each(|c| seeds.put(c.join("\n").as_bytes()));
    }
}

/// The words that texts have often, as libFuzzer's dictionaries are written.
fn words(path: &Path, text: &str) {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| w.len() > 1) {
        *counts.entry(word).or_default() += 1;
    }
    let often = counts.into_iter().filter(|(w, n)| *n > 15 && w.chars().any(char::is_alphabetic));
    let lines: String = often.map(|(w, _)| format!("\" {w} \"\n\"{w}(\"\n")).collect();
    fs::write(path, lines).expect("the words");
}

fn open(setup: &str) -> Connection {
    let c = Connection::open_in_memory().expect("a database in memory");
    c.switch(Switch::Defensive, Some(false));
    c.execute_batch(setup).expect("a seed's statements");
    c
}

fn blobs(c: &Connection, sql: &str) -> Vec<Vec<u8>> {
    let rows = c.query(sql, &[]).expect("a seed's query");
    rows.into_iter().filter_map(|r| r[0].text_bytes().ok().map(|b| b.to_vec())).collect()
}

const ROWS: &str =
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE, c); CREATE TABLE w(k PRIMARY KEY, v) WITHOUT ROWID;
CREATE INDEX t_c ON t(c DESC); CREATE VIEW v AS SELECT * FROM t;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
  INSERT INTO t SELECT i, 'row ' || i, CASE i % 5 WHEN 0 THEN zeroblob(900) ELSE i * 1.5 END FROM n;
INSERT INTO w SELECT b, c FROM t; DELETE FROM t WHERE a % 7 = 3;";

fn files(mut seeds: Seeds) {
    let rtree = "CREATE VIRTUAL TABLE r USING rtree(id, a, b); INSERT INTO r VALUES(1, 2, 3)";
    let fts = "CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES('some words')";
    for before in [
        "PRAGMA page_size = 512",
        "PRAGMA page_size = 512; PRAGMA auto_vacuum = 1",
        "PRAGMA page_size = 1024; PRAGMA encoding = 'UTF-16le'",
    ] {
        for more in ["", rtree, fts] {
            let c = open(&format!("{before}; {ROWS}; {more}"));
            seeds.put(&c.serialize("main").expect("an image"));
        }
    }
    // One with a log, and one with a journal that a commit left half done.
    let dir = std::env::temp_dir().join(format!("iolite-seeds-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a scratch folder");
    for (mode, beside, empty) in [("wal", "wal", &b""[..]), ("persist", "journal", b"\n--next file--\n")] {
        let name = dir.join(format!("{mode}.db"));
        let c = Connection::open(&name.to_string_lossy()).expect("a scratch database");
        c.execute_batch(&format!(
            "PRAGMA page_size = 512; PRAGMA journal_mode = {mode}; PRAGMA cache_size = 3; {ROWS}"
        ))
        .expect("rows");
        c.execute_batch("BEGIN; UPDATE t SET b = b || 'x'; PRAGMA cache_size = 2; DELETE FROM w")
            .expect("a change");
        if mode == "wal" {
            c.execute_batch("COMMIT").expect("a commit");
        }
        let read = |end: &str| fs::read(dir.join(format!("{mode}.db{end}"))).unwrap_or_default();
        let parts = [&read("")[..], b"\n--next file--\n", empty, &read(&format!("-{beside}"))].concat();
        seeds.put(&parts);
    }
    let _ = fs::remove_dir_all(&dir);
}

fn json(mut seeds: Seeds) {
    let documents = [
        "{\"a\":[1,2.5,-3e10,\"x\\u0041\\n\",null,true,false,{\"b\":{}}],\"\":[]}\n$.a[7].b",
        "[[[1]],{\"key with space\":\"\\ud83d\\ude00\"}]\n$[1].\"key with space\"",
        "{a:0x1F,'b':+.5,/*c*/c:Infinity,d:NaN,e:[1,],}\n$.e[#-1]",
        "\"text\"\n$",
        "123456789012345678901234567890\n$[0]",
        "{\"a\":1,\"a\":2}\n$.a",
    ];
    documents.iter().for_each(|d| seeds.put(d.as_bytes()));
    let c = open("");
    for d in documents {
        let text = Value::text(d.split('\n').next().unwrap_or_default()).expect("memory");
        let binary = c.query("SELECT jsonb(?1)", &[text]).expect("JSON")[0][0].text_bytes().expect("memory");
        seeds.put(&[&binary[..], b"\n$.a[0]"].concat());
    }
}

fn nodes(mut seeds: Seeds) {
    let c = open(
        "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, y0, y1);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
          INSERT INTO r SELECT i, i, i + 2, i * 7 % 50, i * 7 % 50 + 3 FROM n",
    );
    for (n, node) in blobs(&c, "SELECT data FROM r_node").iter().enumerate() {
        let end = node.len().min(4 + 12 * 24);
        seeds.put(&[&[n as u8], &node[..end]].concat());
    }
}

fn text_indexes(mut seeds: Seeds) {
    let queries = [
        "words",
        "the AND 3",
        "th* OR NOT 1",
        "\"the 3 words\"",
        "NEAR(the row, 4) AND y:more",
        "{x y} : ^the + 3*",
        "-x:row OR 5",
        "the NEAR/2 row",
        "x:the y:more -3",
        "(a OR b) AND (c NOT d)",
    ];
    queries.iter().for_each(|q| seeds.put(q.as_bytes()));
    let c = open("CREATE VIRTUAL TABLE f USING fts5(x, y, prefix = '1 3'); CREATE VIRTUAL TABLE o USING fts4(x, y, prefix='1 3');
        INSERT INTO f(f, rank) VALUES('pgsz', 64);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
          INSERT INTO f SELECT 'the ' || (i % 7) || ' words of row ' || i, 'and ' || (i * 13 % 40) || ' more' FROM n;
        DELETE FROM f WHERE rowid % 10 = 3; INSERT INTO o(x, y) SELECT x, y FROM f");
    for (which, sql) in [
        (0u8, "SELECT block FROM f_data ORDER BY id DESC LIMIT 12"),
        (1, "SELECT block FROM f_data WHERE id = 10"),
        (3, "SELECT sz FROM f_docsize LIMIT 2"),
        (4, "SELECT block FROM o_segments LIMIT 6"),
        (5, "SELECT root FROM o_segdir LIMIT 6"),
    ] {
        for (n, block) in blobs(&c, sql).iter().enumerate() {
            let place = which + 7 * ((n as u8 * 16).saturating_sub(which) / 7);
            seeds.put(&[b"the OR 1*\n--next part--\n", &[place][..], block].concat());
        }
    }
}

fn vectors(mut seeds: Seeds) {
    for text in ["[1,2,3,4]", "[0.5, -1e3, 2, 7]", "[]", "[1,2,3,4,5]"] {
        seeds.put(text.as_bytes());
    }
    seeds.put(&[1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat());
    for n in 0..24u8 {
        let bytes = [0x80u8, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0xff, 0xff].repeat(n as usize % 5 + 1);
        seeds.put(&[b"[1,2,3,4]\n--next part--\n", &[n][..], &bytes].concat());
    }
}

/// Bytes of a table's header and changes, as the format has them (documentation page `session/c_changeset...`).
fn changesets(mut seeds: Seeds) {
    let table = |kind: u8, keys: &[u8], name: &str| {
        let mut out = vec![kind, keys.len() as u8];
        out.extend_from_slice(keys);
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out
    };
    let int = |n: i64| [&[1u8][..], &n.to_be_bytes()].concat();
    let text = |t: &str| [&[3u8, t.len() as u8][..], t.as_bytes()].concat();
    let real = |r: f64| [&[2u8][..], &r.to_be_bytes()].concat();
    let (insert, delete, update) = ([18u8, 0], [9u8, 0], [23u8, 0]);
    let t = table(b'T', &[1, 0, 0], "t");
    let w = table(b'T', &[1, 2, 0], "w");
    seeds.put(&[&t[..], &insert, &int(9), &text("nine"), &[5]].concat());
    seeds.put(&[&t[..], &delete, &int(2), &text("two"), &[4, 1, 2]].concat());
    seeds.put(&[&t[..], &update, &int(1), &text("one"), &[0], &[0], &text("uno"), &[0]].concat());
    seeds.put(
        &[&w[..], &insert, &text("c"), &int(3), &real(1.5), &delete, &text("a"), &int(1), &int(2)].concat(),
    );
    let p = table(b'P', &[1, 0, 0], "t");
    seeds.put(&[&p[..], &delete, &int(3), &update, &int(1), &text("uno"), &[0]].concat());
}
