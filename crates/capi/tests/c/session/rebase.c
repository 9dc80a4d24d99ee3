/* Rebasing: each local change behind each pair of decisions about its row. */
#include "../common.h"

static unsigned char bytes[1000];
static int used;

static void head(int kind) {
  used = 0;
  unsigned char h[] = {kind, 4, 1, 0, 0, 0, 't', 0};
  memcpy(bytes, h, sizeof h);
  used = sizeof h;
}

/* A field: '.' has no value, 'n' is NULL, digits are integers. */
static void record(const char *fields) {
  for (; *fields; fields++) {
    if (*fields == '.') bytes[used++] = 0;
    else if (*fields == 'n') bytes[used++] = 5;
    else {
      memset(bytes + used, 0, 9);
      bytes[used] = 1;
      bytes[used + 8] = *fields;
      used += 9;
    }
  }
}

static void change(int op, int indirect, const char *old, const char *new) {
  bytes[used++] = op;
  bytes[used++] = indirect;
  record(old);
  record(new);
}

static void show(int rc, const void *p, int n) {
  printf("%d ", rc);
  sqlite3_changeset_iter *i = 0;
  sqlite3changeset_start(&i, n, (void *)p);
  while (sqlite3changeset_next(i) == SQLITE_ROW) {
    const char *t;
    int columns, op, indirect;
    sqlite3changeset_op(i, &t, &columns, &op, &indirect);
    printf(" %s %d %d", t, op, indirect);
    for (int k = 0; k < 2 * columns; k++) {
      sqlite3_value *v = 0;
      int c = k % columns;
      if ((k < columns ? sqlite3changeset_old(i, c, &v) : sqlite3changeset_new(i, c, &v)) != SQLITE_OK) v = 0;
      int type = v ? sqlite3_value_type(v) : 0;
      if (!v) printf(" .");
      else if (type == SQLITE_NULL) printf(" n");
      else printf(" %c", sqlite3_value_int(v));
    }
  }
  int end = sqlite3changeset_finalize(i);
  printf(" end %d:", end);
  for (int k = 0; k < n; k++) printf("%02x", ((const unsigned char *)p)[k]);
  printf("\n");
}

static const struct { int op; const char *old, *new; const char *name; } LOCAL[] = {
    {SQLITE_INSERT, "", "1234", "insert"}, {SQLITE_DELETE, "1234", "", "delete"},
    {SQLITE_UPDATE, "123.", ".56.", "update 2 3"}, {SQLITE_UPDATE, "1..4", "...n", "update 4"},
    {SQLITE_UPDATE, "1...", "....", "update nothing"}, {SQLITE_INSERT, "", "2234", "insert other"},
};
static const struct { int op, replace; const char *fields; } REMOTE[] = {
    {SQLITE_INSERT, 0, "1789"}, {SQLITE_INSERT, 1, "1789"}, {SQLITE_INSERT, 0, "1a.."}, {SQLITE_INSERT, 1, "1a.."},
    {SQLITE_INSERT, 0, "1.b."}, {SQLITE_INSERT, 1, "1.b."}, {SQLITE_DELETE, 0, "1cde"}, {SQLITE_DELETE, 1, "1cde"},
};

int main(void) {
  for (int l = 0; l < 6; l++)
    for (int a = -1; a < 8; a++)
      for (int b = -1; b < (a < 0 ? 0 : 8); b++) {
        sqlite3_rebaser *r = 0;
        sqlite3rebaser_create(&r);
        int rc = SQLITE_OK;
        for (int k = 0; k < 2; k++) {
          int which = k ? b : a;
          if (which < 0) continue;
          head('T');
          change(REMOTE[which].op, REMOTE[which].replace, REMOTE[which].fields, "");
          rc = sqlite3rebaser_configure(r, used, bytes);
        }
        head('T');
        change(LOCAL[l].op, a & 1, LOCAL[l].old, LOCAL[l].new);
        void *out = 0;
        int n = 0;
        printf("%s behind %d %d: %d ", LOCAL[l].name, a, b, rc);
        rc = sqlite3rebaser_rebase(r, used, bytes, &n, &out);
        show(rc, out, n);
        sqlite3_free(out);
        sqlite3rebaser_delete(r);
      }
  /* What cannot be: patchsets, other columns, damaged bytes. */
  sqlite3_rebaser *r = 0;
  sqlite3rebaser_create(&r);
  head('T');
  change(SQLITE_INSERT, 0, "1789", "");
  printf("configured %d\n", sqlite3rebaser_configure(r, used, bytes));
  printf("cut %d\n", sqlite3rebaser_configure(r, used - 1, bytes));
  printf("nothing %d\n", sqlite3rebaser_configure(r, 0, 0));
  head('P');
  change(SQLITE_INSERT, 0, "1234", "");
  void *out = 0;
  int n = 0;
  int rc = sqlite3rebaser_rebase(r, used, bytes, &n, &out);
  printf("patchset %d\n", rc);
  head('T');
  change(SQLITE_INSERT, 0, "1234", "");
  bytes[3] = 1;
  rc = sqlite3rebaser_configure(r, used, bytes);
  printf("other key %d\n", rc);
  sqlite3rebaser_delete(r);
  sqlite3rebaser_delete(0);
  return 0;
}
