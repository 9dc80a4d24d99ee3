/* Connections that share caches do not keep each other waiting while they call functions of the program, which may wait for what another
   thread does with another database; several threads whose functions are given texts of one cache. */
#include "../common.h"

static const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_MEMORY | SQLITE_OPEN_SHAREDCACHE;

static sqlite3 *shared(const char *name) {
  sqlite3 *db = 0;
  if (sqlite3_open_v2(name, &db, flags, 0)) printf("open: %s\n", sqlite3_errmsg(db));
  return db;
}

static void *other(void *p) {
  sqlite3 *db = shared("file:other");
  run(db, "create table u(a, b); insert into u values(1, 'one'), (2, 'two'); select a, upper(b) from u");
  sqlite3_close(db);
  return p;
}

/* Has another thread do it, and waits. */
static void elsewhere(void) {
  pthread_t t;
  pthread_create(&t, 0, other, 0);
  pthread_join(t, 0);
}

static void scalar(sqlite3_context *c, int n, sqlite3_value **v) {
  elsewhere();
  sqlite3_result_value(c, v[0]);
}

static void step(sqlite3_context *c, int n, sqlite3_value **v) {
  if (!sqlite3_value_int(v[0])) elsewhere();
}

static void final(sqlite3_context *c) { elsewhere(); }

/* A table whose scan waits, and whose changes do. */
struct cursor { sqlite3_vtab_cursor base; int row; };

static int connect(sqlite3 *db, void *p, int n, const char *const *v, sqlite3_vtab **out, char **e) {
  *out = calloc(1, sizeof **out);
  return sqlite3_declare_vtab(db, "create table x(a)");
}
static int best(sqlite3_vtab *t, sqlite3_index_info *i) { return SQLITE_OK; }
static int open_cursor(sqlite3_vtab *t, sqlite3_vtab_cursor **out) {
  *out = calloc(1, sizeof(struct cursor));
  return SQLITE_OK;
}
static int close_cursor(sqlite3_vtab_cursor *c) { return free(c), SQLITE_OK; }
static int filter(sqlite3_vtab_cursor *c, int n, const char *s, int k, sqlite3_value **v) { return elsewhere(), SQLITE_OK; }
static int next(sqlite3_vtab_cursor *c) { return ((struct cursor *)c)->row++, elsewhere(), SQLITE_OK; }
static int eof(sqlite3_vtab_cursor *c) { return ((struct cursor *)c)->row == 1; }
static int column(sqlite3_vtab_cursor *c, sqlite3_context *x, int i) { return elsewhere(), sqlite3_result_int(x, 7), SQLITE_OK; }
static int rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *id) { return *id = 1, SQLITE_OK; }
static int update(sqlite3_vtab *t, int n, sqlite3_value **v, sqlite3_int64 *id) { return elsewhere(), *id = 1, SQLITE_OK; }
static sqlite3_module waiting = {.xConnect = connect, .xCreate = connect, .xBestIndex = best, .xDisconnect = vtab_disconnect,
                                 .xDestroy = vtab_disconnect, .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter,
                                 .xNext = next, .xEof = eof, .xColumn = column, .xRowid = rowid, .xUpdate = update};

static void length(sqlite3_context *c, int n, sqlite3_value **v) {
  const char *text = (const char *)sqlite3_value_text(v[0]);
  sqlite3_value *copy = sqlite3_value_dup(v[0]);
  sqlite3_result_int(c, (int)strlen(text) + sqlite3_value_bytes(copy) - (int)strlen((const char *)sqlite3_value_blob(v[0])));
  sqlite3_value_free(copy);
}

/* Reads the common table; `p`: the sum that is to be found. */
static void *reader(void *p) {
  sqlite3 *db = shared("file:common");
  sqlite3_create_function(db, "len", 1, SQLITE_UTF8, 0, length, 0, 0);
  for (int i = 0; i < 200; i++) {
    sqlite3_stmt *s = 0;
    sqlite3_prepare_v2(db, "select sum(len(a)) from t where len(a) > 0", -1, &s, 0);
    if (sqlite3_step(s) != SQLITE_ROW || sqlite3_column_int(s, 0) != *(int *)p) printf("sum %d: %s\n", sqlite3_column_int(s, 0), sqlite3_errmsg(db));
    sqlite3_finalize(s);
  }
  sqlite3_close(db);
  return 0;
}

int main(int argc, char **argv) {
  sqlite3 *db = shared("file:common");
  sqlite3_create_function(db, "scalar", 1, SQLITE_UTF8, 0, scalar, 0, 0);
  sqlite3_create_function(db, "total_of", 1, SQLITE_UTF8, 0, 0, step, final);
  sqlite3_create_module(db, "waiting", &waiting, 0);
  run(db, "create table t(a); insert into t values('x'), ('yy'), (printf('%.3000c', 'z'))");
  run(db, "select scalar('again')");
  run(db, "select total_of(length(a) - 1) from t");
  run(db, "select a from waiting");
  run(db, "create virtual table w using waiting; insert into w values(1)");
  pthread_t t[4];
  int sum = 3003;
  for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, reader, &sum);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  sqlite3_close(db);
  return 0;
}
