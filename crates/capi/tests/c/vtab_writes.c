/* A table in memory that writes down each call: what is asked of a table that is written to, and in which order. */
#include "common.h"

enum { MOST = 64, WIDTH = 8 };

typedef struct {
  sqlite3_int64 id;
  sqlite3_value *v[WIDTH];
} Row;

/* The rows stay when a table is disconnected. */
typedef struct {
  char name[90];
  Row rows[MOST];
  int n;
} Store;

typedef struct {
  sqlite3_vtab base;
  sqlite3 *db;
  char name[40], schema[40];
  int columns, keyed;
  Store *s;
} Table;

typedef struct {
  sqlite3_vtab_cursor base;
  int at, only;
  sqlite3_int64 id;
} Cursor;

static const char *failing = "";
static int code = SQLITE_ERROR, quiet, honest = 1, lives, alive;
static Store stores[20];

static Store *store(const char *schema, const char *name) {
  char full[90];
  snprintf(full, sizeof full, "%s.%s", schema, name);
  Store *s = stores;
  while (*s->name && strcmp(s->name, full)) s++;
  strcpy(s->name, full);
  return s;
}

static int note(Table *t, const char *call, const char *more) {
  if (!quiet) printf("  %s %s%s%s\n", t->name, call, *more ? " " : "", more);
  if (strcmp(failing, call)) return SQLITE_OK;
  if (code != SQLITE_FULL) {
    sqlite3_free(t->base.zErrMsg);
    t->base.zErrMsg = sqlite3_mprintf("%s fails", call);
  }
  return code;
}

static int made(const char *call, sqlite3 *db, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
  if (lives || strcmp(call, "connect")) {
    printf("  %s %s(", argv[2], call);
    for (int i = 0; i < argc; i++) printf("%s%s", i ? ", " : "", argv[i]);
    printf(")\n");
  }
  if (!strcmp(failing, call)) {
    if (code != SQLITE_FULL) *err = sqlite3_mprintf("%s of %s fails", call, argv[2]);
    return code;
  }
  Table *t = calloc(1, sizeof *t);
  t->db = db;
  snprintf(t->name, sizeof t->name, "%s", argv[2]);
  snprintf(t->schema, sizeof t->schema, "%s", argv[1]);
  sqlite3_str *s = sqlite3_str_new(0);
  sqlite3_str_appendall(s, "create table x(");
  for (int i = 3; i < argc; i++) {
    if (!strcmp(argv[i], "keyed"))
      t->keyed = 1;
    else if (!strcmp(argv[i], "undeclared"))
      t->columns = -100;
    else {
      sqlite3_str_appendf(s, "%s%s", t->columns ? "," : "", argv[i]);
      t->columns += !strstr(argv[i], "key(");
    }
  }
  sqlite3_str_appendall(s, t->keyed ? ") without rowid" : ")");
  char *sql = sqlite3_str_finish(s);
  int rc = SQLITE_OK;
  if (t->columns >= 0) rc = sqlite3_declare_vtab(db, sql);
  if (rc) *err = sqlite3_mprintf("declared: %d %s", rc, sqlite3_errmsg(db));
  if (!rc && t->columns > 0 && honest) rc = sqlite3_vtab_config(db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
  sqlite3_free(sql);
  if (rc) {
    free(t);
    return rc;
  }
  t->s = store(argv[1], argv[2]);
  *out = &t->base;
  alive++;
  return SQLITE_OK;
}

static int create(sqlite3 *db, void *p, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
  (void)p;
  return made("create", db, argc, argv, out, err);
}
static int connect_to(sqlite3 *db, void *p, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
  (void)p;
  return made("connect", db, argc, argv, out, err);
}
static int disconnect(sqlite3_vtab *v) {
  quiet += !lives;
  note((Table *)v, "disconnect", "");
  quiet -= !lives;
  alive--;
  sqlite3_free(v->zErrMsg);
  free(v);
  return SQLITE_OK;
}
static int destroy(sqlite3_vtab *v) {
  Table *t = (Table *)v;
  int rc = note(t, "destroy", "");
  if (rc) return rc;
  for (int i = 0; i < t->s->n; i++)
    for (int k = 0; k < t->columns; k++) sqlite3_value_free(t->s->rows[i].v[k]);
  memset(t->s->rows, 0, sizeof t->s->rows);
  t->s->n = 0;
  alive--;
  sqlite3_free(t->base.zErrMsg);
  free(t);
  return SQLITE_OK;
}

static int best(sqlite3_vtab *v, sqlite3_index_info *info) {
  Table *t = (Table *)v;
  quiet++;
  int rc = note(t, "best", "");
  quiet--;
  if (rc) return rc;
  info->estimatedCost = 1000;
  for (int i = 0; i < info->nConstraint; i++)
    if (info->aConstraint[i].usable && info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && info->aConstraint[i].iColumn == -1) {
      info->aConstraintUsage[i].argvIndex = 1;
      info->aConstraintUsage[i].omit = 1;
      info->idxNum = 1;
      info->estimatedCost = 1;
      info->estimatedRows = 1;
      info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
      break;
    }
  return SQLITE_OK;
}

static int opened(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  int rc = note((Table *)v, "open", "");
  if (rc) return rc;
  *out = calloc(1, sizeof(Cursor));
  return SQLITE_OK;
}
static int closed(sqlite3_vtab_cursor *c) {
  note((Table *)c->pVtab, "close", "");
  free(c);
  return SQLITE_OK;
}
static Table *of(sqlite3_vtab_cursor *c) { return (Table *)c->pVtab; }

static void skip(Cursor *c) {
  while (c->only && c->at < of(&c->base)->s->n && of(&c->base)->s->rows[c->at].id != c->id) c->at++;
}
static int filter(sqlite3_vtab_cursor *v, int num, const char *str, int argc, sqlite3_value **argv) {
  (void)str;
  Cursor *c = (Cursor *)v;
  int rc = note(of(v), "filter", num ? "one" : "all");
  c->at = 0;
  c->only = num && argc == 1;
  if (c->only) c->id = sqlite3_value_int64(argv[0]);
  skip(c);
  return rc;
}
static int next(sqlite3_vtab_cursor *v) {
  int rc = note(of(v), "next", "");
  ((Cursor *)v)->at++;
  skip((Cursor *)v);
  return rc;
}
static int eof(sqlite3_vtab_cursor *v) { return ((Cursor *)v)->at >= of(v)->s->n; }
static int column(sqlite3_vtab_cursor *v, sqlite3_context *x, int i) {
  if (sqlite3_vtab_nochange(x)) return note(of(v), "nochange", (char[]){(char)('0' + i), 0});
  sqlite3_value *value = of(v)->s->rows[((Cursor *)v)->at].v[i];
  if (value) sqlite3_result_value(x, value);
  return !strcmp(failing, "column") ? (sqlite3_result_error(x, "column fails", -1), SQLITE_ERROR) : SQLITE_OK;
}
static int rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *id) {
  *id = of(v)->s->rows[((Cursor *)v)->at].id;
  return note(of(v), "rowid", "");
}

