CREATE VIRTUAL TABLE t USING fts4(a, b, prefix='1,3')
INSERT INTO t VALUES ('hello world', 'foo bar foo')
INSERT INTO t VALUES ('hello there', 'x')
SELECT level, idx, start_block, leaves_end_block, end_block, typeof(end_block), hex(root) FROM t_segdir ORDER BY level, idx
SELECT docid, hex(size) FROM t_docsize ORDER BY docid
SELECT id, hex(value) FROM t_stat ORDER BY id
SELECT name, sql FROM sqlite_schema ORDER BY name
CREATE VIRTUAL TABLE u USING fts3(a)
INSERT INTO u VALUES ('abc')
SELECT level, idx, end_block, hex(root) FROM u_segdir ORDER BY level, idx
CREATE VIRTUAL TABLE l USING fts4(a, languageid='lid', order=desc)
INSERT INTO l(docid, a, lid) VALUES (1, 'one two', 0), (2, 'one', 1), (3, 'one three', 1)
SELECT docid, lid FROM l WHERE l MATCH 'one' ORDER BY docid
SELECT docid, lid FROM l WHERE l MATCH 'one' AND lid = 1 ORDER BY docid
SELECT docid, lid FROM l WHERE lid = 1 ORDER BY docid
INSERT INTO l(docid, a, lid) VALUES (9, 'one', -1)
SELECT level, idx, hex(root) FROM l_segdir ORDER BY level, idx
SELECT name, type, hidden FROM pragma_table_xinfo('l') ORDER BY cid
CREATE VIRTUAL TABLE m USING fts3(a, 'b c' INT, "d""e" TEXT PRIMARY KEY, [x], matchinfo=fts3)
SELECT name, type, hidden FROM pragma_table_xinfo('m') ORDER BY cid
CREATE VIRTUAL TABLE e USING fts4
SELECT name, hidden FROM pragma_table_xinfo('e') ORDER BY cid
CREATE VIRTUAL TABLE n USING fts4(foo=1)
CREATE VIRTUAL TABLE n USING fts4(matchinfo=fts4)
CREATE VIRTUAL TABLE n USING fts4(order=up)
CREATE VIRTUAL TABLE n USING fts4(prefix='a')
CREATE VIRTUAL TABLE n USING fts4(a, notindexed='b')
CREATE VIRTUAL TABLE n USING fts4(a, compress='b')
CREATE VIRTUAL TABLE n USING fts4(a, uncompress='b')
CREATE VIRTUAL TABLE n USING fts4(a, a)
CREATE VIRTUAL TABLE n USING fts4(docid)
CREATE VIRTUAL TABLE n USING fts4(a, n)
CREATE VIRTUAL TABLE n USING fts4(content='nowhere')
CREATE VIRTUAL TABLE c USING fts4(a, b, content='')
INSERT INTO c(docid, a, b) VALUES (1, 'one two', 'three')
INSERT INTO c(docid, a, b) VALUES (4, 'two', 'four')
INSERT INTO c(a, b) VALUES ('no', 'docid')
SELECT docid, a, b FROM c WHERE c MATCH 'two' ORDER BY docid
SELECT offsets(c), snippet(c) FROM c WHERE c MATCH 'two'
SELECT hex(matchinfo(c, 'pcxnal')) FROM c WHERE c MATCH 'two' ORDER BY docid
INSERT INTO c(c) VALUES ('optimize')
CREATE TABLE src(id INTEGER PRIMARY KEY, a, b)
INSERT INTO src VALUES (1, 'alpha beta', 'gamma'), (2, 'beta', 'delta')
CREATE VIRTUAL TABLE x USING fts4(content='src', a, b)
INSERT INTO x(x) VALUES ('rebuild')
SELECT docid, a, b FROM x WHERE x MATCH 'beta' ORDER BY docid
DELETE FROM src WHERE id = 2
SELECT docid, a, b FROM x WHERE x MATCH 'beta' ORDER BY docid
INSERT INTO x(x) VALUES ('integrity-check')
CREATE VIRTUAL TABLE y USING fts4(content='src')
SELECT name, hidden FROM pragma_table_xinfo('y') ORDER BY cid
CREATE VIRTUAL TABLE z USING fts4(a, compress=upper, uncompress=lower)
INSERT INTO z VALUES ('One Two')
SELECT c0a FROM z_content
SELECT a FROM z WHERE z MATCH 'one'
ALTER TABLE t RENAME TO tt
SELECT name FROM sqlite_schema WHERE name LIKE 'tt%' ORDER BY name
SELECT docid FROM tt WHERE tt MATCH 'x'
DROP TABLE tt
SELECT name FROM sqlite_schema WHERE name LIKE 'tt%' ORDER BY name
