SELECT name FROM artist WHERE country = ?
SELECT name FROM artist WHERE country = ? LIMIT ? OFFSET 2
SELECT a FROM wide WHERE b = 1 UNION ALL SELECT b FROM wide WHERE a = 1
SELECT name FROM artist ORDER BY country
