/* The connection's error after each call: which calls set it, which leave it. */
#include "../common.h"

static sqlite3 *db;
static void state(const char *what) {
  printf("%s: %d %d %s @%d\n", what, sqlite3_errcode(db), sqlite3_extended_errcode(db), sqlite3_errmsg(db), sqlite3_error_offset(db));
}
static int hook(void *p) { (void)p; return 0; }
static void f(sqlite3_context *c, int n, sqlite3_value **v) {
  sqlite3_result_int(c, n ? sqlite3_value_frombind(v[0]) : 0);
}
static void gone(void *p) { printf("gone %s\n", (const char *)p); }
static int cmp(void *p, int n, const void *a, int m, const void *b) {
  (void)p, (void)a, (void)b;
  return n - m;
}

int main(void) {
  sqlite3_stmt *s, *t;
  sqlite3_open(":memory:", &db);
  sqlite3_exec(db, "create table t(a integer primary key,b unique,c); insert into t values(1,2,x'41004200')", 0, 0, 0);
  sqlite3_prepare_v2(db, "select a,b from t where a=?", -1, &s, 0);
  state("prepared");
  sqlite3_bind_int(s, 1, 1);
  sqlite3_step(s);
  state("row");
  sqlite3_column_int(s, 9);
  state("no such column");
  sqlite3_step(s);
  state("done");
  printf("%d\n", sqlite3_bind_int(s, 1, 1));
  state("bound without reset");
  printf("%d\n", sqlite3_bind_int(s, 7, 1));
  sqlite3_reset(s);
  printf("%d\n", sqlite3_bind_int(s, 7, 1));
  state("no such parameter");
  sqlite3_commit_hook(db, hook, 0);
  sqlite3_busy_timeout(db, 5);
  sqlite3_create_function(db, "f", -1, SQLITE_UTF8, 0, f, 0, 0);
  sqlite3_trace_v2(db, 0, 0, 0);
  sqlite3_set_authorizer(db, 0, 0);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, -1, (int *)0);
  state("settings");
  sqlite3_create_collation(db, "k", SQLITE_UTF8, 0, cmp);
  state("collation");
  sqlite3_prepare_v2(db, "select nosuch from t", -1, &t, 0);
  state("unknown column");
  sqlite3_exec(db, "insert into t values(1,2,3)", 0, 0, 0);
  state("constraint");
  sqlite3_finalize(s);
  state("finalized");
  const char *offsets[] = {"update t set q=1", "insert into t values(1)", "create table t(x)", "alter table t rename column q to r",
    "select * from nosuch", "select a from t where a in (select x from nosuch)", "select 1 from t where b collate nosuch>1",
    "select count(distinct a,b) from t", "select raise(ignore)", "select sum(a) over w from t", "select * from t indexed by q"};
  for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    sqlite3_prepare_v2(db, offsets[i], -1, &s, 0);
    state(offsets[i]);
  }
  sqlite3_prepare_v2(db, "select f(?1),f(1),f(b) from t", -1, &s, 0);
  sqlite3_step(s);
  printf("from parameters %d %d %d\n", sqlite3_column_int(s, 0), sqlite3_column_int(s, 1), sqlite3_column_int(s, 2));
  printf("%d\n", sqlite3_create_function_v2(db, "f", -1, SQLITE_UTF8, 0, f, 0, 0, 0));
  printf("%d\n", sqlite3_create_function_v2(db, "f", -1, SQLITE_UTF16LE, "wide", f, 0, 0, gone));
  sqlite3_finalize(s);
  sqlite3_create_function_v2(db, "f", -1, SQLITE_UTF8, "narrow", f, 0, 0, gone);
  sqlite3_create_function_v2(db, "f", -1, SQLITE_UTF8, "again", f, 0, 0, gone);
  sqlite3_create_collation_v2(db, "k2", SQLITE_UTF8, "none", 0, gone);
  sqlite3_exec(db, "begin", 0, 0, 0);
  sqlite3_exec(db, "begin exclusive", 0, 0, 0);
  state("begin within");
  printf("%d\n", sqlite3_txn_state(db, "main"));
  printf("closed %d\n", sqlite3_close(db));
  sqlite3_open16(u":memory:", &db);
  sqlite3_prepare_v2(db, "select x'41004200'", -1, &s, 0);
  sqlite3_step(s);
  printf("%s %d\n", sqlite3_column_text(s, 0), sqlite3_column_bytes(s, 0));
  sqlite3_finalize(s);
  sqlite3_close(db);
  return 0;
}
