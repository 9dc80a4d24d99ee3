/* Each function about sessions: what it answers, also to arguments that are none. */
#include "../common.h"

static void row_of(sqlite3_changeset_iter *i) {
  const char *table = 0;
  int columns = 0, op = 0, indirect = 0, n = 0;
  unsigned char *keys = 0;
  int rc = sqlite3changeset_op(i, &table, &columns, &op, &indirect);
  if (rc) { printf("  op: %d\n", rc); return; }
  printf("  %s %d%s [", table, op, indirect ? " indirect" : "");
  sqlite3changeset_pk(i, &keys, &n);
  for (int c = 0; c < n; c++) printf("%d", keys[c]);
  printf("]");
  for (int c = 0; c < 2 * columns; c++) {
    sqlite3_value *v = 0;
    rc = c < columns ? sqlite3changeset_old(i, c, &v) : sqlite3changeset_new(i, c - columns, &v);
    if (c == columns) printf(" ->");
    if (rc) printf(" !%d", rc);
    else if (!v) printf(" .");
    else if (sqlite3_value_type(v) == SQLITE_NULL) printf(" NULL");
    else printf(" %s", (const char *)sqlite3_value_text(v));
  }
  printf("\n");
}

static void walk(const char *what, int n, void *p) {
  sqlite3_changeset_iter *i = 0;
  printf("%s: %d\n", what, sqlite3changeset_start(&i, n, p));
  int rc;
  while ((rc = sqlite3changeset_next(i)) == SQLITE_ROW) row_of(i);
  printf("  %d %d\n", rc, sqlite3changeset_finalize(i));
}

static void recorded(const char *what, sqlite3_session *s) {
  int n = 0;
  void *p = 0;
  int rc = sqlite3session_changeset(s, &n, &p);
  printf("%s: %d, %d bytes, empty %d\n", what, rc, n, sqlite3session_isempty(s));
  if (!rc) walk("changeset", n, p);
  sqlite3_free(p);
  rc = sqlite3session_patchset(s, &n, &p);
  if (!rc) walk("patchset", n, p);
  sqlite3_free(p);
}

static int filtered(void *ctx, const char *table) {
  printf("  filter %s %s\n", (const char *)ctx, table);
  return table[0] != 'n';
}

static void recording(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_session *s = 0, *other = 0;
  run(db, "CREATE TABLE t(a PRIMARY KEY, b); CREATE TABLE u(x, y, PRIMARY KEY(y, x)) WITHOUT ROWID; CREATE TABLE nokey(z);"
          "CREATE TABLE not_wanted(k INTEGER PRIMARY KEY); CREATE TEMP TABLE tt(k INTEGER PRIMARY KEY);"
          "CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO u VALUES(new.a, new.b); END");
  printf("create %d\n", sqlite3session_create(db, "main", &s));
  printf("empty %d, used %d\n", sqlite3session_isempty(s), sqlite3session_memory_used(s) > 0);
  printf("attach %d %d %d\n", sqlite3session_attach(s, "t"), sqlite3session_attach(s, "T"), sqlite3session_attach(s, "nosuch"));
  int n = 1;
  printf("too late %d", sqlite3session_object_config(s, SQLITE_SESSION_OBJCONFIG_SIZE, &n));
  n = -1;
  printf(" %d", sqlite3session_object_config(s, SQLITE_SESSION_OBJCONFIG_SIZE, &n));
  printf(" %d, unknown %d\n", n, sqlite3session_object_config(s, 99, &n));
  printf("enabled %d %d %d %d, indirect %d %d %d\n", sqlite3session_enable(s, -1), sqlite3session_enable(s, 0), sqlite3session_enable(s, -1),
         sqlite3session_enable(s, 1), sqlite3session_indirect(s, -1), sqlite3session_indirect(s, 1), sqlite3session_indirect(s, 0));
  printf("size %d\n", (int)sqlite3session_changeset_size(s));
  sqlite3session_create(db, "main", &other);
  n = 1;
  printf("sizes %d %d\n", sqlite3session_object_config(other, SQLITE_SESSION_OBJCONFIG_SIZE, &n), n);
  sqlite3session_table_filter(other, filtered, "F");
  run(db, "INSERT INTO t VALUES(1, 'one'), (2, 'two'); INSERT INTO nokey VALUES(1); INSERT INTO not_wanted VALUES(1); INSERT INTO tt VALUES(1)");
  run(db, "INSERT INTO t VALUES(NULL, 'null'); INSERT OR REPLACE INTO t VALUES(2, 'zwei')");
  recorded("attached", s);
  recorded("filtered", other);
  printf("size %d\n", (int)sqlite3session_changeset_size(other));
  sqlite3session_enable(s, 0);
  run(db, "DELETE FROM t WHERE a = 1; INSERT INTO t VALUES(7, 'seven')");
  sqlite3session_enable(s, 1);
  run(db, "UPDATE t SET a = 8 WHERE a = 7; UPDATE t SET a = 3 WHERE a IS NULL; UPDATE t SET a = NULL WHERE a = 2");
  recorded("some of it", s);
  run(db, "BEGIN; DELETE FROM t; DELETE FROM u; ROLLBACK; SAVEPOINT x; INSERT INTO u VALUES(5, 5); ROLLBACK TO x; RELEASE x");
  recorded("taken back", other);
  sqlite3session_delete(other);
  sqlite3session_create(db, "temp", &other);
  sqlite3session_attach(other, 0);
  run(db, "INSERT INTO tt VALUES(2); UPDATE t SET b = 'not temp'");
  recorded("temp", other);
  sqlite3session_delete(other);
  sqlite3session_create(db, "nosuch", &other);
  sqlite3session_attach(other, 0);
  run(db, "INSERT INTO tt VALUES(3)");
  recorded("no such database", other);
  sqlite3session_delete(other);
  sqlite3session_delete(s);
  sqlite3_close(db);
}

