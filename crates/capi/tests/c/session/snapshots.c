/* States of a log by name: what is seen there, and when it is gone. */
#include "../common.h"

static sqlite3_snapshot *take(sqlite3 *db, const char *what) {
  sqlite3_snapshot *s = 0;
  int rc = sqlite3_snapshot_get(db, "main", &s);
  printf("take %s: %d %d\n", what, rc, s != 0);
  return rc ? 0 : s;
}

static void look(sqlite3 *db, const char *what, sqlite3_snapshot *s) {
  printf("open %s: %d\n", what, sqlite3_snapshot_open(db, "main", s));
  run(db, "SELECT count(*), max(a), sum(length(b)) FROM t");
}

static int sign(int n) { return (n > 0) - (n < 0); }

static void grow(sqlite3 *db, int n) {
  char sql[300];
  snprintf(sql, sizeof sql,
           "WITH c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < %d) INSERT INTO t(b) SELECT hex(randomblob(50)) FROM c", n);
  run(db, sql);
}

int main(int argc, char **argv) {
  char name[4096];
  strcpy(name, scratch(argv, "snap.db"));
  sqlite3 *w = db_open(name), *r = db_open(name), *memory = db_open(":memory:");
  sqlite3_snapshot *s[6] = {0}, *bad = 0;
  run(w, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  run(w, "BEGIN");
  take(w, "without a log");
  run(w, "COMMIT");
  run(w, "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0");
  run(w, "BEGIN");
  take(w, "an empty log");
  run(w, "COMMIT");
  take(w, "outside");
  grow(w, 10);
  run(memory, "BEGIN");
  take(memory, "in memory");
  run(memory, "COMMIT");
  run(w, "BEGIN");
  s[0] = take(w, "ten");
  printf("no such schema: %d\n", sqlite3_snapshot_get(w, "nosuch", &bad));
  run(w, "INSERT INTO t(b) VALUES('x')");
  take(w, "while writing");
  run(w, "ROLLBACK");
  grow(w, 20);
  run(w, "BEGIN");
  s[1] = take(w, "thirty");
  run(w, "COMMIT; DELETE FROM t WHERE a < 5; UPDATE t SET b = 'short' WHERE a < 15");
  run(w, "BEGIN");
  s[2] = take(w, "changed");
  s[3] = take(w, "changed, again");
  run(w, "COMMIT");
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 4; j++) printf("%d ", sign(sqlite3_snapshot_cmp(s[i], s[j])));
    printf("\n");
  }
  printf("outside: %d\n", sqlite3_snapshot_open(r, "main", s[0]));
  run(r, "BEGIN");
  printf("log not known yet: %d\n", sqlite3_snapshot_open(r, "main", s[0]));
  run(r, "COMMIT; PRAGMA application_id");
  for (int i = 0; i < 3; i++) {
    run(r, "BEGIN");
    look(r, "fresh", s[i]);
    run(r, "COMMIT");
  }
  /* From one to the other within a transaction. */
  run(r, "BEGIN; SELECT count(*) FROM t");
  look(r, "back", s[0]);
  look(r, "on", s[1]);
  look(r, "back again", s[0]);
  run(r, "SELECT * FROM sqlite_master");
  sqlite3_stmt *q = 0;
  sqlite3_prepare_v2(r, "SELECT a FROM t", -1, &q, 0);
  sqlite3_step(q);
  printf("while reading: %d\n", sqlite3_snapshot_open(r, "main", s[1]));
  sqlite3_finalize(q);
  run(r, "INSERT INTO t(b) VALUES('late')");
  look(r, "after that", s[1]);
  run(r, "COMMIT");
  run(r, "SELECT count(*) FROM t");
  /* The schema as it was. */
  run(w, "CREATE TABLE u(x); INSERT INTO u VALUES(1)");
  run(r, "SELECT count(*) FROM u; BEGIN");
  look(r, "before u", s[0]);
  run(r, "SELECT count(*) FROM u");
  run(r, "COMMIT; SELECT count(*) FROM u");
  /* Held, it survives a checkpoint; what nobody holds does not. */
  run(r, "BEGIN");
  look(r, "held", s[2]);
  run(w, "PRAGMA wal_checkpoint");
  look(r, "older", s[0]);
  look(r, "held still", s[2]);
  run(r, "COMMIT; BEGIN");
  look(r, "behind it", s[0]);
  look(r, "itself", s[2]);
  run(r, "COMMIT");
  run(w, "PRAGMA wal_checkpoint(FULL)");
  grow(w, 3);
  run(r, "BEGIN");
  look(r, "of a former log", s[2]);
  run(r, "COMMIT; BEGIN");
  s[4] = take(r, "of the new log");
  /* Which of two logs is the newer is told by one byte of a random number: wrongly once in 256 times. */
  printf("of two logs %d\n", sqlite3_snapshot_cmp(s[4], s[2]) != 0);
  printf("recover while reading: %d\n", sqlite3_snapshot_recover(r, "main"));
  run(r, "COMMIT");
  printf("recover: %d\n", sqlite3_snapshot_recover(r, "main"));
  printf("recover in memory: %d\n", sqlite3_snapshot_recover(memory, "main"));
  grow(w, 3);
  run(w, "BEGIN");
  s[5] = take(w, "last");
  run(w, "COMMIT");
  /* The log stays behind; who comes finds its states with recover. */
  int on = 1;
  sqlite3_file_control(w, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
  sqlite3_file_control(r, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
  sqlite3_db_config(w, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, 0);
  sqlite3_db_config(r, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, 0);
  sqlite3_close(r);
  sqlite3_close(w);
  r = db_open(name);
  run(r, "SELECT count(*) FROM t; BEGIN");
  look(r, "before recovery", s[4]);
  look(r, "the last one", s[5]);
  run(r, "COMMIT");
  printf("recover: %d\n", sqlite3_snapshot_recover(r, "main"));
  run(r, "BEGIN");
  look(r, "recovered", s[4]);
  run(r, "COMMIT; SELECT count(*) FROM t");
  for (int i = 0; i < 6; i++) sqlite3_snapshot_free(s[i]);
  sqlite3_snapshot_free(0);
  sqlite3_close(r);
  sqlite3_close(memory);
  return 0;
}
