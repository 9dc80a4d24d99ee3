/* Which arguments of a function are parameters as they were bound, and parameters within the text; keys that are there already in
   full-text tables. */
#include "../common.h"

static void bound(sqlite3_context *c, int n, sqlite3_value **v) {
  char out[40] = "";
  for (int i = 0; i < n; i++) out[i] = sqlite3_value_frombind(v[i]) ? 'b' : '-';
  sqlite3_result_text(c, out, n, SQLITE_TRANSIENT);
}

static void same(sqlite3_context *c, int n, sqlite3_value **v) {
  (void)n;
  sqlite3_result_value(c, v[0]);
}

static void ask(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  printf("%s\n", sql);
  if (sqlite3_prepare_v2(db, sql, -1, &s, 0)) printf("  %s\n", sqlite3_errmsg(db));
  sqlite3_bind_int(s, 1, 77);
  sqlite3_bind_text(s, 2, "text", -1, SQLITE_STATIC);
  while (sqlite3_step(s) == SQLITE_ROW) printf("  %s\n", sqlite3_column_text(s, 0));
  sqlite3_finalize(s);
}

static void fails(sqlite3 *db, const char *sql) {
  int rc = sqlite3_exec(db, sql, 0, 0, 0);
  printf("%s: %d %d %s\n", sql, rc, sqlite3_extended_errcode(db), sqlite3_errmsg(db));
}

int main(void) {
  sqlite3 *db;
  sqlite3_open(":memory:", &db);
  sqlite3_create_function(db, "bound", -1, SQLITE_UTF8, 0, bound, 0, 0);
  sqlite3_create_function(db, "same", 1, SQLITE_UTF8, 0, same, 0, 0);
  run(db, "create table t(a, b); insert into t values(1, 2), (3, 4)");
  ask(db, "select bound(?1, ?2, 3, +?1, ?1 + 0, cast(?2 as integer), likely(?1))");
  ask(db, "select bound(x, y) from (select ?1 as x, ?2 as y)");
  ask(db, "select bound(x) from (select ?1 as x limit 1)");
  ask(db, "select bound(x) from (select ?1 as x union all select ?2)");
  ask(db, "with c(x) as (values(?1), (?2)) select bound(x) from c");
  ask(db, "with c(x) as materialized (select ?1) select bound(x) from c");
  ask(db, "select bound(x) from (select ?1 as x, a from t order by a limit 3)");
  ask(db, "select bound(case a when 1 then ?1 else 3 end) from t");
  ask(db, "select bound(case when a = 1 then b else ?2 end) from t");
  ask(db, "select bound(coalesce(null, ?1), ifnull(?1, 2), iif(1, ?1, 2), nullif(?1, 2))");
  ask(db, "select bound((select ?1), same(?1), abs(?1))");
  ask(db, "select bound(a) from t where a = ?1 - 76");
  ask(db, "insert into t values(?1, ?2) returning bound(a, b)");
  fails(db, "create virtual table f using fts5(a); insert into f(rowid, a) values(1, 'x')");
  fails(db, "insert into f(rowid, a) values(1, 'y')");
  sqlite3_extended_result_codes(db, 1);
  fails(db, "insert into f(rowid, a) values(1, 'y')");
  sqlite3_extended_result_codes(db, 0);
  fails(db, "insert into f(rowid, a) values(1, 'y')");
  run(db, "pragma soft_heap_limit=70000000000; pragma soft_heap_limit=on; pragma soft_heap_limit=0");
  sqlite3_stmt *s = 0;
  sqlite3_prepare_v2(db, "select ?, ?, ?, ?", -1, &s, 0);
  sqlite3_bind_zeroblob(s, 1, 5);
  sqlite3_bind_zeroblob(s, 2, 5);
  sqlite3_bind_blob(s, 2, "\0", 1, SQLITE_STATIC);
  sqlite3_bind_double(s, 3, 123456789012345680.0);
  sqlite3_bind_zeroblob64(s, 4, 0);
  char *text = sqlite3_expanded_sql(s);
  printf("%s\n", text);
  sqlite3_free(text);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 50);
  text = sqlite3_expanded_sql(s);
  printf("%s\n", text ? text : "too long");
  sqlite3_free(text);
  sqlite3_finalize(s);
  const char *type = 0;
  sqlite3_table_column_metadata(db, 0, "f", "rank", &type, 0, 0, 0, 0);
  printf("%s\n", type ? "typed" : "without type");
  sqlite3_close(db);
  return 0;
}
