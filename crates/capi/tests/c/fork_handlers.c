/* A program that has fork handlers of its own, registered before the library's first use: they run between the library's,
   and use databases. */
#include "common.h"
#include <sys/wait.h>

static void use(const char *where) {
  printf("%s: ", where);
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a); insert into t values(randomblob(40000)); select length(a) from t");
  sqlite3_close(db);
  fflush(stdout);
}

static void before(void) { use("before"); }
static void after(void) { if (quiet) use("after"); }
static int quiet = 1;
static void in_child(void) { if (!quiet) use("in the child"); }

int main(int argc, char **argv) {
  alarm(60);
  pthread_atfork(before, after, in_child);
  use("first");
  pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  printf("%d\n", status);
  quiet = 0;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    use("child");
    _exit(0);
  }
  waitpid(child, &status, 0);
  printf("%d\n", status);
  return 0;
}
