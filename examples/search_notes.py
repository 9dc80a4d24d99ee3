"""Indexes a folder of texts and answers questions by words and by meaning at once, with Python's own sqlite3 module on this library.

    LD_LIBRARY_PATH=dist/lib python3 examples/search_notes.py FOLDER QUESTION...

Texts, their full-text index and their vectors lie in one file, FOLDER/notes.db; each run takes in what is new or has changed, in one
transaction. The vectors are made by hashing words and their parts, which knows spellings but no meanings: put a model's here.
"""

import pathlib
import re
import sqlite3
import struct
import sys

DIMENSIONS = 256


def embed(text):
    """A vector of words and of each three letters in a row, of length 1."""
    numbers = [0.0] * DIMENSIONS

    def add(part, weight):
        h = 0xCBF29CE4
        for b in part:
            h = ((h ^ b) * 0x01000193) & 0xFFFFFFFF
        numbers[(h >> 8) % DIMENSIONS] += weight if h & 1 == 0 else -weight

    for word in re.findall(r"[^\W_]+", text.lower()):
        add(word.encode(), 1.0)
        framed = f" {word} ".encode()
        for i in range(len(framed) - 2):
            add(framed[i : i + 3], 0.5)
    length = max(sum(x * x for x in numbers) ** 0.5, 1e-9)
    return struct.pack(f"<{DIMENSIONS}f", *(x / length for x in numbers))


def prepare(db):
    db.executescript(
        f"""
        CREATE TABLE IF NOT EXISTS note(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, body TEXT NOT NULL);
        CREATE VIRTUAL TABLE IF NOT EXISTS note_fts USING fts5(body, content=note, content_rowid=id, tokenize=porter);
        CREATE VIRTUAL TABLE IF NOT EXISTS note_vec USING vec0(id integer primary key,
            embedding float[{DIMENSIONS}] distance_metric=cosine index=ivf);
        """
    )


def index(db, folder):
    """Takes in the texts of a folder; answers how many were new or have changed."""
    changed = 0
    with db:
        for file in sorted(f for f in folder.iterdir() if f.suffix in (".txt", ".md")):
            body = file.read_text()
            old = db.execute("SELECT id, body FROM note WHERE name = ?", (file.name,)).fetchone()
            if old and old[1] == body:
                continue
            if old:
                db.execute("INSERT INTO note_fts(note_fts, rowid, body) VALUES('delete', ?, ?)", old)
                db.execute("DELETE FROM note_vec WHERE id = ?", old[:1])
                db.execute("DELETE FROM note WHERE id = ?", old[:1])
            note = db.execute("INSERT INTO note(name, body) VALUES(?, ?)", (file.name, body)).lastrowid
            db.execute("INSERT INTO note_fts(rowid, body) VALUES(?, ?)", (note, body))
            db.execute("INSERT INTO note_vec(id, embedding) VALUES(?, ?)", (note, embed(body)))
            changed += 1
    return changed


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: search_notes.py FOLDER QUESTION...")
    folder, question = pathlib.Path(sys.argv[1]), sys.argv[2:]
    db = sqlite3.connect(folder / "notes.db")
    prepare(db)
    print(index(db, folder), "new or changed")
    # Each word as a text of its own, any of them: what a user types is no query of FTS5's.
    words = " OR ".join('"' + w.replace('"', "") + '"' for w in question)
    answers = db.execute(
        """SELECT name, text_rank, vector_rank FROM hybrid('note_fts', ?, 'note_vec', ?, 3) h
           JOIN note ON note.id = h.rowid ORDER BY score DESC, name""",
        (words, embed(" ".join(question))),
    )
    for name, by_words, by_vector in answers:
        print(f"{name} (words {by_words or '-'}, vector {by_vector or '-'})")


main()
