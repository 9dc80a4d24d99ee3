"""Loadable extensions of others, as they are published for SQLite: each is loaded and asked what it is there for.

    extensions.py FOLDER

FOLDER has what `pip download` fetched, unpacked. Extensions of Debian's packages are found by the loader. Prints what the
statements answer; a line that begins with `!` is an error. Each extension runs in a process of its own.
"""

import glob
import os
import sqlite3
import subprocess
import sys

ASKED = {
    "regex0": [
        "SELECT regexp('a.c', 'abc'), 'abc' REGEXP 'b', regex_find('[0-9]+', 'ab12')",
        "SELECT rowid, * FROM regex_find_all('[0-9]+', '1 22 333')",
        "SELECT regex_replace('a', 'bab', 'x'), regex_replace_all('a', 'aba', 'x')",
        "SELECT rowid, * FROM regex_split('[, ]', 'a,b c')",
        "SELECT regex_capture(captures, 'y'), typeof(captures) FROM regex_captures('(?P<y>\\d{4})-(\\d\\d)', '2020-01 2021-02')",
        "SELECT sum(value REGEXP '1') FROM json_each('[11, 2, 31]')",
    ],
    "xsv0": [
        "CREATE VIRTUAL TABLE temp.cells USING csv(filename='cells.csv')",
        "SELECT rowid, * FROM cells",
        "SELECT sum(a), max(c) FROM cells WHERE a > 1",
        "CREATE VIRTUAL TABLE temp.reader USING csv_reader(id integer, b text, c float)",
        "SELECT * FROM reader('cells.csv')",
        "PRAGMA table_xinfo(cells)",
    ],
    "lines0": [
        "SELECT rowid, line FROM lines('a|b||c', '|')",
        "SELECT count(*), sum(length(line)) FROM lines_read('cells.csv')",
        "SELECT line FROM lines_read('cells.csv') WHERE rowid = 2",
        "SELECT line FROM lines_read('cells.csv') ORDER BY rowid DESC LIMIT 2",
    ],
    "html0": [
        "SELECT html_extract('<p>a<b>c</b></p>', 'b'), html_count('<a><a>', 'a')",
        "SELECT e.text, j.value FROM json_each('[\"li\", \"b\"]') j JOIN html_each('<li>1<b>2</b></li>', j.value) e",
    ],
    "jsonschema0": [
        "CREATE TABLE kept(d CHECK (jsonschema_matches('{\"type\": \"object\"}', d)))",
        "INSERT INTO kept VALUES ('{}')",
        "INSERT INTO kept VALUES ('[]')",
        "SELECT * FROM kept",
    ],
    "robotstxt0": ["SELECT * FROM robotstxt_rules('User-agent: *' || char(10) || 'Disallow: /x')"],
    "ulid0": ["SELECT ulid_datetime('01GMP2G8ZG6PMKWYVKS62TTA41'), length(ulid()), ulid_with_prefix('u_') LIKE 'u__%'"],
    "url0": [
        "SELECT url_host('http://a.b/c'), url_path('http://a.b/c'), url_escape('a b')",
        "SELECT * FROM url_query_each('a=1&b=2&c=%20')",
    ],
    "path0": [
        "SELECT path_join('a', 'b', 'c'), path_normalize('a/../b/./c')",
        "SELECT rowid, * FROM path_parts('/usr/lib/x.so')",
        "SELECT p.part FROM json_each('[\"a/b\", \"c/d/e\"]') j JOIN path_parts(j.value) p",
    ],
    "fastrand0": ["SELECT fastrand_seed_set(5)", "SELECT fastrand_int(1, 5), fastrand_alphabetic()"],
    "hello0": ["SELECT hello('you')"],
    "vector0": ["SELECT vector_to_json(vector_from_json('[1, 2, 3]'))"],
    "libsqlite3_mod_csvtable": ["CREATE VIRTUAL TABLE c USING csvtable('cells.csv')", "SELECT * FROM c"],
    "libsqlite3_mod_xpath": [
        "CREATE VIRTUAL TABLE x USING xpath()",
        "INSERT INTO x(xml) VALUES ('<r><i n=\"1\">one</i><i n=\"2\">two</i></r>')",
        "SELECT xpath_string(docid, '//i[2]'), xpath_number(docid, 'count(//i)') FROM x",
    ],
    "libsqlite3_mod_impexp": [
        "CREATE TABLE e(a, b)",
        "INSERT INTO e VALUES (1, 'x'), (2, NULL), (x'00', 'q''')",
        "SELECT export_sql('e.sql', 1, 'e')",
        "SELECT import_sql('e.sql')",
        "SELECT * FROM e",
    ],
    "/usr/lib/sqlite3/pcre": ["SELECT 'abc' REGEXP '^a.c$', 'x' REGEXP '[0-9]'"],
    "mod_spatialite": [
        "SELECT InitSpatialMetadata(1)",
        "CREATE TABLE p(id INTEGER PRIMARY KEY, n TEXT)",
        "SELECT AddGeometryColumn('p', 'g', 4326, 'POINT', 'XY')",
        "INSERT INTO p(n, g) SELECT 'p' || value, MakePoint(value, value * 2, 4326) FROM json_each('[1, 2, 3, 4, 5, 6]')",
        "SELECT CreateSpatialIndex('p', 'g')",
        "SELECT id FROM p WHERE rowid IN (SELECT rowid FROM SpatialIndex WHERE f_table_name = 'p' AND search_frame = BuildMbr(2, 2, 5, 9))",
        "CREATE VIRTUAL TABLE t USING VirtualText('cells.csv', utf8, 1, comma, doublequote, ',')",
        "SELECT * FROM t WHERE a = 2",
        "SELECT AsText(ST_Union(g)) FROM p WHERE id < 3",
        "SELECT CheckSpatialIndex('p', 'g')",
    ],
}


def ask(path, statements):
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.enable_load_extension(True)
    known = set(db.execute("SELECT name, narg FROM pragma_function_list"))
    db.load_extension(path)
    added = set(db.execute("SELECT name, narg FROM pragma_function_list WHERE NOT builtin")) - known
    print("functions", sorted(added))
    for sql in statements:
        print(">", sql)
        try:
            for row in db.execute(sql):
                print(row, flush=True)
        except Exception as e:
            print("!", type(e).__name__, e, getattr(e, "sqlite_errorname", ""))


if len(sys.argv) == 3:
    ask(sys.argv[2], ASKED[sys.argv[1]])
else:
    os.makedirs("extensions.out", exist_ok=True)
    found = {os.path.basename(p)[:-3]: os.path.abspath(p) for p in glob.glob(sys.argv[1] + "/**/*.so", recursive=True)}
    os.chdir("extensions.out")
    with open("cells.csv", "w") as f:
        f.write('a,b,c\n1,x,2.5\n2,"y z",\n3,"q""q",7\n')
    for name, statements in ASKED.items():
        print("==", name, flush=True)
        run = subprocess.run([sys.executable, os.path.abspath(__file__), name, found.get(name, name)])
        if run.returncode:
            print("ended with", run.returncode, flush=True)
