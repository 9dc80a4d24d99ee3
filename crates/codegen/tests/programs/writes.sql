INSERT INTO artist VALUES(?1, ?2, ?3)
INSERT INTO artist(name) SELECT name FROM artist
REPLACE INTO album(id, title) VALUES(1, 'x')
INSERT INTO album(id, title) VALUES(1, 'x') ON CONFLICT(id) DO UPDATE SET title = excluded.title
UPDATE artist SET country = 'fr' WHERE id = 1
UPDATE track SET number = number + 1 WHERE album_id = 1
UPDATE wide SET c = 1 WHERE rowid = 5
DELETE FROM artist
DELETE FROM track WHERE album_id = 1 RETURNING number
INSERT INTO watched VALUES(1, 2, 3)
CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE)
DROP INDEX album_year
