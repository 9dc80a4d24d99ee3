/* The system's VFSes by their names: locks of each, also between processes. */
#include "common.h"
#include <sys/wait.h>
#include <sys/stat.h>

static sqlite3 *opened(const char *name, int flags, const char *vfs) {
  sqlite3 *db = 0;
  int rc = sqlite3_open_v2(name, &db, flags, vfs);
  if (rc) printf("open %s %d %s\n", vfs ? vfs : "", rc, sqlite3_errmsg(db));
  return db;
}

static char **program;

/* Another process, which has nothing of this one's memory, runs SQL. */
static void elsewhere(const char *name, const char *vfs, const char *sql) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    execl(program[0], program[0], program[1], name, vfs, sql, (char *)0);
    _exit(1);
  }
  waitpid(child, 0, 0);
}

int main(int argc, char **argv) {
  program = argv;
  if (argc == 5) {
    sqlite3 *db = opened(argv[2], SQLITE_OPEN_READWRITE, argv[3]);
    printf("  elsewhere: ");
    run(db, argv[4]);
    sqlite3_close(db);
    return 0;
  }
  const int both = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  static char name[4200], beside[4300];
  const char *vfs[] = {"unix", "unix-none", "unix-dotfile", "unix-excl"};
  for (int i = 0; i < 4; i++) {
    struct stat st;
    printf("-- %s\n", vfs[i]);
    strcpy(name, scratch(argv, vfs[i]));
    snprintf(beside, sizeof beside, "%s.lock", name);
    sqlite3 *a = opened(name, both, vfs[i]);
    run(a, "create table t(a); insert into t values(1)");
    sqlite3_close(a);
    elsewhere(name, vfs[i], "select count(*) from t");
    a = opened(name, both, vfs[i]);
    char *text = 0;
    sqlite3_file_control(a, 0, SQLITE_FCNTL_VFSNAME, &text);
    printf("%s\n", text);
    sqlite3_free(text);
    run(a, "begin; select count(*) from t");
    printf("lock folder %d\n", stat(beside, &st) == 0);
    elsewhere(name, vfs[i], "select count(*) from t");
    elsewhere(name, vfs[i], "insert into t values(2)");
    sqlite3 *b = opened(name, both, vfs[i]);
    run(b, "select count(*) from t");
    run(b, "insert into t values(3)");
    run(a, "commit");
    run(b, "insert into t values(4); select count(*) from t");
    printf("lock folder %d\n", stat(beside, &st) == 0);
    elsewhere(name, vfs[i], "select count(*) from t");
    run(a, "select count(*) from t");
    if (strcmp(vfs[i], "unix-none")) {
      run(a, "pragma journal_mode=wal");
      run(a, "insert into t values(5)");
      run(b, "select count(*) from t");
      snprintf(beside, sizeof beside, "%s-shm", name);
      printf("shared memory %d\n", stat(beside, &st) == 0);
      elsewhere(name, vfs[i], "select count(*) from t");
    }
    sqlite3_close(b);
    sqlite3_close(a);
    elsewhere(name, vfs[i], "select count(*) from t");
  }
  printf("-- memdb\n");
  sqlite3 *a = opened("/shared", both, "memdb"), *b = opened("file:/shared?vfs=memdb", both | SQLITE_OPEN_URI, 0);
  sqlite3 *c = opened("private", both, "memdb"), *d = opened("private", both, "memdb");
  run(a, "create table t(a); insert into t values(1)");
  run(b, "select * from t");
  run(c, "create table t(a); insert into t values(2)");
  run(d, "select * from t");
  run(a, "begin immediate");
  run(b, "insert into t values(3)");
  run(a, "commit");
  run(b, "insert into t values(3); pragma journal_mode=wal; attach '/shared2' as x; create table x.y(z)");
  sqlite3_close(a);
  sqlite3_close(b);
  sqlite3_close(c);
  sqlite3_close(d);
  a = opened("/shared", both, "memdb");
  run(a, "select * from t");
  sqlite3_close(a);
  /* Without a name of its own, by a URI. */
  a = opened("file::memory:?cache=shared", both | SQLITE_OPEN_URI, 0);
  b = opened("file::memory:?cache=shared", both | SQLITE_OPEN_URI, 0);
  run(a, "create table t(a); insert into t values(6)");
  run(b, "select * from t");
  sqlite3_close(a);
  sqlite3_close(b);
  sqlite3_vfs_register(sqlite3_vfs_find("memdb"), 1);
  printf("default %s\n", sqlite3_vfs_find(0)->zName);
  a = opened("/other", both, 0);
  run(a, "create table t(a); insert into t values(5)");
  b = opened("/other", both, 0);
  run(b, "select * from t");
  sqlite3_close(a);
  sqlite3_close(b);
  return 0;
}
