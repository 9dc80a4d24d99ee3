/* The commit hook is asked when the locks are held: a commit that somebody is in the way of is not told of. */
#include "common.h"

static int told(void *p) {
  printf("hook of %s\n", (char *)p);
  return 0;
}

static void undone(void *p) { printf("rollback of %s\n", (char *)p); }

int main(int argc, char **argv) {
  (void)argc;
  const char *modes[] = {"delete", "truncate", "persist", "memory", "wal"};
  for (int i = 0; i < 5; i++) {
    printf("-- %s\n", modes[i]);
    static char one[4200], two[4200], text[8600];
    char name[40];
    sprintf(name, "hook_%s.db", modes[i]);
    strcpy(one, scratch(argv, name));
    sprintf(name, "hook_%s_2.db", modes[i]);
    strcpy(two, scratch(argv, name));
    sqlite3 *a = db_open(one), *b = db_open(one);
    sprintf(text, "pragma journal_mode = %s; create table t(x); insert into t values(1), (2); attach '%s' as second; create table second.u(x)", modes[i], two);
    run(a, text);
    sqlite3_commit_hook(a, told, "a");
    sqlite3_rollback_hook(a, undone, "a");
    sqlite3_stmt *s;
    sqlite3_prepare_v2(b, "select x from t", -1, &s, 0);
    printf("%d\n", sqlite3_step(s));
    run(a, "insert into t values(3)");
    run(a, "insert into second.u values(3)");
    run(a, "begin; insert into t values(4); insert into second.u values(4); commit");
    printf("open %d\n", !sqlite3_get_autocommit(a));
    run(a, "commit");
    sqlite3_reset(s);
    run(a, "commit");
    run(a, "insert into t values(5); select count(*) from t; select count(*) from u");
    sqlite3_finalize(s);
    sqlite3_close(b);
    sqlite3_close(a);
  }
  return 0;
}
