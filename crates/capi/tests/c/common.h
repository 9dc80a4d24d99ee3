/* What the programs of this folder share. Each prints what it sees; the output on iolite must be that on stock SQLite. */
#include <sqlite3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline sqlite3 *db_open(const char *name) {
  sqlite3 *db = 0;
  int rc = sqlite3_open(name, &db);
  if (rc) printf("open: %d %s\n", rc, sqlite3_errmsg(db));
  return db;
}

/* Runs SQL; prints the rows, and the error if there is one. */
static inline int run(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  const char *rest = sql;
  int rc = SQLITE_OK;
  while (*rest) {
    rc = sqlite3_prepare_v2(db, rest, -1, &s, &rest);
    if (rc) break;
    if (!s) continue;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
      for (int i = 0; i < sqlite3_column_count(s); i++) {
        const char *t = (const char *)sqlite3_column_text(s, i);
        printf("%s%s", i ? "|" : "", t ? t : "NULL");
      }
      printf("\n");
    }
    rc = sqlite3_finalize(s);
    if (rc) break;
  }
  if (rc) printf("error %d: %s\n", sqlite3_extended_errcode(db), sqlite3_errmsg(db));
  return rc;
}

/* What most modules of these programs do alike: memory of their tables and cursors that calloc has given is freed. */
static inline int vtab_disconnect(sqlite3_vtab *v) {
  free(v);
  return SQLITE_OK;
}
static inline int vtab_close(sqlite3_vtab_cursor *c) {
  free(c);
  return SQLITE_OK;
}
static inline int vtab_open(size_t size, sqlite3_vtab_cursor **out) {
  *out = calloc(1, size);
  return *out ? SQLITE_OK : SQLITE_NOMEM;
}

/* A scratch file's name: the program's first argument names the folder. */
static inline char *scratch(char **argv, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", argv[1] ? argv[1] : ".", name);
  return path;
}
