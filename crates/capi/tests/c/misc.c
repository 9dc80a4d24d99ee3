/* Metadata of columns, errors and when they go, progress handlers, checkpoints of all databases, closed handles. */
#include "common.h"

static void meta(sqlite3 *db, const char *table, const char *column) {
  const char *type = 0, *coll = 0;
  int nn = -1, pk = -1, ai = -1;
  int rc = sqlite3_table_column_metadata(db, 0, table, column, &type, &coll, &nn, &pk, &ai);
  printf("%s.%s: %d %s %s %d %d %d %s\n", table, column ? column : "NULL", rc, type ? type : "NULL", coll ? coll : "NULL", nn, pk, ai,
         rc ? sqlite3_errmsg(db) : "");
}

static void metadata(void) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table a(id integer primary key autoincrement, note text default 'AUTOINCREMENT' collate nocase not null, n, r varchar(10) collate rtrim);"
          "create table b(id integer primary key, note text default 'AUTOINCREMENT');"
          "create table w(k text primary key, v) without rowid; create view v as select * from a; create table p(x, y, primary key(x, y))");
  const char *list[][2] = {{"a", "id"}, {"a", "note"}, {"a", "NOTE"}, {"a", "n"}, {"a", "r"}, {"a", "rowid"}, {"a", 0}, {"b", "id"}, {"b", "note"}, {"b", "oid"},
                           {"p", "rowid"}, {"p", "x"}, {"p", 0}, {"w", "k"}, {"w", "rowid"}, {"v", "id"}, {"v", 0}, {"none", "x"}, {"none", 0}, {"a", "none"}};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) meta(db, list[i][0], list[i][1]);
  /* Columns that a module declares. */
  run(db, "create virtual table f using fts5(q, r); create virtual table b using rtree(id, low, high, +note text)");
  const char *virtual[][2] = {{"f", "q"}, {"f", "R"}, {"f", "rowid"}, {"f", 0}, {"f", "none"}, {"b", "id"}, {"b", "low"}, {"b", "none"}};
  for (unsigned i = 0; i < sizeof virtual / sizeof *virtual; i++) meta(db, virtual[i][0], virtual[i][1]);
  sqlite3_close(db);
}

static int asked;
static int progress(void *p) {
  asked++;
  return p && asked > *(int *)p;
}

static void progressing(void) {
  sqlite3 *db = db_open(":memory:");
  const char *sql = "with recursive c(x) as (values(1) union all select x+1 from c where x<1000) select count(*) from c";
  int limits[] = {1, 10, 100, 1000};
  for (int i = 0; i < 4; i++) {
    asked = 0;
    sqlite3_progress_handler(db, limits[i], progress, 0);
    run(db, sql);
    /* 1,701 for 10 in one version: about as often is enough. */
    int expected = 17000 / limits[i];
    printf("every %d: %s\n", limits[i], asked > expected / 10 && asked < expected * 4 + 4 ? "about right" : "wrong");
    if (getenv("SHOW")) printf("asked %d\n", asked);
  }
  int most = 5;
  asked = 0;
  sqlite3_progress_handler(db, 10, progress, &most);
  run(db, sql);
  printf("asked %d\n", asked);
  sqlite3_progress_handler(db, 0, 0, 0);
  run(db, sql);
  sqlite3_close(db);
}

static void expect_closed(sqlite3 *db) { printf("closed %d\n", sqlite3_close(db)); }

/* Says what a call answered, and then what the connection says. */
static void said(sqlite3 *db, int rc) {
  printf("%d %d", rc, sqlite3_extended_errcode(db));
  printf(" %s\n", sqlite3_errmsg(db));
}

static void errors(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_stmt *s, *t;
  run(db, "create table t(a unique); insert into t values(1)");
  sqlite3_prepare_v2(db, "insert into t values(1)", -1, &s, 0);
  sqlite3_prepare_v2(db, "select 1", -1, &t, 0);
  said(db, sqlite3_step(s));
  said(db, sqlite3_reset(t));
  said(db, sqlite3_finalize(t));
  said(db, sqlite3_reset(s));
  said(db, sqlite3_reset(s));
  said(db, sqlite3_finalize(s));
  said(db, sqlite3_exec(db, "select 1", 0, 0, 0));
  said(db, sqlite3_prepare_v2(db, "", -1, &s, 0));
  said(db, sqlite3_prepare_v2(db, "selec 1", -1, &s, 0));
  said(db, sqlite3_finalize(0));
  /* The older way to prepare: the code comes with reset, and nothing is prepared again. */
  sqlite3_prepare(db, "insert into t values(1)", -1, &s, 0);
  said(db, sqlite3_step(s));
  said(db, sqlite3_reset(s));
  said(db, sqlite3_finalize(s));
  sqlite3_prepare(db, "select a from t", -1, &s, 0);
  run(db, "alter table t add column b");
  said(db, sqlite3_step(s));
  said(db, sqlite3_finalize(s));
  const char *tail = 0;
  printf("%d", sqlite3_prepare_v2(db, "select 1; select 2", -1, &s, &tail));
  printf(" '%s' '%s'\n", tail, sqlite3_sql(s));
  sqlite3_finalize(s);
  /* Columns that are not there. */
  sqlite3_prepare_v2(db, "select 1", -1, &s, 0);
  said(db, sqlite3_column_int(s, 0));
  said(db, sqlite3_bind_int(s, 1, 1));
  sqlite3_finalize(s);
  printf("closed %d\n", sqlite3_close(db));
}

