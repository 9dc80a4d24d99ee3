/* Journal and locking modes of connections that are in each other's way; what an interrupt lasts for. */
#include "../common.h"

static void state(const char *what, sqlite3 *db) {
  printf("%s: autocommit %d, transaction %d, changes %d\n", what, sqlite3_get_autocommit(db), sqlite3_txn_state(db, "main"),
         sqlite3_changes(db));
}

/* A transaction that has changed nothing yet, and one that has. */
static void within(char **v) {
  sqlite3 *a = db_open(scratch(v, "within.db"));
  run(a, "create table t(x); insert into t values(1)");
  run(a, "begin immediate; pragma journal_mode=wal");
  run(a, "pragma journal_mode=memory; pragma journal_mode=persist; pragma journal_mode");
  run(a, "insert into t values(2); pragma journal_mode=wal; pragma journal_mode=memory; rollback");
  run(a, "begin exclusive; pragma journal_mode=truncate; insert into t values(3); pragma journal_mode=delete; commit");
  run(a, "pragma journal_mode; pragma journal_mode=wal; begin immediate; pragma journal_mode=memory");
  run(a, "pragma journal_mode=wal; insert into t values(4); pragma journal_mode=delete; commit; select count(*) from t");
  sqlite3_close(a);
}

/* In WAL mode, too, EXCLUSIVE keeps others out from the first write on. */
static void exclusive(char **v) {
  sqlite3 *a = db_open(scratch(v, "exclusive.db")), *b = db_open(scratch(v, "exclusive.db"));
  run(a, "pragma journal_mode=wal; create table t(x)");
  run(b, "select * from t; pragma locking_mode=exclusive");
  run(b, "insert into t values(1)");
  run(a, "insert into t values(2); select count(*) from t");
  run(b, "select count(*) from t");
  run(b, "insert into t values(3)");
  sqlite3_close(a);
  run(b, "insert into t values(4); select count(*) from t");
  a = db_open(scratch(v, "exclusive.db"));
  run(a, "select count(*) from t");
  run(b, "pragma locking_mode=normal; select count(*) from t");
  run(a, "select count(*) from t; insert into t values(5)");
  run(b, "select count(*) from t; insert into t values(6)");
  sqlite3_close(b);
  run(a, "select count(*) from t; pragma journal_mode=delete; pragma integrity_check");
  sqlite3_close(a);
}

/* Asked for the mode while another connection has the file. */
static void asked(char **v) {
  sqlite3 *a = db_open(scratch(v, "asked.db")), *b = db_open(scratch(v, "asked.db")), *fresh;
  run(a, "pragma journal_mode=persist; create table t(x)");
  run(b, "pragma journal_mode=truncate; select * from t");
  run(a, "begin exclusive");
  run(b, "pragma journal_mode");
  fresh = db_open(scratch(v, "asked.db"));
  run(fresh, "pragma journal_mode");
  run(a, "commit");
  sqlite3_close(fresh);
  // Who has set WAL, and looked, and read nothing since, holds no lock.
  run(a, "pragma journal_mode=wal; pragma journal_mode");
  run(b, "pragma journal_mode");
  run(b, "pragma journal_mode=delete; pragma journal_mode");
  run(a, "select count(*) from t");
  run(b, "pragma journal_mode=wal; select count(*) from t");
  run(a, "select count(*) from t; pragma journal_mode; pragma journal_mode=delete");
  sqlite3_close(a);
  sqlite3_close(b);
}

/* Databases in memory that connections share. */
static void shared(void) {
  sqlite3 *a = 0, *b = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  sqlite3_open_v2("file:modes?mode=memory&cache=shared", &a, flags, 0);
  sqlite3_open_v2("file:modes?mode=memory&cache=shared", &b, flags, 0);
  run(a, "create table t(x); pragma locking_mode; pragma locking_mode=normal; pragma main.locking_mode");
  run(a, "begin immediate");
  run(b, "pragma journal_mode; pragma journal_mode=delete; pragma journal_mode=wal; pragma locking_mode=exclusive");
  run(a, "commit");
  run(b, "insert into t values(1)");
  run(a, "select * from t");
  sqlite3_close(a);
  sqlite3_close(b);
}

/* An interrupt lasts until no statement runs any more: what is prepared before that is interrupted, and no transaction ends. */
static void interrupted(void) {
  sqlite3 *a = db_open(":memory:");
  sqlite3_stmt *s = 0, *other = 0;
  run(a, "create table t(x); insert into t values(1), (2), (3); savepoint s; insert into t values(4)");
  sqlite3_prepare_v2(a, "select x from t", -1, &s, 0);
  printf("%d\n", sqlite3_step(s));
  sqlite3_interrupt(a);
  printf("interrupted: %d\n", sqlite3_is_interrupted(a));
  printf("%d\n", sqlite3_prepare_v2(a, "update t set x = x", -1, &other, 0));
  printf("%d %s\n", other == 0, sqlite3_errmsg(a));
  run(a, "insert into t values(5)");
  state("before", a);
  printf("%d\n", sqlite3_finalize(s));
  run(a, "select count(*) from t; insert into t values(6)");
  printf("interrupted: %d\n", sqlite3_is_interrupted(a));
  state("after", a);
  sqlite3_interrupt(a);
  printf("idle: %d\n", sqlite3_is_interrupted(a));
  printf("%d\n", sqlite3_prepare_v2(a, "select 1", -1, &s, 0));
  printf("idle: %d\n", sqlite3_is_interrupted(a));
  sqlite3_finalize(s);
  sqlite3_close(a);
}

/* Two names that nobody has: the one that is told. */
static void copies(void) {
  sqlite3 *a = db_open(":memory:"), *b = db_open(":memory:");
  const char *names[][2] = {{"none", "main"}, {"main", "neither"}, {"none", "neither"}};
  for (int i = 0; i < 3; i++) {
    sqlite3_backup *copy = sqlite3_backup_init(a, names[i][0], b, names[i][1]);
    printf("%d %s\n", copy == 0, sqlite3_errmsg(a));
  }
  sqlite3_close(a);
  sqlite3_close(b);
}

int main(int c, char **v) {
  (void)c;
  within(v);
  exclusive(v);
  asked(v);
  shared();
  interrupted();
  copies();
  return 0;
}
