/* What extensions that are in use rely on beside the letter of the documentation: values of a scan that stay while it goes on,
   user data where a linked copy of SQLite looks for it, names in the lists of functions and modules, and texts of statements
   that run within others. */
#include "../common.h"

/* A table keeps the pointer to the last text that it was made with. */
typedef struct {
  sqlite3_vtab base;
  const char *last;
} Table;

/* Pieces of a path, cut out of the argument where it lies: the module keeps the pointer of xFilter. */
typedef struct {
  sqlite3_vtab_cursor base;
  const char *at, *end;
  int n;
} Cursor;

static int connect_to(sqlite3 *db, void *p, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
  (void)p, (void)err;
  Table *t = malloc(sizeof *t);
  memset(t, 0x5a, sizeof *t);
  t->last = argv[argc - 1];
  *out = &t->base;
  return sqlite3_declare_vtab(db, "create table x(piece, path hidden, place, last)");
}
static int best(sqlite3_vtab *v, sqlite3_index_info *q) {
  (void)v;
  for (int i = 0; i < q->nConstraint; i++) {
    if (q->aConstraint[i].iColumn != 1 || !q->aConstraint[i].usable) continue;
    q->aConstraintUsage[i].argvIndex = q->aConstraintUsage[i].omit = 1;
    q->estimatedCost = 1;
    return SQLITE_OK;
  }
  return SQLITE_CONSTRAINT;
}
static int opened(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  (void)v;
  return vtab_open(sizeof(Cursor), out);
}
static void find_end(Cursor *c) {
  for (c->end = c->at; *c->end && *c->end != '/'; c->end++) {
  }
}
static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv) {
  (void)number, (void)text, (void)argc;
  Cursor *c = (Cursor *)base;
  c->at = (const char *)sqlite3_value_text(argv[0]);
  if (!c->at) c->at = "";
  c->n = 0;
  find_end(c);
  return SQLITE_OK;
}
static int next(sqlite3_vtab_cursor *base) {
  Cursor *c = (Cursor *)base;
  c->at = *c->end ? c->end + 1 : c->end;
  c->n++;
  find_end(c);
  return SQLITE_OK;
}
static int eof(sqlite3_vtab_cursor *c) { return !*((Cursor *)c)->at; }
static int column(sqlite3_vtab_cursor *base, sqlite3_context *x, int n) {
  Cursor *c = (Cursor *)base;
  if (n == 0) sqlite3_result_text(x, c->at, (int)(c->end - c->at), SQLITE_TRANSIENT);
  if (n == 3) sqlite3_result_text(x, ((Table *)base->pVtab)->last, -1, SQLITE_TRANSIENT);
  if (n == 2) sqlite3_result_pointer(x, (void *)c->at, "place", 0);
  return SQLITE_OK;
}
static int rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *id) {
  *id = ((Cursor *)c)->n;
  return SQLITE_OK;
}
static sqlite3_module module = {
  .xConnect = connect_to, .xBestIndex = best, .xDisconnect = vtab_disconnect, .xDestroy = vtab_disconnect,
  .xOpen = opened, .xClose = vtab_close, .xFilter = filter, .xNext = next, .xEof = eof, .xColumn = column, .xRowid = rowid,
};

static sqlite3_module made;

/* What a copy of SQLite inside an extension does for sqlite3_user_data. */
static void *user_data_of_a_copy(sqlite3_context *x) { return ((void ***)x)[1][1]; }

static int data = 42;
static void scalar(sqlite3_context *x, int n, sqlite3_value **v) {
  (void)n, (void)v;
  int *seen = user_data_of_a_copy(x);
  sqlite3_result_int(x, *seen + (seen == sqlite3_user_data(x) ? 0 : 1000));
}
static void step(sqlite3_context *x, int n, sqlite3_value **v) { (void)x, (void)n, (void)v; }
static void final(sqlite3_context *x) { scalar(x, 0, 0); }

static void nested(sqlite3_context *x, int n, sqlite3_value **v) {
  (void)n;
  sqlite3_exec(sqlite3_context_db_handle(x), (const char *)sqlite3_value_text(v[0]), 0, 0, 0);
}

static void first_letter(sqlite3_context *x, int n, sqlite3_value **v) {
  (void)n;
  const char *p = sqlite3_value_pointer(v[0], "place");
  if (p) sqlite3_result_text(x, p, 1, SQLITE_TRANSIENT);
}

static int traced(unsigned kind, void *user, void *p, void *t) {
  (void)kind, (void)user;
  char *text = sqlite3_expanded_sql(p);
  printf("  told '%s' expanded '%s'\n", (const char *)t, text);
  sqlite3_free(text);
  return 0;
}
static void traced_before(void *user, const char *text) {
  (void)user;
  printf("  before '%s'\n", text);
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_create_module(db, "Pieces", &module, 0);
  sqlite3_create_function(db, "UserData", 0, SQLITE_UTF8, &data, scalar, 0, 0);
  sqlite3_create_function(db, "UserTotal", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, &data, 0, step, final);
  sqlite3_create_function(db, "within", 1, SQLITE_UTF8, 0, nested, 0, 0);
  made = module;
  made.xCreate = connect_to;
  made.xDestroy = vtab_disconnect;
  sqlite3_create_module(db, "made", &made, 0);
  run(db, "create virtual table temp.of_text using made(a, 'a longer text that was made' , c d)");
  run(db, "create virtual table of_nothing using made");
  run(db, "select last from pieces('a') union all select last from of_text('a') union all select last from of_nothing('b/c')");
  run(db, "select rowid, piece from pieces('usr/lib/x86/a-name-that-is-longer-than-others')");
  run(db, "select piece from pieces(replace('a-b-c-d', '-', '/'))");
  run(db, "with t(p) as (values ('one/two'), ('three'), (null), ('four/five/six')) select p, piece from t join pieces on path = p");
  sqlite3_create_function(db, "first_letter", 1, SQLITE_UTF8, 0, first_letter, 0, 0);
  run(db, "select place, typeof(place), quote(place), coalesce(place, 'none'), place is null, first_letter(place) from pieces('ab/cd')");
  run(db, "select key from pieces('ab/cd'), json_each(place)");
  run(db, "select json_valid(place), first_letter(place) from pieces('ab/cd') order by piece desc");
  run(db, "select first_letter(p) from (select place as p from pieces('ab/cd'))");
  run(db, "select first_letter(p), typeof(p) from (select place as p from pieces('ab/cd') limit 5)");
  run(db, "select place, count(*) from pieces('ab/cd/ef') group by 1");
  run(db, "create table kept as select place from pieces('ab/cd')");
  run(db, "select quote(place) from kept");
  run(db, "select UserData(), usertotal(1, 2)");
  run(db, "select name, builtin, type, narg, flags from pragma_function_list where name in ('userdata', 'usertotal', 'within', 'upper', 'concat', 'coalesce', 'load_extension') order by 1, 4");
  run(db, "select name from pragma_module_list where name like 'pieces'");
  sqlite3_trace_v2(db, SQLITE_TRACE_STMT, traced, 0);
  run(db, "select within('create table t(x); insert into t values (1);\nselect\n  x\nfrom t')");
  sqlite3_trace_v2(db, 0, 0, 0);
  sqlite3_trace(db, traced_before, 0);
  run(db, "select within('select 1'), 'x'");
  printf("close %d\n", sqlite3_close(db));
  return 0;
}