static void put(sqlite3_str *s, sqlite3_value *v) {
  if (sqlite3_value_nochange(v))
    sqlite3_str_appendall(s, "same");
  else if (sqlite3_value_type(v) == SQLITE_TEXT)
    sqlite3_str_appendf(s, "'%s'", sqlite3_value_text(v));
  else if (sqlite3_value_type(v) == SQLITE_NULL)
    sqlite3_str_appendall(s, "NULL");
  else
    sqlite3_str_appendf(s, "%s", sqlite3_value_text(v));
}

static int find(Table *t, sqlite3_value *key) {
  for (int i = 0; i < t->s->n; i++) {
    if (!t->keyed && t->s->rows[i].id == sqlite3_value_int64(key)) return i;
    if (!t->keyed) continue;
    const char *a = (const char *)sqlite3_value_text(t->s->rows[i].v[0]), *b = (const char *)sqlite3_value_text(key);
    if (t->keyed && a && b && !strcmp(a, b)) return i;
  }
  return -1;
}

static void drop(Table *t, int i) {
  for (int k = 0; k < t->columns; k++) sqlite3_value_free(t->s->rows[i].v[k]);
  memmove(t->s->rows + i, t->s->rows + i + 1, sizeof(Row) * (t->s->n - i - 1));
  memset(t->s->rows + --t->s->n, 0, sizeof(Row));
}