static void schemas(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_session *s = 0;
  run(db, "CREATE TABLE t(a PRIMARY KEY, b); INSERT INTO t VALUES(1, 1), (2, 2), (3, 3); CREATE TABLE d(a PRIMARY KEY); CREATE INDEX i ON t(b);"
          "CREATE TABLE g(a PRIMARY KEY, v AS (c + 1), c, w AS (c * 2) STORED); INSERT INTO g VALUES(1, 1)");
  sqlite3session_create(db, "main", &s);
  sqlite3session_attach(s, 0);
  run(db, "ANALYZE");
  recorded("statistics", s);
  run(db, "UPDATE g SET c = 5; INSERT INTO g VALUES(2, 2)");
  recorded("generated", s);
  run(db, "UPDATE t SET b = 'x' WHERE a = 1; DELETE FROM t WHERE a = 2; ALTER TABLE t ADD COLUMN c DEFAULT 'c'; UPDATE t SET c = 'y' WHERE a = 3");
  recorded("wider", s);
  run(db, "INSERT INTO d VALUES(1); DROP TABLE d");
  recorded("dropped", s);
  sqlite3session_delete(s);
  sqlite3session_create(db, "main", &s);
  sqlite3session_attach(s, "t");
  run(db, "INSERT INTO t VALUES(9, 9, 9); ALTER TABLE t DROP COLUMN c; INSERT INTO t VALUES(10, 10)");
  recorded("narrower", s);
  sqlite3session_delete(s);
  /* Differences. */
  sqlite3session_create(db, "main", &s);
  char *message = 0;
  run(db, "ATTACH ':memory:' AS other; CREATE TABLE other.t(a PRIMARY KEY, b); INSERT INTO other.t VALUES(1, 'x'), (3, 'z'), (99, 1);"
          "CREATE TABLE other.g(a PRIMARY KEY, c); CREATE TABLE k(a, b); CREATE TABLE other.k(a, b); CREATE TABLE o(a PRIMARY KEY)");
  static const char *pairs[][2] = {{"other", "t"}, {"other", "g"}, {"other", "k"}, {"other", "o"}, {"nosuch", "t"}, {"other", "nosuch"}};
  for (int i = 0; i < 6; i++) {
    message = 0;
    int rc = sqlite3session_diff(s, pairs[i][0], pairs[i][1], &message);
    printf("difference %s %s: %d %d\n", pairs[i][0], pairs[i][1], rc, message != 0);
    sqlite3_free(message);
  }
  recorded("differences", s);
  sqlite3session_delete(s);
  sqlite3_close(db);
}

