/* Files that a program opens by the VFS of sqlite3_vfs_find. */
#include "common.h"

static sqlite3_file *opened(sqlite3_vfs *v, const char *name, int flags, int *rc) {
  sqlite3_file *f = calloc(1, v->szOsFile);
  int got = 0;
  *rc = v->xOpen(v, name, f, flags, &got);
  printf("open %d, methods %d, read-only %d\n", *rc, f->pMethods != 0, *rc == 0 && (got & SQLITE_OPEN_READONLY) != 0);
  return f;
}

static void closed(sqlite3_file *f) {
  if (f->pMethods) printf("close %d\n", f->pMethods->xClose(f));
  free(f);
}

int main(int argc, char **argv) {
  (void)argc;
  sqlite3_vfs *v = sqlite3_vfs_find(0);
  const int kind = SQLITE_OPEN_MAIN_DB, both = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  /* The name of a database has zero bytes behind it. */
  static char name[4200], absent[4200], deleted[4200];
  strcpy(name, scratch(argv, "file"));
  strcpy(absent, scratch(argv, "absent"));
  strcpy(deleted, scratch(argv, "deleted"));
  int rc, reserved = -1;
  char buf[16];
  sqlite3_int64 size = -1;
  closed(opened(v, absent, kind | SQLITE_OPEN_READWRITE, &rc));
  sqlite3_file *f = opened(v, name, kind | both, &rc);
  const sqlite3_io_methods *m = f->pMethods;
  printf("version %d\n", m->iVersion >= 1);
  printf("write %d\n", m->xWrite(f, "hello world", 11, 5));
  printf("size %d", m->xFileSize(f, &size));
  printf(" %lld\n", size);
  memset(buf, 'x', sizeof buf);
  printf("read %d", m->xRead(f, buf, 5, 5));
  printf(" %.5s\n", buf);
  printf("read beyond %d", m->xRead(f, buf, 10, 11));
  printf(" %.5s %d %d\n", buf, buf[5], buf[9]);
  printf("truncate %d", m->xTruncate(f, 8));
  printf(" %d", m->xFileSize(f, &size));
  printf(" %lld\n", size);
  printf("sync %d\n", m->xSync(f, SQLITE_SYNC_NORMAL));
  printf("lock %d", m->xLock(f, SQLITE_LOCK_SHARED));
  printf(" %d", m->xLock(f, SQLITE_LOCK_RESERVED));
  printf(" %d", m->xCheckReservedLock(f, &reserved));
  printf(" %d\n", reserved);
  /* Another handle meets the locks. */
  sqlite3_file *g = opened(v, name, kind | both, &rc);
  printf("other %d", g->pMethods->xLock(g, SQLITE_LOCK_SHARED));
  printf(" %d", g->pMethods->xLock(g, SQLITE_LOCK_RESERVED));
  printf(" %d\n", m->xLock(f, SQLITE_LOCK_EXCLUSIVE));
  printf("unlock %d", g->pMethods->xUnlock(g, SQLITE_LOCK_NONE));
  printf(" %d", m->xLock(f, SQLITE_LOCK_EXCLUSIVE));
  printf(" %d\n", m->xUnlock(f, SQLITE_LOCK_NONE));
  printf("control %d\n", m->xFileControl(f, 4711, 0));
  printf("sector %d\n", m->xSectorSize(f) >= 512);
  closed(g);
  closed(f);
  f = opened(v, name, kind | SQLITE_OPEN_READONLY, &rc);
  printf("write %d\n", f->pMethods->xWrite(f, "x", 1, 0) != 0);
  closed(f);
  f = opened(v, 0, both | SQLITE_OPEN_DELETEONCLOSE | SQLITE_OPEN_TEMP_JOURNAL, &rc);
  printf("write %d\n", f->pMethods->xWrite(f, "x", 1, 100));
  closed(f);
  f = opened(v, deleted, both | SQLITE_OPEN_DELETEONCLOSE | SQLITE_OPEN_TEMP_JOURNAL, &rc);
  printf("write %d\n", f->pMethods->xWrite(f, "x", 1, 100));
  closed(f);
  printf("deleted %d\n", access(deleted, F_OK));
  printf("there %d\n", access(name, F_OK));
  printf("delete %d %d\n", v->xDelete(v, name, 0), access(name, F_OK));
  return 0;
}
