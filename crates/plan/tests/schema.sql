CREATE TABLE artist(id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT DEFAULT 'unknown')
CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT NOT NULL, artist_id INTEGER REFERENCES artist, year INTEGER CHECK(year > 1900), price REAL DEFAULT 9.5, UNIQUE(artist_id, title))
CREATE INDEX album_year ON album(year)
CREATE INDEX album_cheap ON album(price) WHERE price < 5
CREATE INDEX album_lower ON album(lower(title))
CREATE TABLE track(album_id INTEGER, number INTEGER, title TEXT, seconds INTEGER, minutes AS (seconds / 60), label TEXT AS (number || '. ' || title) STORED, PRIMARY KEY(album_id, number)) WITHOUT ROWID
CREATE TABLE log(id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, of INTEGER)
CREATE TABLE sqlite_sequence(name, seq)
CREATE TABLE wide(a, b, c, d, e, f, g, h, i, j, k, l)
CREATE TABLE typed(a INT NOT NULL, b TEXT UNIQUE ON CONFLICT REPLACE, c ANY) STRICT
CREATE TABLE watched(a INTEGER PRIMARY KEY, b UNIQUE, c)
CREATE TRIGGER watched_insert AFTER INSERT ON watched BEGIN INSERT INTO log(what, of) VALUES('insert', new.a); END
CREATE TRIGGER watched_update BEFORE UPDATE OF c ON watched WHEN new.c IS NOT old.c BEGIN SELECT RAISE(ABORT, 'no') WHERE new.c < 0; UPDATE watched SET b = old.b + 1 WHERE a = (SELECT max(a) FROM watched); END
CREATE TRIGGER watched_delete AFTER DELETE ON watched BEGIN DELETE FROM log WHERE of = old.a; END
CREATE VIEW hits AS SELECT album.id, title, name FROM album JOIN artist ON artist.id = artist_id WHERE year > 1990
CREATE TRIGGER hits_insert INSTEAD OF INSERT ON hits BEGIN INSERT INTO album(title, year) VALUES(new.title, 2000); END
CREATE TRIGGER hits_update INSTEAD OF UPDATE OF title ON hits BEGIN UPDATE album SET title = new.title WHERE id = old.id; END
CREATE TRIGGER hits_delete INSTEAD OF DELETE ON hits BEGIN DELETE FROM album WHERE id = old.id; END
