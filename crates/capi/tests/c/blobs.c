/* Incremental access to values: refusals, expiry, transactions, snapshots. */
#include "common.h"

static sqlite3 *db;

static sqlite3_blob *open_blob(const char *table, const char *column, sqlite3_int64 row, int write) {
  sqlite3_blob *b = 0;
  int rc = sqlite3_blob_open(db, "main", table, column, row, write, &b);
  printf("open %s.%s row %lld %s: %d %s\n", table, column, (long long)row, write ? "rw" : "ro", rc, rc ? sqlite3_errmsg(db) : "");
  return b;
}

static void show(const char *what, int rc) {
  printf("%s: %d\n", what, rc);
}

static void read_some(sqlite3_blob *b, int n, int at) {
  char buf[100] = {0};
  int rc = sqlite3_blob_read(b, buf, n, at);
  printf("read %d at %d: %d '%.*s'\n", n, at, rc, rc ? 0 : n, buf);
}

static void refusals(void) {
  printf("-- refusals\n");
  run(db, "create table t(a integer primary key, b, c blob, d text unique, e, f);"
          "create index te on t(e); create index tx on t(f || 'x');"
          "insert into t values(1, 'text', x'00112233', 'unique', 'indexed', 'f'), (2, null, 5, 1.5, 'e', 'f');"
          "create view v as select * from t;"
          "create table w(a primary key, b) without rowid; insert into w values(1, 'x');"
          "create table g(a, b as (a || 'x')); insert into g(a) values('g');"
          "create table plain(a, b); insert into plain values('one', 'two');"
          "create table parent(p text primary key); insert into parent values('p');"
          "create table child(x, r references parent); insert into child values('x', 'p');"
          "create table late(a); insert into late values('a'); alter table late add column z default 'dflt'");
  sqlite3_blob *b;
  open_blob("nosuch", "a", 1, 0);
  open_blob("v", "b", 1, 0);
  open_blob("w", "b", 1, 0);
  /* Older versions open it. */
  sqlite3_blob_close(open_blob("g", "a", 1, 0));
  open_blob("t", "nosuch", 1, 0);
  open_blob("t", "b", 7, 0);
  open_blob("t", "a", 1, 0);
  open_blob("t", "b", 2, 0);
  open_blob("t", "c", 2, 0);
  b = open_blob("t", "d", 2, 0);
  show("close", sqlite3_blob_close(b));
  open_blob("late", "z", 1, 0);
  open_blob("t", "d", 1, 1);
  open_blob("t", "e", 1, 1);
  open_blob("t", "b", 1, 1);
  b = open_blob("t", "e", 1, 0);
  read_some(b, 7, 0);
  show("write", sqlite3_blob_write(b, "x", 1, 0));
  show("close", sqlite3_blob_close(b));
  b = open_blob("child", "r", 1, 1);
  show("close", sqlite3_blob_close(b));
  run(db, "pragma foreign_keys=1");
  open_blob("child", "r", 1, 1);
  b = open_blob("child", "x", 1, 1);
  show("close", sqlite3_blob_close(b));
  run(db, "pragma foreign_keys=0");
  sqlite3_blob *none = (sqlite3_blob *)&none;
  printf("no database: %d %d\n", sqlite3_blob_open(db, "nodb", "t", "b", 1, 0, &none), none == 0);
  show("close none", sqlite3_blob_close(0));
}

static void ranges(void) {
  printf("-- ranges\n");
  sqlite3_blob *b = open_blob("plain", "a", 1, 1);
  printf("bytes %d\n", sqlite3_blob_bytes(b));
  read_some(b, 3, 0);
  read_some(b, 2, 1);
  read_some(b, 0, 3);
  read_some(b, 1, 3);
  read_some(b, -1, 0);
  read_some(b, 1, -1);
  show("write beyond", sqlite3_blob_write(b, "xyz", 3, 1));
  show("write", sqlite3_blob_write(b, "NE", 2, 1));
  show("close", sqlite3_blob_close(b));
  run(db, "select * from plain");
}