static void checkpoints(char **argv) {
  sqlite3 *db = db_open(scratch(argv, "one.db"));
  char *sql = sqlite3_mprintf("attach %Q as two", scratch(argv, "two.db"));
  run(db, sql);
  sqlite3_free(sql);
  run(db, "pragma journal_mode=wal; pragma two.journal_mode=wal; create table t(a); create table two.t(a); insert into t values(1); insert into two.t values(1)");
  int log = 7, done = 7;
  printf("%d", sqlite3_wal_checkpoint_v2(db, 0, SQLITE_CHECKPOINT_TRUNCATE, &log, &done));
  printf(" %d %d\n", log, done);
  run(db, "pragma wal_checkpoint; pragma two.wal_checkpoint");
  printf("%d", sqlite3_wal_checkpoint_v2(db, "none", SQLITE_CHECKPOINT_PASSIVE, &log, &done));
  printf(" %d %d %s\n", log, done, sqlite3_errmsg(db));
  printf("%d\n", sqlite3_wal_checkpoint_v2(db, 0, 99, &log, &done));
  run(db, "begin; insert into two.t values(2)");
  printf("%d", sqlite3_wal_checkpoint_v2(db, "", SQLITE_CHECKPOINT_PASSIVE, &log, &done));
  printf(" %s\n", sqlite3_errmsg(db));
  run(db, "commit");
  int on = 1;
  printf("%d", sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &on));
  on = -1;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
  printf(" %d\n", on);
  char *vs = 0;
  printf("%d", sqlite3_file_control(db, "main", SQLITE_FCNTL_VFSNAME, &vs));
  printf(" %s\n", vs ? vs : "NULL");
  sqlite3_free(vs);
  run(db, "detach two");
  printf("closed %d\n", sqlite3_close(db));
  printf("wal stays %d\n", access(scratch(argv, "one.db-wal"), F_OK));
}

/* A log that is kept by wish goes with the mode, and one that is not copied back when closing is copied back then. */
static void leaving(char **argv) {
  for (int i = 0; i < 2; i++) {
    char name[4096];
    snprintf(name, sizeof name, "%s/leaving%d.db", argv[1], i);
    sqlite3 *db = db_open(name);
    int on = 1;
    run(db, "pragma journal_mode=wal; create table t(a); insert into t values(1)");
    if (i == 0) sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
    if (i == 1) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, 0);
    run(db, "pragma journal_mode=delete; insert into t values(2); pragma journal_mode; select count(*) from t; pragma integrity_check");
    expect_closed(db);
    db = db_open(name);
    run(db, "select count(*) from t; pragma integrity_check");
    expect_closed(db);
  }
}

static void switches(char **argv) {
  sqlite3 *db = db_open(scratch(argv, "switches.db"));
  int on = -1;
  run(db, "create table t(a); insert into t values(1)");
  printf("%d", sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, &on));
  printf(" %d\n", on);
  run(db, "pragma writable_schema=1; pragma journal_mode=off; pragma schema_version=999; pragma schema_version");
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, &on);
  printf("%d\n", on);
  printf("%d", sqlite3_db_config(db, SQLITE_DBCONFIG_RESET_DATABASE, 1, &on));
  printf(" %d\n", on);
  run(db, "vacuum");
  sqlite3_db_config(db, SQLITE_DBCONFIG_RESET_DATABASE, 0, 0);
  run(db, "select count(*) from sqlite_master; pragma page_count; create table n(a); pragma integrity_check");
  printf("%d", sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &on));
  printf(" %d\n", on);
  run(db, "pragma journal_mode=wal; insert into n values(1)");
  printf("flush %d\n", sqlite3_db_cacheflush(db));
  run(db, "begin; insert into n values(2)");
  printf("flush %d\n", sqlite3_db_cacheflush(db));
  run(db, "rollback");
  printf("closed %d\n", sqlite3_close(db));
  printf("wal stays %d\n", access(scratch(argv, "switches.db-wal"), F_OK));
  db = db_open(scratch(argv, "switches.db"));
  run(db, "select * from n");
  sqlite3_close(db);
  printf("wal gone %d\n", access(scratch(argv, "switches.db-wal"), F_OK));
}

