/* dqlite's VFS: the database and its log in memory, frames of a commit polled, then applied on two nodes, or dropped. Debian's
   package libdqlite-dev is installed. */
#include <dqlite.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int row(void *x, int n, char **v, char **names) {
  (void)x, (void)names;
  for (int i = 0; i < n; i++) printf("%s|", v[i] ? v[i] : "NULL");
  printf("\n");
  return 0;
}
static void sql(sqlite3 *db, const char *text) {
  char *e = 0;
  int rc = sqlite3_exec(db, text, row, 0, &e);
  printf("%.60s: %d %s\n", text, rc, e ? e : "");
  sqlite3_free(e);
}
/* Takes the frames of the last commit, and applies them on both nodes, or drops them. */
static void replicate(sqlite3_vfs *one, sqlite3_vfs *two, int keep) {
  dqlite_vfs_frame *f = 0;
  unsigned n = 0;
  int rc = dqlite_vfs_poll(one, "test.db", &f, &n);
  printf("poll %d, frames %d\n", rc, n > 0);
  if (rc || !n) return;
  unsigned long *numbers = malloc(n * sizeof *numbers);
  char *pages = malloc(n * 4096);
  for (unsigned i = 0; i < n; i++) {
    numbers[i] = f[i].page_number;
    memcpy(pages + i * 4096, f[i].data, 4096);
    sqlite3_free(f[i].data);
  }
  sqlite3_free(f);
  if (keep) printf("apply %d %d\n", dqlite_vfs_apply(one, "test.db", n, numbers, pages), dqlite_vfs_apply(two, "test.db", n, numbers, pages));
  else printf("abort %d\n", dqlite_vfs_abort(one, "test.db"));
  free(numbers);
  free(pages);
}
static sqlite3 *opened(const char *vfs) {
  sqlite3 *db;
  printf("open %d\n", sqlite3_open_v2("test.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs));
  sqlite3_extended_result_codes(db, 1);
  sql(db, "PRAGMA page_size=4096");
  sql(db, "PRAGMA synchronous=OFF");
  sql(db, "PRAGMA journal_mode=WAL");
  sqlite3_wal_autocheckpoint(db, 0);
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, 0);
  return db;
}
static void checkpoint(sqlite3 *db) {
  int frames, copied, rc = sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, &frames, &copied);
  printf("checkpoint %d %d %d\n", rc, frames, copied);
}

int main(void) {
  static sqlite3_vfs one, two, three;
  setvbuf(stdout, 0, _IOLBF, 0);
  printf("%d %d %d\n", dqlite_vfs_init(&one, "one"), dqlite_vfs_init(&two, "two"), dqlite_vfs_init(&three, "three"));
  sqlite3_vfs_register(&one, 0);
  sqlite3_vfs_register(&two, 0);
  sqlite3_vfs_register(&three, 0);
  sqlite3 *a = opened("one"), *b = opened("two");
  sql(a, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  replicate(&one, &two, 1);
  sql(b, "SELECT sql FROM sqlite_master");
  for (int i = 1; i < 5; i++) {
    char s[200];
    sprintf(s, "INSERT INTO t(b) WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x<%d) SELECT hex(zeroblob(x)) FROM c", 100 * i);
    sql(a, s);
    replicate(&one, &two, 1);
    sql(b, "SELECT count(*), sum(length(b)) FROM t");
  }
  sql(a, "INSERT INTO t VALUES(5000, 'gone')");
  replicate(&one, &two, 0);
  sql(a, "SELECT count(*) FROM t");
  sql(a, "INSERT INTO t VALUES(5001, 'kept')");
  replicate(&one, &two, 1);
  sql(b, "SELECT * FROM t WHERE a >= 5000");
  sqlite3 *a2 = opened("one");
  sql(a2, "BEGIN");
  sql(a2, "SELECT count(*) FROM t");
  sql(a, "CREATE INDEX tb ON t(b)");
  replicate(&one, &two, 1);
  sql(a2, "INSERT INTO t VALUES(6000, 'stale')");
  sql(a2, "COMMIT");
  sql(a2, "SELECT count(*) FROM t INDEXED BY tb WHERE b > ''");
  sql(a2, "INSERT INTO t VALUES(6000, 'fine')");
  replicate(&one, &two, 1);
  sql(a, "BEGIN");
  sql(a, "DELETE FROM t WHERE a % 3 = 0");
  replicate(&one, &two, 1);
  sql(a, "SAVEPOINT x");
  sql(a, "UPDATE t SET b = b || 1");
  sql(a, "ROLLBACK TO x");
  sql(a, "COMMIT");
  replicate(&one, &two, 1);
  sql(b, "PRAGMA integrity_check");
  for (int i = 0; i < 3; i++) {
    checkpoint(a);
    checkpoint(b);
    sql(a, "INSERT INTO t(b) VALUES('after')");
    replicate(&one, &two, 1);
    sql(a2, "SELECT count(*) FROM t");
    sql(b, "SELECT count(*) FROM t");
  }
  void *image;
  size_t size;
  unsigned pages;
  printf("snapshot %d", dqlite_vfs_snapshot(&one, "test.db", &image, &size));
  printf(" pages %d\n", dqlite_vfs_num_pages(&one, "test.db", &pages));
  sqlite3 *c = opened("three");
  printf("restore %d\n", dqlite_vfs_restore(&three, "test.db", image, size));
  sql(c, "SELECT count(*) FROM t");
  sql(c, "PRAGMA integrity_check");
  printf("close %d %d %d %d\n", sqlite3_close(c), sqlite3_close(a2), sqlite3_close(a), sqlite3_close(b));
  return 0;
}