static int update(sqlite3_vtab *v, int argc, sqlite3_value **argv, sqlite3_int64 *id) {
  static const char *names[] = {"?", "rollback", "ignore", "fail", "abort", "replace"};
  Table *t = (Table *)v;
  int policy = sqlite3_vtab_on_conflict(t->db);
  sqlite3_str *s = sqlite3_str_new(0);
  for (int i = 0; i < argc; i++) {
    sqlite3_str_appendall(s, i ? ", " : "(");
    put(s, argv[i]);
  }
  sqlite3_str_appendf(s, ") or %s", names[policy]);
  char *all = sqlite3_str_finish(s);
  int rc = note(t, "update", all);
  sqlite3_free(all);
  if (rc) return rc;
  int old = sqlite3_value_type(argv[0]) == SQLITE_NULL ? -1 : find(t, argv[0]);
  if (argc == 1) {
    if (old >= 0) drop(t, old);
    return SQLITE_OK;
  }
  int named = sqlite3_value_type(argv[1]) != SQLITE_NULL;
  int there = t->keyed ? find(t, argv[2]) : named ? find(t, argv[1]) : -1;
  if (there >= 0 && there != old) {
    if (policy != SQLITE_REPLACE) {
      t->base.zErrMsg = sqlite3_mprintf("%s has it", t->s->name);
      return SQLITE_CONSTRAINT;
    }
    drop(t, there);
    if (there < old) old--;
  }
  if (old < 0) old = t->s->n++;
  Row *r = t->s->rows + old;
  for (int k = 0; k < t->columns; k++) {
    if (sqlite3_value_nochange(argv[2 + k])) continue;
    sqlite3_value_free(r->v[k]);
    r->v[k] = sqlite3_value_dup(argv[2 + k]);
  }
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL || (named && !t->keyed)) {
    sqlite3_int64 most = 0;
    for (int i = 0; i < t->s->n; i++)
      if (i != old && t->s->rows[i].id > most) most = t->s->rows[i].id;
    r->id = named && !t->keyed ? sqlite3_value_int64(argv[1]) : most + 1;
  }
  *id = r->id;
  return SQLITE_OK;
}

