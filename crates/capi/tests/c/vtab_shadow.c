/* An extension as search libraries are written: its tables keep their rows in shadow tables, by statements of their own that
   run within xUpdate, xFilter and xColumn; changes are kept back until xSync. */
#include "common.h"

typedef struct {
  sqlite3_vtab base;
  sqlite3 *db;
  char *schema, *name;
  sqlite3_stmt *read, *write, *drop, *get;
  char *pending[100];
  int waiting, depth;
} Table;

typedef struct {
  sqlite3_vtab_cursor base;
  sqlite3_stmt *rows;
  int eof;
} Cursor;

static int trouble, opened_cursors, tables;

static int sql(Table *t, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = sqlite3_vmprintf(format, list);
  va_end(list);
  char *error = 0;
  int rc = sqlite3_exec(t->db, text, 0, 0, &error);
  if (rc) {
    sqlite3_free(t->base.zErrMsg);
    t->base.zErrMsg = sqlite3_mprintf("%s: %s", text, error ? error : "?");
  }
  sqlite3_free(error);
  sqlite3_free(text);
  return rc;
}

static int make(sqlite3 *db, int argc, const char *const *argv, sqlite3_vtab **out, char **err, int is_new) {
  (void)argc;
  Table *t = calloc(1, sizeof *t);
  t->db = db;
  t->schema = sqlite3_mprintf("%s", argv[1]);
  t->name = sqlite3_mprintf("%s", argv[2]);
  int rc = SQLITE_OK;
  if (is_new) rc = sql(t, "CREATE TABLE \"%w\".\"%w_rows\"(id INTEGER PRIMARY KEY, text); CREATE TABLE \"%w\".\"%w_words\"(word PRIMARY KEY, n) WITHOUT ROWID", t->schema, t->name, t->schema, t->name);
  if (!rc) rc = sqlite3_declare_vtab(db, "CREATE TABLE x(text, words HIDDEN)");
  if (rc) {
    *err = t->base.zErrMsg;
    sqlite3_free(t->schema);
    sqlite3_free(t->name);
    free(t);
    return rc;
  }
  sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
  tables++;
  *out = &t->base;
  return rc;
}
static int create(sqlite3 *db, void *p, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
  (void)p;
  return make(db, argc, argv, out, err, 1);
}
static int connect_to(sqlite3 *db, void *p, int argc, const char *const *argv, sqlite3_vtab **out, char **err) {
  (void)p;
  return make(db, argc, argv, out, err, 0);
}
static void forget(Table *t) {
  while (t->waiting) sqlite3_free(t->pending[--t->waiting]);
}
static int disconnect(sqlite3_vtab *v) {
  Table *t = (Table *)v;
  sqlite3_finalize(t->read);
  sqlite3_finalize(t->write);
  sqlite3_finalize(t->drop);
  sqlite3_finalize(t->get);
  forget(t);
  sqlite3_free(t->schema);
  sqlite3_free(t->name);
  free(t);
  tables--;
  return SQLITE_OK;
}
static int destroy(sqlite3_vtab *v) {
  Table *t = (Table *)v;
  int rc = sql(t, "DROP TABLE \"%w\".\"%w_rows\"; DROP TABLE \"%w\".\"%w_words\"", t->schema, t->name, t->schema, t->name);
  return rc ? rc : disconnect(v);
}

static int prepared(Table *t, sqlite3_stmt **s, const char *format) {
  if (*s) return SQLITE_OK;
  char *text = sqlite3_mprintf(format, t->schema, t->name);
  int rc = sqlite3_prepare_v3(t->db, text, -1, SQLITE_PREPARE_PERSISTENT, s, 0);
  if (rc) t->base.zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(t->db));
  sqlite3_free(text);
  return rc;
}

static int best(sqlite3_vtab *v, sqlite3_index_info *q) {
  (void)v;
  for (int i = 0; i < q->nConstraint; i++) {
    if (!q->aConstraint[i].usable) continue;
    if (q->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_MATCH) {
      q->aConstraintUsage[i].argvIndex = 1;
      q->aConstraintUsage[i].omit = 1;
      q->idxNum = 2;
      q->estimatedCost = 10;
      return SQLITE_OK;
    }
  }
  for (int i = 0; i < q->nConstraint; i++) {
    if (!q->aConstraint[i].usable) continue;
    if (q->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && q->aConstraint[i].iColumn < 0) {
      q->aConstraintUsage[i].argvIndex = 1;
      q->aConstraintUsage[i].omit = 1;
      q->idxNum = 1;
      q->estimatedCost = 1;
      q->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
      return SQLITE_OK;
    }
  }
  q->estimatedCost = 1000;
  return SQLITE_OK;
}

