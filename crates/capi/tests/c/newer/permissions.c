/* Databases of somebody else: who may only read, or may not make files beside them, is told the same at the same statement. Each
   combination of what lies there, of the bits on it and of the way it is opened is tried by a process of its own, which has
   given the rights of root up; without them to begin with, all is the owner's and less is tried. */
#include "../common.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *left[][12] = {
  {"plain"},
  {"log", "pragma journal_mode=wal", "insert into t values(4,4)"},
  {"log and index", "pragma journal_mode=wal", "insert into t values(4,4)", "kill"},
  {"hot", "pragma cache_size=2", "pragma cache_spill=2", "begin", "update t set b=zeroblob(15000)",
   "insert into t select a+10,zeroblob(9000) from t", "insert into t select a+100,zeroblob(9000) from t", "kill"},
  {"kept", "pragma journal_mode=persist", "insert into t values(10,1)"},
  {"empty", "drop table t", "vacuum"},
};
/* Of the folder, the database, its log, its index, its journal. Not tried: what is beside the database may be written but not removed.
   There a log that cannot go is left to count again by stock, where iolite refuses to leave the mode. */
static const int bits[][5] = {
  {0755, 0644, 0644, 0644, 0644}, {0777, 0644, 0644, 0644, 0644}, {0777, 0666, 0644, 0644, 0644}, {0755, 0666, 0644, 0644, 0644},
  {0755, 0644, 0666, 0666, 0666}, {0777, 0666, 0600, 0600, 0600}, {0755, 0444, 0444, 0444, 0444}, {0777, 0600, 0644, 0644, 0644},
  {0733, 0666, 0666, 0666, 0666}, {01777, 0666, 0644, 0644, 0644},
};
static const char *ways[] = {"t.db", "file:t.db?mode=ro", "file:t.db?vfs=unix-none", "file:t.db?vfs=unix-dotfile", "file:t.db?nolock=1"};
static const char *work[] = {
  "pragma journal_mode", "select count(*),sum(length(b)) from t", "insert into t values(77,1)", "select count(*) from t", "begin",
  "update t set b=2 where a=3", "commit", "pragma user_version=3", "create table u(x)", "pragma wal_checkpoint",
  "pragma wal_checkpoint(truncate)", "pragma integrity_check", "create temp table tt(x)", "insert into tt values(1)",
  "attach 'new.db' as n", "pragma n.journal_mode=persist", "insert into t values(78,1)", "pragma journal_mode=wal",
  "pragma journal_mode=delete", "insert into t values(79,1)", "pragma journal_mode=persist", "delete from t where a=1",
  "pragma journal_mode=memory", "pragma journal_mode=off", "pragma journal_mode=truncate", "delete from t where a=2",
};

static void clean(void) {
  DIR *d = opendir(".");
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') remove(e->d_name);
  closedir(d);
  rmdir("t.db.lock");
}

static void in_child(void (*f)(int, int), int a, int b) {
  fflush(stdout);
  pid_t p = fork();
  if (!p) {
    f(a, b);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(p, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) printf("signal %d\n", WTERMSIG(status));
}

static void make(int k, int unused) {
  (void)unused;
  sqlite3 *db = db_open("t.db");
  sqlite3_exec(db, "create table t(a integer primary key,b);"
                   "insert into t values(1,zeroblob(3000)),(2,zeroblob(20000)),(3,'x')", 0, 0, 0);
  for (int i = 1; left[k][i]; i++) {
    if (!strcmp(left[k][i], "kill")) kill(getpid(), SIGKILL);
    sqlite3_exec(db, left[k][i], 0, 0, 0);
  }
  sqlite3_close(db);
}

static void visit(int way, int becomes) {
  if (becomes && (setgid(65534) || setuid(65534))) return;
  sqlite3 *db = 0;
  int rc = sqlite3_open_v2(ways[way], &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, 0);
  printf("open %d autocommit %d errno %d\n", rc, sqlite3_get_autocommit(db), rc ? sqlite3_system_errno(db) : 0);
  for (unsigned i = 0; i < sizeof work / sizeof *work; i++) {
    printf("%s: ", work[i]);
    if (!run(db, work[i])) printf("ok\n");
  }
  printf("autocommit %d\n", sqlite3_get_autocommit(db));
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  if (argc > 1 && chdir(argv[1])) return 1;
  umask(022);
  int root = !getuid();
  mkdir("theirs", 0755);
  if (chdir("theirs")) return 1;
  for (unsigned k = 0; k < sizeof left / sizeof *left; k++)
    for (unsigned b = 0; b < sizeof bits / sizeof *bits; b++)
      for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++) {
        clean();
        in_child(make, k, 0);
        const int *m = bits[b];
        chmod("t.db", m[1]), chmod("t.db-wal", m[2]), chmod("t.db-shm", m[3]), chmod("t.db-journal", m[4]), chmod(".", m[0]);
        printf("== %s, %o %o %o %o %o, %s\n", left[k][0], m[0], m[1], m[2], m[3], m[4], ways[w]);
        in_child(visit, w, root);
        chmod(".", 0755);
      }
  clean();
  return chdir("..") || rmdir("theirs");
}