#define CALL(name) \
  static int name(sqlite3_vtab *v) { return note((Table *)v, #name, ""); }
#define MARK(name) \
  static int name(sqlite3_vtab *v, int n) { \
    char text[20]; \
    snprintf(text, sizeof text, "%d", n); \
    return note((Table *)v, #name, text); \
  }
CALL(begin) CALL(sync_all) CALL(commit) CALL(rollback) MARK(savepoint) MARK(release_to) MARK(rollback_to)

static int renamed(sqlite3_vtab *v, const char *name) {
  Table *t = (Table *)v;
  int rc = note(t, "rename", name);
  if (!rc) snprintf(t->s->name, sizeof t->s->name, "%s.%s", t->schema, name);
  return rc;
}

static int is_shadow(const char *name) { return !strcmp(name, "data"); }

static sqlite3_module module = {3, create, connect_to, best, disconnect, destroy, opened, closed, filter, next, eof, column, rowid, update, begin, sync_all, commit, rollback, 0, renamed, savepoint, release_to, rollback_to, is_shadow};
static sqlite3_module second, only_read, no_begin, old;

static int lost;
static void gone(void *p) { lost += *(char *)p; }

static void say(sqlite3 *db, const char *sql) {
  printf("> %s\n", sql);
  run(db, sql);
}

static void counted(sqlite3 *db, const char *sql) {
  say(db, sql);
  printf("changes %d, total %d, last %lld\n", sqlite3_changes(db), sqlite3_total_changes(db), sqlite3_last_insert_rowid(db));
}

static void fails(sqlite3 *db, const char *call, int rc, const char *sql) {
  failing = call;
  code = rc;
  printf("%s fails with %d\n", call, rc);
  say(db, sql);
  failing = "";
}

static sqlite3 *with_modules(const char *name) {
  sqlite3 *db = db_open(name);
  second = only_read = no_begin = old = module;
  second.xCreate = second.xConnect;
  only_read.xUpdate = 0;
  only_read.xRename = 0;
  no_begin.xBegin = 0;
  old.iVersion = 1;
  printf("%d", sqlite3_create_module_v2(db, "lg", &module, "lg", gone));
  printf("%d", sqlite3_create_module_v2(db, "ep", &second, "ep", gone));
  printf("%d", sqlite3_create_module_v2(db, "ro", &only_read, "ro", gone));
  printf("%d", sqlite3_create_module(db, "nb", &no_begin, 0));
  printf("%d\n", sqlite3_create_module(db, "v1", &old, 0));
  return db;
}

static void rows_change(sqlite3 *db) {
  say(db, "create virtual table v using lg(a, b text, c hidden)");
  counted(db, "insert into v values(1, 'one')");
  counted(db, "insert into v(rowid, a, c) values(10, 2, 'hid')");
  counted(db, "insert into v(rowid, a) values('x', 2)");
  counted(db, "insert into v(rowid, a) values('7', '007')");
  counted(db, "insert into v default values");
  counted(db, "insert into v(b) values('p'), ('q')");
  counted(db, "insert into v select a, b from v where rowid > 10 order by rowid");
  say(db, "select rowid, *, c from v");
  counted(db, "update v set a = a + 1 where rowid = 10");
  counted(db, "update v set rowid = 20, b = 'twenty' where rowid = 10");
  counted(db, "update v set c = 5 where b is null");
  counted(db, "update v set a = (select count(*) from v) where a > 1");
  counted(db, "update v set rowid = rowid + 100");
  counted(db, "update v set a = 1 where rowid = 9999");
  counted(db, "delete from v where rowid = 101");
  counted(db, "delete from v where b = 'q'");
  say(db, "select rowid, *, c from v");
  counted(db, "insert into v(rowid, a) values(200, 1)");
  counted(db, "insert into v(rowid, a) values(200, 2)");
  counted(db, "insert or ignore into v(rowid, a) values(200, 3)");
  counted(db, "insert or replace into v(rowid, a) values(200, 4)");
  counted(db, "replace into v(rowid, a) values(200, 5), (201, 6)");
  counted(db, "insert or fail into v(rowid, a) values(210, 1), (200, 1), (211, 1)");
  counted(db, "update or ignore v set rowid = 200 where rowid > 200");
  counted(db, "update or replace v set rowid = 200 where rowid > 200");
  say(db, "begin; insert or rollback into v(rowid, a) values(200, 9)");
  say(db, "select rowid, *, c from v");
  counted(db, "delete from v");
  counted(db, "insert into v(a, b) values(1, 2) on conflict do nothing");
  counted(db, "insert into v(a, b) values(1, 2) on conflict(a) do update set b = 3");
  counted(db, "insert into v(rowid, a) values(5, 1) returning rowid, a, b");
  counted(db, "insert into v(a) values(7), (8) returning a + 1");
  say(db, "create table t(x, y); insert into t values(7, 'seven'), (8, 'eight'), (7, 'again')");
  counted(db, "update v set a = x, b = y, c = 0 from t where a = x");
  say(db, "select rowid, * from v");
  say(db, "create index i on v(a)");
  say(db, "create trigger r after insert on v begin select 1; end");
  say(db, "create view vv as select * from v; insert into vv values(1, 2); drop view vv");
  say(db, "create virtual table bad using lg(a, b as (a + 1))");
  say(db, "create virtual table bad using lg(a, undeclared)");
  say(db, "create virtual table bad using lg(a b c, d, a)");
  say(db, "create virtual table bad using lg(a check(a > 1) default 5 unique)");
  say(db, "insert into bad default values; select * from bad; drop table bad");
  say(db, "drop table v");
}

static void keyed(sqlite3 *db) {
  say(db, "create virtual table k using lg(a primary key, b, keyed)");
  counted(db, "insert into k values('x', 1), ('y', 2)");
  counted(db, "insert into k values('x', 3)");
  counted(db, "replace into k values('x', 4)");
  counted(db, "update k set b = 5 where a = 'x'");
  counted(db, "update k set a = 'z' where b = 2");
  counted(db, "update k set a = a || '!'");
  counted(db, "select rowid from k");
  say(db, "select * from k order by a");
  counted(db, "delete from k where a = 'z!'");
  counted(db, "delete from k");
  say(db, "create virtual table k2 using lg(a, b, primary key(a, b), keyed)");
  say(db, "create virtual table k3 using lg(a, b, keyed)");
  say(db, "drop table k");
}

static void triggers(sqlite3 *db) {
  say(db, "create virtual table v using lg(a, b); create table t2(x)");
  say(db, "create trigger t2i after insert on t2 begin insert into v values(new.x, 'in'); update v set b = 'up' where a = new.x; delete from v where a < new.x; end");
  counted(db, "insert into t2 values(1), (2)");
  counted(db, "insert or ignore into t2 values(3)");
  fails(db, "update", SQLITE_CONSTRAINT, "insert into t2 values(4)");
  say(db, "select * from v; select * from t2");
  say(db, "create temp trigger tt before delete on t2 begin delete from v where a = old.x; end; delete from t2 where x = 3");
  say(db, "drop table t2; drop table v");
}

static void transactions(sqlite3 *db) {
  say(db, "create virtual table v using lg(a, b)");
  say(db, "create virtual table w using lg(a, b); create table t3(x unique)");
  say(db, "begin; insert into v values(1, 1); insert into w values(1, 1); commit");
  say(db, "begin; insert into v values(2, 2); rollback");
  say(db, "begin; select * from v; commit");
  say(db, "savepoint a; insert into v values(3, 3); savepoint b; insert into v values(4, 4); insert into w values(4, 4); rollback to b; release b; release a");
  say(db, "begin; insert into v values(1, 1); savepoint a; savepoint b; insert into w values(1, 1); release b; rollback to a; insert into v values(2, 2); release a; commit");
  say(db, "savepoint a; insert into v values(5, 5); rollback to a; insert into v values(6, 6); rollback to a; release a");
  say(db, "begin; savepoint a; insert into v values(5, 5); savepoint b; rollback to a; rollback to a; release a; rollback");
  say(db, "begin; insert into v values(1, 1); insert into v select a, b from w; update v set b = 9; delete from v; commit");
  say(db, "insert into t3 values(1); begin; insert into v values(1, 1); insert into t3 values(2), (1); insert into t3 values(5); commit");
  say(db, "drop table v; drop table w; drop table t3");
}

static void failures(sqlite3 *db) {
  say(db, "create virtual table v using lg(a, b); create virtual table w using lg(a, b)");
  fails(db, "begin", SQLITE_ERROR, "insert into v values(1, 1)");
  fails(db, "sync_all", SQLITE_ERROR, "insert into v values(1, 1)");
  fails(db, "sync_all", SQLITE_BUSY, "begin; insert into v values(1, 1); insert into w values(1, 1); commit");
  printf("autocommit %d\n", sqlite3_get_autocommit(db));
  if (!sqlite3_get_autocommit(db)) say(db, "rollback");
  fails(db, "commit", SQLITE_ERROR, "insert into v values(1, 1)");
  fails(db, "savepoint", SQLITE_ERROR, "begin; insert into v values(1, 1); savepoint a");
  say(db, "select * from v; rollback");
  fails(db, "release_to", SQLITE_ERROR, "begin; insert into v values(1, 1); savepoint a; release a");
  say(db, "rollback");
  fails(db, "rollback_to", SQLITE_ERROR, "begin; insert into v values(1, 1); savepoint a; rollback to a");
  printf("autocommit %d\n", sqlite3_get_autocommit(db));
  say(db, "rollback");
  fails(db, "update", SQLITE_ERROR, "begin; insert into v values(1, 1)");
  fails(db, "update", SQLITE_ERROR, "insert into v values(1, 1), (2, 2)");
  fails(db, "update", SQLITE_FULL, "insert into v values(7, 7)");
  printf("autocommit %d\n", sqlite3_get_autocommit(db));
  if (!sqlite3_get_autocommit(db)) say(db, "commit");
  say(db, "begin; create virtual table x using lg(q); insert into x values(1); select * from x; commit");
  say(db, "begin; create virtual table y using lg(q); savepoint s; insert into y values(1); rollback to s; rollback");
  say(db, "select * from y");
  say(db, "begin; insert into x values(2); drop table x; rollback; select * from x");
  say(db, "begin; insert into x values(2); drop table x; commit");
  say(db, "create virtual table n using nb(a); begin; insert into n values(1); savepoint s; rollback to s; commit; drop table n");
  say(db, "create virtual table o using v1(a); begin; insert into o values(1); savepoint s; rollback to s; commit; drop table o");
  say(db, "drop table v; drop table w");
}

static void others(sqlite3 *db) {
  say(db, "insert into ep values(1)");
  say(db, "select * from ep");
  say(db, "create virtual table e using ep(a); insert into e values(1); drop table e");
  say(db, "create virtual table r using ro(a); insert into r values(1)");
  say(db, "delete from r; ");
  say(db, "update r set a = 1");
  say(db, "alter table r rename to r2; select * from r2; drop table r2");
  say(db, "create virtual table v using lg(a, b)");
  say(db, "insert into v values(1, 2); alter table v rename to v2; select * from v2");
  say(db, "alter table v2 rename to \"odd name\"; select sql from sqlite_master");
  fails(db, "rename", SQLITE_ERROR, "alter table \"odd name\" rename to v3");
  say(db, "select name, sql from sqlite_master");
  say(db, "alter table \"odd name\" add column z");
  say(db, "alter table \"odd name\" rename column a to z");
  say(db, "alter table \"odd name\" drop column a");
  fails(db, "destroy", SQLITE_ERROR, "drop table \"odd name\"");
  say(db, "select name from sqlite_master; drop table \"odd name\"");
  fails(db, "create", SQLITE_ERROR, "create virtual table f using lg(a)");
  fails(db, "create", SQLITE_FULL, "create virtual table f using lg(a)");
  say(db, "select count(*) from sqlite_master where name = 'f'");
  say(db, "create virtual table f using lg(a); insert into f values(1), (2)");
  const char *calls[] = {"best", "open", "filter", "next", "column", "rowid"};
  for (int i = 0; i < 6; i++) {
    fails(db, calls[i], SQLITE_ERROR, "select rowid, a from f");
    fails(db, calls[i], SQLITE_IOERR_READ, "select rowid, a from f");
  }
  fails(db, "column", SQLITE_ERROR, "update f set a = a + 1");
  sqlite3_stmt *s;
  sqlite3_prepare_v2(db, "select a from f", -1, &s, 0);
  printf("%d\n", sqlite3_step(s));
  say(db, "drop table f");
  printf("%d\n", sqlite3_step(s));
  sqlite3_finalize(s);
  say(db, "drop table f");
  say(db, "attach ':memory:' as aux; create virtual table aux.g using lg(a); insert into g values(5); select * from aux.g; create virtual table temp.h using lg(a); insert into h select a from g");
  say(db, "begin; insert into g values(6); insert into h values(7); rollback; detach aux");
  say(db, "select * from g");
  say(db, "select * from h");
}

static void shadows(sqlite3 *db) {
  say(db, "create virtual table sh using lg(a); create table sh_data(x); create table sh_more(x)");
  say(db, "select name, type from pragma_table_list where name like 'sh%' order by 1");
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  say(db, "insert into sh_data values(1)");
  say(db, "update sh_data set x = 1");
  say(db, "delete from sh_data");
  say(db, "drop table sh_data");
  say(db, "alter table sh_data rename to q");
  say(db, "alter table sh_data add column q");
  say(db, "insert into sh_more values(1); select * from sh_data; drop table sh_more");
  say(db, "create virtual table si using lg(a); create table si_data(x)");
  say(db, "create table other(x); alter table other rename to si_data");
  say(db, "create view si_data as select 1");
  say(db, "create index xx on sh_data(x); drop index xx");
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, (int *)0);
  say(db, "insert into sh_data values(1); drop table sh_data; drop table sh; drop table si; drop table other");
}

static void ends(sqlite3 *db) {
  int rc = sqlite3_close(db);
  printf("closing %d, alive %d, lost %d\n", rc, alive, lost);
  alive = 0;
  for (unsigned i = 0; i < sizeof stores / sizeof *stores; i++)
    for (int k = 0; k < MOST * WIDTH; k++) sqlite3_value_free(stores[i].rows[k / WIDTH].v[k % WIDTH]);
  memset(stores, 0, sizeof stores);
}

int main(int argc, char **argv) {
  (void)argc;
  setvbuf(stdout, 0, _IOLBF, 0);
  void (*parts[])(sqlite3 *) = {rows_change, keyed, triggers, transactions, failures, others, shadows};
  for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
    sqlite3 *db = with_modules(":memory:");
    parts[i](db);
    ends(db);
  }
  lives = 1;
  char *file = scratch(argv, "writes.db");
  sqlite3 *db = with_modules(file);
  say(db, "create virtual table v using lg(a); create virtual table w using lg(a); insert into w values(1)");
  printf("%d\n", sqlite3_create_module_v2(db, "lg", &module, "again", gone));
  say(db, "insert into w values(2); create virtual table x using lg(a)");
  const char *keep[] = {"lg", "ro", 0};
  printf("%d\n", sqlite3_drop_modules(db, keep));
  say(db, "select * from ep; ");
  say(db, "select * from w");
  printf("%d\n", sqlite3_create_module_v2(db, "lg", 0, "never", gone));
  say(db, "select * from w");
  lives = 0;
  ends(db);
  lives = 1;
  db = with_modules(file);
  say(db, "select * from w; begin; insert into w values(1)");
  ends(db);
  honest = 0;
  db = with_modules(file);
  say(db, "insert into w(rowid, a) values(1, 1); insert or ignore into w(rowid, a) values(2, 2), (1, 1)");
  say(db, "begin; insert or fail into w(rowid, a) values(2, 2), (1, 1); select rowid, * from w; commit");
  ends(db);
  return 0;
}
