/* New files that begin with a setting, or with a copy that is made of them; what else is told before anything is done. */
#include "../common.h"

static unsigned pages(void *p, const char *name, unsigned all, unsigned unused, unsigned size) {
  (void)p;
  printf("asked: %s, %u pages, %u unused, %u bytes\n", name, all, unused, size);
  return unused > 1 ? 1 : unused;
}

static int asked(void *p, int op, const char *a, const char *b, const char *c, const char *d) {
  (void)p;
  if (op == SQLITE_READ) printf("read %s.%s in %s for %s\n", a, b, c ? c : "-", d ? d : "-");
  return SQLITE_OK;
}

static void of_mode(char *name, const char *sql) {
  unlink(name);
  sqlite3 *db = db_open(name);
  run(db, sql);
  sqlite3_close(db);
  db = db_open(name);
  printf("%s:\n", sql);
  run(db, "pragma auto_vacuum; pragma page_count; pragma page_size");
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  (void)argc;
  char *name = scratch(argv, "begun");
  of_mode(name, "pragma auto_vacuum = full");
  of_mode(name, "pragma auto_vacuum = incremental");
  of_mode(name, "pragma auto_vacuum = none");
  of_mode(name, "pragma page_size = 1024; pragma auto_vacuum = 2; pragma auto_vacuum = 1");
  of_mode(name, "begin; pragma auto_vacuum = 1; rollback");
  of_mode(name, "begin; pragma auto_vacuum = 1; commit");

  unlink(name);
  sqlite3 *db = db_open(name);
  sqlite3_autovacuum_pages(db, pages, 0, 0);
  run(db, "pragma auto_vacuum = 1; create table t(a); insert into t values(zeroblob(20000)); delete from t; pragma freelist_count");

  sqlite3_int64 size = 0;
  sqlite3 *empty = db_open(":memory:");
  void *image = sqlite3_serialize(empty, "main", &size, 0);
  printf("image %d, %lld bytes\n", image != 0, size);
  sqlite3_free(image);

  sqlite3_stmt *s;
  sqlite3_prepare_v2(empty, "explain select 1", -1, &s, 0);
  printf("busy %d", sqlite3_stmt_busy(s));
  sqlite3_step(s);
  printf(" %d", sqlite3_stmt_busy(s));
  printf(" p4 of type %d", sqlite3_column_type(s, 5));
  sqlite3_reset(s);
  printf(" %d\n", sqlite3_stmt_busy(s));
  sqlite3_finalize(s);

  sqlite3_prepare_v2(empty, "select ?", -1, &s, 0);
  sqlite3_bind_pointer(s, 1, empty, "db", 0);
  char *text = sqlite3_expanded_sql(s);
  printf("%s\n", text);
  sqlite3_free(text);
  sqlite3_finalize(s);

  run(empty, "create table t(a); create table log(x); "
             "create trigger g after insert on t begin insert into log select 1 from t; end");
  sqlite3_set_authorizer(empty, asked, 0);
  run(empty, "insert into t values(1); select 1 from t");
  sqlite3_close(empty);
  sqlite3_close(db);
  return 0;
}
