SELECT title FROM album WHERE id = ?1
SELECT title FROM album WHERE artist_id = 1 AND title = 'x'
SELECT id FROM album WHERE year BETWEEN 1970 AND 1979 ORDER BY year
SELECT name, title FROM album JOIN artist ON artist.id = artist_id ORDER BY name
SELECT name, title FROM artist LEFT JOIN album ON artist_id = artist.id AND year > 1990
SELECT name FROM artist WHERE EXISTS (SELECT 1 FROM album WHERE artist_id = artist.id)
SELECT name FROM artist WHERE id IN (SELECT artist_id FROM album WHERE price < 3)
SELECT count(*) FROM album
SELECT max(year) FROM album
SELECT year, count(*) FROM album GROUP BY year HAVING count(*) > 1
SELECT price, sum(year) FROM album GROUP BY price ORDER BY 2 LIMIT 3
SELECT DISTINCT title FROM track
SELECT minutes, label FROM track WHERE album_id = 3
SELECT id FROM album WHERE year = 1970 OR artist_id = 4
SELECT id FROM album WHERE lower(title) = 'x'
SELECT title FROM album UNION SELECT title FROM track ORDER BY 1
WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n LIMIT 9) SELECT i FROM n
SELECT id, rank() OVER (PARTITION BY artist_id ORDER BY year) FROM album
SELECT * FROM hits WHERE name = 'x'
SELECT (SELECT count(*) FROM track), (SELECT title FROM album WHERE artist_id = artist.id) FROM artist
