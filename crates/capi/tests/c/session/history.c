/* Drawn histories: what sessions record, and what becomes of it when it is combined, inverted, applied and rebased. */
#include "../common.h"

static unsigned long long state;
static unsigned draw(unsigned n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)((state >> 11) % n);
}

static void show(const char *what, int rc, const void *p, int n) {
  unsigned h = 2166136261u;
  for (int i = 0; i < n; i++) h = (h ^ ((const unsigned char *)p)[i]) * 16777619u;
  printf("%s: %d, %d bytes, %08x\n", what, rc, n, h);
  if (getenv("SHOW")) {
    for (int i = 0; i < n; i++) printf("%02x", ((const unsigned char *)p)[i]);
    printf("\n");
  }
}

static const char *SCHEMA =
    "CREATE TABLE one(a INTEGER PRIMARY KEY, b, c UNIQUE, d DEFAULT 'd');"
    "CREATE TABLE two(a, b TEXT, c REAL, PRIMARY KEY(b, a)) WITHOUT ROWID;"
    "CREATE TABLE three(x TEXT COLLATE NOCASE PRIMARY KEY, y, z AS (y || 'z'), w AS (y || 'w') STORED, v);"
    "CREATE TABLE four(p, q, r);"
    "CREATE TABLE five(k PRIMARY KEY, n NOT NULL CHECK(n > -5));"
    "CREATE TABLE logged(i INTEGER PRIMARY KEY, t);"
    "CREATE TRIGGER note AFTER UPDATE ON one WHEN new.a % 3 = 0 BEGIN"
    " INSERT INTO logged(t) VALUES(new.b); UPDATE five SET n = n + 1 WHERE k = new.a; END;";

/* A value as SQL. */
static const char *value(void) {
  static char ring[16][64];
  static int at;
  char *s = ring[at++ & 15];
  switch (draw(8)) {
    case 0: strcpy(s, "NULL"); break;
    case 1: sprintf(s, "%d", (int)draw(40) - 10); break;
    case 2: sprintf(s, "%u.5", draw(20)); break;
    case 3: sprintf(s, "x'%02x%02x'", draw(256), draw(3)); break;
    case 4: sprintf(s, "'%c%c'", 'a' + draw(4), "aA"[draw(2)]); break;
    case 5: strcpy(s, "zeroblob(200)"); break;
    default: sprintf(s, "'t%u'", draw(30)); break;
  }
  return s;
}

static void quiet(sqlite3 *db, const char *sql) {
  char *message = 0;
  int rc = sqlite3_exec(db, sql, 0, 0, &message);
  if (getenv("TRACE")) printf("%s -> %d %s\n", sql, rc, message ? message : "");
  sqlite3_free(message);
}