static sqlite3 *filled(const char *more) {
  sqlite3 *db = db_open(":memory:");
  run(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c CHECK(c <> 'bad')); INSERT INTO t VALUES(1, 'one', 1), (2, 'two', 2), (3, 'three', 3)");
  run(db, more);
  return db;
}

static void *changes(sqlite3 *db, const char *sql, int *n, int patchset) {
  sqlite3_session *s = 0;
  void *p = 0;
  sqlite3session_create(db, "main", &s);
  sqlite3session_attach(s, 0);
  run(db, sql);
  if (patchset) sqlite3session_patchset(s, n, &p);
  else sqlite3session_changeset(s, n, &p);
  sqlite3session_delete(s);
  return p;
}

static int answer, inner;
static sqlite3 *target;
static int decide(void *ctx, int kind, sqlite3_changeset_iter *i) {
  printf(" conflict %s %d\n", (const char *)ctx, kind);
  int n = 0;
  if (kind == SQLITE_CHANGESET_FOREIGN_KEY) {
    printf("  keys %d", sqlite3changeset_fk_conflicts(i, &n));
    printf(" %d\n", n > 0);
    return answer;
  }
  row_of(i);
  for (int c = 0; c < 2; c++) {
    sqlite3_value *v = 0;
    int rc = sqlite3changeset_conflict(i, c, &v);
    printf("  %d:%s", rc, v ? (const char *)sqlite3_value_text(v) : "-");
  }
  printf("\n  keys %d\n", sqlite3changeset_fk_conflicts(i, &n));
  if (inner) run(target, "INSERT OR IGNORE INTO t VALUES(50, 'inner', 0)");
  return answer;
}

static int only(void *ctx, const char *table) {
  printf(" table %s %s\n", (const char *)ctx, table);
  return strcmp(table, "t") == 0;
}

static int only_odd(void *ctx, sqlite3_changeset_iter *i) {
  printf(" change %s\n", (const char *)ctx);
  row_of(i);
  sqlite3_value *v = 0;
  if (sqlite3changeset_old(i, 0, &v) || !v) sqlite3changeset_new(i, 0, &v);
  return sqlite3_value_int(v) & 1;
}

static void applied(const char *what, sqlite3 *db, int n, void *p, int flags) {
  void *rebase = 0;
  int nr = 0;
  target = db;
  int rc = sqlite3changeset_apply_v2(db, n, p, 0, decide, "x", &rebase, &nr, flags);
  printf("%s: %d, %d %s, decided %d bytes, autocommit %d\n", what, rc, sqlite3_errcode(db), sqlite3_errmsg(db), nr, sqlite3_get_autocommit(db));
  sqlite3_free(rebase);
  run(db, "SELECT * FROM t");
}

