PRAGMA table_info(json_each);
PRAGMA table_xinfo(json_tree);
PRAGMA main.table_info(dbstat);
SELECT name, hidden FROM pragma_table_xinfo('pragma_table_info');
SELECT count(*) FROM pragma_table_info('fts5');
PRAGMA table_info(no_such_module);
PRAGMA index_list(json_each);
CREATE TABLE json_each(a, b);
PRAGMA table_info(json_each);
