-- Keys that share their beginnings, found by index: as many as without one, and what lies beside them.
CREATE TABLE t(id INTEGER PRIMARY KEY, k);
WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO t SELECT i, 'https://example.org/some/path/' || (i * 7919 % 3001) || CASE i % 5 WHEN 0 THEN '/and/a/longer/end/of/the/address/that/takes/more/than/a/byte/of/length?x=' || i ELSE '' END FROM n;
CREATE INDEX tk ON t(k);
SELECT count(*) FROM t a JOIN t b INDEXED BY tk ON b.k = a.k;
SELECT count(*) FROM t WHERE k = 'https://example.org/some/path/';
SELECT count(*) FROM t WHERE k > 'https://example.org/some/path/';
SELECT count(*) FROM t WHERE k < 'https://example.org/some/path/';
SELECT count(*) FROM t WHERE k > 'https://example.org/some/path/5' AND k < 'https://example.org/some/path/6';
SELECT count(*) FROM t WHERE +k > 'https://example.org/some/path/5' AND +k < 'https://example.org/some/path/6';
SELECT count(*) FROM t WHERE k > 'https://example.org/some/path/999' || char(0);
SELECT count(*) FROM t WHERE k >= 'https://example';
SELECT count(*) FROM t WHERE k < 'https://example.org/some/paths';
SELECT count(*) FROM t WHERE k > 'https://example.org/some/patg';
SELECT count(*) FROM t WHERE k = 'a' OR k = 'z' OR k = 'https://example.org/some/path/17';
-- Texts that end where others go on, and zeros behind.
CREATE TABLE z(k TEXT PRIMARY KEY) WITHOUT ROWID;
WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 600) INSERT INTO z SELECT 'the same start ' || substr('aaaaaaaaaaaaaaaaaaaa', 1, i % 20) || CAST(zeroblob(i / 20) AS TEXT) FROM n;
SELECT count(*), count(DISTINCT k) FROM z;
SELECT count(*) FROM z a JOIN z b ON b.k = a.k;
SELECT count(*) FROM z WHERE k > 'the same start aaaa' || char(0) AND k <= 'the same start aaaa' || char(0, 0, 0);
SELECT count(*) FROM z WHERE k > 'the same start';
DELETE FROM z WHERE k IN (SELECT k FROM z WHERE length(CAST(k AS BLOB)) % 2);
SELECT count(*) FROM z;
PRAGMA integrity_check;
-- Other storage classes among them, and damage to none.
INSERT INTO t SELECT 5000 + id, CASE id % 3 WHEN 0 THEN CAST(k AS BLOB) WHEN 1 THEN id ELSE NULL END FROM t WHERE id <= 900;
SELECT count(*) FROM t a JOIN t b INDEXED BY tk ON b.k = a.k;
SELECT count(*) FROM t a JOIN t b NOT INDEXED ON b.k = a.k WHERE a.id % 100 = 0;
SELECT count(*) FROM t a JOIN t b INDEXED BY tk ON b.k = a.k WHERE a.id % 100 = 0;
PRAGMA integrity_check;
