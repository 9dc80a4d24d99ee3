/* A NUL stands behind blobs that are read from a table, an index or a sorter, and they are aligned: some programs read as text,
   or as an array of numbers, what they have stored so. */
#include "../common.h"

static void argument(sqlite3_context *c, int n, sqlite3_value **v) {
  const char *text = sqlite3_value_blob(v[0]);
  sqlite3_result_int(c, text ? (int)strlen(text) : -1);
}

static void read_all(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &s, 0)) printf("%s\n", sqlite3_errmsg(db));
  printf("%s\n", sql);
  while (sqlite3_step(s) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(s); i++) {
      const char *text = sqlite3_column_blob(s, i);
      int same = text == sqlite3_column_blob(s, i);
      printf(" %.20s", text ? text : "none");
      if (text) printf("(%d of %d, same %d, aligned %d)", (int)strlen(text), sqlite3_column_bytes(s, i), same, (size_t)text % 8 == 0);
    }
    printf("\n");
  }
  sqlite3_finalize(s);
}

int main(int argc, char **argv) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_create_function(db, "argument", 1, SQLITE_UTF8, 0, argument, 0, 0);
  run(db, "create table t(id integer primary key, a blob, b text, c blob); create index i on t(a, c);"
          "insert into t values(1, cast('abc' as blob), 'behind', x'6162'), (2, x'66006566', 'x', x''), (3, x'', 'y', x'7a');"
          "insert into t values(4, x'41', 'far', cast(printf('%.5000c', 'p') as blob)), (5, cast(printf('%.300000c', 'q') as blob), 'end', x'61')");
  read_all(db, "select a, c from t");
  read_all(db, "select c, a from t where id = 1");
  read_all(db, "select a, c from t indexed by i where a > x'40' and a < x'62'");
  read_all(db, "select c, b, a from t order by c, b");
  read_all(db, "select distinct a from t where id < 4");
  read_all(db, "select max(a), c from t group by id < 3");
  run(db, "select id, argument(a), argument(c) from t");
  sqlite3_close(db);
  return 0;
}