static void applying(void) {
  static const char *different[] = {
      "UPDATE t SET b = 'eins' WHERE a = 1", "DELETE FROM t", "INSERT INTO t VALUES(4, 'vier', 4)", "UPDATE t SET b = 'four' WHERE a = 3",
      "UPDATE t SET c = 9", "DROP TABLE t; CREATE TABLE t(a PRIMARY KEY, b)", "DROP TABLE t; CREATE TABLE t(a, b PRIMARY KEY, c)",
      "ALTER TABLE t ADD COLUMN d DEFAULT 'd'", "DROP TABLE t; CREATE VIEW t AS SELECT 1 AS a"};
  sqlite3 *from = filled("");
  int n, np;
  void *p = changes(from, "UPDATE t SET b = 'uno' WHERE a = 1; DELETE FROM t WHERE a = 2; INSERT INTO t VALUES(4, 'four', 'x')", &n, 0);
  sqlite3_close(from);
  from = filled("");
  void *patch = changes(from, "UPDATE t SET b = 'uno' WHERE a = 1; DELETE FROM t WHERE a = 2; INSERT INTO t VALUES(4, 'four', 'x')", &np, 1);
  for (int d = 0; d < 9; d++)
    for (answer = -1; answer < 4; answer++) {
      if (answer == 1 && (d == 3 || d == 8)) continue;
      sqlite3 *db = filled(different[d]);
      printf("-- %s, answer %d\n", different[d], answer);
      applied("changeset", db, n, p, 0);
      sqlite3_close(db);
      db = filled(different[d]);
      applied("patchset", db, np, patch, answer == 2 ? SQLITE_CHANGESETAPPLY_NOSAVEPOINT : 0);
      sqlite3_close(db);
    }
  answer = SQLITE_CHANGESET_OMIT;
  sqlite3 *db = filled("UPDATE t SET b = 'uno' WHERE a = 1; DELETE FROM t WHERE a = 2; INSERT INTO t VALUES(4, 'four', 'x')");
  applied("done already", db, n, p, 0);
  applied("no operation", db, n, p, SQLITE_CHANGESETAPPLY_IGNORENOOP);
  applied("taken back", db, n, p, SQLITE_CHANGESETAPPLY_INVERT);
  applied("a patchset taken back", db, np, patch, SQLITE_CHANGESETAPPLY_INVERT);
  inner = 1;
  run(db, "UPDATE t SET c = 77");
  applied("with statements", db, n, p, 0);
  inner = 0;
  run(db, "BEGIN; DELETE FROM t");
  applied("in a transaction", db, n, p, 0);
  answer = SQLITE_CHANGESET_ABORT;
  applied("in a transaction, given up", db, n, p, 0);
  run(db, "ROLLBACK");
  sqlite3_close(db);
  db = filled("");
  printf("filtered %d\n", sqlite3changeset_apply(db, n, p, only, decide, "y"));
  run(db, "SELECT * FROM t");
  sqlite3_close(db);
  db = filled("");
  printf("some %d\n", sqlite3changeset_apply_v3(db, n, p, only_odd, decide, "z", 0, 0, 0));
  run(db, "SELECT * FROM t");
  /* Exchanged values, and a row that becomes another. */
  sqlite3_free(p);
  p = changes(from, "UPDATE t SET b = 'tmp' WHERE a = 1; UPDATE t SET b = 'uno' WHERE a = 4; UPDATE t SET b = 'four' WHERE a = 1", &n, 0);
  sqlite3_close(db);
  db = filled("UPDATE t SET b = 'uno' WHERE a = 1; INSERT INTO t VALUES(4, 'four', 4)");
  answer = SQLITE_CHANGESET_OMIT;
  applied("exchanged, not", db, n, p, SQLITE_CHANGESETAPPLY_NOUPDATELOOP);
  applied("exchanged", db, n, p, 0);
  sqlite3_close(db);
  sqlite3_close(from);
  sqlite3_free(p);
  sqlite3_free(patch);
}

static void keys(void) {
  static const char *schema =
      "PRAGMA foreign_keys = 1; CREATE TABLE p(i INTEGER PRIMARY KEY); INSERT INTO p VALUES(1), (2);"
      "CREATE TABLE t(a PRIMARY KEY, b REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE); INSERT INTO t VALUES('x', 1), ('y', 2)";
  for (answer = 0; answer < 3; answer++)
    for (int flags = 0; flags < 9; flags += 8) {
      sqlite3 *from = db_open(":memory:"), *db = db_open(":memory:");
      run(from, schema);
      run(db, schema);
      run(from, "PRAGMA foreign_keys = 0");
      int n;
      void *p = changes(from, "DELETE FROM p WHERE i = 1; UPDATE t SET b = 2 WHERE a = 'x'; INSERT INTO t VALUES('z', 2)", &n, 0);
      applied("moved", db, n, p, flags);
      sqlite3_free(p);
      p = changes(from, "DELETE FROM p WHERE i = 2", &n, 0);
      applied("no parent", db, n, p, flags);
      run(db, "SELECT * FROM p; DELETE FROM p; SELECT * FROM t; PRAGMA foreign_key_check");
      sqlite3_free(p);
      sqlite3_close(from);
      sqlite3_close(db);
    }
}

