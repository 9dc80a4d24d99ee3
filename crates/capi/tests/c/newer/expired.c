/* Statements that expired, whose schema was changed, or that could not begin: what is traced, what is told afterwards, and what goes on. */
#include "../common.h"

static sqlite3 *db, *other;

static int trace(unsigned what, void *user, void *p, void *x) {
  (void)user;
  (void)p;
  if (what == SQLITE_TRACE_STMT) printf("  begins %s\n", (const char *)x);
  if (what == SQLITE_TRACE_PROFILE) printf("  ends\n");
  if (what == SQLITE_TRACE_ROW) printf("  row\n");
  return 0;
}

static int asked(void *user, int action, const char *a, const char *b, const char *c, const char *d) {
  (void)a, (void)b, (void)c, (void)d;
  int *answer = user;
  return action == answer[0] ? answer[1] : SQLITE_OK;
}

static int compare(void *user, int n, const void *a, int m, const void *b) {
  (void)user;
  int most = n < m ? n : m, c = memcmp(b, a, most);
  return c ? c : m - n;
}

static sqlite3_stmt *prepared(sqlite3 *on, const char *sql) {
  sqlite3_stmt *s = 0;
  int rc = sqlite3_prepare_v2(on, sql, -1, &s, 0);
  if (rc) printf("prepare: %d %s\n", sqlite3_extended_errcode(on), sqlite3_errmsg(on));
  return s;
}

static void step(sqlite3_stmt *s) {
  int rc = sqlite3_step(s);
  sqlite3 *on = sqlite3_db_handle(s);
  printf("step %d busy %d changes %d state %d: %d", rc, sqlite3_stmt_busy(s), sqlite3_changes(on), sqlite3_txn_state(on, "main"),
         sqlite3_errcode(on));
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) printf(" %s", sqlite3_errmsg(on));
  printf("\n");
}

/* A statement that cannot be compiled anew was not run: its parameters may be bound, and its end leaves the connection's error. */
static void cannot(const char *change, const char *sql) {
  printf("-- %s; %s\n", change, sql);
  run(db, "drop table if exists n; create table n(a, b); insert into n values(1, 2)");
  sqlite3_stmt *s = prepared(db, sql);
  sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, trace, 0);
  int answer[] = {SQLITE_READ, SQLITE_DENY};
  if (*change) sqlite3_exec(db, change, 0, 0, 0);
  else sqlite3_set_authorizer(db, asked, answer);
  for (int i = 0; i < 3; i++) {
    step(s);
    printf("bind %d\n", sqlite3_bind_int(s, 99, 1));
  }
  sqlite3_set_authorizer(db, 0, 0);
  sqlite3_trace_v2(db, 0, 0, 0);
  sqlite3_exec(db, "select nosuch", 0, 0, 0);
  int rc = sqlite3_finalize(s);
  printf("finalize %d: %s\n", rc, sqlite3_errmsg(db));
}

/* Who finds a lock taken goes on from there. */
static void waits(const char *sql) {
  printf("-- %s\n", sql);
  run(db, "delete from t; insert into t values(1, 'a'), (2, 'b')");
  sqlite3_stmt *s = prepared(db, sql);
  run(other, "begin immediate");
  sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, trace, 0);
  step(s);
  step(s);
  run(db, "savepoint one");
  run(other, "rollback");
  step(s);
  printf("reset %d changes %d\n", sqlite3_reset(s), sqlite3_changes(db));
  run(other, "begin immediate");
  step(s);
  printf("reset %d changes %d state %d\n", sqlite3_reset(s), sqlite3_changes(db), sqlite3_txn_state(db, "main"));
  run(other, "rollback");
  sqlite3_trace_v2(db, 0, 0, 0);
  sqlite3_finalize(s);
}

/* Rows of a table that has got a column since it was last looked at. */
static int row(void *user, int n, char **values, char **names) {
  (void)user;
  for (int i = 0; i < n; i++) printf("%s%s=%s", i ? " " : "", names[i], values[i] ? values[i] : "NULL");
  printf("\n");
  return 0;
}

