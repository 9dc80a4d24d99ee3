/* What language bindings rely on: errors without a text, names that are too long, collating sequences that come back, schemas that
   pragmas name, databases in memory that are read only, and the directions of groups that a module is told of. */
#include "../common.h"

static void answers(sqlite3_context *c, int n, sqlite3_value **v) {
  switch (sqlite3_value_int(v[0])) {
    case 0: sqlite3_result_error(c, 0, -1); break;
    case 1: sqlite3_result_error_code(c, SQLITE_BUSY); sqlite3_result_error(c, 0, -1); break;
    case 2: sqlite3_result_error(c, "text", -1); sqlite3_result_error_code(c, SQLITE_BUSY); break;
    case 3: sqlite3_result_error16(c, 0, -1); break;
    case 4: sqlite3_result_int(c, 3); sqlite3_result_error_code(c, SQLITE_OK); break;
    case 5: sqlite3_result_error(c, "", -1); break;
    case 6: sqlite3_result_text(c, 0, -1, 0); break;
  }
}

static int equal(void *p, int a, const void *x, int b, const void *y) { return 0; }
static void needed(void *p, sqlite3 *db, int encoding, const char *name) {
  printf("needed %s\n", name);
  if (p) sqlite3_create_collation(db, name, SQLITE_UTF8, 0, equal);
}

static void collations(sqlite3 *db) {
  sqlite3_stmt *s = 0;
  run(db, "create table foo(x); insert into foo values(1),(2)");
  sqlite3_create_collation(db, "own", SQLITE_UTF8, 0, equal);
  sqlite3_prepare_v2(db, "select x from foo order by x collate own", -1, &s, 0);
  while (sqlite3_step(s) == SQLITE_ROW) {}
  sqlite3_reset(s);
  printf("removed %d\n", sqlite3_create_collation(db, "own", SQLITE_UTF8, 0, 0));
  for (int i = 0; i < 2; i++) {
    sqlite3_collation_needed(db, i ? db : 0, needed);
    int rc = sqlite3_step(s);
    printf("step %d %s\n", rc, sqlite3_errmsg(db));
    printf("reset %d\n", sqlite3_reset(s));
  }
  sqlite3_finalize(s);
}

/* A module that gives rows in the order asked. */
static const int rows[] = {3, 5, 3, 9, 5};
typedef struct { sqlite3_vtab_cursor base; int at, sorted[5]; } Cursor;

static int make(sqlite3 *db, void *aux, int n, const char *const *args, sqlite3_vtab **out, char **error) {
  *out = calloc(1, sizeof **out);
  return sqlite3_declare_vtab(db, "create table x(a)");
}
static int forget(sqlite3_vtab *t) { free(t); return SQLITE_OK; }
static int choose(sqlite3_vtab *t, sqlite3_index_info *i) {
  printf("[");
  for (int k = 0; k < i->nOrderBy; k++) printf(" %d%s", i->aOrderBy[k].iColumn, i->aOrderBy[k].desc ? " desc" : "");
  printf(" ]\n");
  if (i->nOrderBy == 1) {
    i->orderByConsumed = 1;
    i->idxNum = i->aOrderBy[0].desc ? -1 : 1;
  }
  return SQLITE_OK;
}
static int start(sqlite3_vtab *t, sqlite3_vtab_cursor **out) { *out = calloc(1, sizeof(Cursor)); return SQLITE_OK; }
static int stop(sqlite3_vtab_cursor *c) { free(c); return SQLITE_OK; }
static int filter(sqlite3_vtab_cursor *base, int direction, const char *text, int n, sqlite3_value **v) {
  Cursor *c = (Cursor *)base;
  memcpy(c->sorted, rows, sizeof rows);
  for (int i = 0; i < 5; i++)
    for (int k = i; k > 0 && (c->sorted[k] - c->sorted[k - 1]) * direction < 0; k--) {
      int old = c->sorted[k];
      c->sorted[k] = c->sorted[k - 1];
      c->sorted[k - 1] = old;
    }
  c->at = 0;
  return SQLITE_OK;
}
static int next(sqlite3_vtab_cursor *c) { ((Cursor *)c)->at++; return SQLITE_OK; }
static int eof(sqlite3_vtab_cursor *c) { return ((Cursor *)c)->at >= 5; }
static int column(sqlite3_vtab_cursor *c, sqlite3_context *cx, int n) {
  sqlite3_result_int(cx, ((Cursor *)c)->sorted[((Cursor *)c)->at]);
  return SQLITE_OK;
}
static int rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *id) { *id = ((Cursor *)c)->at; return SQLITE_OK; }

static void groups(sqlite3 *db) {
  static sqlite3_module m = {.xConnect = make, .xBestIndex = choose, .xDisconnect = forget, .xOpen = start, .xClose = stop,
                             .xFilter = filter, .xNext = next, .xEof = eof, .xColumn = column, .xRowid = rowid};
  sqlite3_create_module(db, "told", &m, 0);
  run(db, "select a, count(*) from told group by a");
  run(db, "select a, count(*) from told group by a order by a");
  run(db, "select a, count(*) from told group by a order by a desc");
  run(db, "select a, count(*) from told group by a order by count(*) desc");
  run(db, "select a, count(*) from told group by a order by 2, 1 desc");
  run(db, "select distinct a from told order by a desc");
}

static void read_only(const char *name, int flags) {
  sqlite3 *db = 0;
  int rc = sqlite3_open_v2(name, &db, flags, 0);
  printf("'%s' %d, read only %d\n", name, rc, sqlite3_db_readonly(db, "main"));
  run(db, "create table foo(id)");
  run(db, "select count(*) from sqlite_schema");
  run(db, "create temp table foo(id); insert into foo values(1); select * from foo");
  run(db, "pragma user_version=3");
  sqlite3_close(db);
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  printf("memory is counted: %d\n", sqlite3_memory_used() > 0);
  sqlite3_create_function(db, "f", 1, SQLITE_UTF8, 0, answers, 0, 0);
  for (int i = 0; i < 7; i++) {
    char sql[80];
    snprintf(sql, sizeof sql, "select typeof(f(%d)), f(%d)", i, i);
    printf("%d: ", i);
    run(db, sql);
  }
  char name[257];
  memset(name, 'a', 256);
  name[256] = 0;
  printf("overload %d", sqlite3_overload_function(db, name, 1));
  name[255] = 0;
  printf(" %d\n", sqlite3_overload_function(db, name, 1));
  collations(db);
  groups(db);
  run(db, "pragma nosuch.unknown");
  run(db, "pragma nosuch.unknown=1");
  run(db, "pragma nosuch.user_version");
  run(db, "pragma temp.unknown; pragma main.unknown");
  sqlite3_close(db);
  read_only(":memory:", SQLITE_OPEN_READONLY);
  read_only("file::memory:?mode=ro", SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  return 0;
}
