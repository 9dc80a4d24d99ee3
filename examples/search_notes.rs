//! Indexes a folder of texts and answers questions by words and by meaning at once.
//!
//!     cargo run -p iolite --example search_notes -- FOLDER QUESTION...
//!
//! Texts, their full-text index and their vectors lie in one file, `FOLDER/notes.db`; each run takes in what is new or has changed, in one
//! transaction. The vectors are made by hashing words and their parts, which knows spellings but no meanings: put a model's here.

use iolite::{Connection, Result, params};
use std::path::Path;

const DIMENSIONS: usize = 256;

/// A vector of words and of each three letters in a row, of length 1.
fn embed(text: &str) -> Vec<u8> {
    let mut numbers = [0f32; DIMENSIONS];
    let mut add = |part: &[u8], weight: f32| {
        let hash = part.iter().fold(0xcbf2_9ce4u32, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193));
        let sign = if hash & 1 == 0 { weight } else { -weight };
        numbers[(hash >> 8) as usize % DIMENSIONS] += sign;
    };
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
        add(word.as_bytes(), 1.0);
        let framed = format!(" {word} ");
        framed.as_bytes().windows(3).for_each(|three| add(three, 0.5));
    }
    let length = numbers.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-9);
    numbers.iter().flat_map(|x| (x / length).to_le_bytes()).collect()
}

fn prepare(db: &Connection) -> Result<()> {
    db.execute_batch(&format!(
        "CREATE TABLE IF NOT EXISTS note(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, body TEXT NOT NULL);
         CREATE VIRTUAL TABLE IF NOT EXISTS note_fts USING fts5(body, content=note, content_rowid=id, tokenize=porter);
         CREATE VIRTUAL TABLE IF NOT EXISTS note_vec USING vec0(id integer primary key,
             embedding float[{DIMENSIONS}] distance_metric=cosine index=ivf);"
    ))
}

/// Takes in the texts of a folder; answers how many were new or have changed.
fn index(db: &mut Connection, folder: &Path) -> Result<usize> {
    let mut changed = 0;
    let tx = db.transaction()?;
    let entries =
        std::fs::read_dir(folder).map(|d| d.flatten().map(|e| e.path()).collect()).unwrap_or_default();
    let mut files: Vec<std::path::PathBuf> = entries;
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "txt" || e == "md")) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(body) = std::fs::read_to_string(file) else { continue };
        let old: Option<(i64, String)> = tx
            .prepare("SELECT id, body FROM note WHERE name = ?1")?
            .query_map([&name], |r| Ok((r.get(0)?, r.get(1)?)))?
            .next()
            .transpose()?;
        if let Some((id, before)) = &old {
            if *before == body {
                continue;
            }
            tx.execute(
                "INSERT INTO note_fts(note_fts, rowid, body) VALUES('delete', ?1, ?2)",
                params![id, before],
            )?;
            tx.execute("DELETE FROM note_vec WHERE id = ?1", [id])?;
            tx.execute("DELETE FROM note WHERE id = ?1", [id])?;
        }
        tx.execute("INSERT INTO note(name, body) VALUES(?1, ?2)", params![name, body])?;
        let id = tx.last_insert_rowid();
        tx.execute("INSERT INTO note_fts(rowid, body) VALUES(?1, ?2)", params![id, body])?;
        tx.execute("INSERT INTO note_vec(id, embedding) VALUES(?1, ?2)", params![id, embed(&body)])?;
        changed += 1;
    }
    tx.commit()?;
    Ok(changed)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next() else {
        eprintln!("usage: search_notes FOLDER QUESTION...");
        std::process::exit(2);
    };
    let question: Vec<String> = args.collect();
    let folder = Path::new(&folder);
    let mut db = Connection::open(folder.join("notes.db"))?;
    prepare(&db)?;
    println!("{} new or changed", index(&mut db, folder)?);
    // Each word as a text of its own, any of them: what a user types is no query of FTS5's.
    let words: Vec<String> = question.iter().map(|w| format!("\"{}\"", w.replace('"', ""))).collect();
    let mut s = db.prepare(
        "SELECT name, text_rank, vector_rank FROM hybrid('note_fts', ?1, 'note_vec', ?2, 3) h
         JOIN note ON note.id = h.rowid ORDER BY score DESC, name",
    )?;
    let answers = s.query_map(params![words.join(" OR "), embed(&question.join(" "))], |r| {
        Ok((r.get::<_, String>(0)?, r.get::<_, Option<i64>>(1)?, r.get::<_, Option<i64>>(2)?))
    })?;
    for answer in answers {
        let (name, by_words, by_vector) = answer?;
        let rank = |r: Option<i64>| r.map_or("-".to_string(), |r| r.to_string());
        println!("{name} (words {}, vector {})", rank(by_words), rank(by_vector));
    }
    Ok(())
}
