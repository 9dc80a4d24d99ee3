/* What modules are asked by xBestIndex, and what their cursors are given: IN lists, LIMIT, order, DISTINCT, functions; tables
   that stand for functions. */
#include "common.h"

typedef struct {
  sqlite3_vtab base;
  sqlite3 *db;
} Table;

typedef struct {
  sqlite3_vtab_cursor base;
  sqlite3_int64 at, from, to;
} Cursor;

/* What the module does with what it is offered. */
static int take, omit = 1, lists, sorted, unique, malfunction, shown = 1;
static double cost = 10;

static int connect_to(sqlite3 *db, void *p, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
  (void)p, (void)argc, (void)argv, (void)err;
  int rc = sqlite3_declare_vtab(db, "create table x(a integer, b text collate nocase, c, lo hidden, hi hidden)");
  if (rc) return rc;
  printf("twice %d\n", sqlite3_declare_vtab(db, "create table x(a)"));
  Table *t = calloc(1, sizeof *t);
  t->db = db;
  *out = &t->base;
  return SQLITE_OK;
}

static void value(sqlite3_value *v) {
  const char *t = (const char *)sqlite3_value_text(v);
  printf("%s(%d)", t ? t : "NULL", sqlite3_value_type(v));
}

static int best(sqlite3_vtab *v, sqlite3_index_info *q) {
  (void)v;
  if (shown) printf("  best");
  for (int i = 0; shown && i < q->nConstraint; i++) {
    sqlite3_value *rhs = 0;
    printf(" %d:%d%s", q->aConstraint[i].iColumn, q->aConstraint[i].op, q->aConstraint[i].usable ? "" : "!");
    printf("/%s", sqlite3_vtab_collation(q, i));
    if (sqlite3_vtab_rhs_value(q, i, &rhs) == SQLITE_OK) printf("="), value(rhs);
    if (sqlite3_vtab_in(q, i, -1)) printf(" in");
  }
  for (int i = 0; shown && i < q->nOrderBy; i++) printf(" order %d%s", q->aOrderBy[i].iColumn, q->aOrderBy[i].desc ? " desc" : "");
  if (shown) printf(" distinct %d used %llx cost %g rows %lld\n", sqlite3_vtab_distinct(q), q->colUsed, q->estimatedCost, q->estimatedRows);
  int n = 0;
  for (int i = 0; i < q->nConstraint; i++) {
    if (!q->aConstraint[i].usable) continue;
    int op = q->aConstraint[i].op;
    if (!(take & 1) && q->aConstraint[i].iColumn < 3 && op != SQLITE_INDEX_CONSTRAINT_LIMIT && op != SQLITE_INDEX_CONSTRAINT_OFFSET) continue;
    if (!(take & 2) && (op == SQLITE_INDEX_CONSTRAINT_LIMIT || op == SQLITE_INDEX_CONSTRAINT_OFFSET)) continue;
    q->aConstraintUsage[i].argvIndex = ++n;
    q->aConstraintUsage[i].omit = omit;
    if (lists) sqlite3_vtab_in(q, i, 1);
  }
  if (malfunction == 1) q->aConstraintUsage[0].argvIndex = 7;
  if (malfunction == 2) return SQLITE_CONSTRAINT;
  q->idxNum = n;
  q->idxStr = sqlite3_mprintf("plan %d", n);
  q->needToFreeIdxStr = 1;
  q->orderByConsumed = sorted;
  q->estimatedCost = cost / (n + 1);
  q->estimatedRows = 3;
  if (unique) q->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
  return SQLITE_OK;
}

static int opened(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  (void)v;
  return vtab_open(sizeof(Cursor), out);
}
static int filter(sqlite3_vtab_cursor *v, int num, const char *str, int argc, sqlite3_value **argv) {
  Cursor *c = (Cursor *)v;
  printf("  filter %d '%s'", num, str ? str : "NULL");
  for (int i = 0; i < argc; i++) {
    sqlite3_value *one = 0;
    printf(" ");
    int rc = sqlite3_vtab_in_first(argv[i], &one);
    if (rc != SQLITE_OK && rc != SQLITE_DONE) {
      value(argv[i]);
      continue;
    }
    printf("[");
    for (; rc == SQLITE_OK; rc = sqlite3_vtab_in_next(argv[i], &one)) value(one), printf(" ");
    printf("]%d%d", rc, one == 0);
  }
  printf("\n");
  c->at = c->from = 1;
  c->to = 3;
  return SQLITE_OK;
}
static int next(sqlite3_vtab_cursor *v) {
  ((Cursor *)v)->at++;
  return SQLITE_OK;
}
static int eof(sqlite3_vtab_cursor *v) { return ((Cursor *)v)->at > ((Cursor *)v)->to; }
static int column(sqlite3_vtab_cursor *v, sqlite3_context *x, int i) {
  sqlite3_int64 at = ((Cursor *)v)->at;
  if (i == 0) sqlite3_result_int64(x, at);
  if (i == 1) sqlite3_result_text(x, at == 1 ? "One" : at == 2 ? "two" : "three", -1, SQLITE_STATIC);
  if (i == 2) sqlite3_result_double(x, at / 2.0);
  return SQLITE_OK;
}
static int rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *id) {
  *id = ((Cursor *)v)->at * 10;
  return SQLITE_OK;
}

