/* Each allocation of each statement (or every so-many-th, by the second argument) fails once, and once with all behind it: the
   statement says SQLITE_NOMEM or succeeds, the database is whole and holds what it held or what the statement makes of it. */
#include "../common.h"

static sqlite3_mem_methods inner;
static long left = -1;
static int lasting = 0;

static int fails(void) {
  if (left < 0) return 0;
  if (left > 0) { left--; return 0; }
  if (!lasting) left = -1;
  return 1;
}
static void *counted_malloc(int n) { return fails() ? 0 : inner.xMalloc(n); }
static void *counted_realloc(void *p, int n) { return fails() ? 0 : inner.xRealloc(p, n); }

static const char *tables =
  "create table t(a integer primary key, b text, c); create index t_b on t(b); create table u(a, b);"
  "create virtual table f using fts5(x, y); create virtual table old using fts4(x);"
  "create virtual table r using rtree(id, x1, x2);"
  "with recursive n(i) as (select 1 union all select i + 1 from n where i < 40)"
  " insert into t select i, 'row ' || i, i * 1.5 from n;"
  "insert into u select a, b from t; insert into f select b, a from t; insert into old select b || a from t;"
  "insert into r select a, a, a + 1 from t;"
  "create trigger t_new after insert on t begin insert into u values(new.a, new.b); end;";

static const char *statements[] = {
  "insert into t values(100, 'new', 7)",
  "insert into f(rowid, x, y) values(100, 123456, 7.25)",
  "insert into old(docid, x) values(100, 123456)",
  "insert into r values(100, 1, 2)",
  "update f set y = 4711 where rowid = 5",
  "delete from f where rowid < 10",
  "update t set b = b || 'x' where a % 2",
  "update r set x2 = x2 + 1 where id < 20",
  "delete from old where docid = 3",
  "insert into f(f) values('optimize')",
  "create table n as select * from t",
  "alter table t rename column c to d",
  "alter table t add column e default 3",
  "create index t_c on t(c, b)",
  "reindex t_b",
  "vacuum",
  "analyze",
  "drop table u",
  "insert into t select a + 200, b, c from t",
  "select group_concat(b), count(distinct c), sum(c) from t group by a % 3 order by 1",
  "select t.b, u.b from t join u on t.a = u.a where t.b like '%3%' order by u.b desc",
  "select b, row_number() over (order by c desc) from t limit 5",
  "select x, snippet(f, 0, '[', ']', '..', 3) from f where f match 'row' order by rank limit 3",
  "select json_group_array(json_object('a', a, 'b', b)) from t",
  "select printf('%d %s %.3f', a, b, c) from t where a < 4",
  "select a, c, c || '', a || '' from t where c > 50",
  "with recursive n(i) as (select 1 union select i + 1 from n where i < 50) select sum(i), max(i) from n",
  "select * from json_each('[1,2.5,\"three\",null]')",
  "select id from r where x1 > 30",
  "select b from t union select b from u except select b from t where a < 35 order by 1",
};

static const char *state =
  "select (select group_concat(a || b || quote(c), ';') from (select * from t order by a)),"
  " (select group_concat(a || b, ';') from (select * from u order by a)),"
  " (select group_concat(rowid || x || y, ';') from f), (select group_concat(docid || x, ';') from old),"
  " (select group_concat(id || x1 || x2, ';') from r),"
  " (select count(*) from f where f match 'row'), (select count(*) from f where f match '123456'),"
  " (select group_concat(sql, ';') from sqlite_schema where name not like 'sqlite%')";

/* One row of text for the whole database; NULL where it cannot be read. */
static char *read_state(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  sqlite3_str *out = sqlite3_str_new(0);
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, 0);
  while (s && sqlite3_step(s) == SQLITE_ROW)
    for (int i = 0; i < sqlite3_column_count(s); i++)
      sqlite3_str_appendf(out, "%s|", sqlite3_column_text(s, i));
  if (!rc) rc = sqlite3_finalize(s);
  if (rc) sqlite3_str_appendf(out, "error %d %s", rc, sqlite3_errmsg(db));
  return sqlite3_str_finish(out);
}

/* Runs a statement as a program would, which looks at all columns as text; answers the code. */
static int attempt(sqlite3 *db, const char *sql, char **rows) {
  sqlite3_stmt *s = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, 0), short_text = 0;
  char line[4000] = "";
  size_t used = 0;
  if (rc) return rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW)
    for (int i = 0; i < sqlite3_column_count(s); i++) {
      const char *t = (const char *)sqlite3_column_text(s, i);
      if (!t && sqlite3_column_type(s, i) != SQLITE_NULL) short_text = 1;
      used += snprintf(line + used, used < sizeof line ? sizeof line - used : 0, "%s|", t ? t : "");
      if (used >= sizeof line) used = sizeof line - 1;
    }
  rc = sqlite3_finalize(s);
  if (rc == SQLITE_OK && short_text) rc = SQLITE_NOMEM;
  if (rc == SQLITE_OK) {
    long kept = left;
    left = -1;
    *rows = sqlite3_mprintf("%s", line);
    left = kept;
  }
  return rc;
}

int main(int argc, char **argv) {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &inner);
  sqlite3_mem_methods own = inner;
  own.xMalloc = counted_malloc;
  own.xRealloc = counted_realloc;
  printf("config %d\n", sqlite3_config(SQLITE_CONFIG_MALLOC, &own));
  int wrong = 0;
  int step = argc > 2 ? atoi(argv[2]) : 11;
  for (size_t k = 0; k < sizeof statements / sizeof *statements; k++) {
    const char *sql = statements[k];
    sqlite3 *db = db_open(":memory:");
    run(db, tables);
    char *before = read_state(db, state), *after, *answer = 0;
    if (strncmp(sql, "vacuum", 6)) run(db, "begin");
    attempt(db, sql, &answer);
    after = read_state(db, state);
    sqlite3_close(db);
    for (lasting = 0; lasting < 2; lasting++) {
      int through = 0;
      for (long n = 0; !through && wrong < 10; n += step) {
        db = db_open(":memory:");
        run(db, tables);
        char *rows = 0;
        left = n;
        int rc = attempt(db, sql, &rows);
        through = left >= 0 && !(lasting && left == 0);
        left = -1;
        char *now = read_state(db, state);
        char *check = read_state(db, "pragma integrity_check");
        int kept = now && (!strcmp(now, before) || !strcmp(now, after));
        if (rc && !sqlite3_get_autocommit(db)) run(db, "rollback");
        int code = rc == SQLITE_OK || rc == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM;
        int same = rc || (rows && answer && !strcmp(rows, answer));
        int done = rc || (now && !strcmp(now, after));
        if (!code || !kept || !same || !done || !check || strcmp(check, "ok|")) {
          wrong++;
          printf("%s, allocation %ld%s: %d, %s, %s, %s: %s\n", sql, n, lasting ? " on" : "", rc,
                 kept ? "kept" : "neither", same ? "same rows" : "other rows", done ? "done" : "not done", check);
        }
        sqlite3_free(rows);
        sqlite3_free(now);
        sqlite3_free(check);
        sqlite3_close(db);
      }
    }
    sqlite3_free(before);
    sqlite3_free(after);
    sqlite3_free(answer);
  }
  printf("wrong %d\n", wrong);
  return 0;
}