struct stream { unsigned char *p; int n, at, fail, calls; };
static int pull(void *ctx, void *to, int *n) {
  struct stream *s = ctx;
  if (s->fail && ++s->calls >= s->fail) return 1234;
  if (*n > 7) *n = 7;
  if (*n > s->n - s->at) *n = s->n - s->at;
  memcpy(to, s->p + s->at, *n);
  s->at += *n;
  return SQLITE_OK;
}
static int push(void *ctx, const void *p, int n) {
  struct stream *s = ctx;
  if (s->fail && ++s->calls >= s->fail) return 4321;
  if (n <= 0) printf("nothing is pushed\n");
  s->p = realloc(s->p, s->n + n);
  memcpy(s->p + s->n, p, n);
  s->n += n;
  return SQLITE_OK;
}

static void same(const char *what, int rc, struct stream *s, int n, void *p) {
  printf("%s: %d %s\n", what, rc, s->n == n && !memcmp(s->p, p, n) ? "the same" : "other");
  free(s->p);
  memset(s, 0, sizeof *s);
}

static void streams(void) {
  int size = 0;
  printf("pieces %d %d", sqlite3session_config(SQLITE_SESSION_CONFIG_STRMSIZE, &size), size);
  size = 40;
  printf(" %d %d, unknown %d\n", sqlite3session_config(SQLITE_SESSION_CONFIG_STRMSIZE, &size), size, sqlite3session_config(77, &size));
  sqlite3 *db = filled("");
  sqlite3_session *s = 0;
  sqlite3session_create(db, "main", &s);
  sqlite3session_attach(s, 0);
  run(db, "WITH c(x) AS (VALUES(10) UNION ALL SELECT x + 1 FROM c WHERE x < 40) INSERT INTO t SELECT x, 'b' || x, x FROM c; UPDATE t SET c = 'upd' WHERE a = 1; DELETE FROM t WHERE a = 2");
  int n, m, k;
  void *p, *q, *o;
  struct stream out = {0}, in = {0}, in2 = {0};
  sqlite3session_changeset(s, &n, &p);
  same("changeset", sqlite3session_changeset_strm(s, push, &out), &out, n, p);
  sqlite3session_patchset(s, &m, &q);
  same("patchset", sqlite3session_patchset_strm(s, push, &out), &out, m, q);
  out.fail = 3;
  printf("refused: %d\n", sqlite3session_changeset_strm(s, push, &out));
  free(out.p);
  memset(&out, 0, sizeof out);
  sqlite3changeset_invert(n, p, &k, &o);
  in.p = p, in.n = n;
  same("inverse", sqlite3changeset_invert_strm(pull, &in, push, &out), &out, k, o);
  in.at = 0, in2.p = o, in2.n = k;
  void *both;
  int nb;
  sqlite3changeset_concat(n, p, k, o, &nb, &both);
  same("together", sqlite3changeset_concat_strm(pull, &in, pull, &in2, push, &out), &out, nb, both);
  sqlite3_free(both);
  for (int fail = 1; fail < 40; fail += 12) {
    in.at = 0, in.fail = fail, in.calls = 0;
    sqlite3_changeset_iter *i = 0;
    int rc = sqlite3changeset_start_strm(&i, pull, &in), seen = 0;
    while (!rc && (rc = sqlite3changeset_next(i)) == SQLITE_ROW) seen++, rc = 0;
    printf("iterator: %d %d", rc, sqlite3changeset_next(i));
    printf(" %d\n", sqlite3changeset_finalize(i));
    in.at = 0, in.calls = 0;
    sqlite3 *to = filled("");
    rc = sqlite3changeset_apply_strm(to, pull, &in, 0, decide, "s");
    printf("apply: %d %d, %d changes\n", rc, sqlite3_errcode(to), sqlite3_get_autocommit(to));
    run(to, "SELECT count(*) FROM t");
    sqlite3_close(to);
  }
  in.at = 0, in.fail = 0;
  sqlite3 *to = filled("");
  printf("v2: %d\n", sqlite3changeset_apply_v2_strm(to, pull, &in, 0, decide, "s", 0, 0, 0));
  run(to, "SELECT count(*), sum(a) FROM t");
  in.at = 0;
  printf("v3: %d\n", sqlite3changeset_apply_v3_strm(to, pull, &in, 0, decide, "s", 0, 0, SQLITE_CHANGESETAPPLY_INVERT));
  run(to, "SELECT count(*), sum(a) FROM t");
  in.at = 0;
  sqlite3_changeset_iter *i = 0;
  sqlite3changeset_start_v2_strm(&i, pull, &in, SQLITE_CHANGESETSTART_INVERT);
  for (int c = 0; c < 2 && sqlite3changeset_next(i) == SQLITE_ROW; c++) row_of(i);
  sqlite3changeset_finalize(i);
  sqlite3_changegroup *g = 0;
  sqlite3changegroup_new(&g);
  in.at = 0;
  printf("group: %d\n", sqlite3changegroup_add_strm(g, pull, &in));
  same("group", sqlite3changegroup_output_strm(g, push, &out), &out, n, p);
  sqlite3changegroup_delete(g);
  sqlite3_rebaser *r = 0;
  sqlite3rebaser_create(&r);
  in.at = 0;
  same("rebased", sqlite3rebaser_rebase_strm(r, pull, &in, push, &out), &out, n, p);
  sqlite3rebaser_delete(r);
  size = 1024;
  sqlite3session_config(SQLITE_SESSION_CONFIG_STRMSIZE, &size);
  sqlite3session_delete(s);
  sqlite3_free(p);
  sqlite3_free(q);
  sqlite3_free(o);
  sqlite3_close(db);
  sqlite3_close(to);
}

