/* Bytes that are not UTF-8 in the text of statements: literals, names, errors, offsets. */
#include "common.h"

static void show(const char *what, const char *text) {
  printf("%s:", what);
  for (; text && *text; text++) {
    if ((unsigned char)*text >= 128) printf("<%02X>", (unsigned char)*text);
    else printf("%c", *text);
  }
  printf("\n");
}

static void query(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  const char *tail = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, &tail);
  if (rc) {
    printf("error %d at %d ", rc, sqlite3_error_offset(db));
    show("message", sqlite3_errmsg(db));
    return;
  }
  if (tail) show("tail", tail);
  show("sql", sqlite3_sql(s));
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    show("name", sqlite3_column_name(s, i));
    show("table", sqlite3_column_table_name(s, i));
  }
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(s); i++) show("value", (const char *)sqlite3_column_text(s, i));
  }
  if (rc != SQLITE_DONE) {
    printf("error %d ", sqlite3_extended_errcode(db));
    show("message", sqlite3_errmsg(db));
  }
  sqlite3_finalize(s);
}

int main(int argc, char **argv) {
  (void)argc;
  const char *name = scratch(argv, "bytes.db");
  sqlite3 *db = db_open(name);
  query(db, "select hex('k\xe0v'), length('k\xe0v'), 'k\xe0v' as \"c\xe9\" ; select '\xff'");
  query(db, "create table \"t\xe9\"(\"a\xff\" TEXT default 'd\xe0', b check(b <> 'x\xe1'))");
  query(db, "insert into \"t\xe9\"(b) values('k\xe0v')");
  query(db, "insert into t\xe9(b) values('x\xe1')");
  query(db, "create index \"i\xe9\" on t\xe9(b) where b > '\x80'");
  query(db, "create view v\xe0 as select a\xff from t\xe9");
  query(db, "create trigger tr\xe0 after delete on t\xe9 begin select raise(abort, 'no\xe0'); end");
  query(db, "select a\xff, b, hex(b) from t\xe9");
  query(db, "select * from v\xe0");
  query(db, "delete from t\xe9");
  query(db, "select nosuch\xe0 from t\xe9");
  query(db, "select '\xe0', nosuch from t\xe9");
  query(db, "select '\xe0' syntax error");
  query(db, "select type, name, tbl_name, hex(sql) from sqlite_schema");
  query(db, "pragma table_info(t\xe9)");
  query(db, "pragma index_list(t\xe9)");
  query(db, "alter table t\xe9 rename to u\xe8");
  query(db, "alter table u\xe8 add column c\xe7 default '\xe7'");
  query(db, "alter table u\xe8 rename column b to b\xe6");
  query(db, "select *, hex(c\xe7) from u\xe8 where b\xe6 = 'k\xe0v'");
  query(db, "select hex(sql) from sqlite_schema where type = 'table'");
  /* Characters by which such bytes might be carried. */
  query(db, "select '\xf4\x8f\xbe\x80', hex('\xf4\x8f\xbf\xbf\xe0'), hex('\xf4\x8f'), hex('\xf4')");
  query(db, "create table \"p\xf4\x8f\xbe\x80\"(a); insert");
  query(db, "select name from sqlite_schema where name glob 'p*'");
  /* A bound text finds what a literal stored. */
  sqlite3_stmt *s;
  sqlite3_prepare_v2(db, "select count(*) from u\xe8 where b\xe6 = ?1 and b\xe6 = 'k\xe0v' and ?1 = :n\xe0", -1, &s, 0);
  sqlite3_bind_text(s, 1, "k\xe0v", -1, SQLITE_STATIC);
  show("parameter", sqlite3_bind_parameter_name(s, 2));
  printf("%d\n", sqlite3_bind_parameter_index(s, ":n\xe0"));
  sqlite3_bind_text(s, 2, "k\xe0v", -1, SQLITE_STATIC);
  printf("%d ", sqlite3_step(s));
  printf("%d\n", sqlite3_column_int(s, 0));
  char *expanded = sqlite3_expanded_sql(s);
  show("expanded", expanded);
  sqlite3_free(expanded);
  sqlite3_finalize(s);
  printf("%d\n", sqlite3_complete("select '\xe0';"));
  char *q = sqlite3_mprintf("attach ':memory:' as \"m\xe9\"");
  query(db, q);
  sqlite3_free(q);
  show("database", sqlite3_db_name(db, 2));
  query(db, "create table m\xe9.t(a)");
  sqlite3_close(db);
  db = db_open(scratch(argv, "bytes.db"));
  query(db, "select hex(b\xe6) from u\xe8; pragma integrity_check");
  run(db, "pragma integrity_check");
  sqlite3_close(db);
  return 0;
}
