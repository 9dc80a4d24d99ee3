/* Hooks of changed rows: after the change, and before it with the values. */
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include "common.h"

static void update(void *p, int op, const char *d, const char *t, sqlite3_int64 id) {
  (void)p;
  printf("  update %d %s.%s %lld\n", op, d, t, id);
}
static int commit(void *p) {
  (void)p;
  printf("  commit\n");
  return 0;
}
static void rollback(void *p) {
  (void)p;
  printf("  rollback\n");
}

static void value(sqlite3_value *v) {
  int type = sqlite3_value_type(v);
  const char *t = (const char *)sqlite3_value_text(v);
  printf(" %s(%d)", t ? t : "NULL", type);
}

static void before(void *p, sqlite3 *db, int op, const char *d, const char *t, sqlite3_int64 from, sqlite3_int64 to) {
  sqlite3_value *v = 0;
  printf("  %s %d %s.%s", (char *)p, op, d, t);
  if (op != SQLITE_INSERT) printf(" from %lld", from);
  if (op != SQLITE_DELETE) printf(" to %lld", to);
  int n = sqlite3_preupdate_count(db);
  printf(", columns %d depth %d blob %d:", n, sqlite3_preupdate_depth(db), sqlite3_preupdate_blobwrite(db));
  for (int i = 0; op != SQLITE_INSERT && i < n; i++) printf("%s", sqlite3_preupdate_old(db, i, &v) ? " none" : (value(v), ""));
  printf(" ->");
  for (int i = 0; op != SQLITE_DELETE && i < n; i++) printf("%s", sqlite3_preupdate_new(db, i, &v) ? " none" : (value(v), ""));
  if (sqlite3_preupdate_blobwrite(db) >= 0)
    printf("\n");
  else
    printf(" %d %d\n", op != SQLITE_INSERT && sqlite3_preupdate_old(db, n, &v), op != SQLITE_DELETE && sqlite3_preupdate_new(db, -1, &v));
}

int main(void) {
  const char *list[] = {
      "create table t(id integer primary key, a unique, b default 5)", "create table w(v, k primary key) without rowid", "create table plain(a)",
      "create table s(a integer primary key autoincrement, b real)", "insert into t values(1, 'x', 1), (2, 'y', 2)", "insert into s(b) values(1.5)",
      "update s set a = 7", "delete from s where b > 1",
      "replace into t values(3, 'x', 3)", "replace into t values(3, 'z', 3)", "update or replace t set a = 'y' where id = 3",
      "insert into t values(5, 'q', 1) on conflict do nothing", "insert into t values(5, 'q', 1) on conflict(id) do update set b = 7",
      "update t set id = 9 where id = 5", "update t set b = b + 1", "update t set b = b where id = 100", "insert into w values(1, 'a'), (2, 'b')",
      "update w set v = 5", "update w set k = 'c' where k = 'a'", "replace into w values(9, 'c')", "delete from w where k = 'b'", "delete from w",
      "delete from t where id = 9", "insert into plain values(1), (2), (3)", "delete from plain", "insert into plain values(7)",
      "insert into plain select * from plain", "create table p2(a)", "insert into p2 select * from plain",
      "create trigger tr after insert on plain begin update t set b = new.a; delete from p2; end", "insert into plain values(3)", "begin; rollback",
      "begin; insert into p2 values(1); rollback", "begin; commit", "insert into p2 values(zeroblob(10))", "insert into p2 values(zeroblob(100000))",
      "update p2 set a = length(a)", "create temp table tt(a); insert into tt values(1)", "alter table p2 add column z default 5",
      "insert into p2 values(1, 2)", "insert into p2 select a, 8 from plain order by 1 limit 2", "drop table p2",
      "create table c as select * from t", "insert or ignore into t values(3, 1, 1)", "insert into t values(3, 1, 1)"};
  for (int k = 0; k < 2; k++) {
    sqlite3 *db = db_open(":memory:");
    if (k) {
      printf("%d", sqlite3_preupdate_hook(db, before, "first") == 0);
      printf(" %d\n", strcmp(sqlite3_preupdate_hook(db, before, "before"), "first"));
    } else {
      sqlite3_update_hook(db, update, 0);
      sqlite3_commit_hook(db, commit, 0);
      sqlite3_rollback_hook(db, rollback, 0);
    }
    for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
      printf("> %s\n", list[i]);
      run(db, list[i]);
    }
    sqlite3_blob *b;
    run(db, "insert into t values(100, 'blob', x'010203')");
    printf("%d", sqlite3_blob_open(db, "main", "t", "b", 100, 1, &b));
    printf(" %d", sqlite3_blob_write(b, "Z", 1, 1));
    printf(" %d\n", sqlite3_blob_close(b));
    run(db, "select quote(b) from t where id = 100");
    sqlite3_preupdate_hook(db, 0, 0);
    run(db, "insert into plain values(1)");
    run(db, "begin; insert into plain values(1)");
    printf("closed %d\n", sqlite3_close(db));
  }
  return 0;
}
