"""A tour through Python's sqlite3 module. Its output must be the same on stock SQLite and on iolite's C library."""

import os
import sqlite3
import sys
import tempfile
import threading
from datetime import date


def show(*args):
    print(*args)


def attempt(f):
    try:
        show("ok", f())
    except Exception as e:
        code = getattr(e, "sqlite_errorname", None)
        show(type(e).__name__, e, code)


def section(name):
    print("==", name)


folder = tempfile.mkdtemp()
path = os.path.join(folder, "tour.db")

section("ddl and dml")
con = sqlite3.connect(path)
cur = con.cursor()
cur.executescript(
    """
    create table person(id integer primary key, name text not null, born date, score real, photo blob);
    create index person_name on person(name);
    create table city(name text primary key, people integer check (people >= 0)) without rowid;
    create view grown as select * from person where score > 1;
    create trigger log after delete on person begin insert or ignore into city values (old.name, 0); end;
    """
)
cur.execute("insert into person values (?, ?, ?, ?, ?)", (1, "Ann", "2000-01-01", 1.5, b"\x00\xff"))
show(cur.lastrowid, cur.rowcount)
cur.executemany("insert into person(name, score) values (?, ?)", [(f"p{i}", i / 4) for i in range(20)])
show(cur.rowcount, con.total_changes, con.in_transaction)
con.commit()
show(con.in_transaction)
show(cur.execute("select * from person where id = :id", {"id": 1}).fetchone())
show([d[0] for d in cur.description])
show(cur.execute("update person set score = score + 1 where id > 15 returning id, score * 1.0").fetchall())
con.rollback()
show(cur.execute("select sum(score), count(photo), typeof(max(name)) from person").fetchone())
cur.execute("delete from person where name = 'p3'")
show(cur.rowcount, cur.execute("select * from city").fetchall())
show(con.execute("insert into city values ('x', 1) on conflict do update set people = people + 1").rowcount)
con.commit()

section("row factories and adapters")
con.row_factory = sqlite3.Row
r = con.execute("select id as A, name from person limit 1").fetchone()
show(r.keys(), r["a"], tuple(r), len(r))
con.row_factory = lambda c, row: {d[0]: v for d, v in zip(c.description, row)}
show(con.execute("select 1 as one, 'x' as two, null as three").fetchone())
con.row_factory = None
typed = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES)
sqlite3.register_converter("point", lambda b: tuple(map(int, b.split(b";"))))
typed.execute("create table t(p point, d text)")
typed.execute("insert into t values ('4;5', 'x')")
show(typed.execute("select p, '1;2' as 'q [point]' from t").fetchall())
con.text_factory = bytes
show(con.execute("select 'é'").fetchone())
con.text_factory = str

section("values")
values = [None, 0, -1, 2**63 - 1, -(2**63), 1.5, -0.0, 1e300, float("inf"), "", "é\u4e2d\U0001f600", b"", b"abc", "a\0b"]
for v in values:
    show(repr(con.execute("select ?, typeof(?1)", (v,)).fetchone()))
attempt(lambda: con.execute("select ?", (2**63,)))
attempt(lambda: con.execute("select ?", (object(),)))
attempt(lambda: con.execute("select ?, ?", (1,)))
attempt(lambda: con.execute("select :a", {}))

section("functions")
con.create_function("twice", 1, lambda x: x * 2, deterministic=True)
con.create_function("any", -1, lambda *a: len(a))
con.create_function("fails", 0, lambda: 1 / 0)
con.create_function("text", 1, lambda x: str(x))
con.create_function("blob", 0, lambda: b"\x01\x00")
con.create_function("none_of", 0, lambda: None)
con.create_function("wrong", 0, lambda: object())
show(con.execute("select twice(4), twice('ab'), twice(1.5), any(), any(1,2,3), text(7), blob(), none_of()").fetchone())
attempt(lambda: con.execute("select fails()").fetchone())
attempt(lambda: con.execute("select wrong()").fetchone())
attempt(lambda: con.execute("select twice()").fetchone())
attempt(lambda: con.execute("select nosuch(1)"))
con.create_function("twice", 1, None)
attempt(lambda: con.execute("select twice(1)"))


class Product:
    def __init__(self):
        self.p = 1

    def step(self, v):
        self.p *= v

    def finalize(self):
        return self.p


class Broken:
    def step(self, v):
        raise ValueError("no")

    def finalize(self):
        return 1


class WindowSum:
    def __init__(self):
        self.n = 0

    def step(self, v):
        self.n += v

    def inverse(self, v):
        self.n -= v

    def value(self):
        return self.n

    def finalize(self):
        return self.n


con.create_aggregate("product", 1, Product)
con.create_aggregate("broken", 1, Broken)
show(con.execute("select product(column1) from (values (2), (3), (7))").fetchone())
show(con.execute("select product(id) from person where 0").fetchone())
show(con.execute("select id % 3, product(id) from person where id < 9 group by 1 order by 1").fetchall())
attempt(lambda: con.execute("select broken(id) from person").fetchone())
con.create_window_function("wsum", 1, WindowSum)
attempt(
    lambda: con.execute(
        "select column1, wsum(column1) over (order by column1 rows between 1 preceding and 1 following)"
        " from (values (1), (2), (3), (4))"
    ).fetchall()
)

section("collations")
con.create_collation("reverse", lambda a, b: (a < b) - (a > b))
show(con.execute("select column1 from (values ('b'), ('a'), ('c')) order by column1 collate reverse").fetchall())
con.create_collation("reverse", None)
attempt(lambda: con.execute("select 1 order by 'a' collate reverse").fetchall())

