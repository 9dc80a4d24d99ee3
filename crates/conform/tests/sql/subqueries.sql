CREATE TABLE tab1(a);
CREATE TABLE tab3(a, b, c);
INSERT INTO tab3 VALUES(1,2,3);
SELECT t76.c1, (SELECT count(t86.b) FROM tab3 t86 WHERE ( t76.c1)) FROM (SELECT jsonb_object() as c1, t77.c1 as c2, (SELECT count(a) FROM tab1 t82) as c3 FROM (SELECT ' 3' as c1 FROM tab3) t77) t76 JOIN tab3 ORDER BY 2;
SELECT (SELECT count(t86.b) FROM tab3 t86 WHERE ( t76.c1)) FROM (SELECT jsonb_object() as c1 FROM tab3) t76;
SELECT (SELECT count(t86.b) FROM tab3 t86 WHERE ( t76.c1)) FROM (SELECT t77.c1 as c1 FROM (SELECT ' 3' as c1 FROM tab3) t77) t76 order by 1;
SELECT t76.c1, (SELECT t76.c1) FROM (SELECT jsonb_object() as c1, t77.c1 as c2 FROM (SELECT ' 3' as c1 FROM tab3) t77) t76 order by 2;
SELECT (SELECT t76.c1) FROM (SELECT (SELECT count(a) FROM tab1 t82) as c1 FROM tab3) t76 JOIN tab3 order by 1;
SELECT * FROM (SELECT a, count(*) FROM tab1 GROUP BY a) a1 RIGHT JOIN (SELECT a FROM tab3 GROUP BY a) b ON a1.a=b.a;
-- A query in FROM does not see the tables beside it; what stands around the whole query it does.
CREATE TABLE beside(a, b);
INSERT INTO beside VALUES (1, 2);
SELECT * FROM beside JOIN (SELECT beside.a FROM beside AS other);
SELECT * FROM beside, (WITH z AS (SELECT beside.a) SELECT * FROM z);
WITH z AS (SELECT beside.a) SELECT * FROM beside, z;
UPDATE beside SET b = y FROM (SELECT beside.a AS y);
SELECT (SELECT x FROM (SELECT beside.a + 1 AS x)) FROM beside;
-- What nobody reads of it is not computed, unless it decides which rows there are.
SELECT 1 FROM (SELECT abs(-9223372036854775808), a FROM beside LIMIT 1);
SELECT 1 FROM (SELECT abs(-9223372036854775808), a FROM beside UNION ALL SELECT 1, 2);
SELECT 1 FROM (SELECT DISTINCT abs(-9223372036854775808), a FROM beside);
SELECT 1 FROM (SELECT abs(-9223372036854775808), a FROM beside UNION SELECT 1, 2);
-- A column of a compound that is REAL in one arm shows whole numbers of all as reals.
CREATE TABLE whole(d REAL);
INSERT INTO whole VALUES (2);
SELECT y, typeof(y), y || '' FROM (SELECT 1 AS x, 1 AS y UNION SELECT d, d FROM whole UNION SELECT 7, 5);
-- Of several errors, it is the last arm's that is told.
SELECT x FROM whole UNION SELECT y FROM whole;
SELECT a FROM nosuch1 UNION SELECT b FROM nosuch2;
SELECT d FROM whole UNION SELECT d, d FROM whole EXCEPT SELECT d FROM whole;
CREATE TABLE held(a, b, PRIMARY KEY (b COLLATE NOCASE));
CREATE TABLE keyed(a);
INSERT INTO keyed VALUES (x'61');
CREATE VIEW paired AS SELECT t.a IS t.a AS same FROM keyed k CROSS JOIN held t ON k.a = t.b;
INSERT INTO held VALUES (NULL, x'61'), ('-5', 0.5);
SELECT (SELECT same FROM paired WHERE same > o.b), o.a FROM held o;
CREATE VIEW misfit(p) AS SELECT 1, 2;
WITH w(q, r) AS (SELECT a, (SELECT p FROM misfit) FROM keyed) SELECT count(q) FROM w;
SELECT 1 FROM keyed HAVING count(*);
SELECT count(*) FROM keyed HAVING count(*) > 0;
