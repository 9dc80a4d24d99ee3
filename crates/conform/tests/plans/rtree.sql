CREATE VIRTUAL TABLE n USING rtree(id,x0,x1);
CREATE VIRTUAL TABLE g USING geopoly(a);
CREATE TABLE data(id INTEGER PRIMARY KEY, name);
CREATE VIEW v AS SELECT data.id, name, x0 FROM data, n WHERE data.id=n.id;

SELECT * FROM n WHERE x0<1 AND x1>=3 AND id=7
SELECT * FROM n WHERE x0<1 ORDER BY id
SELECT * FROM n WHERE x0<=1 AND x0<2 AND x0>3 AND x1>=4 AND x1=5
SELECT * FROM n a, n b WHERE a.x0<b.x1
SELECT * FROM n WHERE id IN (1,2)
SELECT * FROM n WHERE rowid=1
SELECT * FROM n WHERE x0 IN (1,2)
SELECT * FROM n WHERE x0 BETWEEN 1 AND 2 AND id MATCH 5
SELECT * FROM n
SELECT * FROM v WHERE x0>20
SELECT * FROM data, n WHERE data.id=n.id AND name='x'
SELECT * FROM data LEFT JOIN n ON data.id=n.id
SELECT a FROM g WHERE geopoly_overlap(_shape,'[[0,0],[5,0],[5,5],[0,0]]')
SELECT a FROM g WHERE geopoly_within(_shape,'[[0,0],[5,0],[5,5],[0,0]]')
SELECT a FROM g WHERE rowid=5
SELECT a FROM g
SELECT * FROM n, g WHERE n.id=g.rowid
SELECT x.a, y.a FROM g x, g y WHERE geopoly_overlap(x._shape, y._shape)
