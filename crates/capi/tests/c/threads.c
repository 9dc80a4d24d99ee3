/* Two to eight threads on one connection and on several: statements, values, blobs, backups and closes that pass from one
   thread to another. The second argument says how often each part is repeated. */
#include "common.h"

#define THREADS 8

static int rounds = 20;
static char folder[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int wrong;

/* Counts what must not happen. */
static void check(int ok, const char *what, int rc) {
  if (ok) return;
  pthread_mutex_lock(&lock);
  if (wrong++ < 20) printf("wrong: %s %d\n", what, rc);
  pthread_mutex_unlock(&lock);
}

static void expect(int rc, int expected, const char *what) { check(rc == expected, what, rc); }

typedef struct {
  int number;
  sqlite3 *db;
  void *thing;
} Job;

static void together(int n, void *(*f)(void *), sqlite3 *db, void **things) {
  pthread_t t[THREADS];
  Job jobs[THREADS];
  for (int i = 0; i < n; i++) {
    jobs[i] = (Job){i, db, things ? things[i] : 0};
    pthread_create(&t[i], 0, f, &jobs[i]);
  }
  for (int i = 0; i < n; i++) pthread_join(t[i], 0);
}

static int number(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  int out = -1;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, 0);
  if (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) out = sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  return out;
}

static const char *file(const char *name) {
  static char path[2 * 4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* One connection, each thread with statements of its own. */
static void *one_connection(void *p) {
  Job *j = p;
  sqlite3_stmt *s;
  for (int i = 0; i < rounds; i++) {
    expect(sqlite3_prepare_v2(j->db, "insert into t values(?, ?)", -1, &s, 0), 0, "prepare");
    sqlite3_bind_int(s, 1, j->number);
    sqlite3_bind_text(s, 2, "some text that does not fit into a word", -1, SQLITE_TRANSIENT);
    expect(sqlite3_step(s), SQLITE_DONE, "insert");
    expect(sqlite3_finalize(s), 0, "finalize");
    expect(sqlite3_prepare_v2(j->db, "select a, b from t where a = ?", -1, &s, 0), 0, "prepare");
    sqlite3_bind_int(s, 1, j->number);
    int n = 0;
    while (sqlite3_step(s) == SQLITE_ROW) {
      n++;
      check(sqlite3_column_bytes(s, 1) == 39, "bytes", 0);
      check(sqlite3_column_text(s, 1)[38] == 'd', "text", 0);
    }
    check(n == i + 1, "rows", n);
    sqlite3_finalize(s);
    sqlite3_exec(j->db, "select nonsense", 0, 0, 0);
  }
  return 0;
}

static void part_one_connection(void) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a, b)");
  together(THREADS, one_connection, db, 0);
  printf("one connection: %d\n", number(db, "select count(*) from t") == THREADS * rounds);
  expect(sqlite3_close(db), 0, "close");
}

/* A copy has whole transactions, whoever writes meanwhile. */
static void copy(sqlite3 *db) {
  sqlite3 *to = db_open(":memory:");
  sqlite3_backup *b = sqlite3_backup_init(to, "main", db, "main");
  int rc = sqlite3_backup_step(b, -1);
  check(rc == SQLITE_DONE || rc == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED, "copy", rc);
  sqlite3_backup_finish(b);
  if (rc == SQLITE_DONE) check(number(to, "select count(*) % 2 from t") <= 0, "half a transaction copied", 0);
  expect(sqlite3_close(to), 0, "close");
}

/* A connection for each thread, on one file or one database in memory. */
static const char *shared_name;
static void *own_connection(void *p) {
  Job *j = p;
  for (int i = 0; i < rounds; i++) {
    sqlite3 *db = 0;
    expect(sqlite3_open_v2(shared_name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, 0), 0, "open");
    sqlite3_busy_timeout(db, 60000);
    int rc = sqlite3_exec(db, "begin immediate; insert into t values(1, hex(randomblob(200))); insert into t values(2, 'x'); commit", 0, 0, 0);
    check(rc == SQLITE_OK || rc == SQLITE_LOCKED, "transaction", rc);
    if (rc) sqlite3_exec(db, "rollback", 0, 0, 0);
    check(number(db, "select count(*) % 2 from t") <= 0, "half a transaction", 0);
    if (i % 5 == j->number % 5) copy(db);
    if (i % 3 == j->number % 3) number(db, "select sum(length(b)) from t where a = 1");
    expect(sqlite3_close(db), 0, "close");
  }
  return 0;
}

