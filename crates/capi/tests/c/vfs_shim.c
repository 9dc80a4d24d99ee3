/* A VFS that passes all on to the system's, answers pragmas, and fails where it is told to. */
#include "common.h"

typedef struct { sqlite3_file base; const char *name; int kind; sqlite3_file *real; } Shim;
static sqlite3_vfs *real;
static sqlite3_io_methods methods[4];
static int opens, closes, reads, writes, syncs, locks, maps, hints, phase_two, fetches, version = 3;
static int short_reads, fail_deletes, fail_accesses, fail_truncate, fail_read, fail_write, fail_sync, fail_lock, fail_open;
static char parameter[64], journal[64];

static sqlite3_file *of(sqlite3_file *f) { return ((Shim *)f)->real; }
static int x_close(sqlite3_file *f) {
  closes++;
  int rc = of(f)->pMethods ? of(f)->pMethods->xClose(of(f)) : 0;
  return rc;
}
static int x_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) {
  reads++;
  if (short_reads && n > 100 && ((Shim *)f)->kind & SQLITE_OPEN_MAIN_DB) {
    short_reads--;
    memset(p, 0, n);
    return SQLITE_IOERR_SHORT_READ;
  }
  if (fail_read && ((Shim *)f)->kind & SQLITE_OPEN_MAIN_DB) return fail_read;
  return of(f)->pMethods->xRead(of(f), p, n, at);
}
static int x_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
  writes++;
  if (fail_write && ((Shim *)f)->kind & SQLITE_OPEN_MAIN_DB) return fail_write;
  return of(f)->pMethods->xWrite(of(f), p, n, at);
}
static int x_truncate(sqlite3_file *f, sqlite3_int64 n) {
  if (fail_truncate && ((Shim *)f)->kind & SQLITE_OPEN_MAIN_JOURNAL) return fail_truncate;
  return of(f)->pMethods->xTruncate(of(f), n);
}
static int x_sync(sqlite3_file *f, int how) {
  syncs++;
  if (fail_sync) return fail_sync;
  return of(f)->pMethods->xSync(of(f), how);
}
static int x_size(sqlite3_file *f, sqlite3_int64 *n) { return of(f)->pMethods->xFileSize(of(f), n); }
static int x_lock(sqlite3_file *f, int l) {
  locks++;
  if (fail_lock == l) return SQLITE_BUSY;
  return of(f)->pMethods->xLock(of(f), l);
}
static int x_unlock(sqlite3_file *f, int l) { return of(f)->pMethods->xUnlock(of(f), l); }
static int x_reserved(sqlite3_file *f, int *r) { return of(f)->pMethods->xCheckReservedLock(of(f), r); }
static int x_control(sqlite3_file *f, int op, void *arg) {
  if (op == SQLITE_FCNTL_PRAGMA) {
    char **a = arg;
    if (!strcmp(a[1], "shim_hello")) {
      a[0] = sqlite3_mprintf("hello %s", a[2] ? a[2] : "nobody");
      return SQLITE_OK;
    }
    if (!strcmp(a[1], "shim_silent")) return SQLITE_OK;
    if (!strcmp(a[1], "shim_fails")) {
      a[0] = sqlite3_mprintf("shim says no to %s", a[2] ? a[2] : "nothing");
      return SQLITE_PERM;
    }
    if (!strcmp(a[1], "shim_code")) return SQLITE_FULL;
    if (!strcmp(a[1], "user_version") && !a[2]) {
      a[0] = sqlite3_mprintf("from the shim");
      return SQLITE_OK;
    }
    return SQLITE_NOTFOUND;
  }
  if (op == SQLITE_FCNTL_SIZE_HINT) hints = 1;
  if (op == SQLITE_FCNTL_COMMIT_PHASETWO) phase_two++;
  if (op == 9999) { *(int *)arg = 4711; return SQLITE_OK; }
  int rc = of(f)->pMethods->xFileControl(of(f), op, arg);
  if (op == SQLITE_FCNTL_VFSNAME && rc == SQLITE_OK) {
    char **name = arg;
    *name = sqlite3_mprintf("shim/%z", *name);
  }
  return rc;
}
static int x_sector(sqlite3_file *f) { return of(f)->pMethods->xSectorSize(of(f)); }
static int x_device(sqlite3_file *f) { return of(f)->pMethods->xDeviceCharacteristics(of(f)); }
static int x_map(sqlite3_file *f, int i, int n, int extend, void volatile **p) {
  maps++;
  return of(f)->pMethods->xShmMap(of(f), i, n, extend, p);
}
static int x_shm_lock(sqlite3_file *f, int first, int n, int flags) { return of(f)->pMethods->xShmLock(of(f), first, n, flags); }
static void x_barrier(sqlite3_file *f) { of(f)->pMethods->xShmBarrier(of(f)); }
static int x_unmap(sqlite3_file *f, int gone) { return of(f)->pMethods->xShmUnmap(of(f), gone); }
static int x_fetch(sqlite3_file *f, sqlite3_int64 at, int n, void **p) {
  fetches = 1;
  return of(f)->pMethods->xFetch(of(f), at, n, p);
}
static int x_unfetch(sqlite3_file *f, sqlite3_int64 at, void *p) { return of(f)->pMethods->xUnfetch(of(f), at, p); }

