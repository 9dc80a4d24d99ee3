/* Content that reserves other bytes of each page takes the place of what was there: by VACUUM, and by backups, finished or not.
   The connection goes on with the pages as they are now. */
#include "common.h"

static const char *fill =
    "create table t(x); with recursive c(i) as (select 1 union all select i + 1 from c where i < 100) insert into t "
    "select printf('%.*c', i * 20, 'x') from c; create index tx on t(x)";

static void goes_on(sqlite3 *db) {
  run(db, "pragma integrity_check; insert into t select x || 'y' from t; delete from t where rowid % 3 = 0");
  run(db, "pragma integrity_check; select count(*), sum(length(x)) from t");
}

static void reserve(sqlite3 *db, int bytes) { sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes); }

int main(int argc, char **argv) {
  (void)argc;
  const char *modes[] = {"delete", "wal", "memory"};
  for (int i = 0; i < 6; i++) {
    static char name[4200], text[300];
    const char *mode = modes[i % 3];
    int in_memory = i % 3 == 2, steps = i < 3 ? -1 : 3;
    printf("-- %s, steps of %d\n", mode, steps);
    sprintf(text, "reserved_%d.db", i);
    strcpy(name, in_memory ? ":memory:" : scratch(argv, text));
    sqlite3 *from = db_open(":memory:"), *to = db_open(name);
    reserve(from, 24);
    run(from, "pragma page_size = 1024");
    run(from, fill);
    sprintf(text, "pragma page_size = 1024; pragma auto_vacuum = 1; pragma journal_mode = %s", mode);
    run(to, text);
    run(to, fill);
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    printf("%d\n", sqlite3_backup_step(b, steps));
    printf("%d\n", sqlite3_backup_finish(b));
    goes_on(to);
    reserve(to, 40);
    run(to, "vacuum");
    goes_on(to);
    sqlite3_close(from);
    sqlite3_close(to);
  }
  return 0;
}
