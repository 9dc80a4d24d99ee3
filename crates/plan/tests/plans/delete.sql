DELETE FROM artist
DELETE FROM artist WHERE id = 1
DELETE FROM album WHERE year < 1950
DELETE FROM album WHERE id IN (SELECT album_id FROM track)
DELETE FROM track WHERE album_id = 1 RETURNING number
