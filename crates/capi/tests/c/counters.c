/* What statements and connections count, and progress handlers, which are asked by what statements count. */
#include "common.h"

static int count(sqlite3_stmt *s, int which, int reset) { return sqlite3_stmt_status(s, which, reset); }

static void status(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s;
  if (sqlite3_prepare_v2(db, sql, -1, &s, 0)) {
    printf("%s\n", sqlite3_errmsg(db));
    return;
  }
  for (int i = 0; i < 2; i++) {
    while (sqlite3_step(s) == SQLITE_ROW);
    printf("%s: whole %d sorts %d automatic %d instructions %d runs %d\n", sql, count(s, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0),
           count(s, SQLITE_STMTSTATUS_SORT, 0), count(s, SQLITE_STMTSTATUS_AUTOINDEX, 0) > 0, count(s, SQLITE_STMTSTATUS_VM_STEP, 0) > 0,
           count(s, SQLITE_STMTSTATUS_RUN, 0));
    sqlite3_reset(s);
  }
  printf("  set back from %d", count(s, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1));
  printf(" to %d, memory %d, none %d\n", count(s, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1), count(s, SQLITE_STMTSTATUS_MEMUSED, 0) > 0,
         count(s, SQLITE_STMTSTATUS_REPREPARE, 0));
  sqlite3_finalize(s);
}

static void of_connection(sqlite3 *db) {
  int now, high;
  for (int i = 0; i <= 12; i++) {
    now = high = -1;
    int rc = sqlite3_db_status(db, i, &now, &high, 0);
    if (i == SQLITE_DBSTATUS_CACHE_HIT) now = now >= 0;
    printf("connection %d: %d %d %d\n", i, rc, now > 0, high);
  }
  printf("%d\n", sqlite3_db_status(db, 99, &now, &high, 0));
  sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_WRITE, &now, &high, 1);
  sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_WRITE, &now, &high, 0);
  printf("set back to %d\n", now);
}

static int asked, most;
static int progress(void *p) {
  (void)p;
  return ++asked > most;
}

static void progressing(sqlite3 *db) {
  const char *list[] = {"select 1", "insert into t values(1, 1)", "begin", "commit", "pragma user_version", "explain query plan select 1"};
  for (most = 0; most < 2000000; most += 1000000) {
    for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
      asked = 0;
      sqlite3_progress_handler(db, 1, progress, 0);
      run(db, list[i]);
      printf("%s: %s\n", list[i], asked ? "asked" : "not asked");
    }
  }
  for (int n = 1; n <= 1000; n *= 10) {
    asked = 0;
    sqlite3_progress_handler(db, n, progress, 0);
    run(db, "with recursive c(x) as (values(1) union all select x+1 from c where x<1000) select count(*) from c");
    /* 17,015 instructions in one version. */
    printf("every %d: %s\n", n, asked > 8000 / n && asked < 40000 / n ? "about right" : "wrong");
  }
  /* Who wants to be asked once in a million is not asked by a short statement, whatever it does. */
  const char *brief[] = {"select count(*) from (select 1 as a union select 2) as x, (select 2 as b union select 3) as y where a = b",
                         "select count(*) from t as x join t as y on +x.a = y.b", "select max(n) from (select row_number() over (order by a) as n from t)",
                         "create index brief on t(b, a)", "drop index brief", "pragma integrity_check"};
  for (unsigned i = 0; i < sizeof brief / sizeof *brief; i++) {
    asked = most = 0;
    sqlite3_progress_handler(db, 1000000, progress, 0);
    run(db, brief[i]);
    printf("%s: %s\n", brief[i], asked ? "asked" : "not asked");
  }
  sqlite3_progress_handler(db, 0, 0, 0);
  asked = 0;
  run(db, "select count(*) from t");
  printf("asked %d\n", asked);
}

/* How many rows were read one after the other by statements that differ in their literals: an index that holds some rows alone is
   found by those that it fits, whoever came before. */
static void literals(sqlite3 *db) {
  run(db, "create index few on t(a) where b > 90; create index lower on u(lower(b))");
  const char *forms[] = {"select a from t where b > %d", "select a from u where b > %d and a > 3", "delete from u where a = %d and b < 3",
                         "select a from u where lower(b) = '%d'", "select t.a from t join u on t.a = u.b where u.a = %d and t.b < 50"};
  for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
    for (int k = 88; k < 94; k++) {
      char sql[200];
      sqlite3_stmt *s;
      snprintf(sql, sizeof sql, forms[i], k);
      sqlite3_prepare_v2(db, sql, -1, &s, 0);
      int rows = 0;
      while (sqlite3_step(s) == SQLITE_ROW) rows++;
      printf("%s: rows %d whole %d\n", sql, rows, count(s, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0));
      sqlite3_finalize(s);
    }
  }
}

int main(int argc, char **argv) {
  (void)argc;
  sqlite3 *db = db_open(scratch(argv, "counters.db"));
  run(db, "create table t(a, b); create table u(a, b); create index i on u(a);"
          "with recursive c(x) as (values(1) union all select x+1 from c where x < 100) insert into t select x, x from c; insert into u select * from t");
  const char *list[] = {"select * from t", "select * from t order by b", "select * from u order by a", "select * from u where a > 50",
                        "select * from t where rowid = 5", "select count(*) from t", "select sum(a) from t", "select max(a) from u",
                        "select * from t where a = 5", "select b, count(*) from t group by b", "update t set b = b + 1", "select 1",
                        "pragma user_version"};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) status(db, list[i]);
  sqlite3_stmt *s;
  sqlite3_prepare_v2(db, "select x.a from t x, t y where x.a = y.b", -1, &s, 0);
  while (sqlite3_step(s) == SQLITE_ROW);
  printf("automatic %d\n", count(s, SQLITE_STMTSTATUS_AUTOINDEX, 0) > 0);
  sqlite3_finalize(s);
  sqlite3_prepare_v2(db, "select * from t", -1, &s, 0);
  sqlite3_step(s);
  sqlite3_reset(s);
  run(db, "create table z(q)");
  sqlite3_step(s);
  printf("prepared again %d, runs %d\n", count(s, SQLITE_STMTSTATUS_REPREPARE, 0), count(s, SQLITE_STMTSTATUS_RUN, 0));
  of_connection(db);
  sqlite3_finalize(s);
  progressing(db);
  literals(db);
  printf("closed %d\n", sqlite3_close(db));
  return 0;
}
