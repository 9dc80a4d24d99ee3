UPDATE artist SET country = 'fr' WHERE id = 1
UPDATE album SET price = price * 2
UPDATE album SET year = year + 1 WHERE year > 1990
UPDATE album SET id = id + 1
UPDATE OR REPLACE album SET title = 'x' WHERE artist_id = 3
UPDATE album SET price = (SELECT max(price) FROM album)
UPDATE album SET title = name FROM artist WHERE artist.id = artist_id
UPDATE album SET title = 'x' RETURNING id
UPDATE track SET seconds = 60 WHERE album_id = 1
UPDATE track SET number = number + 1 WHERE album_id = 1
UPDATE wide SET c = 1 WHERE rowid = 5
UPDATE typed SET b = 'x', c = 2.5
