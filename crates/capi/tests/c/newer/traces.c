/* What traces and the log of errors are told: statements of triggers, too. */
#include "../common.h"

static void plain(void *p, const char *text) { printf("  %s: %s\n", (char *)p, text); }
static int full(unsigned kind, void *user, void *p, void *x) {
  (void)user;
  if (kind == SQLITE_TRACE_STMT) printf("  statement %s, of %s\n", (char *)x, sqlite3_sql(p));
  if (kind == SQLITE_TRACE_PROFILE) printf("  profile %s\n", sqlite3_sql(p));
  if (kind == SQLITE_TRACE_ROW) printf("  row\n");
  if (kind == SQLITE_TRACE_CLOSE) printf("  close\n");
  return 0;
}
static void told(void *p, int code, const char *text) {
  /* Texts are each library's own, but for those of programs. */
  printf("  log %s %d %s\n", (char *)p, code, code == 4711 ? text : text && *text ? "says why" : "says nothing");
}

int main(void) {
  printf("log %d\n", sqlite3_config(SQLITE_CONFIG_LOG, told, "L"));
  sqlite3 *db = db_open(":memory:");
  sqlite3_log(4711, "%d and %s", 7, "text");
  run(db, "create table t(a, b); create table log(x); create trigger first after insert on t begin insert into log values(new.a); select 1; end");
  run(db, "create trigger \"second one\" after insert on log when new.x > 1 begin\n  delete from log\n where x = 0;\tupdate log set x = x + 0 where x = 2; end");
  sqlite3_trace(db, plain, "T");
  run(db, "insert into t values(1, x'00ff'); insert into t values(2, 3); -- end");
  sqlite3_trace_v2(db, 15, full, 0);
  run(db, "insert into t values(2, 3); select a from t; explain query plan select 1; delete from t");
  run(db, "select * from nosuch");
  sqlite3_trace_v2(db, 0, 0, 0);
  run(db, "insert into t values(5, 5); create table u(a unique); insert into u values(1)");
  run(db, "insert into u values(1)");
  sqlite3_trace_v2(db, SQLITE_TRACE_CLOSE, full, 0);
  sqlite3_close(db);
  printf("log %d\n", sqlite3_config(SQLITE_CONFIG_LOG, NULL, NULL));
  db = db_open(":memory:");
  run(db, "select * from nosuch");
  printf("late %d\n", sqlite3_config(SQLITE_CONFIG_SERIALIZED));
  sqlite3_close(db);
  return 0;
}
