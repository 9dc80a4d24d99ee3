/* Switches of a connection, texts that a trace gets, and functions that cannot be changed while statements run. */
#include "common.h"

static void said(sqlite3 *db, int rc) {
  printf("%d %d", rc, sqlite3_extended_errcode(db));
  printf(" %s\n", sqlite3_errmsg(db));
}

static void set(sqlite3 *db, int which, int on) {
  int now = -7;
  int rc = sqlite3_db_config(db, which, on, &now);
  printf("%d set to %d: %d %d\n", which, on, rc, now);
}

static void switches(sqlite3 *db) {
  int list[] = {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_QPSG, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, SQLITE_DBCONFIG_DQS_DML,
                SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, SQLITE_DBCONFIG_WRITABLE_SCHEMA, SQLITE_DBCONFIG_TRUSTED_SCHEMA};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
    for (int on = -1; on < 2; on++) {
      int was = 0;
      sqlite3_db_config(db, list[i], -1, &was);
      set(db, list[i], on);
      sqlite3_db_config(db, list[i], was, 0);
    }
  printf("%d\n", sqlite3_db_config(db, 999, 0, 0));
  set(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0);
  run(db, "create temp trigger mine after insert on t begin insert into log values('temp'); end");
  run(db, "insert into t values(7, 7); select count(*) from log");
  set(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1);
  run(db, "drop trigger mine; insert into t values(7, 7); select count(*) from log");
  run(db, "create trigger writes instead of insert on v begin insert into log values('view'); end");
  set(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0);
  run(db, "select * from v");
  run(db, "insert into v select a from t limit 1; select count(*) from log where rowid > 0");
  run(db, "insert into t select a, a from v");
  run(db, "create temp view own as select 5; select * from own");
  set(db, SQLITE_DBCONFIG_ENABLE_VIEW, 1);
  run(db, "select count(*) from v");
}

static void traced(void *p, const char *text) { printf("  %s %s\n", (char *)p, text); }

static void traces(sqlite3 *db) {
  sqlite3_stmt *s;
  sqlite3_trace(db, traced, "traced");
  sqlite3_prepare_v2(db, "select ?1, :b, ?2, 'it''s ?' -- words", -1, &s, 0);
  sqlite3_bind_blob(s, 1, "\xab\xcd", 2, SQLITE_STATIC);
  sqlite3_bind_text(s, 2, "it's", -1, SQLITE_STATIC);
  sqlite3_step(s);
  sqlite3_reset(s);
  sqlite3_bind_double(s, 1, 0.1);
  sqlite3_bind_double(s, 2, 5);
  sqlite3_step(s);
  char *text = sqlite3_expanded_sql(s);
  printf("%s\n", text);
  sqlite3_free(text);
  sqlite3_finalize(s);
  sqlite3_trace(db, 0, 0);
}

static void one(sqlite3_context *c, int n, sqlite3_value **v) {
  (void)n;
  (void)v;
  sqlite3_result_int(c, 1);
}

static int same(void *p, int n, const void *a, int m, const void *b) {
  (void)p, (void)n, (void)a, (void)m, (void)b;
  return 0;
}

static void in_use(sqlite3 *db) {
  sqlite3_stmt *s;
  said(db, sqlite3_create_function(db, "one", 0, SQLITE_UTF8, 0, one, 0, 0));
  sqlite3_prepare_v2(db, "select one() from t", -1, &s, 0);
  sqlite3_step(s);
  said(db, sqlite3_create_function(db, "one", 0, SQLITE_UTF8, 0, 0, 0, 0));
  said(db, sqlite3_create_function(db, "one", 0, SQLITE_UTF8, 0, one, 0, 0));
  printf("%d\n", sqlite3_create_function(db, "one", 1, SQLITE_UTF8, 0, one, 0, 0));
  said(db, sqlite3_create_collation(db, "nocase", SQLITE_UTF8, 0, same));
  sqlite3_finalize(s);
  said(db, sqlite3_create_function(db, "one", 0, SQLITE_UTF8, 0, 0, 0, 0));
  run(db, "select one()");
  run(db, "select one(1)");
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a, b); create table log(x); create view v as select a from t;"
          "create trigger tr after insert on t begin insert into log values(new.a); insert into log values(2); end");
  switches(db);
  traces(db);
  in_use(db);
  printf("closed %d\n", sqlite3_close(db));
  return 0;
}
