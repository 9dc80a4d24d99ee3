-- Functions that want texts read the bytes of a blob in the encoding of the database.
PRAGMA encoding='UTF-16le';
SELECT lower(x'41004200'), upper(x'61'), trim(x'200041002000'), ltrim(x'20004100'), rtrim(x'410020', ' ');
SELECT replace(x'41004200', 'A', 'é'), instr(x'41004200', 'B'), instr(x'41004200', x'4200'), instr('AB', x'4200');
SELECT printf('%s|%5s', x'4100', x'410042'), hex(printf(x'2500640041', 5)), unicode(x'e900'), hex(unhex(x'34003100'));
SELECT x'4100' LIKE 'a', x'4100' GLOB 'A', x'41' GLOB '';
SELECT hex(x'41' || x'42'), hex(x'4100' || 'é'), hex(x'41' || 'B'), hex('B' || x'41'), typeof(x'4100' || x'4200');
SELECT group_concat(column1, x'2d00') FROM (VALUES (x'4100'), ('B'), (x'430044'));
SELECT date(x'32003000320034002d00300031002d0030003100'), date(x'323032342d30312d3031');
SELECT length(x'4100'), hex(substr(x'41004200', 2, 2)), quote(x'4100'), hex(x'4100'), typeof(coalesce(x'4100', 1));
CREATE TABLE t(a);
INSERT INTO t VALUES (x'41004200'), ('ab'), (x'61'), (NULL), (5);
CREATE INDEX i ON t(lower(a));
SELECT hex(a) FROM t WHERE lower(a) = 'ab' ORDER BY 1;
PRAGMA integrity_check;
-- Blobs that may as well be JSON text are JSONB only if all of them is.
SELECT json_valid(x'5b0031005d00', 4);
SELECT json_valid(x'5b17010b020b', 4), json_valid(x'7b1331133113311331', 4), json_valid(x'5b133113310b', 4);