static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *got) {
  Shim *s = (Shim *)f;
  (void)v;
  f->pMethods = 0;
  if (fail_open && flags & fail_open) return SQLITE_CANTOPEN;
  opens++;
  s->name = name;
  s->kind = flags;
  s->real = (sqlite3_file *)&s[1];
  if (flags & SQLITE_OPEN_MAIN_DB) {
    const char *t = sqlite3_uri_parameter(name, "tag");
    snprintf(parameter, sizeof parameter, "%s %lld %d %d", t ? t : "no tag", sqlite3_uri_int64(name, "n", -1), sqlite3_uri_boolean(name, "b", 0),
             t && flags & SQLITE_OPEN_URI);
  }
  if (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) {
    const char *main_name = sqlite3_filename_database(name), *t = sqlite3_uri_parameter(main_name, "tag"), *own = sqlite3_uri_parameter(name, "tag");
    if (t != own) printf("the journal's parameters are others\n");
    sqlite3_file *db = sqlite3_database_file_object(name);
    const char *same = flags & SQLITE_OPEN_WAL ? sqlite3_filename_wal(main_name) : sqlite3_filename_journal(main_name);
    snprintf(journal, sizeof journal, "%d %s %d %d", flags & SQLITE_OPEN_WAL ? 2 : 1, t ? t : "no tag",
             ((Shim *)db)->name == main_name, same == name);
  }
  int rc = real->xOpen(real, name, s->real, flags, got);
  if (s->real->pMethods) f->pMethods = &methods[s->real->pMethods->iVersion < version ? s->real->pMethods->iVersion : version];
  return rc;
}
static int v_delete(sqlite3_vfs *v, const char *n, int s) {
  (void)v;
  if (fail_deletes && fail_deletes--) {
    fail_accesses = fail_deletes == 1;
    return SQLITE_IOERR_DELETE;
  }
  return real->xDelete(real, n, s);
}
static int v_access(sqlite3_vfs *v, const char *n, int f, int *r) {
  (void)v;
  if (fail_accesses && fail_accesses--) return SQLITE_IOERR_ACCESS;
  return real->xAccess(real, n, f, r);
}
static int v_full(sqlite3_vfs *v, const char *n, int len, char *out) { (void)v; return real->xFullPathname(real, n, len, out); }
static void *v_dlopen(sqlite3_vfs *v, const char *n) { (void)v; return real->xDlOpen(real, n); }
static void v_dlerror(sqlite3_vfs *v, int n, char *m) { (void)v; real->xDlError(real, n, m); }
static void (*v_dlsym(sqlite3_vfs *v, void *p, const char *s))(void) { (void)v; return real->xDlSym(real, p, s); }
static void v_dlclose(sqlite3_vfs *v, void *p) { (void)v; real->xDlClose(real, p); }
static int v_random(sqlite3_vfs *v, int n, char *out) { (void)v; return real->xRandomness(real, n, out); }
static int v_sleep(sqlite3_vfs *v, int n) { (void)v; return real->xSleep(real, n); }
/* The third of March 2003, at noon. */
static int v_time(sqlite3_vfs *v, double *t) { (void)v; *t = 2452702.0; return 0; }
static int v_error(sqlite3_vfs *v, int n, char *m) { (void)v; return real->xGetLastError(real, n, m); }
static int v_time64(sqlite3_vfs *v, sqlite3_int64 *t) { (void)v; *t = 211913452800000LL; return 0; }

static sqlite3_vfs shim = {2, 0, 1024, 0, "shim", 0, v_open, v_delete, v_access, v_full, v_dlopen, v_dlerror, v_dlsym,
  v_dlclose, v_random, v_sleep, v_time, v_error, v_time64, 0, 0, 0};

static sqlite3 *opened(const char *name, int flags, const char *vfs) {
  sqlite3 *db = 0;
  int rc = sqlite3_open_v2(name, &db, flags, vfs);
  printf("open %d %s\n", rc, rc ? sqlite3_errmsg(db) : "");
  return db;
}

