-- Which blocks are shown, and what comes of it.
SELECT name FROM artist WHERE country = ?
SELECT name FROM artist WHERE id = 1
SELECT a FROM wide WHERE b = 1
SELECT name FROM artist ORDER BY country
SELECT name FROM artist WHERE country IN (SELECT name FROM artist) LIMIT 3
SELECT name, (SELECT count(*) FROM album WHERE price > artist.id) FROM artist
SELECT name FROM artist WHERE country = 'x' UNION SELECT title FROM album WHERE price = 3
SELECT n FROM (SELECT DISTINCT country AS n FROM artist WHERE name > 'x') WHERE n > 'a'
SELECT rank() OVER (ORDER BY country) FROM artist WHERE name > 'x'
WITH RECURSIVE c(n) AS (SELECT name FROM artist WHERE country = 'x' UNION SELECT title FROM album, c WHERE price = n) SELECT * FROM c
INSERT INTO log(what) SELECT name FROM artist WHERE country = 'x'
UPDATE artist SET name = 'x' WHERE country = 'y'
UPDATE artist SET id = id + 1 WHERE country = 'y'
DELETE FROM wide WHERE b = 1
DELETE FROM watched WHERE c = 1
SELECT count(*) FROM artist
SELECT 1
