/* The limit on nesting, where errors stand, and odd arguments of functions for texts. */
#include "../common.h"

/* Nested as deep as the limit lets: a small one counts as what the parser begins with. */
static void nesting(void) {
  sqlite3 *db = db_open(":memory:");
  int limits[] = {0, 1, 50, 100};
  for (int i = 0; i < 4; i++) {
    sqlite3_limit(db, SQLITE_LIMIT_PARSER_DEPTH, limits[i]);
    run(db, "select ((((1)))), abs(abs(abs(2))), (select (select (select 3)))");
    run(db, "select * from (select * from (select * from (select * from (select 4))))");
  }
  run(db, "select * from (select * from (select * from (select * from (select * from (select * from (select * from (select * from (select * from"
          "(select * from (select * from (select * from (select 5))))))))))))");
  run(db, "select (select (select (select (select (select (select (select (select (select (select (select (select (select (select (select 6)))))))))))))))");
  sqlite3_close(db);
}

/* Where the name stands of what may not reach another database. */
static void elsewhere(void) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a); attach ':memory:' as x; create table x.u(b)");
  const char *list[] = {"create view main.v as select * from x.u", "create  view  \"main\" . \"q v\" as select * from x.u",
                        "create trigger main.tr after insert on x.u begin select 1; end", "create trigger tr after insert on t begin select * from x.u; end"};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
    run(db, list[i]);
    printf("at %d\n", sqlite3_error_offset(db));
  }
  sqlite3_close(db);
}

/* A percent sign stays one, also where it is to escape; a text is not cut to less than nothing. */
static void texts(void) {
  printf("%d %d %d\n", sqlite3_strlike("A%", "abc", '%') != 0, sqlite3_strlike("%b%", "abc", '%') != 0, sqlite3_strlike("%", "", '%') != 0);
  sqlite3_str *s = sqlite3_str_new(0);
  sqlite3_str_appendall(s, "abc");
  sqlite3_str_truncate(s, -1);
  printf("%d\n", sqlite3_str_length(s));
  sqlite3_free(sqlite3_str_finish(s));
}

/* A table never gets more columns than may be read of it. */
static void columns(void) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a, b, c)");
  sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 6);
  run(db, "alter table t add d; alter table t add e; alter table t add f as (a)");
  run(db, "alter table t add g");
  run(db, "alter table t add a");
  run(db, "alter table t drop c; alter table t add g");
  sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 2000);
  run(db, "select count(*) from pragma_table_xinfo('t')");
  sqlite3_close(db);
}

int main(void) {
  columns();
  nesting();
  elsewhere();
  texts();
  return 0;
}