static void expiry(void) {
  printf("-- expiry\n");
  run(db, "create table x(a, b); insert into x values('aaaa', 1), ('bbbb', 2), ('cccc', 3), (null, 4)");
  sqlite3_blob *b = open_blob("x", "a", 1, 1), *other = open_blob("x", "a", 2, 1);
  show("write", sqlite3_blob_write(b, "A", 1, 0));
  show("write other", sqlite3_blob_write(other, "B", 1, 0));
  show("write again", sqlite3_blob_write(b, "AA", 2, 0));
  run(db, "update x set b = 9 where rowid = 2; insert into x values('dddd', 5)");
  read_some(b, 4, 0);
  read_some(other, 4, 0);
  printf("bytes %d\n", sqlite3_blob_bytes(other));
  show("write expired", sqlite3_blob_write(other, "x", 1, 0));
  show("reopen expired", sqlite3_blob_reopen(other, 3));
  show("reopen", sqlite3_blob_reopen(b, 3));
  read_some(b, 4, 0);
  run(db, "delete from x where rowid = 1");
  read_some(b, 4, 0);
  show("reopen on null", sqlite3_blob_reopen(b, 4));
  printf("%s\n", sqlite3_errmsg(db));
  show("reopen after that", sqlite3_blob_reopen(b, 3));
  printf("bytes %d\n", sqlite3_blob_bytes(b));
  show("close", sqlite3_blob_close(b));
  show("close", sqlite3_blob_close(other));
  run(db, "select rowid, * from x");
  b = open_blob("x", "a", 3, 0);
  show("reopen on none", sqlite3_blob_reopen(b, 77));
  printf("%s\n", sqlite3_errmsg(db));
  show("close", sqlite3_blob_close(b));
  b = open_blob("x", "a", 3, 0);
  run(db, "update x set a = 'same' where rowid = 3");
  read_some(b, 4, 0);
  show("close", sqlite3_blob_close(b));
  b = open_blob("x", "a", 3, 0);
  run(db, "replace into x(rowid, a, b) values(3, 'same', 3)");
  read_some(b, 4, 0);
  show("close", sqlite3_blob_close(b));
  b = open_blob("x", "a", 3, 0);
  run(db, "delete from x");
  read_some(b, 4, 0);
  show("close", sqlite3_blob_close(b));
}

