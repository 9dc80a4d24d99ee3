INSERT INTO watched VALUES(1, 2, 3)
REPLACE INTO watched VALUES(1, 2, 3)
UPDATE watched SET b = 1
UPDATE watched SET c = 1 WHERE a = 2
DELETE FROM watched
INSERT INTO watched(a, c) VALUES(1, 3) ON CONFLICT(a) DO UPDATE SET c = excluded.c
INSERT INTO hits(title) VALUES('x')
UPDATE hits SET title = 'x' WHERE name = 'y'
DELETE FROM hits WHERE id = 3 RETURNING title
