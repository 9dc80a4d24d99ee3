/* How deep expressions of each kind may be, at small limits and at the greatest. */
#include "../common.h"

struct form {
  const char *before, *first, *more, *after;
};
static const struct form FORMS[] = {
    {"select ", "a", "+a", " from t"},
    {"select 1 from t where ", "a", " and a", ""},
    {"select 1 from t where ", "a=1", " or a=1", ""},
    {"select ", "a", "||a", " from t"},
    {"select a ", "", "is null ", "from t"},
    {"select ", "", "not ", "a from t"},
    {"select ", "", "- ", "a from t"},
    {"select ", "a", " between 1 and 2", " from t"},
    {"select ", "(a,b)=(1,2)", " and (a,b)=(1,2)", " from t"},
    {"select a from t order by ", "a", "+a", ""},
    {"select ", "a", "+a", " from t union all select 1"},
    {"select * from (select ", "a", "+a", " from t)"},
    {"insert into t values(", "1", "+1", ", 1)"},
    {"update t set a=", "a", "+a", ""},
    {"delete from t where ", "a", "+a", ""},
    {"select count(*) filter (where ", "a", "+a", ") from t"},
    {"select sum(a) over (order by ", "a", "+a", ") from t"},
    {"select a in (", "a", "+a", ") from t"},
};

/* The greatest number of repeats that is allowed, up to `most`. */
static int greatest(sqlite3 *db, const struct form *f, int most) {
  size_t room = strlen(f->before) + strlen(f->first) + strlen(f->after) + most * strlen(f->more) + 1;
  char *sql = malloc(room);
  int n = 0;
  for (int step = 1 << 11; step; step /= 2) {
    if (n + step > most) continue;
    sprintf(sql, "%s%s", f->before, f->first);
    for (int i = 0; i < n + step; i++) strcat(sql, f->more);
    strcat(sql, f->after);
    sqlite3_stmt *s = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &s, 0) == SQLITE_OK) n += step;
    sqlite3_finalize(s);
  }
  free(sql);
  return n;
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a, b)");
  for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
    printf("%s%s%s..%s:", FORMS[i].before, FORMS[i].first, FORMS[i].more, FORMS[i].after);
    for (int limit = 4; limit <= 1000; limit *= limit == 4 ? 5 : 50) {
      sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, limit);
      printf(" %d", greatest(db, &FORMS[i], 1200));
    }
    printf("\n");
  }
  sqlite3_close(db);
  return 0;
}
