/* A VFS that knows the frames of a log: none behind the last one of the log's present life is read. */
#include "common.h"

static sqlite3_vfs *real, knows;
static sqlite3_io_methods whole, watched;
static sqlite3_int64 end;
static int reads, behind;

static int x_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) {
  reads++;
  behind += at + n > end;
  return whole.xRead(f, p, n, at);
}
static int x_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
  /* The header begins a life. */
  end = at ? (at + n > end ? at + n : end) : n;
  return whole.xWrite(f, p, n, at);
}
static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *got) {
  (void)v;
  int rc = real->xOpen(real, name, f, flags, got);
  if (rc == SQLITE_OK && flags & SQLITE_OPEN_WAL) {
    whole = watched = *f->pMethods;
    watched.xRead = x_read;
    watched.xWrite = x_write;
    f->pMethods = &watched;
  }
  return rc;
}

static sqlite3 *opened(const char *name) {
  sqlite3 *db = 0;
  int rc = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "knows");
  printf("open %d\n", rc);
  sqlite3_wal_autocheckpoint(db, 0);
  return db;
}

int main(int argc, char **argv) {
  (void)argc;
  static char name[4200];
  strcpy(name, scratch(argv, "log.db"));
  real = sqlite3_vfs_find(0);
  knows = *real;
  knows.zName = "knows";
  knows.xOpen = v_open;
  printf("register %d\n", sqlite3_vfs_register(&knows, 0));
  sqlite3 *writer = opened(name), *reader = opened(name);
  run(writer, "pragma journal_mode=wal; create table t(a integer primary key, b); insert into t values(1, zeroblob(3000))");
  run(reader, "select count(*) from t");
  for (int life = 0; life < 3; life++) {
    for (int i = 0; i < 10; i++) run(writer, "insert into t(b) values(zeroblob(3000))");
    if (life < 2) run(reader, "select count(*), sum(length(b)) from t");
    int frames, copied, rc = sqlite3_wal_checkpoint_v2(writer, 0, SQLITE_CHECKPOINT_RESTART, &frames, &copied);
    printf("checkpoint %d %d\n", rc, frames == copied);
    run(writer, "insert into t(b) values(zeroblob(3000))");
    behind = 0;
    run(reader, "select count(*), sum(length(b)) from t");
    printf("reads %d behind %d\n", reads > 0, behind);
  }
  run(reader, "pragma integrity_check");
  printf("close %d %d\n", sqlite3_close(reader), sqlite3_close(writer));
  return 0;
}
