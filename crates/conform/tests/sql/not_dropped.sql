-- Tables of the engine's own are not dropped, whoever may write to the schema; nor is dbstat of a database that is not there.
CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT);
PRAGMA writable_schema = 1;
DROP TABLE sqlite_schema;
DROP TABLE sqlite_master;
DROP TABLE sqlite_sequence;
DROP TABLE temp.sqlite_master;
CREATE TABLE sqlite_own(a);
DROP TABLE sqlite_own;
CREATE TABLE sqlite_parameters(a);
DROP TABLE sqlite_parameters;
SELECT name FROM sqlite_schema;
PRAGMA writable_schema = 0;
ANALYZE;
DROP TABLE sqlite_stat1;
CREATE VIRTUAL TABLE d USING dbstat(nosuch);
CREATE VIRTUAL TABLE d USING dbstat("temp");
