/* Pointers of the program as values: they go as arguments into functions, and are NULL to everybody else. */
#include "common.h"

static int there;

static void give(sqlite3_context *c, int n, sqlite3_value **v) {
  (void)n, (void)v;
  sqlite3_result_pointer(c, &there, "place", 0);
}

static void take(sqlite3_context *c, int n, sqlite3_value **v) {
  (void)n;
  sqlite3_result_int(c, sqlite3_value_pointer(v[0], "place") == &there);
}

static void count_step(sqlite3_context *c, int n, sqlite3_value **v) {
  int *sum = sqlite3_aggregate_context(c, sizeof(int));
  (void)n;
  *sum += sqlite3_value_pointer(v[0], "place") == &there ? 1 : 100;
}

static void count_end(sqlite3_context *c) {
  int *sum = sqlite3_aggregate_context(c, 0);
  sqlite3_result_int(c, sum ? *sum : 0);
}

static void plus(sqlite3_context *c, int n, sqlite3_value **v) {
  (void)n;
  sqlite3_result_int(c, sqlite3_value_int(v[0]) + 1);
}

static void show(sqlite3 *db, const char *sql, int bound) {
  sqlite3_stmt *s = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, 0);
  if (rc == SQLITE_OK && bound) sqlite3_bind_pointer(s, 1, &there, "place", 0);
  printf("%s:", sql);
  while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(s); i++) {
      const char *t = (const char *)sqlite3_column_text(s, i);
      printf(" %d/%s", sqlite3_column_type(s, i), t ? t : "NULL");
    }
    printf(";");
    rc = SQLITE_OK;
  }
  printf(" %d %s\n", rc, rc == SQLITE_DONE ? "" : sqlite3_errmsg(db));
  sqlite3_finalize(s);
}

int main(int n, char **argv) {
  sqlite3 *db;
  (void)n, (void)argv;
  sqlite3_open(":memory:", &db);
  sqlite3_create_function(db, "give", 0, SQLITE_UTF8, 0, give, 0, 0);
  sqlite3_create_function(db, "take", 1, SQLITE_UTF8, 0, take, 0, 0);
  show(db, "CREATE TABLE t(a, b NOT NULL DEFAULT 1)", 0);
  show(db, "SELECT take(give()), take(NULL), take(1)", 0);
  show(db, "SELECT take(?)", 1);
  show(db, "SELECT typeof(give()), quote(give()), give() IS NULL, give() || 'x', length(give())", 0);
  show(db, "SELECT typeof(?1), quote(?1), ?1 IS NULL, ?1 || 'x', coalesce(?1, 'none')", 1);
  show(db, "INSERT INTO t(a) SELECT give()", 0);
  show(db, "INSERT INTO t(a) VALUES (give())", 0);
  show(db, "INSERT INTO t(a) VALUES (?)", 1);
  show(db, "INSERT INTO t(a, b) VALUES (1, give())", 0);
  show(db, "INSERT INTO t(a, b) VALUES (1, ?)", 1);
  show(db, "SELECT typeof(a), hex(a), b FROM t", 0);
  show(db, "SELECT count(give()), count(?), group_concat(?1) FROM t", 1);
  show(db, "SELECT max(?), min(give()) FROM t", 1);
  show(db, "CREATE INDEX i ON t(a)", 0);
  show(db, "SELECT count(*) FROM t WHERE a IS ?", 1);
  show(db, "UPDATE t SET a = ?", 1);
  show(db, "SELECT typeof(a) FROM t", 0);
  show(db, "PRAGMA integrity_check", 0);
  /* What is an argument may be known already: as a group's key, in an index, in a window. */
  sqlite3_create_function(db, "plus", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, 0, plus, 0, 0);
  sqlite3_create_function(db, "more", 1, SQLITE_UTF8, 0, plus, 0, 0);
  show(db, "CREATE TABLE u(a, b)", 0);
  show(db, "INSERT INTO u VALUES (1, 2), (1, 3), (2, 5), (3, 1)", 0);
  show(db, "SELECT plus(plus(a)), count(*) FROM u GROUP BY plus(a)", 0);
  show(db, "SELECT plus(more(a)), count(*) FROM u GROUP BY more(a)", 0);
  show(db, "SELECT plus(plus(a)) FROM u GROUP BY plus(a) HAVING plus(plus(a)) <> 4", 0);
  show(db, "SELECT plus(plus(a)), max(b) FROM u GROUP BY plus(a) + 1, plus(a)", 0);
  show(db, "SELECT plus(plus(a)), sum(b) OVER (ORDER BY plus(a)) FROM u", 0);
  show(db, "SELECT plus(max(plus(a))), plus(count(*)), plus(plus(?)) FROM u", 0);
  show(db, "SELECT DISTINCT plus(plus(a)) FROM u ORDER BY plus(plus(a)) DESC", 0);
  show(db, "CREATE INDEX iu ON u(plus(a))", 0);
  show(db, "SELECT plus(plus(a)) FROM u WHERE plus(a) = 2", 0);
  show(db, "SELECT plus(plus(a)) FROM u ORDER BY plus(a)", 0);
  show(db, "SELECT value FROM json_each('[1,2]') WHERE plus(value) = plus(plus(1))", 0);
  /* An aggregate of the program takes them, but not from rows that were kept first. */
  sqlite3_create_function(db, "pointers", 1, SQLITE_UTF8, 0, 0, count_step, count_end);
  show(db, "SELECT pointers(give()), pointers(a), pointers(?) FROM u", 1);
  show(db, "SELECT a, pointers(?) FROM u GROUP BY a", 1);
  show(db, "SELECT a, pointers(?) FILTER (WHERE b > 1) FROM u GROUP BY a", 1);
  show(db, "SELECT pointers(DISTINCT ?) FROM u", 1);
  show(db, "SELECT pointers(p) FROM (SELECT ? AS p, b FROM u ORDER BY b LIMIT 9)", 1);
  sqlite3_close(db);
  return 0;
}