static int opened(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  (void)v;
  *out = calloc(1, sizeof(Cursor));
  opened_cursors++;
  return SQLITE_OK;
}
static int closed(sqlite3_vtab_cursor *v) {
  sqlite3_finalize(((Cursor *)v)->rows);
  free(v);
  opened_cursors--;
  return SQLITE_OK;
}
static int next(sqlite3_vtab_cursor *v) {
  Cursor *c = (Cursor *)v;
  int rc = sqlite3_step(c->rows);
  c->eof = rc != SQLITE_ROW;
  return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}
static int sync_all(sqlite3_vtab *v);
static int filter(sqlite3_vtab_cursor *v, int num, const char *str, int argc, sqlite3_value **argv) {
  (void)str, (void)argc;
  Cursor *c = (Cursor *)v;
  Table *t = (Table *)v->pVtab;
  int rc = sync_all(v->pVtab);
  if (rc) return rc;
  const char *where[] = {"", " WHERE id = ?1", " WHERE instr(text, ?1)"};
  char *text = sqlite3_mprintf("SELECT id FROM \"%w\".\"%w_rows\"%s ORDER BY id", t->schema, t->name, where[num]);
  sqlite3_finalize(c->rows);
  c->rows = 0;
  rc = sqlite3_prepare_v2(t->db, text, -1, &c->rows, 0);
  sqlite3_free(text);
  if (rc) return rc;
  if (num) sqlite3_bind_value(c->rows, 1, argv[0]);
  return next(v);
}
static int eof(sqlite3_vtab_cursor *v) { return ((Cursor *)v)->eof; }
static int column(sqlite3_vtab_cursor *v, sqlite3_context *x, int i) {
  Table *t = (Table *)v->pVtab;
  int rc = prepared(t, &t->get, "SELECT text FROM \"%w\".\"%w_rows\" WHERE id = ?");
  if (rc) return rc;
  sqlite3_bind_value(t->get, 1, sqlite3_column_value(((Cursor *)v)->rows, 0));
  if (sqlite3_step(t->get) == SQLITE_ROW) {
    if (i == 0) sqlite3_result_value(x, sqlite3_column_value(t->get, 0));
    if (i == 1) sqlite3_result_int(x, sqlite3_column_bytes(t->get, 0));
  }
  return sqlite3_reset(t->get);
}
static int rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *id) {
  *id = sqlite3_column_int64(((Cursor *)v)->rows, 0);
  return SQLITE_OK;
}

static int update(sqlite3_vtab *v, int argc, sqlite3_value **argv, sqlite3_int64 *id) {
  Table *t = (Table *)v;
  int rc = SQLITE_OK;
  if (trouble == 1) {
    t->base.zErrMsg = sqlite3_mprintf("trouble %d", trouble);
    return SQLITE_ERROR;
  }
  if (sqlite3_value_type(argv[0]) != SQLITE_NULL) {
    rc = prepared(t, &t->drop, "DELETE FROM \"%w\".\"%w_rows\" WHERE id = ?");
    if (rc) return rc;
    sqlite3_bind_value(t->drop, 1, argv[0]);
    sqlite3_step(t->drop);
    rc = sqlite3_reset(t->drop);
  }
  if (rc || argc == 1) return rc;
  rc = prepared(t, &t->write, "INSERT INTO \"%w\".\"%w_rows\" VALUES(?, ?)");
  if (rc) return rc;
  sqlite3_bind_value(t->write, 1, argv[1]);
  sqlite3_bind_value(t->write, 2, argv[2]);
  sqlite3_step(t->write);
  rc = sqlite3_reset(t->write);
  if (rc) {
    t->base.zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(t->db));
    return rc;
  }
  *id = sqlite3_last_insert_rowid(t->db);
  t->pending[t->waiting++] = sqlite3_mprintf("%s", sqlite3_value_text(argv[2]));
  return rc;
}

