CREATE VIRTUAL TABLE t USING fts4(a, b)
INSERT INTO t VALUES ('hello world', 'foo bar foo'), ('hello there', 'x'), ('a b c d e f g', NULL), (5, 3.5)
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello foo' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello AND fo*' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello NOT x' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'x OR world OR (hello there)' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '"foo bar" NEAR/0 foo' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'a NEAR/1 c' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'a NEAR/0 c' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'a NEAR/2 d NEAR/0 e' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'b:x' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'a:hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'A:hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'c:hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '^foo' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '^bar' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '"^foo bar"' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hel*' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '"hello w*"' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '""' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '"" hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello OR ""' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '" . "' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello AND' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'AND hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello and there' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '"hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '(hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello)' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '()' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello ()' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello NEAR (there)' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello NEAR (there x)' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '(hello world) NEAR foo' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello -there' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello NEAR' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'OR' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'NOT hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello NOT' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '5' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '3' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'b:"foo bar"' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'b : foo' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello AND NOT there' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'hello NEAR/x there' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH 'a NOT b NOT c OR hello' ORDER BY docid
SELECT docid, offsets(t), snippet(t), hex(matchinfo(t)) FROM t WHERE t MATCH '((((a))))' ORDER BY docid
SELECT docid FROM t WHERE b MATCH 'x'
SELECT docid FROM t WHERE a MATCH 'b:x'
SELECT docid FROM t WHERE t MATCH NULL
SELECT docid FROM t WHERE docid MATCH 'x'
SELECT docid FROM t WHERE a = 'hello there' AND t MATCH 'hello'
SELECT docid FROM t WHERE rowid = 2
SELECT docid, a FROM t WHERE docid = 2
SELECT docid FROM t WHERE docid > 1 AND docid <= 3 ORDER BY docid
SELECT docid FROM t WHERE docid BETWEEN 2 AND 9 ORDER BY docid DESC
SELECT docid FROM t WHERE t MATCH 'hello' AND docid > 1
SELECT docid FROM t WHERE t MATCH 'hello' AND docid = 1
SELECT docid FROM t WHERE t MATCH 'hello' ORDER BY docid DESC
SELECT quote(t), typeof(t) FROM t WHERE docid = 1
