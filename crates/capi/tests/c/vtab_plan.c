/* What xBestIndex leaves in idxStr comes back to xFilter as the very pointer: modules keep structures there that are no texts.
   Memory that goes with the plan is freed with it; memory that does not stays the module's. */
#include "common.h"

/* A plan as a structure: zeros in the midst, and no zero at its end. */
typedef struct {
  int magic, columns[4], end;
} Plan;

typedef struct {
  sqlite3_vtab_cursor base;
  sqlite3_int64 at, to;
} Cursor;

static Plan fixed = {4711, {0, 1, 0, 2}, 0x7f7f7f7f};
/* What to leave: 0 nothing, 1 memory that goes with the plan, 2 the module's own, 3 a text, 4 an empty text. */
static int leave;

static int connect_to(sqlite3 *db, void *p, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
  (void)p, (void)argc, (void)argv, (void)err;
  int rc = sqlite3_declare_vtab(db, "create table x(a integer, b)");
  if (rc) return rc;
  *out = calloc(1, sizeof **out);
  return SQLITE_OK;
}
static int best(sqlite3_vtab *v, sqlite3_index_info *q) {
  (void)v;
  int n = 0;
  for (int i = 0; i < q->nConstraint; i++) {
    if (!q->aConstraint[i].usable || q->aConstraint[i].iColumn != 0 || q->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    q->aConstraintUsage[i].argvIndex = ++n;
    break;
  }
  q->idxNum = leave * 10 + n;
  q->estimatedCost = n ? 1 : 1000;
  if (leave == 1) {
    Plan *p = sqlite3_malloc(sizeof *p);
    *p = fixed;
    q->idxStr = (char *)p;
    q->needToFreeIdxStr = 1;
  } else if (leave == 2) {
    q->idxStr = (char *)&fixed;
  } else if (leave == 3) {
    q->idxStr = sqlite3_mprintf("plan %d", n);
    q->needToFreeIdxStr = 1;
  } else if (leave == 4) {
    q->idxStr = "";
  }
  return SQLITE_OK;
}
static int opened(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  (void)v;
  return vtab_open(sizeof(Cursor), out);
}
static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv) {
  Cursor *c = (Cursor *)base;
  c->at = 1, c->to = 3;
  if (argc) c->at = c->to = sqlite3_value_int64(argv[0]);
  if (c->to > 3) c->at = 4;
  const Plan *p = (const Plan *)text;
  printf("filter %d:", number);
  if (number < 10 || !text) printf("%s", text ? "something" : "nothing");
  else if (number < 30) printf("%s%s", memcmp(p, &fixed, sizeof fixed) ? "broken" : "whole", p == &fixed ? ", the module's" : "");
  else printf("'%s'", text);
  printf("\n");
  return SQLITE_OK;
}
static int next(sqlite3_vtab_cursor *c) {
  ((Cursor *)c)->at++;
  return SQLITE_OK;
}
static int eof(sqlite3_vtab_cursor *c) { return ((Cursor *)c)->at > ((Cursor *)c)->to; }
static int column(sqlite3_vtab_cursor *c, sqlite3_context *x, int n) {
  sqlite3_result_int64(x, ((Cursor *)c)->at * (n ? 10 : 1));
  return SQLITE_OK;
}
static int rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *id) {
  *id = ((Cursor *)c)->at;
  return SQLITE_OK;
}

static sqlite3_module module = {
  .xCreate = connect_to, .xConnect = connect_to, .xBestIndex = best, .xDisconnect = vtab_disconnect, .xDestroy = vtab_disconnect,
  .xOpen = opened, .xClose = vtab_close, .xFilter = filter, .xNext = next, .xEof = eof, .xColumn = column, .xRowid = rowid,
};

/* A plan's text stands in its words. */
static void detail(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  sqlite3_prepare_v2(db, sql, -1, &s, 0);
  while (sqlite3_step(s) == SQLITE_ROW) printf("%s\n", sqlite3_column_text(s, 3));
  sqlite3_finalize(s);
}

int main(void) {
  sqlite3 *db;
  sqlite3_open(":memory:", &db);
  sqlite3_create_module(db, "planned", &module, 0);
  run(db, "create virtual table t using planned; create table n(x); insert into n values (1), (3), (5)");
  for (leave = 0; leave < 5; leave++) {
    run(db, "select * from t");
    run(db, "select b from t where a = 2");
    run(db, "select b from t where a in (1, 3)");
    run(db, "select t.b, u.b from t join t u on u.a = t.a where t.a < 3");
    run(db, "select x, (select b from t where a = x) from n");
    run(db, "select x from n where exists (select 1 from t where a = x)");
    if (leave > 2) detail(db, "explain query plan select b from t where a = 2");
  }
  /* A plan outlives other plans of its table, and is used again after a reset. */
  leave = 1;
  sqlite3_stmt *s = 0, *other = 0;
  sqlite3_prepare_v2(db, "select b from t where a = ?", -1, &s, 0);
  sqlite3_prepare_v2(db, "select b from t where a = ? + 1", -1, &other, 0);
  for (int i = 1; i < 4; i++) {
    sqlite3_bind_int(s, 1, i);
    while (sqlite3_step(s) == SQLITE_ROW) printf("row %d\n", sqlite3_column_int(s, 0));
    sqlite3_reset(s);
    sqlite3_finalize(other);
    other = 0;
  }
  sqlite3_finalize(s);
  printf("close %d\n", sqlite3_close(db));
  return 0;
}
