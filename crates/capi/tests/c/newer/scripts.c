/* Scripts of many statements, prepared one after the other: what is told of each, and where the next begins. */
#include "../common.h"

static void said(sqlite3 *db, int rc) {
  printf("%d %d", rc, sqlite3_extended_errcode(db));
  printf(" %s\n", sqlite3_errmsg(db));
}

static unsigned through(sqlite3 *db, const char *script, int counted) {
  unsigned sum = 0, statements = 0;
  const char *rest = script;
  while (*rest) {
    sqlite3_stmt *s = 0;
    const char *next = 0;
    int n = counted == 0 ? -1 : (int)strlen(rest) + (counted == 2);
    int rc = sqlite3_prepare_v2(db, rest, n, &s, &next);
    if (rc != SQLITE_OK) {
      printf("%d at %ld: %s, offset %d\n", rc, (long)(rest - script), sqlite3_errmsg(db), sqlite3_error_offset(db));
      if (next == rest) break;
    }
    const char *own = s ? sqlite3_sql(s) : "";
    sum = sum * 31 + (unsigned)(next - script) + (unsigned)strlen(own);
    statements += s != 0;
    while (s && sqlite3_step(s) == SQLITE_ROW) sum = sum * 31 + (unsigned)sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    rest = next;
  }
  printf("%u statements, %u\n", statements, sum);
  return sum;
}

static void script(sqlite3 *db) {
  static char text[200000];
  char *at = text;
  static const char *const pieces[] = {
      "select %d;", "select %d /* ; */, ';', \"a;\" from (select 1 as \"a;\") -- ; no\n;", " ;; ;\n", "select length('%0*d') as [;];",
      "explain query plan select %d;", "create temp trigger if not exists t%d after insert on t begin select ';'; select case 1 when 1 then 2 end; end;",
      "drop trigger t%d;", "-- words; %d\n", "select $a(;), :b, @c, '%0*d;';", "values(%d);", "select none%d;", "with x(y) as (select '%0*d') select y from x;",
      "insert or ignore into t values('it''s; %d');", "select %d from; select 1;", "/* ; %d */", "  select `;`, %d from (select 1 as `;`)\n\t;"};
  for (int i = 0; i < 400; i++) {
    const char *p = pieces[i * 7 % (int)(sizeof pieces / sizeof *pieces)];
    int wide = i % 5 == 0 ? 900 + i : 10;
    at += strstr(p, "%0*d") ? sprintf(at, p, wide, i) : sprintf(at, p, i);
  }
  strcpy(at, "select 'open ; ");
  for (int counted = 0; counted < 3; counted++) through(db, text, counted);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 2000);
  for (int counted = 0; counted < 3; counted++) {
    sqlite3_stmt *s = 0;
    int n = counted == 0 ? -1 : (int)strlen(text) + (counted == 2);
    said(db, sqlite3_prepare_v2(db, text, n, &s, 0));
    sqlite3_finalize(s);
  }
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 1000000000);
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a unique); insert into t values(1)");
  script(db);
  printf("closed %d\n", sqlite3_close(db));
  return 0;
}
