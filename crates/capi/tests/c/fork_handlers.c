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
static void in_child(void) { use("in the child"); }

int main(void) {
  alarm(60);
  pthread_atfork(before, 0, in_child);
  use("first");
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    use("child");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  use("parent");
  printf("%d\n", status);
  return 0;
}
