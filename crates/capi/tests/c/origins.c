/* Where the columns of RETURNING are said to come from. */
#include "common.h"

static void tell(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, 0);
  printf("%s\n  %d", sql, rc);
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    const char *d = sqlite3_column_database_name(s, i), *t = sqlite3_column_table_name(s, i);
    const char *c = sqlite3_column_origin_name(s, i);
    printf(" %s=%s.%s.%s", sqlite3_column_name(s, i), d ? d : "-", t ? t : "-", c ? c : "-");
  }
  printf("\n");
  sqlite3_finalize(s);
}

int main(int argc, char **argv) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a, b); attach ':memory:' as other; create table other.o(a); create temp table p(a, b)");
  tell(db, "insert into t values(1, 2) returning a, b, rowid");
  tell(db, "insert into temp.p values(1, 2) returning a, b, a + 1, rowid");
  tell(db, "update p set a = 1 returning a, *");
  tell(db, "delete from other.o returning a");
  tell(db, "insert into other.o values(1) returning *");
  tell(db, "delete from t returning a");
  sqlite3_close(db);
  return 0;
}
