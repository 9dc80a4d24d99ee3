/* Switches of a connection, statements that explain, pages given back at commits, links, texts built piece by piece. */
#include "../common.h"

static void set(sqlite3 *db, int op, int v) {
  int out = -7, rc = sqlite3_db_config(db, op, v, &out);
  printf(" %d:%d", rc, out);
}

static unsigned half(void *p, const char *schema, unsigned pages, unsigned free_pages, unsigned size) {
  printf("  %s %s: %u pages, %u free, %u bytes\n", (char *)p, schema, pages, free_pages, size);
  return free_pages / 2;
}
static void gone(void *p) { printf("  %s is let go\n", (char *)p); }

static void explains(sqlite3 *db) {
  sqlite3_stmt *s;
  run(db, "create table e(a, b); create index ea on e(a); insert into e values(1, 2), (3, 4)");
  sqlite3_prepare_v2(db, "select b from e where a = ?", -1, &s, 0);
  sqlite3_bind_int(s, 1, 3);
  for (int mode = -1; mode < 4; mode++) {
    int rc = sqlite3_stmt_explain(s, mode);
    printf("explain %d: %d, is %d, columns %d\n", mode, rc, sqlite3_stmt_isexplain(s), sqlite3_column_count(s));
    if (rc || mode < 0) continue;
    printf("  step %d", sqlite3_step(s));
    if (mode != 1) printf(" %s", sqlite3_column_text(s, mode == 2 ? 3 : 0));
    printf(", busy %d", sqlite3_stmt_explain(s, 0));
    printf(", reset %d\n", sqlite3_reset(s));
  }
  sqlite3_stmt_explain(s, 2);
  run(db, "drop index ea");
  printf("step %d %s\n", sqlite3_step(s), sqlite3_column_text(s, 3));
  sqlite3_finalize(s);
  sqlite3_prepare_v2(db, "explain query plan select b from e", -1, &s, 0);
  printf("was %d, set %d", sqlite3_stmt_isexplain(s), sqlite3_stmt_explain(s, 0));
  printf(", step %d %d\n", sqlite3_step(s), sqlite3_column_int(s, 0));
  sqlite3_finalize(s);
}

int main(int argc, char **argv) {
  (void)argc;
  static char name[4200], text[4400];
  strcpy(name, scratch(argv, "pages.db"));
  sqlite3 *db = db_open(":memory:");
  for (int op = SQLITE_DBCONFIG_ENABLE_FKEY; op <= SQLITE_DBCONFIG_FP_DIGITS + 1; op++) {
    /* Whether extensions may be loaded at first is the builder's choice. */
    if (op == SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION || op == SQLITE_DBCONFIG_STMT_SCANSTATUS) continue;
    printf("switch %d:", op);
    for (int i = 0; i < 5; i++) set(db, op, (int[]){-1, 1, -1, 0, -1}[i]);
    printf("\n");
  }
  sqlite3_close(db);
  db = db_open(":memory:");
  printf("name %d\n", sqlite3_db_config(db, SQLITE_DBCONFIG_MAINDBNAME, "haupt"));
  run(db, "create table haupt.t(a); select name from main.sqlite_schema; pragma database_list; pragma haupt.table_list(t)");
  printf("%s %d\n", sqlite3_db_name(db, 0), sqlite3_table_column_metadata(db, "haupt", "t", "a", 0, 0, 0, 0, 0));
  set(db, SQLITE_DBCONFIG_DQS_DDL, 0);
  run(db, "create table q(a check(a <> \"x\"))");
  run(db, "select \"x\"");
  explains(db);
  sqlite3_close(db);

  db = db_open(name);
  run(db, "pragma auto_vacuum = 1; create table t(a, b)");
  run(db, "with recursive c(x) as (values(1) union all select x + 1 from c where x < 200) insert into t select x, zeroblob(1000) from c");
  printf("pages %d\n", sqlite3_autovacuum_pages(db, half, "first", gone));
  run(db, "delete from t where a > 100; pragma freelist_count; delete from t where a > 50; pragma freelist_count; pragma integrity_check");
  printf("pages %d\n", sqlite3_autovacuum_pages(db, half, "second", gone));
  run(db, "begin; delete from t where a > 20; delete from t where a > 10; commit; pragma freelist_count; pragma page_count");
  printf("pages %d\n", sqlite3_autovacuum_pages(db, 0, 0, 0));
  run(db, "delete from t; pragma freelist_count; pragma page_count; pragma integrity_check");
  printf("pages %d\n", sqlite3_autovacuum_pages(db, half, "third", gone));
  sqlite3_close(db);

  snprintf(text, sizeof text, "%s.link", name);
  printf("link %d\n", symlink(name, text));
  int rc = sqlite3_open_v2(text, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, 0);
  printf("open %d %d %s\n", rc, sqlite3_extended_errcode(db), sqlite3_errmsg(db));
  sqlite3_close(db);
  printf("open %d\n", sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, 0));
  snprintf(text, sizeof text, "attach '%s.link' as x", name);
  printf("attach %d", sqlite3_exec(db, text, 0, 0, 0));
  printf(" %d\n", sqlite3_extended_errcode(db));
  int out;
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, 0, &out);
  snprintf(text, sizeof text, "attach '%s.new' as x", name);
  printf("attach %d\n", sqlite3_exec(db, text, 0, 0, 0));
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, 0, &out);
  snprintf(text, sizeof text, "attach '%s' as x; select count(*) from x.t; insert into x.t values(1, 2)", name);
  run(db, text);
  sqlite3_close(db);

  db = db_open(":memory:");
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1);
  printf("least %d\n", sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 100));
  sqlite3_str *s = sqlite3_str_new(db);
  sqlite3_str_appendf(s, "%!.3s %.3s", "h\xc3\xa4user", "abcdef");
  printf("%s %d %d\n", sqlite3_str_value(s), sqlite3_str_length(s), sqlite3_str_errcode(s));
  sqlite3_str_appendchar(s, 150, 'x');
  printf("too big %d %d\n", sqlite3_str_errcode(s), sqlite3_str_length(s));
  sqlite3_str_appendall(s, "more");
  printf("%d %s\n", sqlite3_str_length(s), sqlite3_str_value(s) ? "some" : "none");
  sqlite3_str_reset(s);
  sqlite3_str_appendall(s, "anew");
  char *end = sqlite3_str_finish(s);
  printf("%s\n", end ? end : "none");
  sqlite3_free(end);
  sqlite3_close(db);
  return 0;
}