static void part_own_connections(void) {
  const char *modes[] = {"wal", "delete", "truncate"};
  char name[3][2 * 4096];
  for (int m = 0; m < 3; m++) {
    snprintf(name[m], sizeof name[m], "%s/%s.db", folder, modes[m]);
    sqlite3 *db = db_open(name[m]);
    char sql[100];
    snprintf(sql, sizeof sql, "pragma journal_mode=%s; create table t(a, b)", modes[m]);
    sqlite3_exec(db, sql, 0, 0, 0);
    shared_name = name[m];
    together(m == 0 ? THREADS : 3, own_connection, 0, 0);
    int n = number(db, "select count(*) from t");
    printf("connections, %s: %d\n", modes[m], n == (m == 0 ? THREADS : 3) * rounds * 2);
    run(db, "pragma integrity_check");
    expect(sqlite3_close(db), 0, "close");
  }
  shared_name = "file:threads?mode=memory&cache=shared";
  sqlite3 *db = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  expect(sqlite3_open_v2(shared_name, &db, flags, 0), 0, "open shared");
  sqlite3_exec(db, "create table t(a, b)", 0, 0, 0);
  together(THREADS, own_connection, 0, 0);
  check(number(db, "select count(*) from t") > 0, "shared", 0);
  printf("connections, memory: %d\n", number(db, "select count(*) % 2 from t"));
  run(db, "pragma integrity_check");
  expect(sqlite3_close(db), 0, "close");
}

/* Statements that one thread makes, others run and end. */
static void *run_statement(void *p) {
  Job *j = p;
  int rc;
  while ((rc = sqlite3_step(j->thing)) == SQLITE_ROW) sqlite3_column_text16(j->thing, 0);
  expect(rc, SQLITE_DONE, "step");
  return 0;
}

static void *end_statement(void *p) {
  expect(sqlite3_finalize(((Job *)p)->thing), 0, "finalize");
  return 0;
}

static void part_statements(void) {
  static int ended;
  for (int i = 0; i < rounds; i++) {
    sqlite3 *db = db_open(":memory:");
    run(db, "create table t(a); insert into t values('one'), (x'0102'), (3.5), (null), (hex(zeroblob(1000)))");
    void *s[THREADS];
    for (int k = 0; k < THREADS; k++) expect(sqlite3_prepare_v2(db, "select a from t union all select 1", -1, (sqlite3_stmt **)&s[k], 0), 0, "prepare");
    together(THREADS, run_statement, db, s);
    /* The connection ends with the last of them. */
    expect(sqlite3_close_v2(db), 0, "close_v2");
    together(THREADS, end_statement, 0, s);
    ended++;
  }
  printf("statements: %d\n", ended == rounds);
}

/* Values that pass from one connection to another. */
typedef struct {
  sqlite3 *db;
  sqlite3_value *value;
} Passed;

static void *use_value(void *p) {
  Passed *v = ((Job *)p)->thing;
  sqlite3_stmt *s;
  expect(sqlite3_prepare_v2(v->db, "select length(?1), ?1 || 'x'", -1, &s, 0), 0, "prepare");
  for (int i = 0; i < rounds; i++) {
    /* Many times, so that two threads do it at once. */
    for (int k = 0; k < 500; k++) expect(sqlite3_bind_value(s, 1, v->value), 0, "bind_value");
    expect(sqlite3_step(s), SQLITE_ROW, "step");
    check(sqlite3_column_int(s, 0) == 2000, "length", sqlite3_column_int(s, 0));
    sqlite3_reset(s);
    if (i % 2) sqlite3_clear_bindings(s);
  }
  sqlite3_finalize(s);
  return 0;
}

static void pass_on(sqlite3_context *cx, int n, sqlite3_value **v) {
  (void)n;
  sqlite3_result_value(cx, v[0]);
}

