/* Limits on lengths and lists, as they are told when a statement is compiled or run. */
#include "../common.h"

static void limited(int id, int most, const char *const *list) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a, b, c); insert into t values (1, 'abc', x'0102'), (2, 'defghijklmnop', zeroblob(50))");
  sqlite3_limit(db, id, most);
  for (; *list; list++) {
    printf("> %s\n", *list);
    run(db, *list);
  }
  sqlite3_close(db);
}

int main(void) {
  const char *lengths[] = {"select 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
                           "select 1 as aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                           "select length('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') as n",
                           "insert into t values (1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 2)",
                           "select 'aaaaaaaaaa' || 'aaaaa' as x",
                           "select zeroblob(31) as x",
                           0};
  const char *columns[] = {"values (1, 2, 3), (4, 5, 6)", "values (1, 2, 3, 4)", "select a, b, c from t where a = 1",
                           "update t set a = 1, b = 2, c = 3", "update t set a = 1, b = 2, c = 3, a = 4",
                           "update t set (a, b, c, a) = (1, 2, 3, 4)", 0};
  const char *terms[] = {"select 1 union select 2", "values (1) union values (2) union values (3)",
                         "select 1 union select 2 union values (3)", "values (1), (2), (3), (4)",
                         "values (1) union values (2) union select 3", 0};
  limited(SQLITE_LIMIT_LENGTH, 30, lengths);
  limited(SQLITE_LIMIT_COLUMN, 3, columns);
  limited(SQLITE_LIMIT_COMPOUND_SELECT, 2, terms);
  return 0;
}