static void transactions(char **argv) {
  printf("-- transactions\n");
  char name[4096];
  strcpy(name, scratch(argv, "blobs.db"));
  sqlite3 *memory = db;
  db = db_open(name);
  sqlite3 *other = db_open(name);
  run(db, "create table t(a, n); insert into t values(zeroblob(100000), 0);"
          "create table log(x); create trigger tr after update on t begin insert into log values(1); end;"
          "pragma journal_mode=wal");
  /* A reader keeps its snapshot. */
  char one[2] = {9, 9}, two[2] = {9, 9};
  sqlite3_blob *b = open_blob("t", "a", 1, 0);
  show("read", sqlite3_blob_read(b, one, 1, 0));
  run(other, "update t set a = replace(hex(zeroblob(50000)), '0', '1')");
  show("read", sqlite3_blob_read(b, two, 1, 99999));
  printf("%d %d\n", one[0], two[0]);
  show("close", sqlite3_blob_close(b));
  run(db, "delete from log; update t set a = zeroblob(100000); delete from log");
  /* A writer commits when it is closed, triggers and counters hear nothing. */
  int before = sqlite3_total_changes(db);
  b = open_blob("t", "a", 1, 1);
  show("write", sqlite3_blob_write(b, "begin", 5, 0));
  show("write", sqlite3_blob_write(b, "end", 3, 99997));
  run(other, "select substr(a, 1, 5) = 'begin' from t");
  show("other writes", run(other, "insert into log values(2)"));
  run(db, "insert into log values(3)");
  run(other, "select count(*) from log");
  show("commit in between", run(db, "commit"));
  show("close", sqlite3_blob_close(b));
  run(other, "select cast(substr(a, 1, 5) as text), cast(substr(a, -3) as text) from t; select count(*) from log");
  printf("changes %d\n", sqlite3_total_changes(db) - before);
  /* Within a transaction. */
  run(db, "begin");
  b = open_blob("t", "a", 1, 1);
  show("write", sqlite3_blob_write(b, "BEGIN", 5, 0));
  show("commit", run(db, "commit"));
  show("savepoint", run(db, "savepoint s"));
  show("close", sqlite3_blob_close(b));
  run(db, "select cast(substr(a, 1, 5) as text) from t; rollback; select cast(substr(a, 1, 5) as text) from t");
  run(db, "begin");
  b = open_blob("t", "a", 1, 1);
  show("write", sqlite3_blob_write(b, "gone!", 5, 0));
  run(db, "rollback");
  show("write after rollback", sqlite3_blob_write(b, "x", 1, 0));
  show("close", sqlite3_blob_close(b));
  run(db, "select cast(substr(a, 1, 5) as text) from t");
  /* A read handle goes on over COMMIT. */
  run(db, "begin; update t set n = 1");
  b = open_blob("t", "a", 1, 0);
  run(db, "commit");
  read_some(b, 5, 0);
  show("busy close", sqlite3_close(db));
  show("close", sqlite3_blob_close(b));
  /* Somebody else writes. */
  run(other, "begin immediate");
  b = open_blob("t", "a", 1, 1);
  run(other, "commit");
  /* A commit that finds a reader in the way, in a rollback mode. */
  run(other, "pragma journal_mode=delete");
  sqlite3_stmt *reader;
  sqlite3_prepare_v2(other, "select n from t union all select 2", -1, &reader, 0);
  show("reader", sqlite3_step(reader));
  b = open_blob("t", "a", 1, 1);
  show("write", sqlite3_blob_write(b, "never", 5, 0));
  show("close", sqlite3_blob_close(b));
  show("reader", sqlite3_finalize(reader));
  run(other, "select cast(substr(a, 1, 5) as text) from t; pragma integrity_check");
  printf("closed %d %d\n", sqlite3_close(other), sqlite3_close(db));
  /* A commit that finds a reader in the way. */
  strcpy(name, scratch(argv, "blobs2.db"));
  db = db_open(name);
  other = db_open(name);
  run(db, "create table t(a); insert into t values('before'), (2)");
  sqlite3_prepare_v2(other, "select a from t", -1, &reader, 0);
  show("reader", sqlite3_step(reader));
  b = open_blob("t", "a", 1, 1);
  show("write", sqlite3_blob_write(b, "never!", 6, 0));
  show("close", sqlite3_blob_close(b));
  printf("%s\n", sqlite3_errmsg(db));
  show("reader", sqlite3_finalize(reader));
  run(other, "select a from t; insert into t values(3)");
  printf("closed %d %d\n", sqlite3_close(other), sqlite3_close(db));
  db = memory;
}

static void large(void) {
  printf("-- large\n");
  run(db, "create table l(x, a, y); insert into l values(zeroblob(3000), zeroblob(3000000), 'y')");
  sqlite3_blob *b = open_blob("l", "a", 1, 1);
  char piece[10000];
  for (int i = 0; i < 300; i++) {
    memset(piece, 'a' + i % 26, sizeof piece);
    if (sqlite3_blob_write(b, piece, sizeof piece, i * (int)sizeof piece)) printf("write %d\n", i);
  }
  unsigned sum = 0;
  for (int i = 2999999; i >= 0; i -= 7919) {
    char c = 0;
    if (sqlite3_blob_read(b, &c, 1, i)) printf("read %d\n", i);
    sum = sum * 31 + c;
  }
  printf("sum %u\n", sum);
  show("close", sqlite3_blob_close(b));
  run(db, "select length(a), cast(substr(a, 29999, 3) as text), y, length(x), typeof(a) from l; pragma integrity_check");
  run(db, "create table u(a); insert into u values('text')");
  b = open_blob("u", "a", 1, 1);
  show("write", sqlite3_blob_write(b, "TEXT", 4, 0));
  show("close", sqlite3_blob_close(b));
  run(db, "select a, typeof(a) from u; alter table u add column c");
  b = open_blob("u", "a", 1, 0);
  run(db, "alter table u rename to u2");
  show("close", sqlite3_blob_close(b));
}

int main(int argc, char **argv) {
  (void)argc;
  db = db_open(":memory:");
  refusals();
  ranges();
  expiry();
  transactions(argv);
  large();
  printf("closed %d\n", sqlite3_close(db));
  return 0;
}
