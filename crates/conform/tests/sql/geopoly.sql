-- Polygons: functions, tables, queries.
CREATE VIRTUAL TABLE g USING geopoly(a INT, b)
SELECT name, sql FROM sqlite_schema ORDER BY rowid
SELECT name, type FROM pragma_table_info('g')
SELECT nodeno, length(data) FROM g_node
CREATE VIRTUAL TABLE g2 USING geopoly()
CREATE VIRTUAL TABLE g3 USING geopoly
CREATE VIRTUAL TABLE g4 USING geopoly(_shape)
INSERT INTO g(_shape,a) VALUES('[[0,0],[1,0],[0.5,1],[0,0]]',5)
INSERT INTO g(_shape,a) VALUES('[[0,0],[1,0]]',5)
INSERT INTO g(rowid,_shape,a) VALUES(1,'[[0,0],[1,0],[0.5,1],[0,0]]',5)
INSERT INTO g VALUES('xyz',1,2)
INSERT INTO g VALUES(NULL,1,2)
INSERT INTO g VALUES(5,1,2)
INSERT INTO g VALUES(x'',1,2)
INSERT INTO g VALUES(x'0200000300000000000000000000803F000000000000003F0000803F',1,2)
INSERT INTO g VALUES(x'0000000300000000000000003F800000000000003F0000003F800000',1,2)
INSERT INTO g(rowid,_shape) VALUES('abc','[[0,0],[1,0],[1,1],[0,0]]')
INSERT INTO g(rowid,_shape,b) VALUES(10,'[[10,10],[11,10],[11,11],[10,10]]','ten')
REPLACE INTO g(rowid,_shape,b) VALUES(10,'[[20,10],[21,10],[21,11],[20,10]]','twenty')
SELECT rowid, hex(_shape), a, b FROM g
SELECT rtreenode(2,data) FROM g_node
UPDATE g SET a=6
UPDATE g SET rowid=9 WHERE rowid=1
UPDATE g SET rowid=9, _shape='[[0,0],[2,0],[2,2],[0,0]]' WHERE rowid=1
UPDATE g SET _shape='bad' WHERE rowid=10
UPDATE g SET _shape='[[' WHERE rowid=10
UPDATE g SET _shape=NULL WHERE rowid=10
UPDATE g SET _shape='[[3,3],[4,3],[4,4],[3,3]]', b='moved' WHERE rowid=10
SELECT rowid, hex(_shape), a, b FROM g
SELECT rowid FROM g WHERE geopoly_overlap(_shape,'xyz')
SELECT rowid FROM g WHERE geopoly_overlap(_shape,NULL)
SELECT rowid FROM g WHERE geopoly_overlap(_shape,'[[0,0],[5,0],[5,5],[0,0]]')
SELECT rowid FROM g WHERE geopoly_within(_shape,'[[0,0],[5,0],[5,5],[0,0]]')
SELECT rowid FROM g WHERE geopoly_within('[[0,0],[5,0],[5,5],[0,0]]',_shape)
SELECT rowid FROM g WHERE rowid='10'
SELECT rowid FROM g WHERE rowid=10.5
DELETE FROM g WHERE geopoly_within(_shape,'[[2,2],[5,2],[5,5],[2,5],[2,2]]')
SELECT rowid FROM g
SELECT rtreecheck('g')
PRAGMA integrity_check
SELECT geopoly_json('[[,0],[1,0],[1,1],[,0]]')
SELECT geopoly_json('[[0,0],[1,0],[1,],[0,0]]')
SELECT geopoly_json('[[0,0,9,8],[1,0],[1,1],[0,0]]')
SELECT geopoly_json('[[0,0],[1.,0],[1,1],[0,0]]')
SELECT geopoly_json(' [ [ 0 , 0 ] , [1,0],[1,1],[0,0] ] ')
SELECT geopoly_json('[[0,0],[01,0],[1,1],[0,0]]')
SELECT geopoly_json('[[0,0],[.5,0],[1,1],[0,0]]')
SELECT geopoly_json('[[0,0],[-.5,0],[1,1],[0,0]]')
SELECT geopoly_json('[[0,0],[-5,0],[1e2,1.5E-1],[0,0]]')
SELECT geopoly_json('[[0,0],[1,0],[1,1],[0,0]')
SELECT geopoly_json('[[0,0],[1,0],[1,1],[0,0]]]')
SELECT geopoly_json('[[0,0],[1,0],[1,1],[0,0],]')
SELECT geopoly_json('[[0,0],[1,0],[1,1],[0,0],[ ]')
SELECT geopoly_json('[[0,0],[1,0],[1,1],[0,0, ]')
SELECT geopoly_json('[[0,0],[1e2e3,0],[1,1],[0,0]]')
SELECT geopoly_json('[[],[1,0],[1,1],[0,0]]')
SELECT geopoly_json('[[0,0],[1,0],[1,1],[0,0.1]]')
SELECT geopoly_json('[[0,0],[1,0],[0,0]]')
SELECT geopoly_json('[[0.1,1e10],[123456789,0.000001],[1,1e-40],[0.1,1e10]]')
SELECT geopoly_svg('[[0,0],[1,0],[0.5,1],[0,0]]','a',NULL,'','b')
SELECT geopoly_svg()
SELECT geopoly_svg('[[0.1,1e10],[123456789,0.000001],[1,1e-40],[0.1,1e10]]')
SELECT geopoly_json(geopoly_regular(0,0,1,5)), geopoly_regular(0,0,0,5), geopoly_regular(0,0,-1,5), geopoly_regular(0,0,1,2)
SELECT hex(geopoly_regular(3,2,10,17)), length(geopoly_regular(1,2,3,5000))
SELECT geopoly_area(geopoly_regular(3,2,10,12)), geopoly_area(x'00000000'), geopoly_area(5)
SELECT hex(geopoly_bbox(geopoly_regular(3,2,10,12))), geopoly_bbox('x')
SELECT geopoly_json(geopoly_group_bbox(_shape)) FROM g
SELECT geopoly_group_bbox(5) FROM g
SELECT geopoly_json(geopoly_ccw('[[0,0],[0,1],[1,1],[0,0]]')), geopoly_area('[[0,0],[0,1],[1,1],[0,0]]')
SELECT geopoly_json(geopoly_xform('[[0,0],[0,1],[1,1],[0,0]]',1,2,3,4,5,6)), geopoly_xform(1,2,3,4,5,6,7)
SELECT hex(geopoly_xform(geopoly_regular(0,0,10,7), cos(1), sin(1), -sin(1), cos(1), 0, 0))
WITH p(s) AS (VALUES('[[0,0],[4,0],[4,4],[0,4],[0,0]]')), q(x,y) AS (VALUES(0,0),(2,2),(4,2),(2,4),(0,2),(5,5),(-1,2),(4,4),(2,0),(NULL,'a')) SELECT x, y, geopoly_contains_point(s,x,y) FROM p, q
WITH p(n,s) AS (VALUES(1,'[[0,0],[4,0],[4,4],[0,4],[0,0]]'),(2,'[[1,1],[2,1],[2,2],[1,1]]'),(3,'[[3,3],[9,3],[9,9],[3,3]]'),(4,'[[10,0],[11,0],[11,1],[10,0]]'),(5,'[[4,0],[8,0],[8,4],[4,4],[4,0]]'),(6,'[[0,0],[4,0],[4,4],[0,0]]'),(7,'[[-1,1],[5,1],[5,2],[-1,2],[-1,1]]'),(8,geopoly_regular(2,2,2,9)),(9,geopoly_regular(2,2,3,4))) SELECT a.n, b.n, geopoly_overlap(a.s,b.s), geopoly_within(a.s,b.s) FROM p a, p b
SELECT geopoly_overlap(NULL,'[[0,0],[1,0],[1,1],[0,0]]'), geopoly_within('[[0,0],[1,0],[1,1],[0,0]]',5)
SELECT geopoly_debug('x')
DELETE FROM g
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<200) INSERT INTO g(_shape,a,b) SELECT geopoly_regular(i*37%101,i*53%97,1+i%5,3+i%6), i, 'b'||i FROM c
SELECT count(*), rtreecheck('g') FROM g
SELECT nodeno, hex(data) FROM g_node
SELECT a FROM g WHERE geopoly_overlap(_shape, geopoly_regular(50,50,20,8))
SELECT a FROM g WHERE geopoly_within(_shape, geopoly_regular(50,50,30,8))
UPDATE g SET _shape=geopoly_xform(_shape,1,0,0,1,5,5) WHERE a%4=0
DELETE FROM g WHERE a%3=0
SELECT nodeno, hex(data) FROM g_node
ALTER TABLE g RENAME TO h
SELECT count(*) FROM h
DROP TABLE h
SELECT name FROM sqlite_schema WHERE name LIKE 'h%'