static void groups(void) {
  sqlite3 *narrow = filled("CREATE TABLE w(k PRIMARY KEY, v); INSERT INTO w VALUES(1, 1), (2, 2), (3, 3)");
  sqlite3 *wide = filled("CREATE TABLE w(k PRIMARY KEY, v, x DEFAULT 'x', y DEFAULT (1 + 2)); INSERT INTO w(k, v) VALUES(1, 1), (2, 2), (3, 3), (4, 4)");
  int n, m, np, k;
  void *out;
  void *p = changes(narrow, "UPDATE w SET v = 9 WHERE k = 1; DELETE FROM w WHERE k = 2; INSERT INTO w VALUES(7, 7)", &n, 0);
  void *pp = changes(narrow, "UPDATE w SET v = 10 WHERE k = 1; INSERT INTO w VALUES(8, 8); DELETE FROM w WHERE k = 3", &np, 1);
  void *q = changes(wide, "UPDATE w SET x = 'X' WHERE k = 1; INSERT INTO w VALUES(9, 9, 9, 9); DELETE FROM w WHERE k = 3", &m, 0);
  sqlite3_changegroup *g = 0;
  sqlite3changegroup_new(&g);
  printf("add %d, other width %d, patchset %d\n", sqlite3changegroup_add(g, n, p), sqlite3changegroup_add(g, m, q), sqlite3changegroup_add(g, np, pp));
  printf("schema late %d\n", sqlite3changegroup_schema(g, wide, "main"));
  sqlite3changegroup_delete(g);
  sqlite3changegroup_new(&g);
  printf("schema %d, add %d %d\n", sqlite3changegroup_schema(g, wide, "main"), sqlite3changegroup_add(g, n, p), sqlite3changegroup_add(g, m, q));
  printf("output %d\n", sqlite3changegroup_output(g, &k, &out));
  walk("wide", k, out);
  sqlite3_free(out);
  sqlite3changegroup_delete(g);
  sqlite3changegroup_new(&g);
  sqlite3changegroup_schema(g, wide, "main");
  printf("patchset %d\n", sqlite3changegroup_add(g, np, pp));
  sqlite3changegroup_output(g, &k, &out);
  walk("wide patchset", k, out);
  sqlite3_free(out);
  sqlite3changegroup_delete(g);
  sqlite3changegroup_new(&g);
  sqlite3changegroup_schema(g, narrow, "main");
  printf("too wide %d\n", sqlite3changegroup_add(g, m, q));
  sqlite3changegroup_delete(g);
  /* One by one. */
  sqlite3changegroup_new(&g);
  sqlite3_changeset_iter *i = 0;
  sqlite3changeset_start(&i, n, p);
  printf("no change yet %d\n", sqlite3changegroup_add_change(g, i));
  while (sqlite3changeset_next(i) == SQLITE_ROW) printf("one %d\n", sqlite3changegroup_add_change(g, i));
  printf("at the end %d\n", sqlite3changegroup_add_change(g, i));
  sqlite3changeset_finalize(i);
  sqlite3changeset_start_v2(&i, n, p, SQLITE_CHANGESETSTART_INVERT);
  sqlite3changeset_next(i);
  printf("inverted %d\n", sqlite3changegroup_add_change(g, i));
  sqlite3changeset_finalize(i);
  sqlite3changegroup_output(g, &k, &out);
  walk("all", k, out);
  sqlite3_free(out);
  /* Made up. */
  char *message = 0;
  printf("begin %d", sqlite3changegroup_change_begin(g, SQLITE_UPDATE, "w", 1, &message));
  printf(" %d %d %d %d %d", sqlite3changegroup_change_int64(g, 0, 0, 20), sqlite3changegroup_change_text(g, 0, 1, "before", -1),
         sqlite3changegroup_change_blob(g, 1, 1, "behind", 3), sqlite3changegroup_change_null(g, 1, 9), sqlite3changegroup_change_double(g, 1, -1, 1.0));
  printf(" %d\n", sqlite3changegroup_change_finish(g, 0, &message));
  printf("begin %d %s\n", sqlite3changegroup_change_begin(g, SQLITE_INSERT, "unknown", 0, &message), message ? message : "-");
  sqlite3_free(message);
  message = 0;
  sqlite3changegroup_change_begin(g, SQLITE_INSERT, "w", 0, &message);
  sqlite3changegroup_change_int64(g, 1, 0, 21);
  printf("unfinished %d %s\n", sqlite3changegroup_change_finish(g, 0, &message), message ? message : "-");
  sqlite3_free(message);
  sqlite3changegroup_output(g, &k, &out);
  walk("made up", k, out);
  sqlite3_free(out);
  sqlite3changegroup_delete(g);
  sqlite3changegroup_delete(0);
  sqlite3_free(p);
  sqlite3_free(pp);
  sqlite3_free(q);
  sqlite3_close(narrow);
  sqlite3_close(wide);
}

