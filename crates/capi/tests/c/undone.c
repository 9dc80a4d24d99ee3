/* Functions that take the transaction back, as a whole or to a savepoint, while the statement that calls them writes. */
#include "common.h"

static sqlite3 *db;

/* Runs its argument, unless that calls it again. */
static void undo(sqlite3_context *cx, int n, sqlite3_value **v) {
  static int inside;
  (void)n;
  if (inside++ == 0) {
    char *sql = sqlite3_mprintf("%s", sqlite3_value_text(v[0]));
    run(db, sql);
    sqlite3_free(sql);
  }
  inside--;
  sqlite3_result_text(cx, "new", -1, SQLITE_STATIC);
}

static void fails(sqlite3_context *cx, int n, sqlite3_value **v) {
  (void)n;
  (void)v;
  sqlite3_result_error(cx, "it fails", -1);
}

/* Runs SQL on a database of its own; shows what is in it, within the transaction and after it. */
static void fresh(const char *sql) {
  printf("> %s\n", sql);
  db = db_open(":memory:");
  sqlite3_create_function(db, "undo", 1, SQLITE_UTF8, 0, undo, 0, 0);
  sqlite3_create_function(db, "fails", 0, SQLITE_UTF8, 0, fails, 0, 0);
  run(db, "create table t(i integer primary key, x); insert into t values(1,'a'),(2,'b'),(3,'c')");
  run(db, sql);
  printf("auto-commit %d\n", sqlite3_get_autocommit(db));
  run(db, "select group_concat(i || x) from t");
  if (!sqlite3_get_autocommit(db)) run(db, "commit");
  run(db, "select group_concat(i || x) from t; select name from sqlite_schema where name in ('n', 'm'); pragma integrity_check");
  run(db, "insert into t values(90,'z'); update t set x = x || '!'; select count(*) from t where x like '%!'");
  printf("closed %d\n", sqlite3_close(db));
}

#define IN_ROW_1(sql) "case i when 1 then undo('" sql "') when 3 then fails() else x end"

int main(void) {
  /* A statement's changes stay or go together. */
  fresh("savepoint s; insert into t values(7,'q'); update t set x = " IN_ROW_1("rollback to s"));
  fresh("begin; savepoint s; insert into t values(7,'q'); update t set x = " IN_ROW_1("rollback to s"));
  fresh("begin; insert into t values(6,'p'); savepoint s; update t set x = " IN_ROW_1("rollback to s"));
  fresh("begin; insert into t values(6,'p'); update t set x = " IN_ROW_1("rollback"));
  fresh("begin; insert into t values(6,'p'); savepoint s; update t set x = " IN_ROW_1("rollback to s; savepoint r"));
  /* Its table is gone, and its pages are another table's. */
  fresh("begin; create table n(a); insert into n select undo('rollback') from t");
  fresh("savepoint s; create table n(a); insert into n select undo('rollback to s') from t");
  fresh("begin; savepoint s; create table n(a);"
        "insert into n select undo('rollback to s; create table other(a); insert into other values(1)') from t");
  fresh("begin; savepoint s; create table n(a); create index m on n(a);"
        "insert into n select undo('rollback to s; create table other(a); create table more(a)') from t");
  /* Statements that only read go on, and so do those that come later. */
  fresh("begin; savepoint s; insert into t values(7,'q'); select i, x, undo('rollback to s') from t");
  fresh("savepoint s; insert into t values(7,'q'); rollback to s; insert into t values(8,'r'); rollback to s;"
        "insert into t select i + 10, x from t; release s");
  return 0;
}
