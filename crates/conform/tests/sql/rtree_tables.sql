-- What tables are made of and what is refused.
CREATE VIRTUAL TABLE t USING rtree(id, x0, x1, y0, y1, +n TEXT)
CREATE VIRTUAL TABLE u USING rtree_i32(id,x0,x1)
SELECT name, sql FROM sqlite_schema ORDER BY rowid
SELECT nodeno, length(data) FROM t_node
SELECT nodeno, length(data) FROM u_node
SELECT name, type FROM pragma_table_info('t')
SELECT name, type FROM pragma_table_info('u')
CREATE VIRTUAL TABLE e USING rtree(a,b)
CREATE VIRTUAL TABLE e USING rtree()
CREATE VIRTUAL TABLE e USING rtree(a,b,c,d)
CREATE VIRTUAL TABLE e USING rtree(a,b,+c,d,e)
CREATE VIRTUAL TABLE e USING rtree(a,b,c,d,e,f,g,h,i,j,k,l,m)
CREATE VIRTUAL TABLE e USING rtree(a,+b,+c)
CREATE VIRTUAL TABLE e USING rtree(a,b,+c)
CREATE VIRTUAL TABLE e USING rtree(a,b,b)
CREATE VIRTUAL TABLE e USING rtree(+a,b,c)
SELECT name FROM sqlite_schema WHERE name LIKE 'e%' ORDER BY 1
CREATE VIRTUAL TABLE e4 USING rtree('a b',[b c] INT NOT NULL,`c`)
SELECT name, type FROM pragma_table_info('e4')
INSERT INTO e4 VALUES(1,3,2)
INSERT INTO e4 VALUES(1,2,3)
INSERT INTO e4 VALUES(1,2,3)
INSERT INTO t VALUES(NULL,1.1,2.1,3,4,'hi')
INSERT INTO t VALUES('7',1.1,2.1,3,4,x'00')
INSERT INTO t VALUES('x',1.1,2.1,3,4,NULL)
SELECT * FROM t
INSERT INTO t VALUES(7,1.1,2.1,3,4,'hi')
INSERT INTO t VALUES(8,5,2.1,3,4,'hi')
INSERT INTO t(id,x0,x1) VALUES(20,-5,-4)
INSERT INTO t(rowid,x0,x1) VALUES(55,5,6)
SELECT *, rowid FROM t
SELECT rtreenode(2,data), rtreedepth(data) FROM t_node
SELECT rtreenode(0,data), rtreenode(9,data), rtreenode(1,x'00'), rtreenode(1,NULL), rtreenode(1,'abcdefgh') FROM t_node
SELECT rtreedepth('ab')
SELECT rtreedepth(x'00')
SELECT rtreedepth(x'ffff')
SELECT rtreecheck('t'), rtreecheck('main','u')
SELECT rtreecheck('nosuch')
SELECT rtreecheck()
SELECT rtreecheck('main','t','x')
CREATE TABLE plain(a,b,c)
SELECT rtreecheck('plain')
ALTER TABLE t RENAME TO "t 2"
SELECT name, sql FROM sqlite_schema WHERE name LIKE 't %' ORDER BY name
SELECT * FROM "t 2"
INSERT INTO "t 2" VALUES(99,1,2,3,4,'after')
SELECT n FROM "t 2" WHERE id=99
DROP TABLE "t 2"
SELECT name FROM sqlite_schema ORDER BY name
CREATE TABLE u_node(a)
PRAGMA integrity_check
INSERT INTO u VALUES(1, 2147483648, 5)
INSERT INTO u VALUES(2, -7.9, '12')
INSERT INTO u VALUES(3, 3, 2)
SELECT * FROM u
ATTACH ':memory:' AS aux1
CREATE VIRTUAL TABLE aux1.r USING rtree(id,a,b)
INSERT INTO aux1.r VALUES(1,2,3)
SELECT rtreecheck('aux1','r'), rtreecheck('aux1','u') IS NULL
SELECT rtreecheck('aux1','r')
SELECT * FROM aux1.r WHERE a>=1
DROP TABLE aux1.r
SELECT count(*) FROM aux1.sqlite_schema
