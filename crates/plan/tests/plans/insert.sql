INSERT INTO artist VALUES(?1, ?2, ?3)
INSERT INTO artist(name) VALUES('x')
INSERT INTO artist DEFAULT VALUES
INSERT INTO artist(id, name) SELECT id, title FROM album
INSERT INTO artist(name) SELECT name FROM artist
INSERT OR IGNORE INTO album(title, artist_id) VALUES('x', 1)
REPLACE INTO album(id, title) VALUES(1, 'x')
REPLACE INTO artist(id, name, country) VALUES(1, NULL, NULL)
INSERT INTO album(id, title) VALUES(1, 'x') ON CONFLICT(id) DO UPDATE SET title = excluded.title WHERE year > 2000
INSERT INTO album(title) VALUES('x') ON CONFLICT DO NOTHING
INSERT INTO album(id, title) VALUES(1, 'x'), (2, 'y') RETURNING id, title || '!'
INSERT INTO track(album_id, number, title) VALUES(1, 2, 'x')
INSERT INTO log(what) VALUES('x')
INSERT INTO typed VALUES(1, 'x', 2)