static void own(sqlite3_context *x, int argc, sqlite3_value **argv) {
  char *text = sqlite3_mprintf("%s(%d args, %s)", (char *)sqlite3_user_data(x), argc, sqlite3_value_text(argv[0]));
  sqlite3_result_text(x, text, -1, sqlite3_free);
}
static int find(sqlite3_vtab *v, int n, const char *name, void (**f)(sqlite3_context *, int, sqlite3_value **), void **user) {
  (void)v;
  if (strcmp(name, "mine") && strcmp(name, "near") && strcmp(name, "match")) return 0;
  *f = own;
  *user = !strcmp(name, "near") ? "near" : !strcmp(name, "match") ? "match" : "mine";
  return !strcmp(name, "near") && n == 2 ? 150 : 1;
}

/* Pointers pass through SQL under a name. */
static int object = 42, released;
static void let_go(void *p) { released += *(int *)p; }
static void make(sqlite3_context *x, int argc, sqlite3_value **argv) {
  (void)argc, (void)argv;
  sqlite3_result_pointer(x, &object, "kind", let_go);
}
static void take_it(sqlite3_context *x, int argc, sqlite3_value **argv) {
  (void)argc;
  int *p = sqlite3_value_pointer(argv[0], "kind"), *other = sqlite3_value_pointer(argv[0], "other");
  char *text = sqlite3_mprintf("%d %d type %d", p ? *p : 0, other ? *other : 0, sqlite3_value_type(argv[0]));
  sqlite3_result_text(x, text, -1, sqlite3_free);
}

static sqlite3_module module = {2, connect_to, connect_to, best, vtab_disconnect, vtab_disconnect, opened, vtab_close, filter, next, eof, column, rowid, 0, 0, 0, 0, 0, find, 0, 0, 0, 0};
static sqlite3_module function;

static void say(sqlite3 *db, const char *sql) {
  printf("> %s\n", sql);
  run(db, sql);
}

