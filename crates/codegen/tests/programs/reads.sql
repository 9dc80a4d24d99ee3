SELECT title FROM album WHERE id = ?1
SELECT name, title FROM album JOIN artist ON artist.id = artist_id WHERE year > 1990
SELECT year, count(*) FROM album GROUP BY year
SELECT title FROM track ORDER BY title LIMIT 3
SELECT name FROM artist WHERE id IN (SELECT artist_id FROM album)
SELECT title FROM album UNION SELECT title FROM track
