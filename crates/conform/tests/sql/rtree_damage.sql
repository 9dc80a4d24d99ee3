-- Damaged nodes are errors, and checks say what is wrong.
CREATE VIRTUAL TABLE t USING rtree(id,x0,x1)
INSERT INTO t VALUES(1,1,2),(2,3,4),(3,5,6)
CREATE TABLE good AS SELECT * FROM t_node
UPDATE t_node SET data=zeroblob(100)
SELECT * FROM t
UPDATE t_node SET data=x'0003'||substr(data,3)
SELECT * FROM t WHERE id=1
DELETE FROM t
DELETE FROM t WHERE id=1
INSERT INTO t VALUES(40,5,6)
DELETE FROM t_node
SELECT * FROM t
INSERT INTO t_node SELECT * FROM good
SELECT * FROM t
UPDATE t_node SET data=CAST(x'0029'||substr(data,3) AS BLOB)
SELECT * FROM t
INSERT INTO t VALUES(40,5,6)
UPDATE t_node SET data=CAST(x'0001'||substr((SELECT data FROM good),3) AS BLOB)
SELECT * FROM t
INSERT INTO t VALUES(40,5,6)
DELETE FROM t WHERE id=1
UPDATE t_node SET data=CAST(x'0000ffff'||substr((SELECT data FROM good),5) AS BLOB)
SELECT * FROM t
UPDATE t_node SET data=(SELECT data FROM good)
UPDATE t_rowid SET nodeno=5 WHERE rowid=2
SELECT * FROM t
SELECT * FROM t WHERE id=2
DELETE FROM t WHERE id=2
SELECT rtreecheck('t')
DELETE FROM t_rowid WHERE rowid=2
SELECT rtreecheck('t')
DELETE FROM t WHERE id=2
SELECT * FROM t
UPDATE t_rowid SET rowid=7 WHERE rowid=3
SELECT * FROM t WHERE id=7
SELECT rtreecheck('t')
DELETE FROM t WHERE id=7
CREATE VIRTUAL TABLE d USING rtree(id,x0,x1)
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<200) INSERT INTO d SELECT i, i, i+1 FROM c
SELECT rtreecheck('d')
UPDATE d_parent SET parentnode=3
SELECT rtreecheck('d')
DELETE FROM d WHERE id<150
DELETE FROM d_parent
SELECT rtreecheck('d')
DELETE FROM d WHERE id<150
DROP TABLE t
DROP TABLE d