static int begin(sqlite3_vtab *v) {
  (void)v;
  return SQLITE_OK;
}
static int sync_all(sqlite3_vtab *v) {
  Table *t = (Table *)v;
  if (trouble == 2) {
    t->base.zErrMsg = sqlite3_mprintf("trouble %d", trouble);
    return SQLITE_ERROR;
  }
  int rc = SQLITE_OK;
  /* What runs below may come back here. */
  while (t->waiting && !rc) {
    char *word = t->pending[--t->waiting];
    rc = sql(t, "INSERT INTO \"%w\".\"%w_words\" VALUES(%Q, 1) ON CONFLICT(word) DO UPDATE SET n = n + 1", t->schema, t->name, word);
    sqlite3_free(word);
  }
  return rc;
}
static int over(sqlite3_vtab *v) {
  forget((Table *)v);
  return SQLITE_OK;
}
static int savepoint(sqlite3_vtab *v, int n) {
  (void)n;
  return sync_all(v);
}
static int release_to(sqlite3_vtab *v, int n) {
  (void)v, (void)n;
  return SQLITE_OK;
}
static int rollback_to(sqlite3_vtab *v, int n) {
  (void)n;
  return over(v);
}
static int renamed(sqlite3_vtab *v, const char *name) {
  Table *t = (Table *)v;
  return sql(t, "ALTER TABLE \"%w\".\"%w_rows\" RENAME TO \"%w_rows\"; ALTER TABLE \"%w\".\"%w_words\" RENAME TO \"%w_words\"", t->schema, t->name, name, t->schema, t->name, name);
}
static int is_shadow(const char *name) { return !strcmp(name, "rows") || !strcmp(name, "words"); }

static void matches(sqlite3_context *x, int argc, sqlite3_value **argv) {
  (void)argc;
  sqlite3_result_int(x, strstr((const char *)sqlite3_value_text(argv[1]), (const char *)sqlite3_value_text(argv[0])) != 0);
}
static int find(sqlite3_vtab *v, int n, const char *name, void (**f)(sqlite3_context *, int, sqlite3_value **), void **user) {
  (void)v;
  *f = matches;
  *user = 0;
  return n == 2 && !strcmp(name, "match");
}

static sqlite3_module module = {3, create, connect_to, best, disconnect, destroy, opened, closed, filter, next, eof, column, rowid, update, begin, sync_all, over, over, find, renamed, savepoint, release_to, rollback_to, is_shadow};

static void say(sqlite3 *db, const char *sql) {
  printf("> %s\n", sql);
  run(db, sql);
  printf("changes %d, total %d, last %lld, autocommit %d, cursors %d\n", sqlite3_changes(db), sqlite3_total_changes(db), sqlite3_last_insert_rowid(db), sqlite3_get_autocommit(db), opened_cursors);
}