static void iterators(void) {
  sqlite3 *db = filled("");
  int n, columns;
  unsigned char *key = (unsigned char *)&n;
  void *p = changes(db, "UPDATE t SET b = 'uno' WHERE a = 1; DELETE FROM t WHERE a = 2; INSERT INTO t VALUES(4, 'four', 'x')", &n, 0);
  sqlite3_changeset_iter *i = 0;
  sqlite3_value *v = 0;
  printf("start %d\n", sqlite3changeset_start(&i, n, p));
  printf("before the first: %d %d\n", sqlite3changeset_old(i, 0, &v), sqlite3changeset_new(i, 0, &v));
  while (sqlite3changeset_next(i) == SQLITE_ROW) {
    printf("range %d %d %d", sqlite3changeset_old(i, 3, &v), sqlite3changeset_new(i, 3, &v), sqlite3changeset_new(i, -1, &v));
    printf(", conflict %d, keys %d, pk %d %d\n", sqlite3changeset_conflict(i, 0, &v), sqlite3changeset_fk_conflicts(i, &columns), sqlite3changeset_pk(i, &key, 0), key[0]);
  }
  printf("at the end: again %d\n", sqlite3changeset_next(i));
  printf("finalize %d %d\n", sqlite3changeset_finalize(i), sqlite3changeset_finalize(0));
  sqlite3changeset_start_v2(&i, n, p, SQLITE_CHANGESETSTART_INVERT);
  while (sqlite3changeset_next(i) == SQLITE_ROW) row_of(i);
  sqlite3changeset_finalize(i);
  walk("nothing", 0, 0);
  walk("a table alone", 0, p);
  sqlite3_free(p);
  sqlite3_close(db);
  printf("%d %d %d\n", sqlite3_compileoption_used("ENABLE_SESSION"), sqlite3_compileoption_used("SQLITE_ENABLE_PREUPDATE_HOOK"), sqlite3_compileoption_used("ENABLE_SNAPSHOT"));
}

int main(void) {
  recording();
  schemas();
  applying();
  keys();
  streams();
  groups();
  iterators();
  return 0;
}
