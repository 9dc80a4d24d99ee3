-- A column of a query in FROM has no subtype, as if it had been stored.
CREATE TABLE t(a);
INSERT INTO t VALUES (1), (2);
CREATE VIEW v AS SELECT json_array(a) AS x FROM t;
SELECT json_array(x) FROM (SELECT json_array(a) AS x FROM t);
SELECT json_array(x) FROM (SELECT json_group_array(a) AS x FROM t);
SELECT json_array(x) FROM (SELECT json_array(a) AS x FROM t LIMIT 1);
SELECT json_array(x) FROM v;
SELECT json_array(column1) FROM (VALUES (json_array(1)), (json_array(2)));
SELECT json_array(json_array(1)), json_array((SELECT json_array(a) FROM t)), json_array(coalesce(NULL, json_array(1)));
SELECT subtype(jsonb_object()), subtype(jsonb_array(1)), subtype(jsonb('{}'));
CREATE TABLE made(a, e TEXT AS (json_array(1)), f TEXT AS (json_array(1)) STORED);
INSERT INTO made(a) VALUES (1);
SELECT subtype(e), subtype(f), json_array(e, f) FROM made;
CREATE TABLE rowless(a);
SELECT subtype(jsonb_group_array(a)), subtype(jsonb_group_object(a, a)), subtype(json_group_array(a)) FROM rowless;
