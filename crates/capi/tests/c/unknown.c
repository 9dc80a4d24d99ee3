/* Schemas that name functions and collating sequences which the program does not register: what does without them works. */
#include "common.h"

static void same(sqlite3_context *c, int n, sqlite3_value **v) { sqlite3_result_value(c, v[0]); }

static int compare(void *p, int n, const void *a, int m, const void *b) {
  int rc = memcmp(a, b, n < m ? n : m);
  return rc ? rc : n - m;
}

static int asked;

static void give(void *p, sqlite3 *db, int encoding, const char *name) {
  asked++;
  if (p) sqlite3_create_collation(db, name, SQLITE_UTF8, 0, compare);
}

static const char *schemas[] = {
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c); CREATE INDEX tf ON t(f(c)); CREATE INDEX tp ON t(b) WHERE f(c); CREATE INDEX tc ON t(c)",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c, d AS (f(c)), e AS (f(a)) STORED)",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c CHECK(f(c)))",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT COLLATE mine, c)",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c); CREATE INDEX ti ON t(b COLLATE mine); CREATE INDEX tc ON t(c)",
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT COLLATE mine, c); CREATE INDEX ti ON t(b); CREATE INDEX tc ON t(c)"};

static const char *statements[] = {
    "SELECT a FROM t WHERE c=2",
    "SELECT a, c FROM t ORDER BY c",
    "SELECT b FROM t WHERE a=1",
    "SELECT b, a FROM t ORDER BY a DESC LIMIT 1",
    "SELECT count(*), sum(a) FROM t WHERE a>0",
    "SELECT b FROM t ORDER BY b",
    "SELECT a FROM t WHERE b='x'",
    "SELECT DISTINCT b FROM t",
    "SELECT max(b) FROM t",
    "SELECT group_concat(a) FROM (SELECT a FROM t ORDER BY a)",
    "SELECT b FROM t UNION SELECT b FROM t",
    "SELECT row_number() OVER (ORDER BY b) FROM t",
    "SELECT x.a FROM t x JOIN t y ON x.b=y.b",
    "SELECT a FROM t WHERE b BETWEEN 'a' AND 'z'",
    "SELECT CASE b WHEN 'x' THEN 1 END FROM t",
    "SELECT nullif(b,'x') FROM t",
    "UPDATE t SET c=c+1 WHERE a=1",
    "UPDATE t SET b='z' WHERE a=1",
    "INSERT INTO t(a,b,c) VALUES(5,'n',9)",
    "DELETE FROM t WHERE a=2",
    "CREATE INDEX more ON t(c,a)",
    "INSERT INTO o SELECT a, c FROM t",
    "DELETE FROM t"};

#define COUNT(a) (int)(sizeof a / sizeof *a)

static void look(const char *path, int functions, int who) {
  for (int i = 0; i < COUNT(schemas); i++) {
    unlink(path);
    sqlite3 *db = db_open(path);
    sqlite3_create_function(db, "f", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, 0, same, 0, 0);
    sqlite3_create_collation(db, "mine", SQLITE_UTF8, 0, compare);
    run(db, schemas[i]);
    run(db, "CREATE TABLE o(x,y); INSERT INTO t(a,b,c) VALUES(1,'x',1),(2,'y',2)");
    sqlite3_close(db);
    db = db_open(path);
    if (functions) sqlite3_create_function(db, "f", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, 0, same, 0, 0);
    if (who) sqlite3_collation_needed(db, who == 2 ? db : 0, give);
    for (int k = 0; k < COUNT(statements); k++) {
      sqlite3_stmt *s = 0;
      int rc = sqlite3_prepare_v2(db, statements[k], -1, &s, 0);
      printf("%d %s: %d", i, statements[k], rc ? sqlite3_extended_errcode(db) : 0);
      while (!rc && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *t = (const char *)sqlite3_column_text(s, 0);
        printf(" %s", t ? t : "NULL");
        rc = 0;
      }
      printf("\n");
      sqlite3_finalize(s);
    }
    if (!i || who != 1) run(db, "SELECT count(*) FROM o");
    sqlite3_close(db);
  }
}

int main(int argc, char **argv) {
  const char *path = strdup(scratch(argv, "unknown.db"));
  printf("nobody is asked\n");
  look(path, 0, 0);
  printf("somebody is asked who does not know\n");
  look(path, 0, 1);
  printf("asked: %d\n", asked > 0);
  printf("somebody is asked who knows\n");
  look(path, 1, 2);
  return 0;
}
