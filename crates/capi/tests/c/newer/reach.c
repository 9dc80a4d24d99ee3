/* What a connection may open: flags, modes in names, databases that are attached, and in memory, shared or not; a handle without a
   connection. */
#include "../common.h"

static void show(const char *what, sqlite3 *db, const char *schema) {
  const char *file = sqlite3_db_filename(db, schema);
  printf("  %s: %s, for reading %d\n", what, file && *file ? "in a file" : file ? "in no file" : "none", sqlite3_db_readonly(db, schema));
}

static const int flags[] = {SQLITE_OPEN_READONLY, SQLITE_OPEN_READWRITE, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE};
static const char *const modes[] = {"", "?mode=ro", "?mode=rw", "?mode=rwc", "?mode=memory", "?mode=ro&mode=rw", "?mode=memory&mode=rwc",
                                    "?mode=memory&cache=shared", "?mode=odd"};

/* A name of a file that is empty, or not there. */
static const char *fresh(char **v, int there) {
  const char *file = scratch(v, "reach.db");
  unlink(file);
  if (there) fclose(fopen(file, "w"));
  return file;
}

/* Opens and attaches a name with each mode and each set of flags; `more` are further flags, `there`: the file exists. */
static void each(char **v, int more, int there) {
  for (int m = 0; m < sizeof modes / sizeof *modes; m++)
    for (int f = 0; f < 3; f++) {
      char uri[4096], sql[4200];
      const char *file = fresh(v, there);
      snprintf(uri, sizeof uri, "file:%s%s", file, modes[m]);
      sqlite3 *db = 0;
      int rc = sqlite3_open_v2(uri, &db, flags[f] | more | SQLITE_OPEN_URI, 0);
      printf("flags %x '%s' there %d: %d %s\n", flags[f] | more, modes[m], there, rc, sqlite3_errmsg(db));
      if (!rc) {
        show("main", db, "main");
        run(db, "create table t(a); insert into t values(1)");
      }
      sqlite3_close(db);
      file = fresh(v, there);
      rc = sqlite3_open_v2(":memory:", &db, flags[f] | more | SQLITE_OPEN_URI, 0);
      for (int refused = 0; refused < 3; refused++) {
        if (refused) sqlite3_db_config(db, refused == 1 ? SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE : SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, 0, 0);
        snprintf(sql, sizeof sql, "attach 'file:%s%s' as other", file, modes[m]);
        rc = sqlite3_exec(db, sql, 0, 0, 0);
        printf("  attached, less %d: %d\n", refused, rc);
        show("other", db, "other");
        if (!rc) run(db, "create table if not exists other.t(a); insert into other.t values(1); detach other");
      }
      sqlite3_close(db);
    }
}

int main(int argc, char **argv) {
  each(argv, 0, 0);
  each(argv, 0, 1);
  each(argv, SQLITE_OPEN_MEMORY, 0);
  each(argv, SQLITE_OPEN_MEMORY | SQLITE_OPEN_SHAREDCACHE, 1);
  /* A database that is shared and that the first one only reads. */
  sqlite3 *a = 0, *b = 0;
  int memory = SQLITE_OPEN_MEMORY | SQLITE_OPEN_SHAREDCACHE | SQLITE_OPEN_URI;
  printf("%d\n", sqlite3_open_v2("file:both", &a, SQLITE_OPEN_READONLY | memory, 0));
  printf("%d\n", sqlite3_open_v2("file:both", &b, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | memory, 0));
  run(b, "create table t(a)");
  run(a, "select count(*) from sqlite_schema");
  sqlite3_close(a);
  run(b, "create table t(a)");
  sqlite3_close(b);
  /* Where nothing was opened, exec does not touch what it would put its message into. */
  char *message = "as it was";
  sqlite3_open_v2("file:none?mode=ro", &a, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, 0);
  printf("%d ", sqlite3_exec(a, "select 1", 0, 0, &message));
  printf("%s\n", message);
  sqlite3_close(a);
  return 0;
}