static void conditions(sqlite3 *db) {
  const char *list[] = {"a = 1", "1 = a", "a is 1", "a is not 1", "a <> 2", "a > 1", "2 >= a", "a < 3 and a > -1", "a between 1 and 2", "b = 'ONE'", "b = 'ONE' collate binary",
                        "c = 1.5", "a is null", "a is not null", "b glob 't*'", "rowid = 20", "rowid > 10", "a in (1, 2)", "a in (select 2)", "b in ('one', 'TWO')",
                        "a + 1 = 2", "a = b", "a = c * 2", "not a", "a = null", "a = '1'", "(a, b) = (1, 'one')",
                        "near(b, 'x')", "near(b, 'x') and a = 2", "mine(b)", "a not in (1)", "a = (select 2)", "a = 1 + 1", "a = -1", "a = cast('2' as integer)", "lo = 5", "a = 1 and lo = 2"};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
    char *sql = sqlite3_mprintf("select a from x where %s", list[i]);
    say(db, sql);
    sqlite3_free(sql);
  }
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  function = module;
  function.xCreate = 0;
  sqlite3_create_module(db, "ix", &module, 0);
  sqlite3_create_module(db, "fn", &function, 0);
  printf("%d %d\n", sqlite3_overload_function(db, "mine", -1), sqlite3_overload_function(db, "near", -1));
  printf("%d %d\n", sqlite3_overload_function(db, "abs", 1), sqlite3_declare_vtab(db, "create table x(a)"));
  say(db, "create virtual table x using ix; create virtual table y using ix; create table t(p, q); insert into t values(1, 'one'), (2, 'zwei')");
  say(db, "create virtual table z using fn");
  shown = 1;
  conditions(db);
  take = 1;
  printf("taken\n");
  conditions(db);
  omit = 0;
  lists = 1;
  printf("lists\n");
  say(db, "select a from x where a in (3, 1, 2, 1, null)");
  say(db, "select a from x where a in (select p from t)");
  say(db, "select a from x where a in (1) and b in ('one', 'two')");
  say(db, "select a from x, t where a in (p, 2)");
  say(db, "select a from x where a in (1, 2) order by a");
  say(db, "select a from x where a in ()");
  lists = 0;
  say(db, "select a from x where a in (3, 1, 2, 1, null)");
  say(db, "select a, p from t, x where a in (p, '2')");
  say(db, "select b from x where b in (select q from t)");
  omit = 1;
  printf("order\n");
  for (sorted = 0; sorted < 2; sorted++) {
    say(db, "select a, b from x order by a");
    say(db, "select a from x order by a desc, b");
    say(db, "select a from x order by b collate binary");
    say(db, "select a from x order by b collate nocase");
    say(db, "select a from x order by a + 1");
    say(db, "select a from x order by a, p from t");
    say(db, "select a, p from x, t order by a");
    say(db, "select a from x order by rowid desc");
    say(db, "select a from x order by a nulls last");
    say(db, "select count(*) from x group by a");
    say(db, "select count(*) from x group by a + 1");
    say(db, "select distinct a from x");
    say(db, "select distinct a, b from x");
    say(db, "select distinct a, b from x order by a, b");
    say(db, "select distinct a + 1 from x");
    say(db, "select max(a) from x");
  }
  sorted = 0;
  printf("limit\n");
  for (take = 1; take < 4; take += 2) {
    say(db, "select a from x limit 2");
    say(db, "select a from x where a > 0 limit 2");
    say(db, "select a from x where a + 1 > 0 limit 2");
    say(db, "select a from x where a in (1, 2) limit 2");
    say(db, "select count(*) from x limit 2");
    say(db, "select distinct a from x limit 2");
    say(db, "select a from x limit 1 + 1");
    say(db, "select * from (select a from x limit 1)");
    say(db, "select a from x, t limit 1");
    say(db, "select a from x union all select a from y limit 1");
  }
  sorted = 1;
  say(db, "select a from x order by a limit 2");
  say(db, "select a from x order by a + 1 limit 2");
  lists = 1;
  say(db, "select a from x where a in (1, 2) limit 2");
  lists = sorted = 0;
  take = 1;
  printf("arms of OR\n");
  shown = 0;
  for (int i = 0; i < 4; i++) {
    omit = i & 1;
    lists = i >> 1;
    say(db, "select a from x where a = 1 or b = 'two'");
    say(db, "select a from x where a in (3, 1) or b = 'two'");
    say(db, "select a from x where a = 1 or rowid = 20 or b match 'x'");
    say(db, "select a from x where (a > 1 or b like 't%') and c > 0");
    say(db, "select a from x where (a = 1 and c < 1) or (a = 3 and c > 1)");
    say(db, "select a from x where a = 1 or a + 0 = 2");
    say(db, "select a from x where a = 1 or a = 2 or a = 3");
    say(db, "select a, p from x, t where a = p or b = q");
    say(db, "select a, p from t left join x on a = p or b = q");
    say(db, "select a from x where a = 1 or b = 'two' order by a limit 2");
    say(db, "select a from x where a is null or b is not null or c <> 1");
    say(db, "select a from x where a = 1 or (b = 'two' or c = 1.5)");
    say(db, "select a from x where (a = 1 or b = 'two') and (a = 2 or c = 0.5)");
    say(db, "select a from x where not (a <> 1 and b <> 'two')");
    say(db, "select a from x where a between 1 and 2 or b = 'one'");
    say(db, "select count(*) from x where a = (select max(p) from t) or b = 'two'");
  }
  lists = 0;
  omit = take = 1;
  shown = 1;
  printf("joins\n");
  shown = 0;
  say(db, "select a, p from t, x where a = p");
  say(db, "select a, p from t left join x on a = p and b = q order by p");
  say(db, "select p, a from x right join t on a = p order by p");
  say(db, "select a from fn(1, 2)");
  say(db, "select a, lo from fn where lo = 1 and hi = 2");
  say(db, "select a from fn(1, 2, 3)");
  say(db, "select a from t, fn(t.p, t.q)");
  say(db, "select a from main.fn(1)");
  shown = 1;
  malfunction = 1;
  say(db, "select a from x where a = 1");
  malfunction = 2;
  say(db, "select a from x where a = 1");
  malfunction = 0;
  printf("functions\n");
  shown = 0;
  take = 0;
  say(db, "select mine(a), mine(b, 1), mine(a, b, c) from x where a = 1");
  say(db, "select mine(1)");
  say(db, "select mine(p) from t");
  say(db, "select near(b, 1), near(b), b like 'x', like('x', b), b match 'y', match('y', b) from x where a = 1");
  say(db, "select 'a' match 'b'");
  say(db, "select abs(a) from x where mine(b) > ''");
  say(db, "select (select mine(x.b)) from x");
  sqlite3_create_function(db, "make", 0, SQLITE_UTF8, 0, make, 0, 0);
  sqlite3_create_function(db, "take", 1, SQLITE_UTF8, 0, take_it, 0, 0);
  say(db, "select take(make()), take(1), take(null)");
  sqlite3_stmt *s;
  sqlite3_prepare_v2(db, "select take(?1), take(?2)", -1, &s, 0);
  printf("%d %d\n", sqlite3_bind_pointer(s, 1, &object, "kind", let_go), sqlite3_bind_pointer(s, 2, &object, "other", 0));
  for (int i = 0; i < 2; i++) {
    sqlite3_step(s);
    printf("%s, %s, released %d\n", sqlite3_column_text(s, 0), sqlite3_column_text(s, 1), released);
    sqlite3_reset(s);
    if (!i) sqlite3_bind_null(s, 1);
  }
  sqlite3_finalize(s);
  printf("released %d\n", released);
  unique = 1;
  shown = 1;
  say(db, "select a, p from x, t");
  say(db, "insert into x values(1, 2, 3)");
  printf("closed %d\n", sqlite3_close(db));
  return 0;
}
