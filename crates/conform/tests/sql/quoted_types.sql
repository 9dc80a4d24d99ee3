-- A type that begins with a quote is what stands in these quotes; what follows does not count.
CREATE TABLE q(a "int", b 'te"x''t' foo, c [real] [x], d `a``b`, e "INTEGER" x, h "int"(5), i "x""y"" ""z" w, k "GENERATED ALWAYS" AS (1), l "int" GENERATED ALWAYS AS (1));
SELECT name, type, hidden FROM pragma_table_xinfo('q');
INSERT INTO q(a, b, c, d, e, h, i) VALUES ('1', '1', '1', '1', '1', '1', '1');
SELECT typeof(a), typeof(b), typeof(c), typeof(d), typeof(e), typeof(h), typeof(i) FROM q;
-- Not a standard type, so no name of the rowid.
CREATE TABLE p(a "INTEGER" x PRIMARY KEY, b "INTEGER");
INSERT INTO p(b) VALUES (5);
SELECT a, rowid, typeof(a) FROM p;
CREATE TABLE r(a "INTEGER" PRIMARY KEY);
INSERT INTO r VALUES (NULL);
SELECT a FROM r;
CREATE TABLE s(a "INT" x) STRICT;
SELECT typeof(CAST(1 AS "text" x)), typeof(CAST('1.5' AS "real" text)), typeof(CAST('1x' AS '')), typeof(CAST('1' AS [int]));
