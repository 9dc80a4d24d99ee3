CREATE VIRTUAL TABLE ft USING fts4(x, y)
INSERT INTO ft VALUES ('Apple banana', 'Cherry'), ('Banana Date Date', 'cherry'), ('Cherry Elderberry', 'Elderberry')
CREATE VIRTUAL TABLE terms USING fts4aux(ft)
SELECT rowid, * FROM terms
SELECT * FROM terms WHERE term >= 'cherry' ORDER BY term
SELECT * FROM terms WHERE term < 'cherry' ORDER BY term DESC
SELECT * FROM terms WHERE term = 'date'
SELECT term, col, languageid FROM terms WHERE languageid = 0 AND col = '*'
SELECT count(*) FROM terms WHERE languageid = 1
CREATE VIRTUAL TABLE temp.terms2 USING fts4aux(main, ft)
SELECT term FROM terms2 LIMIT 2
CREATE VIRTUAL TABLE terms3 USING fts4aux(main, ft)
CREATE VIRTUAL TABLE terms3 USING fts4aux
CREATE VIRTUAL TABLE terms4 USING fts4aux(nowhere)
SELECT * FROM terms4
INSERT INTO terms VALUES (1, 2, 3, 4)
DELETE FROM ft WHERE docid = 2
SELECT * FROM terms
