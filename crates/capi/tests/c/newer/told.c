/* What a program is told: numbers of its own as errors, warnings in the log, logs that VACUUM wrote, plans of triggers; and databases without a
   name that are only read, and images within a transaction. */
#include "../common.h"

static void logged(void *p, int code, const char *text) {
  (void)p;
  if (code == SQLITE_WARNING) printf("  log %d %s\n", code, text);
}

static void refuse(sqlite3_context *c, int n, sqlite3_value **v) {
  if (n > 1) sqlite3_result_error(c, "in its own words", -1);
  sqlite3_result_error_code(c, sqlite3_value_int(v[0]));
}

static void numbers(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_create_function(db, "refuse", 1, SQLITE_UTF8, 0, refuse, 0, 0);
  sqlite3_create_function(db, "refuse", 2, SQLITE_UTF8, 0, refuse, 0, 0);
  int codes[] = {0, -1, 1, 5, 29, 77, 101, 256, 512, 516, 999, 2067, 65536, 1 << 20};
  for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++) {
    for (int args = 1; args < 3; args++) {
      if (args == 2 && codes[i] <= 0) continue;
      sqlite3_stmt *s;
      char sql[60];
      sprintf(sql, args == 1 ? "select refuse(%d)" : "select refuse(%d, 0)", codes[i]);
      sqlite3_prepare_v2(db, sql, -1, &s, 0);
      int rc = sqlite3_step(s);
      printf("%s: %d, %d %d %s", sql, rc, sqlite3_errcode(db), sqlite3_extended_errcode(db), sqlite3_errmsg(db));
      printf("; %d\n", sqlite3_finalize(s));
    }
  }
  sqlite3_close(db);
}

static void nameless(void) {
  const char *names[] = {"", ":memory:", "file:?mode=ro", "file::memory:?mode=ro", "file:?mode=memory", "file:?mode=rw"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    for (int only = 0; only < 2; only++) {
      sqlite3 *db;
      int flags = only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      int rc = sqlite3_open_v2(names[i], &db, flags | SQLITE_OPEN_URI, 0);
      printf("'%s' %d: %d", names[i], only, rc);
      if (!rc) {
        printf(", read only %d\n", sqlite3_db_readonly(db, "main"));
        run(db, "create table t(x)");
        run(db, "create temp table t(x); select count(*) from sqlite_schema");
      } else {
        printf(" %s\n", sqlite3_errmsg(db));
      }
      sqlite3_close(db);
    }
  }
}

static int longer(void *p, sqlite3 *db, const char *schema, int frames) {
  (void)db;
  printf("  %s: the log of %s has %s\n", (char *)p, schema, frames > 0 ? "frames" : "none");
  return SQLITE_OK;
}

static void logs(char **argv) {
  sqlite3 *db = db_open(scratch(argv, "log.db"));
  run(db, "pragma journal_mode = wal; create table t(a); insert into t values(1)");
  sqlite3_wal_hook(db, longer, "hook");
  run(db, "insert into t values(2)");
  printf("vacuum\n");
  run(db, "vacuum");
  sqlite3_close(db);
}

static void quoted(void) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(x)");
  run(db, "select \"abc\", \"d\"\"e\", \"x\" from t");
  run(db, "select x from t where x = \"zzz\"");
  run(db, "insert into t values(\"literal\")");
  run(db, "create view v as select \"in a view\"");
  sqlite3_exec(db, "  select \"once\" ;\n  select 1 ", 0, 0, 0);
  sqlite3_close(db);
}

/* The last column alone: numbers and estimates are each engine's own. */
static void plan(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s;
  printf("%s\n", sql);
  sqlite3_prepare_v2(db, sql, -1, &s, 0);
  while (sqlite3_step(s) == SQLITE_ROW) printf("  %s\n", sqlite3_column_text(s, 3));
  sqlite3_finalize(s);
}

static void triggers(void) {
  sqlite3 *db = db_open(":memory:");
  int on = -1;
  run(db, "create table t(a integer primary key, b); create table l(x); create index lx on l(x);"
          "create trigger ti after insert on t begin"
          " insert into l select b from t where a = new.a; delete from l where x = new.b; end;"
          "create trigger ld before delete on l begin update t set b = 1 where b = old.x; end;");
  for (int i = 0; i < 3; i++) {
    printf("set %d", sqlite3_db_config(db, SQLITE_DBCONFIG_TRIGGER_EQP, i % 2, &on));
    printf(" %d\n", on);
    plan(db, "explain query plan insert into t select x, x from l");
    plan(db, "explain query plan delete from l where x > 3");
    plan(db, "explain query plan select x from l");
  }
  sqlite3_close(db);
}

static void images(char **argv) {
  const char *name = scratch(argv, "image.db");
  sqlite3 *db = db_open(name), *other = db_open(name);
  run(db, "pragma journal_mode = wal; create table t(a); insert into t values(1)");
  run(db, "begin");
  sqlite3_int64 size;
  unsigned char *image = sqlite3_serialize(db, "main", &size, 0);
  printf("serialized %d, state %d\n", size > 0, sqlite3_txn_state(db, "main"));
  run(other, "insert into t values(2)");
  run(db, "select a from t");
  printf("deserialize %d\n", sqlite3_deserialize(db, "main", image, size, size, SQLITE_DESERIALIZE_FREEONCLOSE));
  run(db, "commit; select a from t");
  sqlite3_free(sqlite3_serialize(db, "main", &size, 0));
  printf("state %d\n", sqlite3_txn_state(db, "main"));
  sqlite3_close(other);
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  (void)argc;
  sqlite3_config(SQLITE_CONFIG_LOG, logged, 0);
  numbers();
  nameless();
  logs(argv);
  quoted();
  triggers();
  images(argv);
  return 0;
}