section("errors")
attempt(lambda: con.execute("selec 1"))
attempt(lambda: con.execute("select * from nosuch"))
attempt(lambda: con.execute("insert into city values ('x', 1)"))
attempt(lambda: con.execute("insert into city values ('y', -1)"))
attempt(lambda: con.execute("insert into person(name) values (null)"))
attempt(lambda: con.execute("select 1; select 2"))
attempt(lambda: sqlite3.connect(os.path.join(folder, "no", "such")))
attempt(lambda: sqlite3.connect("file:" + path + "?mode=ro", uri=True).execute("create table z(a)"))
notdb = os.path.join(folder, "notdb")
with open(notdb, "wb") as f:
    f.write(b"no database " * 500)
attempt(lambda: sqlite3.connect(notdb).execute("select * from sqlite_master"))
con.rollback()
attempt(lambda: con.cursor().executemany("select 1", [()]))
closed = sqlite3.connect(":memory:")
closed.close()
attempt(lambda: closed.execute("select 1"))

section("transactions")
other = sqlite3.connect(path, timeout=0)
con.execute("insert into city values ('locked', 1)")
attempt(lambda: other.execute("insert into city values ('other', 1)"))
con.rollback()
auto = sqlite3.connect(path, isolation_level=None)
auto.execute("begin immediate")
auto.execute("insert into city values ('auto', 2)")
show(auto.in_transaction)
auto.execute("savepoint s")
auto.execute("delete from city")
auto.execute("rollback to s")
show(auto.execute("select count(*) from city").fetchone())
auto.execute("commit")
try:
    with con:
        con.execute("insert into city values ('with', 3)")
        raise KeyError("out")
except KeyError:
    pass
show(con.execute("select count(*) from city where name = 'with'").fetchone())
for level in ("DEFERRED", "IMMEDIATE", "EXCLUSIVE"):
    c = sqlite3.connect(path, isolation_level=level)
    c.execute("insert into city values (?, 1)", (level,))
    show(level, c.in_transaction)
    c.commit()
    c.close()
other.close()
auto.close()

section("dump, backup, serialize")
for line in con.iterdump():
    show(line)
copy = sqlite3.connect(":memory:")
con.backup(copy, pages=1, progress=lambda status, left, total: None)
show(copy.execute("select count(*), sum(score) from person").fetchone())
image = copy.serialize()
show(image[:15])
back = sqlite3.connect(":memory:")
back.deserialize(image)
show(back.execute("select count(*), sum(score) from person").fetchone())
show(back.execute("pragma integrity_check").fetchone())

section("blobs")
con.execute("insert into person(id, name, photo) values (99, 'b', zeroblob(10))")
with con.blobopen("person", "photo", 99) as b:
    b.write(b"hello")
    b.seek(2)
    show(len(b), b.read(4), b.tell(), b[0], b[1:3])
    b[9] = 7
    attempt(lambda: b.write(b"x" * 20))
show(con.execute("select photo from person where id = 99").fetchone())
attempt(lambda: con.blobopen("person", "photo", 12345))
con.commit()

section("many rows")
big = sqlite3.connect(":memory:")
big.execute("create table n(a integer primary key, b text, c real)")
big.executemany("insert into n values (?, ?, ?)", ((i, f"row {i}", i * 0.5) for i in range(1_000_000)))
total = 0
for a, b, c in big.execute("select * from n"):
    total += a + len(b) + c
show(total)
show(len(big.execute("select b from n where a between 1000 and 1999").fetchall()))
cur = big.execute("select a from n order by a desc")
show(cur.fetchmany(3), cur.fetchone())

section("hooks and limits")
seen = []
con.set_trace_callback(seen.append)
con.execute("select ?, 'x'", (5,)).fetchall()
con.set_trace_callback(None)
show(seen)
calls = [0]


def progress():
    calls[0] += 1
    return calls[0] > 5


con.set_progress_handler(progress, 1000)
attempt(lambda: con.execute("with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c").fetchone())
con.set_progress_handler(None, 0)
show(con.getlimit(sqlite3.SQLITE_LIMIT_COLUMN), con.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 20))
attempt(lambda: con.execute("select 1234567890123456789"))
con.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1000000)
asked = []


def authorizer(action, one, two, db, inner):
    asked.append((action, one, two))
    deny = action == sqlite3.SQLITE_DROP_TABLE or one == "person" and two == "photo"
    return sqlite3.SQLITE_DENY if deny else sqlite3.SQLITE_OK


con.set_authorizer(authorizer)
attempt(lambda: con.execute("drop table person"))
attempt(lambda: con.execute("select photo from person"))
attempt(lambda: con.execute("select id from city c join person on photo = c.name"))
show(con.execute("select people from city where name = 'x'").fetchall())
show((sqlite3.SQLITE_SELECT, None, None) in asked, (sqlite3.SQLITE_READ, "city", "people") in asked)
con.execute("pragma user_version")
show((sqlite3.SQLITE_PRAGMA, "user_version", None) in asked)
con.set_authorizer(None)
show(con.execute("select count(photo) from person").fetchone())
timer = threading.Timer(0.2, con.interrupt)
timer.start()
attempt(lambda: con.execute("with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c").fetchone())
timer.join()
show(sqlite3.complete_statement("select 1;"), sqlite3.complete_statement("select 'x;"))

section("threads")
# Without Python's own BEGIN, which two threads can give at once: with any library one of them fails then.
shared = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
shared.execute("create table t(a)")


def work(k):
    for i in range(200):
        shared.execute("insert into t values (?)", (k * 1000 + i,))


threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
show(shared.execute("select count(*), sum(a) from t").fetchone())

for c in (con, copy, back, big, shared, typed):
    c.close()
show("end")