static void ignored(const char *sql) {
  int answer[] = {SQLITE_SELECT, SQLITE_IGNORE};
  sqlite3_set_authorizer(db, asked, answer);
  sqlite3_stmt *s = prepared(db, sql);
  if (s) {
    printf("ignored: columns %d, ", sqlite3_column_count(s));
    step(s);
  }
  sqlite3_finalize(s);
  sqlite3_set_authorizer(db, 0, 0);
}

int main(int argc, char **argv) {
  (void)argc;
  db = db_open(scratch(argv, "expired.db"));
  other = db_open(scratch(argv, "expired.db"));
  run(db, "create table t(a integer primary key, b)");
  cannot("alter table n rename to m", "select * from n");
  run(db, "drop table m");
  cannot("", "select * from n");
  cannot("", "delete from n");
  cannot("create index ni on n(a)", "create index ni on n(a)");
  cannot("create view nv as select 1", "create view nv as select 1");
  waits("insert into t values(9, 'z')");
  waits("update t set b = 'c'");

  run(db, "select count(*) from t");
  run(other, "alter table t add column e default 5; insert into t(a, b) values(50, 'q')");
  printf("exec %d\n", sqlite3_exec(db, "select * from t where a = 50", row, 0, 0));

  ignored("select * from t");
  ignored("select nosuch from nowhere");
  ignored("insert into t select 70, 'x', 1");

  /* A built-in collating sequence that is taken back, and one that comes in its place. */
  sqlite3 *m = db_open(":memory:");
  run(m, "create table c(x collate NOCASE); insert into c values('B'), ('a')");
  printf("taken back %d\n", sqlite3_create_collation(m, "nocase", SQLITE_UTF8, 0, 0));
  run(m, "select x from c order by x");
  printf("other %d\n", sqlite3_create_collation(m, "nocase", SQLITE_UTF8, 0, compare));
  run(m, "select x from c order by x");
  printf("wide %d\n", sqlite3_create_collation(m, "mine", SQLITE_UTF16LE, 0, compare));
  sqlite3_stmt *s = prepared(m, "select x from c");
  step(s);
  printf("while one runs %d %d\n", sqlite3_create_collation(m, "mine", SQLITE_UTF8, 0, compare),
         sqlite3_create_collation(m, "nocase", SQLITE_UTF8, 0, compare));
  sqlite3_finalize(s);

  /* How many rows of a view were changed; runs of triggers. */
  run(m, "create view v as select x from c; create trigger vi instead of insert on v begin insert into c values(new.x); end;"
         "create trigger vd instead of delete on v begin delete from c where x = old.x; end");
  run(m, "pragma count_changes = 1; insert into v values('k'), ('l'); delete from v where x > 'j'");
  run(m, "create table d(x); create trigger di after insert on d begin select 1; end");
  s = prepared(m, "insert into d values(1), (2), (3)");
  while (sqlite3_step(s) == SQLITE_ROW) {
  }
  printf("runs %d\n", sqlite3_stmt_status(s, SQLITE_STMTSTATUS_RUN, 0));
  sqlite3_finalize(s);
  /* An image that may not be written. */
  sqlite3_int64 size = 0;
  unsigned char *image = sqlite3_serialize(m, "main", &size, 0);
  sqlite3 *copy = db_open(":memory:");
  printf("image %d\n", sqlite3_deserialize(copy, "main", image, size, size, SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY));
  printf("read only %d\n", sqlite3_db_readonly(copy, "main"));
  run(copy, "select count(*) from d");
  run(copy, "insert into d values(4)");
  run(copy, "begin immediate");
  printf("closed %d %d %d %d\n", sqlite3_close(copy), sqlite3_close(m), sqlite3_close(other), sqlite3_close(db));
  return 0;
}
