/* Three connections that share a cache and do what is drawn, with statements left open: whatever locks they meet, the file stays
** sound, and no call answers with anything but a lock, an error of SQL, or what a transaction that was taken back leaves. */
#include "common.h"

static unsigned long long state;
static int below(int n) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((state >> 33) % n);
}

static sqlite3 *db[3];
static sqlite3_stmt *reading[3][2];

static const char *texts[] = {
  "select x,y from t order by x",
  "select y from u",
  "select count(*) from t indexed by ti",
  "select t.x,u.y from t join u on t.x=u.x",
  "insert into t values(%d,%d)",
  "insert or replace into t values(%d,'%d')",
  "update t set y=y+1 where x<%d",
  "delete from t where x=%d",
  "insert into u values(%d,%d)",
  "update u set y=%d where x%%3=0",
  "begin",
  "begin immediate",
  "begin exclusive",
  "commit",
  "rollback",
  "savepoint a",
  "release a",
  "rollback to a",
  "savepoint b",
  "rollback to b",
  "create table if not exists n%d(x)",
  "drop table if exists n%d",
  "create index if not exists ui on u(y)",
  "drop index if exists ui",
  "insert into n1 values(%d)",
  "select count(*) from n%d",
  "pragma read_uncommitted=1",
  "pragma read_uncommitted=0",
  "pragma integrity_check",
  "delete from u",
  "insert into t select x+100,y from u",
  "pragma user_version=%d",
  "pragma user_version",
  "vacuum",
  "insert into u select * from t limit 40",
  "create temp table if not exists tt(x)",
  "insert into tt values(%d)",
  "select count(*) from tt",
  "reindex",
  "analyze",
  "alter table u add column z%d default 5",
  "select * from big where k=%d",
  "update big set v=randomblob(3000) where k<%d and 0",
  "update big set v=zeroblob(3000+k) where k%%2=%d"};

/* Primary codes that may come: OK, ERROR, ABORT, LOCKED, SCHEMA, CONSTRAINT, ROW, DONE. */
static void expect(int c, int rc, const char *sql) {
  int p = rc & 0xff;
  if (p != 0 && p != 1 && p != 4 && p != 6 && p != 17 && p != 19 && p != 100 && p != 101)
    printf("%d %s: %d %s\n", c, sql, rc, sqlite3_errmsg(db[c]));
}

static void end(int c, int k) {
  expect(c, sqlite3_finalize(reading[c][k]), "finalize");
  reading[c][k] = 0;
}

static void told(void **list, int n) {
  for (int i = 0; i < n; i++) ++*(int *)list[i];
}

static void draw(char **argv, int seed, int mode) {
  static int waiting[3];
  char name[5000], sql[300];
  state = seed * 7919ULL + 1;
  if (mode == 3) snprintf(name, sizeof name, "file:drawn%d?mode=memory&cache=shared", seed);
  else snprintf(name, sizeof name, "file:%s/drawn%d_%d.db?cache=shared", argv[1] ? argv[1] : ".", mode, seed);
  int wide = below(2);
  for (int i = 0; i < 3; i++) {
    sqlite3_open_v2(name, &db[i], SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, 0);
    if (i) continue;
    if (wide) sqlite3_exec(db[0], "pragma encoding='UTF-16'", 0, 0, 0);
    if (mode == 1) sqlite3_exec(db[0], "pragma journal_mode=wal", 0, 0, 0);
    if (mode == 2) sqlite3_exec(db[0], "pragma auto_vacuum=1; pragma cache_size=5", 0, 0, 0);
    sqlite3_exec(db[0], "create table t(x integer primary key,y); create table u(x,y); create index ti on t(y);"
      "create table big(k integer primary key,v); with recursive c(i) as (select 1 union all select i+1 from c where i<60)"
      " insert into t select i,i*7%13 from c; insert into u select x,y from t where x<20; insert into big select x,zeroblob(2000) from t where x<30", 0, 0, 0);
  }
  for (int step = 0; step < 200; step++) {
    int c = below(3), k = below(2), what = below(10);
    const char *text = texts[below(sizeof texts / sizeof *texts)];
    if (what < 2 && reading[c][k]) {
      int rc = SQLITE_ROW;
      for (int n = 1 + below(4); n && rc == SQLITE_ROW; n--) expect(c, rc = sqlite3_step(reading[c][k]), "step");
      if (rc != SQLITE_ROW) end(c, k);
    } else if (what < 2) {
      expect(c, sqlite3_prepare_v2(db[c], texts[below(2)], -1, &reading[c][k], 0), "prepare");
    } else if (what == 2) {
      end(c, k);
    } else if (what == 3) {
      expect(c, sqlite3_unlock_notify(db[c], told, &waiting[c]), "wait");
    } else {
      snprintf(sql, sizeof sql, text, below(70), below(70));
      expect(c, sqlite3_exec(db[c], sql, 0, 0, 0), sql);
    }
  }
  for (int c = 0; c < 3; c++) {
    end(c, 0), end(c, 1);
    sqlite3_exec(db[c], "rollback", 0, 0, 0);
  }
  run(db[1], "pragma integrity_check");
  for (int c = 0; c < 3; c++) expect(c, sqlite3_close(db[c]), "close");
}

int main(int argc, char **argv) {
  (void)argc;
  for (int mode = 0; mode < 4; mode++)
    for (int seed = 1; seed <= 25; seed++) draw(argv, seed, mode);
  return 0;
}
