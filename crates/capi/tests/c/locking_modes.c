/* Two connections to one file, of which one goes in and out of the exclusive locking mode and from journal mode to journal mode: what
 * one commits, the other sees, and what is left beside the file. */
#include "common.h"

static char journal[4096];

static void beside(void) { printf("journal: %s\n", access(journal, F_OK) ? "none" : "there"); }

static void both(sqlite3 *a, sqlite3 *b) {
  printf("a sees ");
  run(a, "select count(*) from t");
  printf("b sees ");
  run(b, "select count(*) from t");
}

/* The file has been changed with the lock given back in between, and is changed with the lock kept. */
static void in_and_out(const char *path, const char *before) {
  unlink(path);
  sqlite3 *a = db_open(path), *b = db_open(path);
  printf("-- %s\n", before);
  run(a, "create table t(x); insert into t values(1)");
  run(a, before);
  run(a, "pragma journal_mode = delete");
  beside();
  both(a, b);
  run(a, "pragma locking_mode = exclusive; begin; select count(*) from t; commit");
  both(a, b);
  run(b, "insert into t values(2)");
  run(a, "insert into t values(3)");
  run(a, "insert into t values(4)");
  both(a, b);
  run(a, "pragma locking_mode = normal");
  printf("b is still locked out: ");
  run(b, "select count(*) from t");
  both(a, b);
  beside();
  run(b, "insert into t values(5)");
  both(a, b);
  run(a, "insert into t values(6)");
  both(a, b);
  run(b, "pragma integrity_check");
  sqlite3_close(a);
  sqlite3_close(b);
  beside();
}

/* Journals that were kept go when the mode does not keep them. */
static void of_journals(const char *path) {
  unlink(path);
  sqlite3 *a = db_open(path), *b = db_open(path);
  run(a, "create table t(x)");
  const char *keep[] = {"persist", "truncate"}, *then[] = {"delete", "memory", "off", "wal"};
  for (unsigned i = 0; i < 8; i++) {
    char sql[200];
    snprintf(sql, sizeof sql, "pragma journal_mode = %s; insert into t values(1)", keep[i % 2]);
    run(a, sql);
    beside();
    snprintf(sql, sizeof sql, "pragma journal_mode = %s; insert into t values(2)", then[i / 2]);
    run(a, sql);
    if (i / 2 < 3) beside();
    both(a, b);
  }
  sqlite3_close(b);
  run(a, "pragma journal_mode = delete; pragma integrity_check");
  sqlite3_close(a);
}

int main(int argc, char **argv) {
  (void)argc;
  char path[4096];
  snprintf(path, sizeof path, "%s", scratch(argv, "modes.db"));
  snprintf(journal, sizeof journal, "%s-journal", path);
  in_and_out(path, "select 'plain'");
  in_and_out(path, "pragma journal_mode = persist; insert into t values(0)");
  in_and_out(path, "pragma journal_mode = truncate; insert into t values(0)");
  in_and_out(path, "pragma journal_mode = persist; insert into t values(0); pragma journal_mode = memory; insert into t values(0)");
  in_and_out(path, "pragma locking_mode = exclusive; insert into t values(0); pragma locking_mode = normal; select 1 from t");
  of_journals(path);
  return 0;
}
