/* Where errors are said to stand, which statements only read, what the authorizer is asked and may do, and what a blob's text is. */
#include "../common.h"

static void tell(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, 0);
  printf("%s\n  %d", sql, rc);
  if (rc) printf(" %s at %d", sqlite3_errmsg(db), sqlite3_error_offset(db));
  if (s) printf(" readonly %d", sqlite3_stmt_readonly(s));
  printf("\n");
  sqlite3_finalize(s);
}

static const char *statements[] = {
  "select b from t join u on t.zz = u.a",
  "select t.b from t left join u on zz = u.a",
  "select t.b from t left join u on u.a = nosuch(1)",
  "select t.b from t join u on t.b = u.b and b = 1",
  "select t.b from t join u on t.b = (select zz from t)",
  "select t.b from t, u where t.zz = u.a",
  "select nosuch(x) from t",
  "select one(1) + two(2)",
  "select 1 in (select 1, 2)",
  "select * from t(1)",
  "select * from v(1)",
  "select a from t group by sum(a)",
  "create index z on t(a) where zz = 1",
  "create index z on t(zz + 1)",
  "create index z on t(nosuch(a))",
  "create table x(a check(zz > 1))",
  "create table x(a, b as (zz))",
  "create trigger g after insert on t begin select 1; end",
  "insert into t values(1, 2) on conflict(zz) do nothing",
  "pragma nosuch.table_info(t)",
  "create index if not exists i on t(a)",
  "create view if not exists v as select 1",
  "create table if not exists t(a)",
  "create trigger if not exists g after insert on t begin select 1; end",
  "drop trigger if exists nosuch",
  "drop trigger if exists g",
  "drop index if exists nosuch",
  0};

static sqlite3 *asked;

static int authorize(void *p, int action, const char *a, const char *b, const char *c, const char *d) {
  printf("  %d %s %s %s %s\n", action, a ? a : "-", b ? b : "-", c ? c : "-", d ? d : "-");
  return SQLITE_OK;
}

/* Runs a statement on the connection that asks. */
static int authorize_running(void *p, int action, const char *a, const char *b, const char *c, const char *d) {
  static int inside;
  if (inside) return SQLITE_OK;
  inside = 1;
  sqlite3_exec(asked, "savepoint s; insert into log values(1); rollback to s; release s", 0, 0, 0);
  inside = 0;
  return SQLITE_OK;
}

static void texts_of_blobs(const char *encoding) {
  sqlite3 *db = db_open(":memory:");
  char sql[64];
  snprintf(sql, sizeof sql, "pragma encoding='%s'; create table t(a)", encoding);
  run(db, sql);
  const char *blobs[] = {"x'00ff'", "x'41'", "x'41424344'", "x''", 0};
  for (int i = 0; blobs[i]; i++) {
    sqlite3_stmt *s;
    snprintf(sql, sizeof sql, "select %s", blobs[i]);
    sqlite3_prepare_v2(db, sql, -1, &s, 0);
    sqlite3_step(s);
    sqlite3_column_text(s, 0);
    const unsigned char *b = sqlite3_column_blob(s, 0);
    int n = sqlite3_column_bytes(s, 0);
    printf("%s %s %d:", encoding, blobs[i], n);
    for (int k = 0; b && k < n; k++) printf(" %02x", b[k]);
    printf("\n");
    sqlite3_finalize(s);
  }
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  sqlite3 *db = db_open(":memory:");
  run(db, "create table t(a, b); create table u(a primary key, b); create view v as select 1 as x; create table log(x);"
          "create index i on t(a); create trigger g after insert on u begin select 1; end");
  for (int i = 0; statements[i]; i++) tell(db, statements[i]);
  sqlite3_set_authorizer(db, authorize, 0);
  tell(db, "insert into u values(1, 2) on conflict(a) do nothing");
  tell(db, "insert into u values(1, 2) on conflict(a) do update set b = 3");
  tell(db, "select a from t where b like 'x'");
  tell(db, "select a in (select b from u) from t");
  tell(db, "select count(*) from t group by b having min(a) > 1 order by sum(a)");
  asked = db;
  sqlite3_set_authorizer(db, authorize_running, 0);
  const char *asking[] = {"select * from t", "insert into t values(1, 2)", "analyze", "reindex", "drop view v", "create table n(a)", 0};
  for (int i = 0; asking[i]; i++) printf("%s %d\n", asking[i], sqlite3_exec(db, asking[i], 0, 0, 0));
  sqlite3_set_authorizer(db, 0, 0);
  run(db, "select count(*) from log; select count(*) from t; pragma integrity_check");
  sqlite3_close(db);
  texts_of_blobs("UTF-8");
  texts_of_blobs("UTF-16le");
  texts_of_blobs("UTF-16be");
  return 0;
}
