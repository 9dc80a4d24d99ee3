/* Threads that the library starts for itself: none for a few statements, none in a forked child, none that takes a signal of
   the program's; and what they do changes no answer. */
#include "common.h"
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

static int threads(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/task");
  if (!d) return 1;
  for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static volatile sig_atomic_t taken;
static void take(int signal) { (void)signal, taken = 1; }

static void read_often(sqlite3 *db, int times) {
  sqlite3_stmt *s = 0;
  long sum = 0;
  sqlite3_prepare_v2(db, "select b from t where a = 1", -1, &s, 0);
  for (int i = 0; i < times; i++) {
    while (sqlite3_step(s) == SQLITE_ROW) sum += sqlite3_column_int(s, 0);
    sqlite3_reset(s);
  }
  sqlite3_finalize(s);
  printf("sum %ld\n", sum);
}

static void commit_often(sqlite3 *db, int times) {
  int failed = 0;
  for (int i = 0; i < times; i++) failed += sqlite3_exec(db, "update t set b = b + 1 where a = 2", 0, 0, 0) != 0;
  printf("%d commits, %d failed\n", times, failed);
}

int main(int argc, char **argv) {
  (void)argc;
  alarm(60);
  signal(SIGUSR1, take);
  sqlite3 *db = db_open(scratch(argv, "housekeeping.db"));
  run(db, "pragma journal_mode = wal; pragma synchronous = normal; create table t(a integer primary key, b);"
          "insert into t values(1, 1), (2, 0)");
  read_often(db, 10);
  commit_often(db, 10);
  printf("few statements: %d thread\n", threads());
  read_often(db, 2000);
  commit_often(db, 3000);
  read_often(db, 2000);

  sigset_t one, pending;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  sigprocmask(SIG_BLOCK, &one, 0);
  kill(getpid(), SIGUSR1);
  usleep(20000);
  sigpending(&pending);
  printf("a blocked signal waits: %d, taken: %d\n", sigismember(&pending, SIGUSR1), (int)taken);
  sigprocmask(SIG_UNBLOCK, &one, 0);
  printf("then it is taken: %d\n", (int)taken);

  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    sqlite3 *own = db_open(scratch(argv, "housekeeping.db"));
    sqlite3_busy_timeout(own, 20000);
    run(own, "pragma synchronous = normal");
    read_often(own, 2000);
    commit_often(own, 3000);
    printf("child: %d thread\n", threads());
    sqlite3_close(own);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("%d\n", status);
  read_often(db, 2000);
  run(db, "select a, b from t; pragma wal_checkpoint(truncate); pragma integrity_check");
  /* Nobody else has the file open: what another process finds is the whole. */
  sqlite3_close(db);
  db = db_open(scratch(argv, "housekeeping.db"));
  run(db, "pragma journal_mode = delete; select a, b from t");
  sqlite3_close(db);
  return 0;
}
