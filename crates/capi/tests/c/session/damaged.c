/* Changesets that are cut short or have other bytes: an error code each, and the one that stock has. */
#include "../common.h"

static int decide(void *ctx, int kind, sqlite3_changeset_iter *i) {
  return kind == SQLITE_CHANGESET_DATA ? SQLITE_CHANGESET_REPLACE : SQLITE_CHANGESET_OMIT;
}

static sqlite3 *fresh(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_exec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); INSERT INTO t VALUES(1, 'one', 1.5), (2, x'0202', NULL), (3, 'three', 3);"
                   "CREATE TABLE u(x PRIMARY KEY, y); INSERT INTO u VALUES('k', 1)", 0, 0, 0);
  return db;
}

/* Goes through it; a number for all that was seen. */
static unsigned walk(int n, void *p, int flags, int *rc) {
  sqlite3_changeset_iter *i = 0;
  unsigned h = 0;
  *rc = sqlite3changeset_start_v2(&i, n, p, flags);
  if (*rc) return 0;
  while ((*rc = sqlite3changeset_next(i)) == SQLITE_ROW) {
    const char *table;
    int columns = 0, op = 0, indirect = 0;
    sqlite3changeset_op(i, &table, &columns, &op, &indirect);
    h = h * 31 + op * 7 + columns + indirect;
    for (; *table; table++) h = h * 31 + (unsigned char)*table;
    for (int c = 0; c < 2 * columns; c++) {
      sqlite3_value *v = 0;
      int k = c % columns;
      int got = c < columns ? sqlite3changeset_old(i, k, &v) : sqlite3changeset_new(i, k, &v);
      h = h * 31 + got;
      if (!v || got) continue;
      h = h * 31 + sqlite3_value_type(v);
      h = h * 31 + sqlite3_value_bytes(v);
    }
  }
  int end = sqlite3changeset_finalize(i);
  return h * 31 + end;
}

struct half { const unsigned char *p; int left; };
static int feed(void *ctx, void *to, int *n) {
  struct half *h = ctx;
  if (*n > 3) *n = 3;
  if (*n > h->left) *n = h->left;
  memcpy(to, h->p, *n);
  h->p += *n;
  h->left -= *n;
  return SQLITE_OK;
}
static int swallow(void *ctx, const void *p, int n) {
  *(int *)ctx += n;
  return SQLITE_OK;
}

static void look(const char *what, int at, int n, void *p) {
  int rc, back;
  unsigned seen = walk(n, p, 0, &rc);
  unsigned undone = walk(n, p, SQLITE_CHANGESETSTART_INVERT, &back);
  /* How much of it is read before the damage is seen, is another matter. */
  if (rc != SQLITE_DONE) seen = 0;
  if (back != SQLITE_DONE) undone = 0;
  int m = 0, given = 0;
  void *out = 0;
  int group = sqlite3changeset_concat(n, p, 0, 0, &m, &out);
  sqlite3_free(out);
  struct half h = {p, n};
  int streamed = sqlite3changeset_concat_strm(feed, &h, feed, &(struct half){0, 0}, swallow, &given);
  sqlite3 *db = fresh();
  int applied = sqlite3changeset_apply(db, n, p, 0, decide, 0);
  int rows = applied ? 0 : sqlite3_total_changes(db);
  sqlite3_close(db);
  /* What cannot be combined, stock's iterators may read as something else: this library's do not. */
  if (group) seen = undone = rc = back = applied = rows = 0;
  printf("%s %d: %d %08x %d %08x %d %d %d %d %d\n", what, at, rc, seen, back, undone, group, group ? 0 : m, streamed, applied, rows);
}

static void all(const char *what, int n, const void *changes) {
  for (int at = 0; at <= n; at++) {
    /* A copy of its own, so that what is read beyond its end is seen. */
    unsigned char *copy = malloc(at ? at : 1);
    memcpy(copy, changes, at);
    look(what, at, at, copy);
    free(copy);
  }
  static const unsigned char others[] = {0, 1, 3, 4, 5, 6, 9, 18, 23, 'T', 'P', 0x7f, 0x80, 0xff};
  for (int at = 0; at < n; at++)
    for (unsigned k = 0; k < sizeof others; k++) {
      unsigned char *copy = malloc(n);
      memcpy(copy, changes, n);
      copy[at] = others[k];
      printf("%d ", others[k]);
      look(what, at, n, copy);
      free(copy);
    }
}

int main(void) {
  sqlite3 *db = fresh();
  sqlite3_session *s = 0;
  sqlite3session_create(db, "main", &s);
  sqlite3session_attach(s, 0);
  run(db, "INSERT INTO t VALUES(4, zeroblob(3), 'four'); UPDATE t SET b = 'uno', c = NULL WHERE a = 1; DELETE FROM t WHERE a = 2; UPDATE u SET y = 'z'");
  int n = 0;
  void *p = 0;
  sqlite3session_changeset(s, &n, &p);
  all("changeset", n, p);
  sqlite3_free(p);
  sqlite3session_patchset(s, &n, &p);
  all("patchset", n, p);
  sqlite3_free(p);
  sqlite3session_delete(s);
  sqlite3_close(db);
  return 0;
}
