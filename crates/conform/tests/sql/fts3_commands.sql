CREATE VIRTUAL TABLE t USING fts4(a, b)
INSERT INTO t VALUES ('one', 'two'), ('three', 'four')
INSERT INTO t(docid, a) VALUES (2, 'z')
INSERT OR IGNORE INTO t(docid, a) VALUES (2, 'z')
INSERT OR REPLACE INTO t(docid, a) VALUES (2, 'zebra')
SELECT docid, a, b FROM t ORDER BY docid
INSERT INTO t(docid, rowid, a) VALUES (5, 6, 'z')
INSERT INTO t(docid, a) VALUES ('abc', 'z')
INSERT INTO t(rowid, a) VALUES (7, 'seven')
SELECT last_insert_rowid()
UPDATE t SET docid = 9 WHERE docid = 7
UPDATE t SET rowid = 11 WHERE docid = 9
UPDATE t SET docid = 1 WHERE docid = 9
UPDATE OR REPLACE t SET docid = 1 WHERE docid = 9
UPDATE t SET a = 'ten' WHERE t MATCH 'seven'
SELECT docid, a, b FROM t ORDER BY docid
SELECT level, idx, end_block, hex(root) FROM t_segdir ORDER BY level, idx
SELECT id, hex(value) FROM t_stat ORDER BY id
INSERT INTO t(t) VALUES ('integrity-check')
INSERT INTO t(t) VALUES ('no-such-command')
INSERT INTO t(t) VALUES ('merge=1,1')
INSERT INTO t(t) VALUES ('merge=1,')
INSERT INTO t(t) VALUES ('merge=10,4')
INSERT INTO t(t) VALUES ('merge=10,2')
SELECT level, idx, end_block, hex(root) FROM t_segdir ORDER BY level, idx
INSERT INTO t(t) VALUES ('automerge=4')
INSERT INTO t(t) VALUES ('rebuild')
INSERT INTO t(t) VALUES ('OPTIMIZE')
INSERT INTO t(t) VALUES ('nodesize=100')
SELECT level, idx, end_block, hex(root) FROM t_segdir ORDER BY level, idx
SELECT id, hex(value) FROM t_stat ORDER BY id
UPDATE t_content SET c0a = 'changed' WHERE docid = 1
INSERT INTO t(t) VALUES ('integrity-check')
PRAGMA integrity_check
INSERT INTO t(t) VALUES ('rebuild')
PRAGMA integrity_check
BEGIN
INSERT INTO t VALUES ('pending', 'row')
SELECT docid FROM t WHERE t MATCH 'pending'
SAVEPOINT s
INSERT INTO t VALUES ('pending', 'more')
ROLLBACK TO s
SELECT docid FROM t WHERE t MATCH 'pending'
ROLLBACK
SELECT docid FROM t WHERE t MATCH 'pending'
DELETE FROM t
SELECT count(*) FROM t_segdir
SELECT count(*) FROM t_stat
CREATE VIRTUAL TABLE old USING fts3(a)
INSERT INTO old VALUES ('one')
INSERT INTO old(old) VALUES ('automerge=8')
SELECT id, value FROM old_stat
SELECT name FROM sqlite_schema WHERE name LIKE 'old%' ORDER BY name
