/* Connections that share a cache: locks on tables and on the schema, reading what is not committed, waiting for the end of
** another's transaction, threads. */
#include "common.h"

static const char *file;

static sqlite3 *shared(const char *name) {
  sqlite3 *db = 0;
  int rc = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_SHAREDCACHE, 0);
  if (rc) printf("open: %d %s\n", rc, sqlite3_errmsg(db));
  return db;
}

static void on(const char *who, sqlite3 *db, const char *sql) {
  printf("%s> %s\n", who, sql);
  run(db, sql);
}

static void tables(sqlite3 *a, sqlite3 *b) {
  on("a", a, "create table t(x); create table u(x); create index tx on t(x); insert into t values(1); insert into u values(10)");
  on("b", b, "select * from t");
  on("a", a, "begin; insert into t values(2)");
  on("b", b, "select * from t");
  on("b", b, "select count(*) from t indexed by tx");
  on("b", b, "select * from u");
  on("b", b, "insert into u values(11)");
  on("b", b, "begin; select * from u");
  on("a", a, "select * from u");
  on("a", a, "insert into u values(12)");
  on("a", a, "commit");
  on("b", b, "select * from t; select * from u");
  on("a", a, "insert into u values(13)");
  on("b", b, "commit");
  on("a", a, "insert into u values(14); select * from u");
  on("b", b, "pragma read_uncommitted=1; pragma read_uncommitted");
  on("a", a, "begin; delete from t; insert into t values(99)");
  on("b", b, "select * from t");
  on("b", b, "insert into t values(3)");
  on("a", a, "rollback");
  on("b", b, "select * from t order by x; pragma read_uncommitted=0");
  on("a", a, "begin; insert into t values(5)");
  on("b", b, "begin; insert into u values(6)");
  on("b", b, "commit");
  on("a", a, "rollback; select count(*) from t");
}

static void schemas(sqlite3 *a, sqlite3 *b) {
  on("a", a, "begin; create table v(x)");
  on("b", b, "select * from t");
  on("b", b, "select 1");
  on("b", b, "pragma table_info(t)");
  on("a", a, "commit");
  on("b", b, "select count(*) from v");
  on("b", b, "begin; select count(*) from v");
  on("a", a, "create table w(x)");
  on("a", a, "drop table v");
  on("a", a, "insert into t values(7)");
  on("b", b, "commit");
  on("a", a, "drop table v; create table w(x)");
  on("b", b, "select count(*) from w");
  sqlite3_stmt *s;
  sqlite3_prepare_v2(b, "select count(*) from w", -1, &s, 0);
  on("a", a, "begin; create table y(x)");
  int rc = sqlite3_step(s);
  printf("prepared before: %d %d %s\n", rc, sqlite3_extended_errcode(b), sqlite3_errmsg(b));
  sqlite3_reset(s);
  on("a", a, "rollback");
  printf("and now: %d\n", sqlite3_step(s));
  sqlite3_finalize(s);
  on("b", b, "select count(*) from y");
}

static void transactions(sqlite3 *a, sqlite3 *b) {
  on("a", a, "begin immediate");
  on("b", b, "begin immediate");
  on("b", b, "begin exclusive");
  on("b", b, "select count(*) from t");
  on("a", a, "commit; begin exclusive");
  on("b", b, "select count(*) from t");
  on("b", b, "begin; select count(*) from t");
  on("a", a, "commit");
  on("b", b, "rollback");
  on("b", b, "begin; select count(*) from t");
  on("a", a, "begin exclusive");
  on("a", a, "savepoint one; insert into u values(100); savepoint two; insert into u values(101); rollback to two; release one");
  on("b", b, "commit");
  on("b", b, "select * from u where x>=100");
  sqlite3_stmt *s;
  sqlite3_prepare_v2(b, "select x from t", -1, &s, 0);
  printf("reading: %d\n", sqlite3_step(s));
  on("a", a, "insert into u values(102)");
  on("a", a, "insert into t values(102)");
  on("a", a, "drop table u");
  printf("states: %d %d\n", sqlite3_txn_state(a, 0), sqlite3_txn_state(b, 0));
  sqlite3_finalize(s);
  printf("states: %d %d\n", sqlite3_txn_state(a, 0), sqlite3_txn_state(b, 0));
  on("a", a, "begin; insert into u values(103)");
  printf("states: %d %d\n", sqlite3_txn_state(a, 0), sqlite3_txn_state(b, 0));
  on("b", b, "vacuum");
  on("b", b, "pragma wal_checkpoint");
  on("a", a, "commit");
  on("a", a, "create table p(k integer primary key); create table c(p references p); pragma foreign_keys=1; insert into p values(1)");
  on("a", a, "create trigger tr after insert on w begin insert into u values(new.x); end");
  on("b", b, "begin; select * from u where x=103");
  on("a", a, "insert into w values(1)");
  on("b", b, "commit; begin; select * from p");
  on("a", a, "insert into c values(1)");
  on("a", a, "delete from p");
  on("b", b, "commit");
  on("a", a, "delete from c; delete from p; insert into w values(1)");
  on("b", b, "pragma integrity_check");
}

static void versions(sqlite3 *a, sqlite3 *b) {
  sqlite3_stmt *s, *r;
  sqlite3_prepare_v2(a, "pragma data_version", -1, &s, 0);
  sqlite3_prepare_v2(b, "pragma data_version", -1, &r, 0);
  int before[2], now[2];
  for (int round = 0; round < 3; round++) {
    sqlite3_step(s), now[0] = sqlite3_column_int(s, 0), sqlite3_reset(s);
    sqlite3_step(r), now[1] = sqlite3_column_int(r, 0), sqlite3_reset(r);
    if (round) printf("version of a: %s, of b: %s\n", now[0] == before[0] ? "same" : "other", now[1] == before[1] ? "same" : "other");
    memcpy(before, now, sizeof now);
    run(a, "insert into w values(2)");
  }
  sqlite3_finalize(s);
  sqlite3_finalize(r);
}

