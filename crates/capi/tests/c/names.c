/* Names of files with what VFSes find in them; codes in full from the beginning; statements that are interrupted between their rows,
   by a function of the program, and by a progress handler that comes while they run. */
#include "common.h"

static const char *base(const char *name) {
  const char *slash = name ? strrchr(name, '/') : 0;
  return slash ? slash + 1 : name ? name : "(null)";
}

static void show(const char *what, const char *name) {
  printf("%s: %s, journal %s, log %s, back %d\n", what, base(name), base(sqlite3_filename_journal(name)), base(sqlite3_filename_wal(name)),
         sqlite3_filename_database(sqlite3_filename_wal(name)) == name);
  const char *v = sqlite3_uri_parameter(name, "key");
  printf("  key %s, missing %d, first %s, boolean %d %d, number %d\n", v ? v : "-", sqlite3_uri_parameter(name, "none") == 0,
         sqlite3_uri_key(name, 0) ? sqlite3_uri_key(name, 0) : "-", sqlite3_uri_boolean(name, "flag", 0), sqlite3_uri_boolean(name, "none", 1),
         (int)sqlite3_uri_int64(name, "number", 7));
}

static void interrupt(sqlite3_context *c, int n, sqlite3_value **v) {
  sqlite3_interrupt(sqlite3_context_db_handle(c));
  sqlite3_result_int(c, 1);
}

static int asked;

static int progress(void *p) {
  asked = 1;
  return 0;
}

int main(int argc, char **argv) {
  const char *parameters[] = {"key", "value", "flag", "on", "number", "42"};
  const char *name = sqlite3_create_filename("/dir/data.db", "/dir/own-journal", "/dir/own-log", 3, parameters);
  show("made", name);
  sqlite3_free_filename(name);
  name = sqlite3_create_filename("data.db", "j", "w", 0, 0);
  show("without parameters", name);
  sqlite3_free_filename(name);
  sqlite3_free_filename(0);
  char uri[4096], sql[4096];
  snprintf(uri, sizeof uri, "file:%s?key=value&flag=yes&number=3&mode=rwc", scratch(argv, "named.db"));
  sqlite3 *db = 0;
  int rc = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE, 0);
  printf("open %d\n", rc);
  show("main", sqlite3_db_filename(db, "main"));
  snprintf(sql, sizeof sql, "ATTACH '%s' AS more; CREATE TABLE more.t(a NOT NULL)", scratch(argv, "more.db"));
  run(db, sql);
  show("attached", sqlite3_db_filename(db, "more"));
  printf("full code %d\n", sqlite3_exec(db, "INSERT INTO t VALUES(NULL)", 0, 0, 0));
  sqlite3_extended_result_codes(db, 0);
  printf("primary code %d\n", sqlite3_exec(db, "INSERT INTO t VALUES(NULL)", 0, 0, 0));
  sqlite3_close(db);
  rc = sqlite3_open_v2(argv[1] ? argv[1] : ".", &db, SQLITE_OPEN_READWRITE, 0);
  printf("a folder %d\n", rc);
  sqlite3_close(db);
  db = db_open(":memory:");
  sqlite3_create_function(db, "interrupt", 0, SQLITE_UTF8, 0, interrupt, 0, 0);
  sqlite3_stmt *s = 0;
  sqlite3_prepare_v2(db, "SELECT interrupt() FROM (SELECT 1 UNION SELECT 2 UNION SELECT 3)", -1, &s, 0);
  for (int i = 0; i < 3; i++) printf("step %d\n", sqlite3_step(s));
  printf("finalize %d\n", sqlite3_finalize(s));
  run(db, "SELECT 'goes on'");
  run(db, "CREATE TABLE numbers(n)");
  run(db, "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n<50) INSERT INTO numbers SELECT n FROM r");
  const char *short_ones[] = {"CREATE TABLE copy AS SELECT interrupt() AS i FROM numbers", "INSERT INTO numbers SELECT interrupt() FROM numbers",
                              "UPDATE numbers SET n=interrupt()", "SELECT sum(interrupt()) FROM numbers"};
  for (int i = 0; i < 4; i++) printf("%s: %d\n", short_ones[i], sqlite3_exec(db, short_ones[i], 0, 0, 0));
  run(db, "SELECT count(*), sum(n) FROM numbers");
  sqlite3_prepare_v2(db, "SELECT n FROM numbers", -1, &s, 0);
  sqlite3_step(s);
  sqlite3_progress_handler(db, 1, progress, 0);
  while (sqlite3_step(s) == SQLITE_ROW) {}
  printf("a handler that came between rows: %d\n", asked);
  sqlite3_finalize(s);
  sqlite3_close(db);
  return 0;
}