static void counts(void) {
  printf("opens %d closes %d, reads %d writes %d syncs %d locks %d maps %d hints %d phase two %d\n", opens > 0, opens - closes,
         reads > 0, writes > 0, syncs > 0, locks > 0, maps > 0, hints, phase_two > 0);
  reads = writes = syncs = locks = maps = hints = phase_two = 0;
}

int main(int argc, char **argv) {
  (void)argc;
  const int both = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  static char name[4200], uri[4300];
  strcpy(name, scratch(argv, "shim.db"));
  real = sqlite3_vfs_find(0);
  shim.szOsFile = sizeof(Shim) + real->szOsFile;
  for (int i = 1; i <= 3; i++) {
    sqlite3_io_methods m = {i, x_close, x_read, x_write, x_truncate, x_sync, x_size, x_lock, x_unlock, x_reserved, x_control,
      x_sector, x_device, x_map, x_shm_lock, x_barrier, x_unmap, x_fetch, x_unfetch};
    methods[i] = m;
  }
  for (sqlite3_vfs *v = real; v; v = v->pNext) printf("%s%s", v->zName, v->pNext ? " " : "\n");
  opened(name, both, "shim");
  printf("register %d\n", sqlite3_vfs_register(&shim, 0));
  for (sqlite3_vfs *v = sqlite3_vfs_find(0); v; v = v->pNext) printf("%s%s", v->zName, v->pNext ? " " : "\n");
  printf("find %d default %d\n", sqlite3_vfs_find("shim") == &shim, sqlite3_vfs_find(0) == real);

  sqlite3 *db = opened(name, both, "shim");
  run(db, "create table t(a, b); insert into t values(1, 'x'), (2, zeroblob(20000)); select a, length(b) from t");
  counts();
  printf("%s / %s\n", parameter, journal);
  run(db, "select datetime('now'), julianday()");
  run(db, "pragma shim_hello; pragma shim_hello=you; pragma main.shim_hello(7); pragma shim_silent; pragma user_version");
  run(db, "pragma user_version=5");
  run(db, "pragma shim_fails=this");
  run(db, "pragma shim_code");
  char *text = 0;
  sqlite3_vfs *v = 0;
  sqlite3_file *f = 0, *j = 0;
  int number = -1;
  printf("name %d", sqlite3_file_control(db, "main", SQLITE_FCNTL_VFSNAME, &text));
  printf(" %s\n", text);
  sqlite3_free(text);
  printf("vfs %d", sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &v));
  printf(" %d\n", v == &shim);
  printf("file %d", sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f));
  printf(" %d %d\n", f->pMethods == &methods[3], sqlite3_database_file_object(sqlite3_db_filename(db, "main")) == f);
  printf("journal %d", sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &j));
  printf(" %d %d\n", j != 0, j && j->pMethods == 0);
  printf("own %d", sqlite3_file_control(db, 0, 9999, &number));
  printf(" %d, unknown %d\n", number, sqlite3_file_control(db, 0, 9998, &number));
  number = -1;
  printf("moved %d", sqlite3_file_control(db, 0, SQLITE_FCNTL_HAS_MOVED, &number));
  printf(" %d\n", number);
  number = -1;
  run(db, "begin immediate");
  printf("lock state %d", sqlite3_file_control(db, 0, SQLITE_FCNTL_LOCKSTATE, &number));
  printf(" %d\n", number);
  run(db, "commit");

  /* Errors of callbacks. */
  fail_lock = SQLITE_LOCK_RESERVED;
  run(db, "insert into t values(3, 'y')");
  fail_lock = SQLITE_LOCK_SHARED;
  run(db, "select count(*) from t");
  fail_lock = 0;
  fail_write = SQLITE_IOERR_WRITE;
  run(db, "insert into t values(3, 'y')");
  fail_write = SQLITE_FULL;
  run(db, "insert into t values(3, 'y')");
  fail_write = 0;
  run(db, "select count(*) from t; pragma integrity_check");
  sqlite3 *other = opened(name, SQLITE_OPEN_READWRITE, "shim");
  fail_read = SQLITE_IOERR_READ;
  run(other, "select count(*) from t");
  fail_read = 0;
  run(other, "select count(*) from t");
  sqlite3_close(other);
  /* Pages that are said to lie behind the file's end, and do not. */
  other = opened(name, SQLITE_OPEN_READWRITE, "shim");
  short_reads = 4;
  printf("not there: %d\n", sqlite3_exec(other, "insert into t values(9, 'lost')", 0, 0, 0) != 0);
  sqlite3_close(other);
  short_reads = 0;
  run(db, "select count(*) from t; pragma integrity_check");
  fail_open = SQLITE_OPEN_MAIN_JOURNAL;
  run(db, "insert into t values(3, 'y')");
  fail_open = 0;
  run(db, "insert into t values(3, 'y'); select count(*) from t");

  /* A journal that cannot be ended when all is taken back to the first savepoint: what was there is there, and work goes on. */
  run(db, "pragma journal_mode=truncate; pragma cache_size=2; create table big(k integer primary key, v)");
  run(db, "with recursive c(x) as (select 1 union all select x + 1 from c where x < 60) insert into big select x, zeroblob(900) from c");
  run(db, "savepoint a; update big set v = zeroblob(2000)");
  fail_truncate = SQLITE_IOERR_TRUNCATE;
  sqlite3_exec(db, "rollback to a; release a", 0, 0, 0);
  if (!sqlite3_get_autocommit(db)) sqlite3_exec(db, "rollback", 0, 0, 0);
  fail_truncate = 0;
  run(db, "update big set v = zeroblob(901) where k = 7; select sum(length(v)) from big; pragma integrity_check");
  run(db, "drop table big; pragma cache_size=2000; pragma journal_mode=delete");

  /* A log, with shared memory of the VFS. */
  run(db, "pragma journal_mode=wal; insert into t values(4, 'z'); select count(*) from t");
  counts();
  printf("%s\n", journal);
  other = opened(name, SQLITE_OPEN_READWRITE, "shim");
  run(other, "begin; select count(*) from t");
  run(db, "insert into t values(5, 'z')");
  run(other, "select count(*) from t; commit; select count(*) from t");
  run(db, "begin immediate; insert into t values(6, 'z')");
  run(other, "insert into t values(7, 'w')");
  run(db, "commit; pragma wal_checkpoint; pragma mmap_size=100000");
  run(db, "select sum(a) from t");
  sqlite3_close(other);
  number = 1;
  printf("persist %d", sqlite3_file_control(db, 0, SQLITE_FCNTL_PERSIST_WAL, &number));
  printf(" %d\n", number);
  sqlite3_close(db);
  printf("left %d\n", opens - closes);
  static char log[4300];
  snprintf(log, sizeof log, "%s-wal", name);
  printf("log is there %d\n", access(log, F_OK) == 0);

  /* By URI, attached, and without shared memory. */
  snprintf(uri, sizeof uri, "file:%s?vfs=shim&tag=first&n=12&b=yes", name);
  db = opened(uri, both | SQLITE_OPEN_URI, 0);
  run(db, "pragma journal_mode=delete; insert into t values(8, 'u'); select count(*) from t");
  printf("%s / %s\n", parameter, journal);
  printf("key %s, tag %s\n", sqlite3_uri_key(sqlite3_db_filename(db, 0), 1), sqlite3_uri_parameter(sqlite3_db_filename(db, 0), "tag"));
  version = 1;
  snprintf(uri, sizeof uri, "attach 'file:%s2?vfs=shim&tag=second' as second", name);
  run(db, uri);
  printf("%s\n", parameter);
  run(db, "create table second.s(x); insert into second.s select a from t; select count(*) from second.s");
  run(db, "begin; insert into second.s values(1); insert into t values(1, 2); commit");
  /* The list of journals is not deleted, nobody knows whether it is there, and the first journal stays, too. */
  run(db, "begin; insert into second.s values(77); insert into t values(77, 7)");
  fail_deletes = 2;
  sqlite3_exec(db, "commit", 0, 0, 0);
  if (!sqlite3_get_autocommit(db)) sqlite3_exec(db, "rollback", 0, 0, 0);
  fail_deletes = fail_accesses = 0;
  run(db, "select count(*) from second.s where x = 77; select count(*) from t where a = 77");
  run(db, "pragma second.journal_mode=wal");
  run(db, "pragma second.locking_mode=exclusive; pragma second.journal_mode=wal; insert into second.s values(9); select count(*) from second.s");
  run(db, "vacuum; pragma integrity_check; create temp table big as with recursive c(x) as (select 1 union all select x + 1 from c where x < 10) select x from c; select count(*) from big");
  sqlite3_close(db);
  printf("left %d\n", opens - closes);
  version = 3;

  /* As the default. */
  printf("register %d", sqlite3_vfs_register(&shim, 1));
  printf(" default %d\n", sqlite3_vfs_find(0) == &shim);
  int before = opens;
  db = opened(name, both, 0);
  run(db, "select count(*) from t");
  printf("used %d\n", opens > before);
  sqlite3_close(db);
  db = opened(name, both, "unix");
  before = opens;
  run(db, "select count(*) from t");
  printf("used %d\n", opens > before);
  sqlite3_close(db);
  printf("unregister %d\n", sqlite3_vfs_unregister(&shim));
  printf("find %d default %d\n", sqlite3_vfs_find("shim") != 0, sqlite3_vfs_find(0) == real);
  db = opened(name, both, "shim");
  sqlite3_close(db);
  return 0;
}
