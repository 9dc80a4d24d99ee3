CREATE TABLE tab1(a);
CREATE TABLE tab3(a, b, c);
INSERT INTO tab3 VALUES(1,2,3);
SELECT t76.c1, (SELECT count(t86.b) FROM tab3 t86 WHERE ( t76.c1)) FROM (SELECT jsonb_object() as c1, t77.c1 as c2, (SELECT count(a) FROM tab1 t82) as c3 FROM (SELECT ' 3' as c1 FROM tab3) t77) t76 JOIN tab3 ORDER BY 2;
SELECT (SELECT count(t86.b) FROM tab3 t86 WHERE ( t76.c1)) FROM (SELECT jsonb_object() as c1 FROM tab3) t76;
SELECT (SELECT count(t86.b) FROM tab3 t86 WHERE ( t76.c1)) FROM (SELECT t77.c1 as c1 FROM (SELECT ' 3' as c1 FROM tab3) t77) t76 order by 1;
SELECT t76.c1, (SELECT t76.c1) FROM (SELECT jsonb_object() as c1, t77.c1 as c2 FROM (SELECT ' 3' as c1 FROM tab3) t77) t76 order by 2;
SELECT (SELECT t76.c1) FROM (SELECT (SELECT count(a) FROM tab1 t82) as c1 FROM tab3) t76 JOIN tab3 order by 1;
SELECT * FROM (SELECT a, count(*) FROM tab1 GROUP BY a) a1 RIGHT JOIN (SELECT a FROM tab3 GROUP BY a) b ON a1.a=b.a;
