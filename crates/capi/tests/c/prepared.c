/* What is known about prepared statements: whether they change files, where the text behind them begins, how large values may be. */
#include "common.h"

static void read_only(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, 0);
  printf("%s: %d read-only %d explain %d\n", sql, rc, sqlite3_stmt_readonly(s), sqlite3_stmt_isexplain(s));
  sqlite3_finalize(s);
}

static void tail(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  const char *rest = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, &rest);
  printf("%s: %d, a statement %d, then [%s]\n", sql, rc, s != 0, rest ? rest : "NULL");
  sqlite3_finalize(s);
}

static void said(sqlite3 *db, int rc) {
  printf("%d %d", rc, sqlite3_extended_errcode(db));
  printf(" %s\n", sqlite3_errmsg(db));
}

/* The limit of lengths holds for values that are bound. */
static void lengths(sqlite3 *db) {
  static char big[5000];
  sqlite3_stmt *s;
  memset(big, 'x', sizeof big);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000);
  sqlite3_prepare_v2(db, "select length(?1)", -1, &s, 0);
  said(db, sqlite3_bind_text(s, 1, big, 1000, SQLITE_STATIC));
  said(db, sqlite3_bind_text(s, 1, big, 1001, SQLITE_STATIC));
  said(db, sqlite3_bind_blob(s, 1, big, 5000, SQLITE_STATIC));
  said(db, sqlite3_bind_text16(s, 1, big, 4000, SQLITE_STATIC));
  said(db, sqlite3_bind_zeroblob64(s, 1, 2000));
  said(db, sqlite3_bind_int(s, 2, 1));
  said(db, sqlite3_bind_int(s, 0, 1));
  sqlite3_finalize(s);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000000000);
  printf("parameters %d\n", sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, -1));
  run(db, "select ?250000");
  run(db, "select ?250001");
}

int main(void) {
  const char *kinds[] = {
      "select 1", "create table n(a)", "create table if not exists t(a)", "drop table if exists none", "insert into t values(1)",
      "explain select 1", "explain query plan select 1", "begin", "begin immediate", "begin exclusive", "commit", "savepoint x", "release x",
      "attach ':memory:' as q", "detach q", "analyze", "reindex", "vacuum", "pragma journal_mode", "pragma journal_mode=wal",
      "pragma wal_checkpoint", "pragma user_version", "pragma user_version=3", "pragma application_id=3", "pragma schema_version",
      "pragma schema_version=55", "pragma incremental_vacuum", "pragma foreign_keys=1", "pragma cache_size=5", "pragma table_info(t)",
      "pragma integrity_check", "pragma auto_vacuum=1", "pragma page_size=512", "pragma none"};
  const char *texts[] = {"select 1; select 2", "select 1", "select 1;;  select 2", " ; -- words\n select 2", "-- words", "selec 1; select 2",
                         "select none; select 2", "select 1 from; select 2", "select * from t where; select 2", "select 'it; select 2"};
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a unique); insert into t values(1)");
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) read_only(db, kinds[i]);
  for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) tail(db, texts[i]);
  /* The older way to prepare: a step answers a bare error. */
  sqlite3_stmt *s;
  sqlite3_prepare(db, "insert into t values(1)", -1, &s, 0);
  said(db, sqlite3_step(s));
  said(db, sqlite3_reset(s));
  said(db, sqlite3_finalize(s));
  lengths(db);
  printf("closed %d\n", sqlite3_close(db));
  return 0;
}
