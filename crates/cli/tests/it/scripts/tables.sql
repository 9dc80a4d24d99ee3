-- Tables of the shell: delimited text, completion.
CREATE VIRTUAL TABLE temp.t USING csv(data='a,b
1,"x ""y"", z"
2
3,4,5', header);
SELECT *, rowid FROM t;
SELECT a FROM t WHERE b='4';
CREATE VIRTUAL TABLE temp.u USING csv(data='1,2,3', columns=2);
SELECT c0, c1, typeof(c0) FROM u;
CREATE VIRTUAL TABLE temp.v USING csv(data='n,m
5,6', header=yes, schema='CREATE TABLE x(one INT, two)');
SELECT one+two FROM v;
CREATE VIRTUAL TABLE temp.w USING csv(filename='missing.csv');
CREATE VIRTUAL TABLE temp.w USING csv(filename='a', data='b');
CREATE VIRTUAL TABLE temp.w USING csv(nothing=1);
CREATE VIRTUAL TABLE temp.w USING csv(data='x', columns=0);
CREATE TABLE inventory(invoice, item);
SELECT DISTINCT candidate COLLATE nocase FROM completion('inv') ORDER BY 1;
SELECT DISTINCT candidate COLLATE nocase FROM completion(NULL, 'SELECT * FROM inve') ORDER BY 1;
SELECT count(DISTINCT candidate) FROM completion('sel');
