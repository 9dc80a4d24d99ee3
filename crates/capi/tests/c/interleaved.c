/* Statements that write, begun before others and ended after them: one that fails takes back what it did alone. */
#include "common.h"

static sqlite3 *db;

static sqlite3_stmt *begin(const char *sql) {
  sqlite3_stmt *s = 0;
  sqlite3_prepare_v2(db, sql, -1, &s, 0);
  printf("begins %d %s\n", sqlite3_step(s), sql);
  return s;
}

static void end(sqlite3_stmt *s) {
  int rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {}
  printf("ends %d %s\n", rc, sqlite3_sql(s));
  run(db, "select count(*), sum(b) from t");
}

static void open_filled(const char *first) {
  printf("> %s\n", first);
  db = db_open(":memory:");
  run(db, "create table t(i integer primary key, a, b)");
  run(db, "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20) insert into t select i, i % 5, i % 7 from n");
  run(db, first);
}

int main(void) {
  static const char *first[] = {"select 1", "begin", "savepoint s"};
  for (int k = 0; k < 3; k++) {
    open_filled(first[k]);
    sqlite3_stmt *a = begin("insert into t(a, b) select a, b from t where i < 5 returning i");
    sqlite3_stmt *b = begin("update t set b = b + 1 where a = 0 returning i");
    sqlite3_stmt *c = begin("update t set b = b + 1 where a = 2 returning i");
    sqlite3_stmt *d = begin("delete from t where a = 1 returning i");
    sqlite3_finalize(c);
    end(b);
    run(db, "create table z(x)");
    sqlite3_stmt *e = begin("insert into t(a, b) select a, b from t where i < 5 returning i");
    end(d);
    run(db, "drop table z");
    run(db, "insert into t(i) values(1000), (3)");
    run(db, "select count(*), sum(b) from t");
    end(a);
    run(db, "insert into t(i) values(1000), (3)");
    end(e);
    run(db, "insert into t(i) values(1000), (3)");
    run(db, "select count(*), sum(b) from t; pragma integrity_check");
    sqlite3_finalize(a);
    sqlite3_finalize(b);
    sqlite3_finalize(d);
    sqlite3_finalize(e);
    printf("auto-commit %d\n", sqlite3_get_autocommit(db));
    printf("closed %d\n", sqlite3_close(db));
  }
  return 0;
}
