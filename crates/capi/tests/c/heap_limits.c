/* The limits of memory: through functions and PRAGMAs, and what one does to the other. */
#include "common.h"

static int tell(void *p, int n, char **values, char **names) {
  (void)p;
  for (int i = 0; i < n; i++) printf("  %s %s\n", names[i], values[i]);
  return 0;
}

static void limits(sqlite3 *db) {
  printf("soft %lld hard %lld\n", (long long)sqlite3_soft_heap_limit64(-1), (long long)sqlite3_hard_heap_limit64(-1));
  sqlite3_exec(db, "PRAGMA soft_heap_limit; PRAGMA hard_heap_limit", tell, 0, 0);
}

int main(void) {
  static const char *said[] = {"soft_heap_limit=100000000", "soft_heap_limit=-1", "hard_heap_limit=200000000",
    "hard_heap_limit=300000000", "hard_heap_limit=0", "soft_heap_limit=0", "soft_heap_limit=900000000",
    "hard_heap_limit=150000000"};
  sqlite3 *db = 0;
  sqlite3_open(":memory:", &db);
  limits(db);
  for (unsigned i = 0; i < sizeof said / sizeof *said; i++) {
    char *sql = sqlite3_mprintf("PRAGMA %s", said[i]);
    printf("%s\n", sql);
    sqlite3_exec(db, sql, tell, 0, 0);
    sqlite3_free(sql);
    limits(db);
  }
  printf("%lld\n", (long long)sqlite3_hard_heap_limit64(400000000));
  limits(db);
  printf("%lld\n", (long long)sqlite3_soft_heap_limit64(300000000));
  limits(db);
  printf("%lld\n", (long long)sqlite3_hard_heap_limit64(0));
  limits(db);
  printf("%lld\n", (long long)sqlite3_soft_heap_limit64(0));
  limits(db);
  sqlite3_close(db);
  return 0;
}
