/* What the values of a changed row answer for columns that it does not have: another code than in older versions. */
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include "../common.h"

static void before(void *p, sqlite3 *db, int op, const char *d, const char *t, sqlite3_int64 from, sqlite3_int64 to) {
  (void)p, (void)d, (void)t, (void)from, (void)to;
  sqlite3_value *v = 0;
  int n = sqlite3_preupdate_count(db);
  for (int i = -1; i <= n; i++)
    printf("op %d column %d: old %d new %d\n", op, i, sqlite3_preupdate_old(db, i, &v), sqlite3_preupdate_new(db, i, &v));
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_preupdate_hook(db, before, 0);
  run(db, "create table t(id integer primary key, a); insert into t values(1, 'x'); update t set a = 'y'; delete from t");
  sqlite3_close(db);
  return 0;
}
