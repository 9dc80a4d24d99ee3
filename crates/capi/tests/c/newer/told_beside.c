/* What hooks and the authorizer are told of the engine's own work, how trace and profile callbacks displace each other, and what FTS5 counts. */
#include "../common.h"

static int hears;

static void before(void *p, sqlite3 *db, int op, const char *schema, const char *table, sqlite3_int64 from, sqlite3_int64 to) {
  sqlite3_value *v;
  (void)p;
  if (!hears) return;
  printf("  before %d %s.%s %lld %lld blob %d", op, schema, table, from, to, sqlite3_preupdate_blobwrite(db));
  int rc = op == SQLITE_INSERT ? sqlite3_preupdate_old(db, 0, &v) : sqlite3_preupdate_new(db, 99, &v);
  printf(" %d %s\n", rc, sqlite3_errmsg(db));
}

static int ask(void *p, int what, const char *a, const char *b, const char *c, const char *d) {
  (void)p;
  if (hears) printf("  ask %d %s %s %s %s\n", what, a ? a : "-", b ? b : "-", c ? c : "-", d ? d : "-");
  return SQLITE_OK;
}

static void traced(void *p, const char *sql) { printf("  %s: %s\n", (char *)p, sql); }
static void profiled(void *p, const char *sql, sqlite3_uint64 ns) { printf("  %s: %s %d\n", (char *)p, sql, ns < 1000000000000); }
static int traced_v2(unsigned what, void *p, void *s, void *x) {
  (void)s, (void)x;
  printf("  %s: %u\n", (char *)p, what);
  return 0;
}

static void say(sqlite3 *db, const char *sql) {
  printf("%s\n", sql);
  run(db, sql);
  printf("  changes %d\n", sqlite3_total_changes(db));
}

int main(int argc, char **argv) {
  (void)argc, (void)argv;
  sqlite3 *db = db_open(":memory:");
  sqlite3_preupdate_hook(db, before, 0);
  hears = 1;
  run(db, "create table t(a, b); insert into t values(1, 2), (1, 3)");
  run(db, "create index ta on t(a); create index tb on t(b)");
  say(db, "analyze");
  say(db, "analyze");
  say(db, "analyze tb");
  say(db, "drop index ta");
  hears = 0;
  run(db, "create virtual table f using fts5(x)");
  run(db, "create virtual table g using fts5(x, content='t')");
  hears = 1;
  say(db, "insert into f values('one two')");
  say(db, "insert into f(f, rank) values('pgsz', 64)");
  say(db, "insert into f(f) values('rebuild')");
  hears = 0;
  say(db, "insert into g(x) values('three')");
  sqlite3_preupdate_hook(db, 0, 0);
  sqlite3_set_authorizer(db, ask, 0);
  hears = 1;
  say(db, "create index if not exists tb on t(b)");
  say(db, "with recursive q(n) as (select 1 union all select n + 1 from q where n < 2) select * from q");
  say(db, "select name from pragma_table_info('t')");
  sqlite3_set_authorizer(db, 0, 0);
  sqlite3_trace(db, traced, "trace");
  run(db, "select 1");
  sqlite3_profile(db, profiled, "profile");
  run(db, "select 2");
  sqlite3_trace(db, traced, "trace");
  run(db, "select 3");
  sqlite3_trace_v2(db, SQLITE_TRACE_STMT, traced_v2, "trace_v2");
  run(db, "select 4");
  sqlite3_profile(db, profiled, "profile");
  run(db, "select 5");
  sqlite3_trace_v2(db, SQLITE_TRACE_STMT, traced_v2, "trace_v2");
  run(db, "select 6");
  sqlite3_close(db);
  return 0;
}