/* One statement. */
static void step(sqlite3 *db) {
  char sql[512];
  const char *verb = draw(3) ? "INSERT OR IGNORE" : draw(2) ? "REPLACE" : "INSERT";
  unsigned k = draw(25);
  switch (draw(17)) {
    case 0: case 1:
      sprintf(sql, "%s INTO one(a, b, c) VALUES(%u, %s, %s)", verb, k, value(), value()); break;
    case 2: sprintf(sql, "UPDATE one SET b = %s WHERE a = %u", value(), k); break;
    case 3: sprintf(sql, "UPDATE one SET a = a + %u WHERE a = %u", draw(5), k); break;
    case 4: sprintf(sql, "DELETE FROM one WHERE a BETWEEN %u AND %u", k, k + draw(3)); break;
    case 5: case 6: sprintf(sql, "%s INTO two VALUES(%s, %s, %s)", verb, value(), value(), value()); break;
    case 7: sprintf(sql, "UPDATE two SET c = %s WHERE b > %s", value(), value()); break;
    case 8: sprintf(sql, "DELETE FROM two WHERE a = %s", value()); break;
    case 9: case 10:
      sprintf(sql, "INSERT INTO three(x, y, v) VALUES(%s, %s, %s) ON CONFLICT DO UPDATE SET v = excluded.v", value(), value(), value());
      break;
    case 11: sprintf(sql, "UPDATE three SET y = %s WHERE x < %s", value(), value()); break;
    case 12: sprintf(sql, "INSERT INTO four VALUES(%s, %s, %s)", value(), value(), value()); break;
    case 13: sprintf(sql, "UPDATE four SET q = %s WHERE rowid = %u", value(), k % 9); break;
    case 14: sprintf(sql, "%s INTO five VALUES(%u, %d)", verb, k, (int)draw(9) - 4); break;
    case 15: sprintf(sql, "UPDATE five SET n = n + %d WHERE k < %u", (int)draw(5) - 3, k); break;
    default: {
      const char *list[] = {"SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "BEGIN", "COMMIT", "ROLLBACK", "DELETE FROM logged", "DELETE FROM four WHERE rowid % 2"};
      strcpy(sql, list[draw(8)]);
    }
  }
  quiet(db, sql);
}

static sqlite3_session *record(sqlite3 *db, int rowids) {
  sqlite3_session *s = 0;
  sqlite3session_create(db, "main", &s);
  if (rowids) sqlite3session_object_config(s, SQLITE_SESSION_OBJCONFIG_ROWID, &rowids);
  int on = 1;
  sqlite3session_object_config(s, SQLITE_SESSION_OBJCONFIG_SIZE, &on);
  sqlite3session_attach(s, 0);
  return s;
}

static void content(sqlite3 *db, const char *what) {
  sqlite3_stmt *s = 0;
  unsigned h = 2166136261u;
  int rows = 0;
  static const char *tables[] = {"one", "two", "three", "four", "five", "logged"};
  for (int t = 0; t < 6; t++) {
    char sql[200];
    sprintf(sql, "SELECT * FROM %s ORDER BY 1, 2, 3", tables[t]);
    if (sqlite3_prepare_v2(db, sql, -1, &s, 0) != SQLITE_OK) {
      sprintf(sql, "SELECT * FROM %s ORDER BY 1, 2", tables[t]);
      sqlite3_prepare_v2(db, sql, -1, &s, 0);
    }
    while (sqlite3_step(s) == SQLITE_ROW) {
      rows++;
      for (int i = 0; i < sqlite3_column_count(s); i++) {
        h = (h ^ sqlite3_column_type(s, i)) * 16777619u;
        const unsigned char *p = sqlite3_column_text(s, i);
        for (; p && *p; p++) h = (h ^ *p) * 16777619u;
        if (getenv("SHOW")) printf("%s|", sqlite3_column_text(s, i));
      }
      if (getenv("SHOW")) printf(" %s\n", tables[t]);
    }
    sqlite3_finalize(s);
  }
  printf("%s: %d rows, %08x\n", what, rows, h);
}

static int answers;
static int decide(void *ctx, int kind, sqlite3_changeset_iter *i) {
  int *seen = ctx;
  if (kind == SQLITE_CHANGESET_FOREIGN_KEY) return SQLITE_CHANGESET_OMIT;
  const char *table;
  int columns, op, indirect;
  sqlite3changeset_op(i, &table, &columns, &op, &indirect);
  sqlite3_value *v = 0;
  int rc = sqlite3changeset_conflict(i, 1, &v);
  seen[kind]++;
  if (getenv("SHOW")) printf("  conflict %d op %d of %s: %d %s\n", kind, op, table, rc, v ? (const char *)sqlite3_value_text(v) : "-");
  if (answers == 0) return SQLITE_CHANGESET_OMIT;
  /* Where the new row may violate another constraint, stock loses the one that was to be replaced. */
  if (kind == SQLITE_CHANGESET_CONFLICT && (!strcmp(table, "one") || !strcmp(table, "five"))) return SQLITE_CHANGESET_OMIT;
  return (kind == SQLITE_CHANGESET_DATA || kind == SQLITE_CHANGESET_CONFLICT) && (answers == 1 || seen[0]++ % 2)
             ? SQLITE_CHANGESET_REPLACE
             : SQLITE_CHANGESET_OMIT;
}

static int told(unsigned kind, void *ctx, void *s, void *x) {
  char *sql = sqlite3_expanded_sql(s);
  printf("   [%s]\n", sql);
  sqlite3_free(sql);
  return 0;
}

/* Whether all UPDATEs say what was before: stock tests what the last one said, otherwise. */
static int is_whole(int n, void *p) {
  sqlite3_changeset_iter *i = 0;
  int whole = 1;
  sqlite3changeset_start(&i, n, p);
  while (sqlite3changeset_next(i) == SQLITE_ROW) {
    const char *table;
    int columns, op;
    sqlite3changeset_op(i, &table, &columns, &op, 0);
    for (int c = 0; op == SQLITE_UPDATE && c < columns; c++) {
      sqlite3_value *old = 0, *new = 0;
      sqlite3changeset_old(i, c, &old);
      sqlite3changeset_new(i, c, &new);
      if (new && !old) whole = 0;
    }
  }
  sqlite3changeset_finalize(i);
  return whole;
}

static void apply(sqlite3 *db, const char *what, int n, void *p, int flags, void **rebase, int *rebased) {
  int seen[6] = {0};
  if (getenv("TRACE")) sqlite3_trace_v2(db, SQLITE_TRACE_STMT, told, 0);
  int rc = sqlite3changeset_apply_v2(db, n, p, 0, decide, seen, rebase, rebased, flags);
  sqlite3_trace_v2(db, 0, 0, 0);
  printf("%s: %d, conflicts %d %d %d %d\n", what, rc, seen[1], seen[2], seen[3], seen[4]);
  content(db, what);
}

static void round_of(unsigned long long seed) {
  state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (int i = 0; i < 8; i++) draw(2);
  answers = seed % 3;
  int rowids = draw(2);
  sqlite3 *local = db_open(":memory:"), *remote = db_open(":memory:"), *copy = db_open(":memory:");
  sqlite3 *all[] = {local, remote, copy};
  char sql[300];
  for (int i = 0; i < 3; i++) quiet(all[i], SCHEMA);
  unsigned common = 20 + draw(60);
  for (unsigned i = 0; i < common; i++) {
    unsigned long long before = state;
    for (int j = 0; j < 3; j++) {
      state = before;
      step(all[j]);
    }
  }
  for (int j = 0; j < 3; j++) quiet(all[j], "COMMIT");
  content(local, "common");
  sqlite3_session *a = record(local, rowids), *b = record(remote, rowids), *late = 0;
  unsigned steps = 5 + draw(draw(4) ? 60 : 400);
  for (unsigned i = 0; i < steps; i++) {
    step(local);
    step(remote);
    if (draw(40) == 0) sqlite3session_indirect(a, draw(2));
    if (draw(60) == 0) sqlite3session_enable(b, draw(2));
    if (!late && draw(20) == 0) late = record(local, rowids);
  }
  for (int j = 0; j < 2; j++) quiet(all[j], "COMMIT");
  int na, nb, np, nl = 0, n, nr = 0;
  void *ca, *cb, *pa, *cl = 0, *out, *rebase = 0;
  int rc = sqlite3session_changeset(a, &na, &ca);
  show("local", rc, ca, na);
  if (!rowids) printf("size %lld\n", (long long)sqlite3session_changeset_size(a));
  rc = sqlite3session_changeset(b, &nb, &cb);
  show("remote", rc, cb, nb);
  rc = sqlite3session_patchset(a, &np, &pa);
  show("patchset", rc, pa, np);
  rc = sqlite3changeset_invert(na, ca, &n, &out);
  show("inverse", rc, out, n);
  sqlite3_free(out);
  rc = sqlite3changeset_concat(na, ca, nb, cb, &n, &out);
  show("both", rc, out, n);
  sqlite3_free(out);
  rc = sqlite3changeset_concat(np, pa, np, pa, &n, &out);
  show("patchset twice", rc, out, n);
  sqlite3_free(out);
  if (late) {
    rc = sqlite3session_changeset(late, &nl, &cl);
    show("late", rc, cl, nl);
    rc = sqlite3changeset_concat(na, ca, nl, cl, &n, &out);
    show("local and late", rc, out, n);
    sqlite3_free(out);
  }
  /* There and back. */
  quiet(copy, "PRAGMA recursive_triggers = 0; DROP TRIGGER note");
  apply(copy, "copy", na, ca, 0, 0, 0);
  apply(copy, "copy back", na, ca, SQLITE_CHANGESETAPPLY_INVERT, 0, 0);
  apply(copy, "copy by patchset", np, pa, 0, 0, 0);
  apply(copy, "copy again", na, ca, SQLITE_CHANGESETAPPLY_IGNORENOOP, 0, 0);
  /* The remote changes on the local ones, and the local ones behind them. */
  apply(local, "remote on local", nb, cb, 0, &rebase, &nr);
  show("decided", 0, rebase, nr);
  sqlite3_rebaser *r = 0;
  sqlite3rebaser_create(&r);
  rc = sqlite3rebaser_configure(r, nr, rebase);
  rc = sqlite3rebaser_rebase(r, na, ca, &n, &out);
  show("rebased", rc, out, n);
  if (rc == SQLITE_OK) {
    if (is_whole(n, out)) apply(remote, "rebased on remote", n, out, 0, 0, 0);
    void *twice;
    int nt;
    rc = sqlite3changeset_concat(nb, cb, n, out, &nt, &twice);
    show("remote and rebased", rc, twice, nt);
    sqlite3_free(twice);
  }
  sqlite3_free(out);
  if (nl) {
    void *more = 0;
    int nm = 0;
    apply(local, "local on local", nl, cl, 0, &more, &nm);
    rc = sqlite3rebaser_configure(r, nm, more);
    show("decided later", rc, more, nm);
    rc = sqlite3rebaser_rebase(r, na, ca, &n, &out);
    show("rebased again", rc, out, n);
    sqlite3_free(out);
    sqlite3_free(more);
  }
  sqlite3rebaser_delete(r);
  /* From one table to the other. */
  sqlite3session_delete(a);
  quiet(local, "ATTACH ':memory:' AS aux");
  sprintf(sql, "CREATE TABLE aux.one AS SELECT * FROM one WHERE 0");
  quiet(local, "CREATE TABLE aux.one(a INTEGER PRIMARY KEY, b, c UNIQUE, d DEFAULT 'd');"
               "INSERT INTO aux.one SELECT a, CASE WHEN a % 3 = 0 THEN a ELSE b END, c, d FROM one WHERE a % 4;"
               "INSERT INTO aux.one(a) SELECT 100 + a FROM one WHERE a % 5 = 1;"
               "CREATE TABLE aux.four(p, q, r); INSERT INTO aux.four SELECT p, 7, r FROM four");
  a = record(local, rowids);
  rc = sqlite3session_diff(a, "aux", "one", 0);
  printf("diff %d\n", rc);
  rc = sqlite3session_diff(a, "aux", "four", 0);
  printf("diff %d\n", rc);
  rc = sqlite3session_changeset(a, &n, &out);
  show("difference", rc, out, n);
  sqlite3_free(out);
  sqlite3session_delete(a);
  sqlite3session_delete(b);
  if (late) sqlite3session_delete(late);
  void *mine[] = {ca, cb, pa, cl, rebase};
  for (int j = 0; j < 5; j++) sqlite3_free(mine[j]);
  for (int j = 0; j < 3; j++) sqlite3_close(all[j]);
}

int main(int argc, char **argv) {
  int from = argc > 2 ? atoi(argv[2]) : 1, rounds = argc > 3 ? atoi(argv[3]) : 60;
  for (int i = from; i < from + rounds; i++) {
    printf("round %d\n", i);
    fflush(stdout);
    round_of(i);
  }
  return 0;
}