static void use(const char *file) {
  sqlite3 *db = db_open(file), *other = db_open(file);
  sqlite3_create_module(db, "words", &module, 0);
  sqlite3_create_module(other, "words", &module, 0);
  say(db, "CREATE VIRTUAL TABLE v USING words");
  say(db, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1");
  say(db, "INSERT INTO v VALUES('one two'), ('three'), ('one')");
  say(db, "SELECT rowid, text, words FROM v");
  say(db, "SELECT * FROM v_words");
  say(db, "INSERT INTO v(rowid, text) SELECT rowid + 10, text || '!' FROM v");
  say(db, "SELECT text FROM v WHERE v.text MATCH 'one'");
  say(db, "SELECT rowid FROM v WHERE text = 'three' AND text MATCH 'thr'");
  say(db, "INSERT INTO v(rowid, text) VALUES(1, 'again')");
  say(db, "INSERT INTO v(rowid, text) VALUES(50, 'fifty'), (1, 'again')");
  say(db, "SELECT count(*), count(DISTINCT text) FROM v");
  say(db, "BEGIN; INSERT INTO v VALUES('kept'); SAVEPOINT s; INSERT INTO v VALUES('lost'); ROLLBACK TO s; COMMIT");
  say(db, "SELECT text FROM v WHERE rowid > 13; SELECT * FROM v_words");
  say(db, "BEGIN; DELETE FROM v; SELECT count(*) FROM v; ROLLBACK; SELECT count(*) FROM v");
  say(db, "UPDATE v SET text = upper(text) WHERE text MATCH 'three'");
  say(db, "UPDATE v SET rowid = rowid + 100 WHERE rowid < 3");
  say(db, "SELECT group_concat(rowid || text) FROM v");
  trouble = 1;
  say(db, "INSERT INTO v VALUES('x')");
  say(db, "BEGIN; INSERT INTO v VALUES('x')");
  trouble = 2;
  say(db, "COMMIT");
  say(db, "INSERT INTO v VALUES('sync')");
  say(db, "BEGIN; INSERT INTO v VALUES('sync'); COMMIT");
  trouble = 0;
  say(db, "SELECT count(*) FROM v_rows");
  say(db, "CREATE TABLE log(what); CREATE TRIGGER tr AFTER INSERT ON log BEGIN INSERT INTO v VALUES(new.what); DELETE FROM v WHERE text = new.what AND rowid < 5; END");
  say(db, "INSERT INTO log VALUES('a'), ('b')");
  say(db, "CREATE TRIGGER shadow AFTER INSERT ON v_rows BEGIN INSERT INTO other SELECT 'seen'; END; CREATE TABLE other(x)");
  say(db, "INSERT INTO v VALUES('again'); SELECT count(*) FROM other");
  say(db, "DROP TRIGGER shadow; DROP TRIGGER tr");
  say(db, "SELECT a.text, b.text FROM v a JOIN v b ON b.rowid = a.rowid + 1");
  say(db, "SELECT x.text, (SELECT count(*) FROM v y WHERE y.text MATCH x.text) FROM v x WHERE rowid > 100");
  say(other, "SELECT count(*) FROM v; INSERT INTO v VALUES('other')");
  say(db, "BEGIN; INSERT INTO v VALUES('mine')");
  say(other, "INSERT INTO v VALUES('busy')");
  say(db, "COMMIT; ALTER TABLE v RENAME TO w; SELECT count(*) FROM w; SELECT name, sql FROM sqlite_master WHERE name LIKE 'w%' ORDER BY 1");
  say(other, "SELECT count(*) FROM w; SELECT * FROM v");
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  say(db, "DELETE FROM w_rows");
  say(db, "INSERT INTO w VALUES('defended')");
  say(db, "CREATE VIRTUAL TABLE u USING words; INSERT INTO u VALUES('u'); DROP TABLE u");
  say(db, "SELECT count(*) FROM w, w_rows WHERE w.rowid = w_rows.id");
  sqlite3_stmt *s;
  sqlite3_prepare_v2(db, "SELECT text FROM w", -1, &s, 0);
  sqlite3_step(s);
  say(db, "DROP TABLE w");
  say(db, "INSERT INTO w VALUES('while it is read')");
  sqlite3_finalize(s);
  say(db, "PRAGMA integrity_check");
  say(other, "DROP TABLE w");
  say(db, "SELECT * FROM w");
  say(db, "CREATE VIRTUAL TABLE temp.tv USING words; INSERT INTO tv VALUES('temporary'); SELECT text FROM temp.tv");
  say(db, "CREATE VIRTUAL TABLE kept USING words; INSERT INTO kept VALUES('k')");
  int rc = sqlite3_close(db);
  printf("%d %d\n", rc, tables);
  rc = sqlite3_close(other);
  printf("%d %d\n", rc, tables);
  other = db_open(file);
  say(other, "SELECT * FROM kept");
  say(other, "DROP TABLE kept");
  sqlite3_create_module(other, "words", &module, 0);
  say(other, "SELECT * FROM kept; DROP TABLE kept; SELECT count(*) FROM sqlite_master");
  rc = sqlite3_close(other);
  printf("%d %d\n", rc, tables);
}

int main(int argc, char **argv) {
  (void)argc;
  setvbuf(stdout, 0, _IOLBF, 0);
  use(scratch(argv, "shadow.db"));
  sqlite3 *db = db_open(scratch(argv, "wal.db"));
  run(db, "PRAGMA journal_mode = WAL");
  sqlite3_close(db);
  use(scratch(argv, "wal.db"));
  return 0;
}