static void part_values(void) {
  sqlite3 *from = db_open(":memory:");
  sqlite3_stmt *s;
  sqlite3_create_function(from, "pass", 1, SQLITE_UTF8, 0, pass_on, 0, 0);
  run(from, "create table t(a); insert into t values(hex(zeroblob(1000)))");
  expect(sqlite3_prepare_v2(from, "select pass(a) from t", -1, &s, 0), 0, "prepare");
  expect(sqlite3_step(s), SQLITE_ROW, "step");
  sqlite3_value *copy = sqlite3_value_dup(sqlite3_column_value(s, 0));
  Passed passed[THREADS];
  void *things[THREADS];
  for (int i = 0; i < THREADS; i++) {
    passed[i] = (Passed){db_open(":memory:"), copy};
    things[i] = &passed[i];
  }
  /* Every thread reads one value, which nobody changes. */
  together(THREADS, use_value, 0, things);
  sqlite3_finalize(s);
  sqlite3_value_free(copy);
  expect(sqlite3_close(from), 0, "close");
  /* And a row's own value, bound by this thread while another one runs what was bound before. */
  from = db_open(":memory:");
  run(from, "create table t(a); insert into t values(hex(zeroblob(1000))), (hex(zeroblob(1000)))");
  expect(sqlite3_prepare_v2(from, "select a from t", -1, &s, 0), 0, "prepare");
  sqlite3_stmt *to;
  expect(sqlite3_prepare_v2(passed[0].db, "select ?1 || ?1", -1, &to, 0), 0, "prepare");
  for (int i = 0; i < rounds; i++) {
    expect(sqlite3_step(s), SQLITE_ROW, "step");
    expect(sqlite3_bind_value(to, 1, sqlite3_column_value(s, 0)), 0, "bind_value");
    pthread_t t;
    Job j = {0, 0, to};
    pthread_create(&t, 0, run_statement, &j);
    sqlite3_step(s);
    sqlite3_reset(s);
    pthread_join(t, 0);
    sqlite3_reset(to);
  }
  sqlite3_finalize(s);
  sqlite3_finalize(to);
  expect(sqlite3_close(from), 0, "close");
  for (int i = 0; i < THREADS; i++) expect(sqlite3_close(passed[i].db), 0, "close");
  printf("values\n");
}

/* One blob, written by all; and a handle for each. */
static void *write_blob(void *p) {
  Job *j = p;
  char piece[1000], back[1000];
  memset(piece, 'a' + j->number, sizeof piece);
  for (int i = 0; i < rounds; i++) {
    expect(sqlite3_blob_write(j->thing, piece, sizeof piece, j->number * 1000), 0, "blob_write");
    expect(sqlite3_blob_read(j->thing, back, sizeof back, j->number * 1000), 0, "blob_read");
    check(memcmp(piece, back, sizeof back) == 0, "blob content", 0);
  }
  return 0;
}

static void *own_blob(void *p) {
  Job *j = p;
  for (int i = 0; i < rounds; i++) {
    sqlite3_blob *b = 0;
    expect(sqlite3_blob_open(j->db, "main", "t", "a", j->number + 1, 1, &b), 0, "blob_open");
    expect(sqlite3_blob_write(b, "own", 3, i), 0, "blob_write");
    expect(sqlite3_blob_close(b), 0, "blob_close");
  }
  return 0;
}

static void *close_blob(void *p) {
  sqlite3_blob_close(((Job *)p)->thing);
  return 0;
}

static void part_blobs(void) {
  sqlite3 *db = db_open(file("blobs.db"));
  sqlite3_blob *b;
  run(db, "create table t(a)");
  for (int i = 0; i < THREADS; i++) run(db, "insert into t values(zeroblob(8000))");
  expect(sqlite3_blob_open(db, "main", "t", "a", 1, 1, &b), 0, "blob_open");
  void *same[THREADS];
  for (int i = 0; i < THREADS; i++) same[i] = b;
  together(THREADS, write_blob, db, same);
  expect(sqlite3_blob_close(b), 0, "blob_close");
  run(db, "select substr(a, 1, 2), substr(a, 7999) from t where rowid = 1");
  together(THREADS, own_blob, db, 0);
  void *all[THREADS];
  for (int i = 0; i < THREADS; i++) expect(sqlite3_blob_open(db, "main", "t", "a", i + 1, i % 2, (sqlite3_blob **)&all[i]), 0, "blob_open");
  sqlite3_close_v2(db);
  together(THREADS, close_blob, 0, all);
  db = db_open(file("blobs.db"));
  run(db, "pragma integrity_check; select count(*) from t where a like '%own%'");
  expect(sqlite3_close(db), 0, "close");
}

