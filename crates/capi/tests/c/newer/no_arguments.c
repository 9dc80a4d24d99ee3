/* Functions without arguments and plans without constraints are given arrays all the same. */
#include "../common.h"

static int is_array(const void *p) {
  return (size_t)p > 4096;
}

static void call(sqlite3_context *cx, int n, sqlite3_value **args) {
  sqlite3_result_int(cx, n == 0 && is_array(args));
}

static void finish(sqlite3_context *cx) {
  sqlite3_result_int(cx, *(int *)sqlite3_aggregate_context(cx, sizeof(int)));
}

static void step(sqlite3_context *cx, int n, sqlite3_value **args) {
  *(int *)sqlite3_aggregate_context(cx, sizeof(int)) += n == 0 && is_array(args);
}

static int connect(sqlite3 *db, void *a, int n, const char *const *v, sqlite3_vtab **out, char **e) {
  *out = calloc(1, sizeof **out);
  return sqlite3_declare_vtab(db, "CREATE TABLE t(a)");
}

static int disconnect(sqlite3_vtab *t) {
  free(t);
  return SQLITE_OK;
}

static int best(sqlite3_vtab *t, sqlite3_index_info *i) {
  printf("%d %d: %d %d\n", i->nConstraint, i->nOrderBy, is_array(i->aConstraint), is_array(i->aConstraintUsage));
  return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *t, sqlite3_vtab_cursor **c) {
  *c = calloc(1, sizeof **c);
  return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *c) {
  free(c);
  return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *c, int n, const char *s, int count, sqlite3_value **args) {
  printf("filter %d: %d\n", count, is_array(args));
  return SQLITE_OK;
}

static int nothing(sqlite3_vtab_cursor *c) {
  return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *c) {
  return 1;
}

static int column(sqlite3_vtab_cursor *c, sqlite3_context *cx, int n) {
  return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *id) {
  return SQLITE_OK;
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_module m = {0, connect, connect, best, disconnect, disconnect, open_cursor, close_cursor, filter, nothing, at_end, column, rowid};
  sqlite3_create_function(db, "f", -1, SQLITE_UTF8, 0, call, 0, 0);
  sqlite3_create_function(db, "g", -1, SQLITE_UTF8, 0, 0, step, finish);
  sqlite3_create_module(db, "m", &m, 0);
  run(db, "SELECT f(), g(); CREATE VIRTUAL TABLE t USING m; SELECT * FROM t");
  sqlite3_close(db);
}
