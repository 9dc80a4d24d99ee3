-- What is computed from one column of few values, over many rows.
CREATE TABLE t(a INTEGER PRIMARY KEY, c TEXT, m, e TEXT);
WITH RECURSIVE s(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM s WHERE i<20000) INSERT INTO t SELECT i, CASE WHEN i%9=0 THEN NULL ELSE 'Text '||(i%7) END, CASE i%5 WHEN 0 THEN 1 WHEN 1 THEN 2.5 WHEN 2 THEN 'x' WHEN 3 THEN x'0102' END, 'e'||i FROM s;
SELECT sum(c IN ('Text 1', 'Text 3')), total(c NOT IN ('Text 1', NULL)), count(c IN ('Text 2')) FROM t;
SELECT max(c||'x'), min(c||'x'), sum(length(c||'y')), max(m||''), min(-m), sum(m+1), group_concat(DISTINCT m||'z') FROM t;
SELECT a%4, sum(c IN ('Text 1')), max(upper(c)), min(m||'q'), sum(m IS NULL), sum(NOT m) FROM t GROUP BY 1;
SELECT a%3, max(c||m), max(c||e), sum(c BETWEEN 'Text 2' AND 'Text 4') FROM t WHERE a>100 GROUP BY 1;
SELECT c||'!', count(*) FROM t GROUP BY 1 ORDER BY 1;
SELECT sum(c LIKE '%4'), sum(abs(m)) FROM t WHERE typeof(m) IN ('integer','real');
SELECT sum(substr(c, -1)), sum(unicode(substr(c, -1))) FROM t;
SELECT e, m, c FROM t WHERE c LIKE '%3' AND a<200;