/* Backups while others write. */
static void *write_rows(void *p) {
  Job *j = p;
  for (int i = 0; i < rounds; i++) sqlite3_exec(j->db, "insert into t values(hex(randomblob(500)))", 0, 0, 0);
  return 0;
}

static void *backup(void *p) {
  Job *j = p;
  for (int i = 0; i < rounds / 4 + 1; i++) {
    sqlite3 *to = db_open(":memory:");
    sqlite3_backup *b = sqlite3_backup_init(to, "main", j->db, "main");
    check(b != 0, "backup_init", 0);
    int rc = SQLITE_OK;
    for (int n = 0; n < 50 && rc == SQLITE_OK; n++) rc = sqlite3_backup_step(b, 5);
    while (rc == SQLITE_OK || rc == SQLITE_BUSY) rc = sqlite3_backup_step(b, -1);
    expect(rc, SQLITE_DONE, "backup_step");
    sqlite3_backup_remaining(b);
    expect(sqlite3_backup_finish(b), 0, "backup_finish");
    check(number(to, "select count(*) from t") > 0, "backup", 0);
    expect(sqlite3_close(to), 0, "close");
  }
  return 0;
}

static void *backup_or_write(void *p) { return ((Job *)p)->number % 2 ? backup(p) : write_rows(p); }

static void part_backups(void) {
  sqlite3 *db = db_open(file("backup.db"));
  run(db, "create table t(a); insert into t values(1)");
  together(4, backup_or_write, db, 0);
  run(db, "pragma integrity_check");
  printf("backups: %d\n", number(db, "select count(*) from t") == 1 + 2 * rounds);
  expect(sqlite3_close(db), 0, "close");
}

/* Interrupts, and callbacks that end with the connection. */
static int destroyed;
static void destroy(void *p) { __atomic_add_fetch((int *)p, 1, __ATOMIC_RELAXED); }
static int collate(void *p, int n, const void *a, int m, const void *b) {
  (void)p;
  int c = memcmp(a, b, n < m ? n : m);
  return c ? c : n - m;
}

static int started;
static int on_progress(void *p) {
  (void)p;
  __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
  return 0;
}

static void *interrupt(void *p) {
  Job *j = p;
  while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE)) usleep(100);
  sqlite3_interrupt(j->db);
  return 0;
}

static void part_callbacks(void) {
  for (int i = 0; i < rounds; i++) {
    sqlite3 *db = db_open(":memory:");
    sqlite3_create_function_v2(db, "pass", 1, SQLITE_UTF8, &destroyed, pass_on, 0, 0, destroy);
    sqlite3_create_collation_v2(db, "mine", SQLITE_UTF8, &destroyed, collate, destroy);
    sqlite3_progress_handler(db, 100, on_progress, 0);
    started = 0;
    Job j = {0, db, 0};
    pthread_t t;
    pthread_create(&t, 0, interrupt, &j);
    int rc = sqlite3_exec(db, "with recursive c(x) as (values(1) union all select pass(x + 1) from c) select count(*) from c", 0, 0, 0);
    expect(rc, SQLITE_INTERRUPT, "interrupted");
    check(strcmp(sqlite3_errmsg(db), "interrupted") == 0, "errmsg", 0);
    pthread_join(t, 0);
    sqlite3_stmt *s;
    expect(sqlite3_prepare_v2(db, "select pass('b') < 'c' collate mine", -1, &s, 0), 0, "prepare");
    sqlite3_close_v2(db);
    expect(sqlite3_step(s), SQLITE_ROW, "step of a zombie");
    void *one[] = {s};
    together(1, end_statement, 0, one);
  }
  printf("callbacks: %d\n", destroyed == 2 * rounds);
}

int main(int argc, char **argv) {
  snprintf(folder, sizeof folder, "%s", argc > 1 ? argv[1] : ".");
  if (argc > 2) rounds = atoi(argv[2]);
  part_one_connection();
  part_own_connections();
  part_statements();
  part_values();
  part_blobs();
  part_backups();
  part_callbacks();
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
