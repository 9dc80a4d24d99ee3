/* The digits of reals as texts: a setting of each connection. */
#include "../common.h"

static void show(sqlite3 *db) {
  run(db, "select 0.1 + 0.2, 1 / 3.0, 1e300 / 7, 123456789.0, 1234567890123456.0");
  run(db, "select cast(1 / 3.0 as text), 1 / 3.0 || '', quote(1 / 3.0), json_array(1 / 3.0), printf('%s %g', 1 / 3.0, 1 / 3.0), length(1 / 3.0), hex(1 / 3.0)");
  run(db, "select r, cast(r as text), group_concat(r, ' ') from t group by r");
  run(db, "select sum(length(r)), max(r || '') from t");
}

int main(void) {
  sqlite3 *db = db_open(":memory:"), *other = db_open(":memory:");
  const char *made = "create table t(r real); insert into t values(0.1), (2.0 / 3), (1e22), (1e-7 / 3), (-1.1 * 1.1)";
  run(db, made);
  run(other, made);
  show(db);
  int list[] = {15, 4, 3, 23, 40, 0, -1, 17};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
    int now = 0;
    int rc = sqlite3_db_config(db, SQLITE_DBCONFIG_FP_DIGITS, list[i], &now);
    printf("set %d: %d, now %d\n", list[i], rc, now);
    show(db);
    run(other, "select 1 / 3.0, cast(1 / 3.0 as text)");
  }
  sqlite3_close(db);
  db = db_open(":memory:");
  run(db, "select 1 / 3.0");
  sqlite3_close(db);
  sqlite3_close(other);
  return 0;
}
