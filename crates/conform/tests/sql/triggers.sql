-- Each statement of a trigger has nested queries of its own.
CREATE TABLE a(x);
CREATE TABLE log(v);
CREATE TRIGGER t AFTER INSERT ON a WHEN (SELECT 0) = 0 BEGIN INSERT INTO log SELECT (SELECT 1 FROM a LIMIT 1); INSERT INTO log SELECT (SELECT 2 FROM a LIMIT 1); INSERT INTO log VALUES((SELECT max(x) FROM a)); DELETE FROM log WHERE v = (SELECT 1); END;
INSERT INTO a VALUES(7);
SELECT v FROM log;
-- What a condition sees of the two rows: values as they are stored, collations, computed columns, no rowid before there is one.
CREATE TABLE q(x REAL, y TEXT COLLATE nocase, z INT DEFAULT 3, w AS (z * 2));
CREATE TABLE o(m);
CREATE TRIGGER q1 BEFORE UPDATE ON q WHEN old.x / 2 = 1.5 AND new.y = 'ABC' BEGIN INSERT INTO o VALUES('q1'); END;
CREATE TRIGGER q2 AFTER UPDATE ON q WHEN typeof(new.x) = 'real' AND new.w BETWEEN 6 AND 8 BEGIN INSERT INTO o VALUES('q2'); END;
CREATE TRIGGER q3 AFTER UPDATE ON q WHEN new.x IN (3, 4) AND CASE old.y WHEN 'abc' THEN 1 ELSE 0 END BEGIN INSERT INTO o VALUES('q3'); END;
CREATE TRIGGER q4 BEFORE INSERT ON q WHEN new.rowid = -1 AND typeof(new.z) <> 'blob' BEGIN INSERT INTO o VALUES('q4 ' || new.rowid); END;
CREATE TRIGGER q5 AFTER DELETE ON q WHEN old.rowid = 1 OR abs(old.z) > 4 BEGIN INSERT INTO o VALUES('q5'); END;
INSERT INTO q(x, y, z) VALUES(3, 'abc', '4'), (3, 'x', 9);
UPDATE q SET y = 'aBc';
UPDATE q SET x = 4;
DELETE FROM q;
SELECT m FROM o;
-- Within a trigger's own statements, the rows of the inner condition are those of the inner change.
CREATE TABLE outer_t(a, b);
CREATE TABLE inner_t(a, b);
CREATE TRIGGER of_outer AFTER INSERT ON outer_t WHEN new.a > 1 BEGIN INSERT INTO inner_t VALUES(new.b, new.a), (new.a, new.b); END;
CREATE TRIGGER of_inner AFTER INSERT ON inner_t WHEN new.a > new.b BEGIN INSERT INTO o VALUES(new.a || '>' || new.b); END;
INSERT INTO outer_t VALUES(1, 5), (2, 6), (7, 3);
SELECT m FROM o WHERE m LIKE '%>%';
-- Columns of a view compare as its query says, in its triggers too.
CREATE TABLE of_view(id INTEGER PRIMARY KEY, y TEXT COLLATE NOCASE, z TEXT);
CREATE VIEW seen AS SELECT id, y, z COLLATE rtrim AS z FROM of_view;
CREATE TRIGGER seen_i INSTEAD OF INSERT ON seen WHEN new.y = 'ABC' AND new.z = 'end' BEGIN INSERT INTO of_view VALUES(new.id, new.y, new.z); END;
CREATE TRIGGER seen_u INSTEAD OF UPDATE ON seen WHEN old.y = 'ABC' BEGIN UPDATE of_view SET z = new.z || (new.z = 'next') WHERE id = old.id; END;
INSERT INTO seen VALUES(1, 'abc', 'end  '), (2, 'abd', 'end'), (3, 'Abc', 'end');
UPDATE seen SET z = 'next ';
SELECT id, y, z FROM of_view;
-- Conditions that ask what the statement has done so far have another answer at each row.
CREATE TABLE counted(a INTEGER PRIMARY KEY, b);
CREATE TABLE said(m);
CREATE TRIGGER c1 AFTER INSERT ON counted WHEN changes() > 0 BEGIN INSERT INTO said VALUES('c' || new.a); END;
CREATE TRIGGER c2 AFTER INSERT ON counted WHEN last_insert_rowid() = new.a BEGIN INSERT INTO said VALUES('r' || new.a); END;
CREATE TRIGGER c3 AFTER INSERT ON counted WHEN total_changes() % 2 BEGIN INSERT INTO said VALUES('t' || new.a); END;
INSERT INTO counted VALUES(1, 1), (5, 2), (9, 3);
INSERT INTO counted(b) VALUES(7);
SELECT m FROM said;
