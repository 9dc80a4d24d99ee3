/* Processes that fork while their threads use the library. What holds: a child never waits for a thread that it does not
   have, and what it opens itself works; a connection that another thread was in the midst of answers an error; a program whose
   own fork handlers take a lock, under which its threads use the library, goes on. */
#include "../common.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static char path[4096];
static int wrong, failed;
static volatile int stop;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static sqlite3 *idle;

static void must(int ok, const char *what) {
  if (ok) return;
  wrong++;
  printf("%s\n", what);
}

static sqlite3 *open_it(int shared) {
  char name[5000];
  sqlite3 *db = 0;
  snprintf(name, sizeof name, "file:%s%s", path, shared ? "?cache=shared" : "");
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX;
  must(sqlite3_open_v2(name, &db, flags, 0) == SQLITE_OK, "a connection does not open");
  sqlite3_busy_timeout(db, 10000);
  return db;
}

static int quiet(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, 0, 0, 0); }

/* What threads of the parent do meanwhile. */
static void *computes(void *shared) {
  sqlite3 *db = open_it(shared != 0);
  while (!stop) {
    quiet(db, "with recursive c(i) as (select 1 union all select i + 1 from c where i < 20000) select sum(i) from c");
  }
  sqlite3_close(db);
  return 0;
}

static void *opens(void *unused) {
  while (!stop) {
    sqlite3 *db = open_it(0);
    quiet(db, "select * from t");
    sqlite3_db_filename(db, "main");
    sqlite3_vfs_find("unix");
    sqlite3_close(db);
  }
  return unused;
}

/* What takes long enough is done in columns, which the connections of a process share. */
static const char *columns = "select k % 7, sum(v), count(*) from big group by 1; select sum(v) from big where k > 100";

static void *reads_columns(void *unused) {
  sqlite3 *db = open_it(0);
  quiet(db, "pragma analytics = force");
  for (int i = 0; !stop; i++) {
    quiet(db, columns);
    if (i % 5 == 0) quiet(db, "update big set v = v + 1 where k % 50 = 3");
  }
  sqlite3_close(db);
  return unused;
}

static void reads_columns_of_its_own(void) {
  must(quiet(idle, columns) == SQLITE_OK, "an idle connection fails that has read columns");
  must(quiet(idle, "update big set v = v + 1 where k = 5") == SQLITE_OK, "and cannot write");
  must(quiet(idle, columns) == SQLITE_OK, "and fails then");
  must(sqlite3_close(idle) == SQLITE_OK, "and does not close");
}

static void *writes_under_lock(void *unused) {
  sqlite3 *db = open_it(0);
  while (!stop) {
    pthread_mutex_lock(&own);
    quiet(db, "begin; insert into t values(randomblob(200000)); rollback; pragma shrink_memory");
    pthread_mutex_unlock(&own);
    usleep(1);
  }
  sqlite3_close(db);
  return unused;
}

/* A child has five seconds. */
static void forked(void (*work)(void), const char *what) {
  pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    work();
    _exit(wrong > 0);
  }
  int status = 0;
  for (int i = 0; i < 5000 && waitpid(child, &status, WNOHANG) == 0; i++) {
    usleep(1000);
    if (i == 4999) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
  }
  failed += status != 0;
  must(status == 0, what);
}

static void opens_its_own(void) {
  for (int shared = 0; shared < 2; shared++) {
    sqlite3 *db = open_it(shared);
    must(quiet(db, "select * from t") == SQLITE_OK, "a child's own connection fails");
    must(sqlite3_close(db) == SQLITE_OK, "a child's own connection does not close");
  }
}

/* The connection is not used by anybody, but others that may share its cache are. */
static void uses_an_idle_one(void) {
  int rc = quiet(idle, "select * from t");
  must(rc == SQLITE_OK || rc == SQLITE_MISUSE, "an idle connection answers something else");
  sqlite3_close(idle);
  opens_its_own();
}

static void forks(sqlite3_context *ctx, int n, sqlite3_value **args) {
  forked(uses_an_idle_one, "a child that was forked in a function");
  sqlite3_result_int(ctx, 1);
}

static void in_a_function(int shared, int uses) {
  idle = open_it(shared);
  sqlite3_create_function(idle, "forks", 0, SQLITE_UTF8, 0, forks, 0, 0);
  for (int i = 0; i < uses; i++) quiet(idle, "select 1");
  must(quiet(idle, "select forks()") == SQLITE_OK, "the parent fails");
  must(sqlite3_close(idle) == SQLITE_OK, "the parent's connection does not close");
}

static void beside(void *(*thread)(void *), void *arg, void (*work)(void), int times, const char *what) {
  pthread_t threads[2];
  stop = failed = 0;
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, thread, arg);
  for (int i = 0; i < times && failed == 0; i++) {
    usleep(500);
    forked(work, what);
  }
  stop = 1;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
}

static void take(void) { pthread_mutex_lock(&own); }
static void give(void) { pthread_mutex_unlock(&own); }

int main(int n, char **argv) {
  snprintf(path, sizeof path, "%s", scratch(argv, "forks.db"));
  alarm(100);
  pthread_atfork(take, give, give);
  idle = open_it(0);
  quiet(idle, "pragma journal_mode = wal; create table t(x); insert into t values(1)");
  sqlite3_close(idle);
  for (int shared = 0; shared < 2; shared++) {
    in_a_function(shared, 1);
    in_a_function(shared, 100);
    idle = open_it(shared);
    beside(computes, shared ? path : 0, opens_its_own, 30, "a child that opens connections");
    beside(computes, shared ? path : 0, uses_an_idle_one, 30, "a child that uses an idle connection");
    sqlite3_close(idle);
  }
  beside(opens, 0, opens_its_own, 200, "a child beside threads that open connections");
  idle = open_it(0);
  quiet(idle, "create table big(k integer primary key, v); insert into big "
              "with recursive c(i) as (select 1 union all select i + 1 from c where i < 20000) select i, i from c");
  quiet(idle, "pragma analytics = force");
  quiet(idle, columns);
  beside(reads_columns, 0, reads_columns_of_its_own, 100, "a child beside threads that read columns");
  sqlite3_close(idle);
  beside(writes_under_lock, 0, opens_its_own, 100, "a child beside a lock of the program's");
  printf("\nwrong %d\n", wrong);
  return 0;
}
