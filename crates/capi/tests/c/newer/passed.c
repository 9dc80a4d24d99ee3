/* Pointers that go through a row to the program itself. */
#include "../common.h"

static int there, destroyed;

static void destroy(void *p) {
  destroyed += p == &there;
}

static void give(sqlite3_context *c, int n, sqlite3_value **v) {
  (void)n, (void)v;
  sqlite3_result_pointer(c, &there, "place", destroy);
}

static void show(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, 0);
  if (rc == SQLITE_OK && sqlite3_bind_parameter_count(s)) sqlite3_bind_pointer(s, 1, &there, "place", destroy);
  printf("%s:", sql);
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(s); i++) {
      sqlite3_value *v = sqlite3_column_value(s, i);
      printf(" %d", sqlite3_column_type(s, i));
      printf(" %d%d", sqlite3_value_pointer(v, "place") == &there, sqlite3_value_pointer(v, "other") == 0);
      printf(" %d %d %d", sqlite3_value_type(v), sqlite3_column_bytes(s, i), sqlite3_column_blob(s, i) == 0);
      sqlite3_value *copy = sqlite3_value_dup(v);
      printf(" %d %d;", sqlite3_value_type(copy), sqlite3_value_pointer(copy, "place") == 0);
      sqlite3_value_free(copy);
    }
  }
  printf(" %d\n", rc);
  sqlite3_finalize(s);
  printf("destroyed: %d\n", destroyed);
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_create_function(db, "give", 0, SQLITE_UTF8, 0, give, 0, 0);
  run(db, "create table t(a); insert into t values(1), (2)");
  show(db, "select ?1, a, ?1 from t");
  show(db, "select ?1");
  show(db, "select ?1 limit 1 offset 0");
  show(db, "select give(), 1");
  show(db, "select a, give() from t");
  show(db, "insert into t values(3) returning a");
  show(db, "create table u as select ?1 as p");
  run(db, "select typeof(p) from u");
  sqlite3_close(db);
  return 0;
}