static long size_of(const char *name) {
  FILE *f = fopen(name, "rb");
  if (!f) return -1;
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  fclose(f);
  return n;
}

static void flushes(char **argv) {
  char name[4096], wal[5000];
  strcpy(name, scratch(argv, "flush.db"));
  snprintf(wal, sizeof wal, "%s-wal", name);
  sqlite3 *db = db_open(name), *other = db_open(name);
  run(db, "create table t(a)");
  long before = size_of(name);
  run(db, "begin; insert into t values(zeroblob(100000))");
  printf("flush %d\n", sqlite3_db_cacheflush(db));
  printf("grown %d\n", size_of(name) > before + 50000);
  printf("flush %d\n", sqlite3_db_cacheflush(db));
  run(other, "select count(*) from t");
  run(db, "rollback; select count(*) from t; pragma integrity_check");
  /* A reader is in the way, and then a log is there. */
  sqlite3_stmt *s;
  run(db, "insert into t values(1)");
  sqlite3_prepare_v2(other, "select * from t", -1, &s, 0);
  sqlite3_step(s);
  run(db, "begin; insert into t values(zeroblob(100000))");
  printf("flush %d\n", sqlite3_db_cacheflush(db));
  sqlite3_finalize(s);
  printf("flush %d\n", sqlite3_db_cacheflush(db));
  run(db, "commit; pragma journal_mode=wal; begin; insert into t values(zeroblob(100000)), (2)");
  printf("flush %d\n", sqlite3_db_cacheflush(db));
  printf("log %d\n", size_of(wal) > 50000);
  run(other, "select count(*) from t");
  run(db, "update t set a = 3 where a = 2; commit; pragma integrity_check; select count(*) from t where a = 3");
  expect_closed(other);
  expect_closed(db);
}

static void vfs(void) {
  sqlite3_vfs *v = sqlite3_vfs_find(0);
  double now = 0;
  char random[8], path[2000];
  int found = -1;
  printf("%s %d %d\n", v->zName, v->iVersion >= 2, v->mxPathname >= 512);
  printf("%d ", v->xCurrentTime(v, &now));
  printf("%d\n", now > 2450000);
  sqlite3_int64 ms = 0;
  printf("%d ", v->xCurrentTimeInt64(v, &ms));
  printf("%d\n", ms / 86400000 > 2450000);
  printf("%d\n", v->xRandomness(v, sizeof random, random));
  printf("%d ", v->xAccess(v, "/nonexistent/x", SQLITE_ACCESS_EXISTS, &found));
  printf("%d\n", found);
  printf("%d ", v->xAccess(v, "/", SQLITE_ACCESS_EXISTS, &found));
  printf("%d\n", found);
  printf("%d\n", v->xDelete(v, "/nonexistent/x", 0) != SQLITE_OK);
  printf("%d ", v->xFullPathname(v, "/tmp/../tmp", sizeof path, path));
  printf("%s\n", path[0] == '/' ? "/" : path);
  printf("%d\n", v->xSleep(v, 1000) >= 1000);
  printf("%d %d\n", sqlite3_vfs_find("unix") != 0, sqlite3_vfs_find("nosuch") != 0);
}

static void closed(void) {
  sqlite3 *db = db_open(":memory:");
  printf("%d", sqlite3_close(db));
  printf(" %d", sqlite3_close(0));
  printf(" %s %d\n", sqlite3_errmsg(0), sqlite3_errcode(0));
  /* Two statements keep a zombie. */
  sqlite3_stmt *s, *t;
  db = db_open(":memory:");
  sqlite3_prepare_v2(db, "select 1", -1, &s, 0);
  sqlite3_prepare_v2(db, "select 2", -1, &t, 0);
  printf("%d", sqlite3_close(db));
  printf(" %s\n", sqlite3_errmsg(db));
  printf("%d\n", sqlite3_close_v2(db));
  sqlite3_finalize(s);
  printf("%d ", sqlite3_step(t));
  printf("%d\n", sqlite3_column_int(t, 0));
  printf("%d\n", sqlite3_finalize(t));
}

int main(int argc, char **argv) {
  (void)argc;
  metadata();
  progressing();
  errors();
  checkpoints(argv);
  leaving(argv);
  switches(argv);
  flushes(argv);
  vfs();
  closed();
  return 0;
}