static void told(void **list, int n) {
  printf("told:");
  for (int i = 0; i < n; i++) printf(" %s", (char *)list[i]);
  printf("\n");
}

static void notifying(sqlite3 *a, sqlite3 *b, sqlite3 *c) {
  printf("nobody waited for: %d\n", sqlite3_unlock_notify(b, told, "b"));
  on("a", a, "begin; insert into t values(200)");
  on("b", b, "select * from t");
  on("c", c, "select * from t");
  printf("%d %d\n", sqlite3_unlock_notify(b, told, "b"), sqlite3_unlock_notify(c, told, "c"));
  printf("again: %d\n", sqlite3_unlock_notify(b, told, "b, anew"));
  on("a", a, "commit");
  printf("once more: %d\n", sqlite3_unlock_notify(b, told, "b"));
  on("a", a, "begin; insert into t values(201)");
  on("b", b, "select * from t");
  printf("%d, taken back %d\n", sqlite3_unlock_notify(b, told, "b"), sqlite3_unlock_notify(b, 0, 0));
  on("a", a, "rollback");
  on("a", a, "begin; insert into t values(1)");
  on("b", b, "begin; select count(*) from u");
  on("b", b, "select * from t");
  on("a", a, "insert into u values(1)");
  printf("a waits: %d\n", sqlite3_unlock_notify(a, told, "a"));
  int rc = sqlite3_unlock_notify(b, told, "b");
  printf("b waits: %d %s\n", rc, sqlite3_errmsg(b));
  on("b", b, "rollback");
  on("a", a, "rollback");
  on("a", a, "begin; insert into t values(1)");
  on("b", b, "select * from t");
  printf("%d\n", sqlite3_unlock_notify(b, told, "b at closing"));
  sqlite3_close(a);
}

static sqlite3 *pair[2];
static void *working(void *p) {
  sqlite3 *db = pair[(long)p];
  int done = 0;
  for (int i = 0; i < 2000 && done < 200; i++) {
    int rc = sqlite3_exec(db, "insert into w values(random()); select sum(length(x)) from w", 0, 0, 0);
    if (!rc) done++;
    else if ((rc & 0xff) != SQLITE_LOCKED) printf("a thread: %d %s\n", rc, sqlite3_errmsg(db));
    else usleep(100);
  }
  return 0;
}

/* Handles on values lock their tables. */
static void blob_handles(sqlite3 *a, sqlite3 *b) {
  sqlite3_blob *h = 0;
  char got[5] = "";
  on("a", a, "create table big(k integer primary key, v); insert into big values(1, 'long'), (2, 'also')");
  for (int writes = 0; writes < 2; writes++) {
    printf("a opens: %d\n", sqlite3_blob_open(a, "main", "big", "v", 1, writes, &h) & 0xff);
    on("b", b, "select v from big");
    on("b", b, "update big set v = 'nope' where k = 1");
    printf("a reads: %d %s\n", sqlite3_blob_read(h, got, 4, 0), got);
    printf("a closes: %d\n", sqlite3_blob_close(h));
    on("b", b, "begin; update big set v = 'lost' where k = 1");
    printf("a opens: %d\n", sqlite3_blob_open(a, "main", "big", "v", 1, writes, &h) & 0xff);
    sqlite3_blob_close(h);
    on("b", b, "rollback");
  }
}

/* What somebody who shares the cache has not committed is not copied. */
static void copies(sqlite3 *a, sqlite3 *b) {
  sqlite3 *to = db_open(":memory:");
  sqlite3_backup *copy = sqlite3_backup_init(to, "main", a, "main");
  printf("one page: %d\n", sqlite3_backup_step(copy, 1));
  on("b", b, "begin; update big set v = 'lost'");
  printf("while b writes: %d\n", sqlite3_backup_step(copy, -1));
  printf("into another file: %d\n", sqlite3_exec(a, "vacuum into ':memory:'", 0, 0, 0) & 0xff);
  on("b", b, "rollback");
  printf("afterwards: %d\n", sqlite3_backup_step(copy, -1));
  printf("finished: %d\n", sqlite3_backup_finish(copy));
  on("copy", to, "select v from big; pragma integrity_check");
  sqlite3_close(to);
}

int main(int argc, char **argv) {
  (void)argc;
  char name[5000];
  for (int mode = 0; mode < 3; mode++) {
    char *path = scratch(argv, mode ? "wal.db" : "journal.db");
    snprintf(name, sizeof name, mode == 2 ? "file:named?mode=memory&cache=shared" : "%s", path);
    file = name;
    printf("mode %d\n", mode);
    sqlite3 *a = shared(file), *b = shared(file), *c = shared(file);
    if (mode == 1) run(a, "pragma journal_mode=wal");
    tables(a, b);
    schemas(a, b);
    transactions(a, b);
    versions(a, b);
    blob_handles(a, b);
    copies(a, b);
    notifying(a, b, c);
    pair[0] = b, pair[1] = c;
    run(b, "delete from w");
    pthread_t t[2];
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, working, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    on("b", b, "select count(*) from w; pragma integrity_check");
    char attach[5200];
    snprintf(attach, sizeof attach, "attach '%s' as again", file);
    printf("attached once more: %d %s\n", sqlite3_exec(b, attach, 0, 0, 0), sqlite3_errmsg(b));
    sqlite3_close(b);
    sqlite3_close(c);
    a = shared(file);
    on("a", a, "select count(*) from sqlite_schema");
    sqlite3_close(a);
  }
  return 0;
}
