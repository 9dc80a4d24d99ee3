/* What the authorizer is asked, with which words, and what its answers do. */
#include "../common.h"
#include <string.h>

static int deny_action, answer;
static char seen[100][200];
static int count;

static int ask(void *u, int action, const char *a, const char *b, const char *c, const char *d) {
  (void)u;
  if (count < 100) {
    snprintf(seen[count++], 200, "%d %s %s %s %s", action, a ? a : "-", b ? b : "-", c ? c : "-", d ? d : "-");
  }
  return action == deny_action ? answer : SQLITE_OK;
}

static void all(sqlite3 *db, const char *sql) {
  count = 0;
  printf("== %s\n", sql);
  run(db, sql);
  for (int i = 0; i < count; i++) printf("%s\n", seen[i]);
}

int main(void) {
  sqlite3 *db;
  sqlite3_stmt *s;
  sqlite3_open(":memory:", &db);
  sqlite3_exec(db, "create table t(a integer primary key,b text,c); create table u(x,y); create table log(what);"
    "create view v as select a,b||'!' as bb from t limit 9;"
    "create trigger tr after insert on t when new.c is null begin insert into log values(new.b); end;"
    "insert into t values(1,'one',1),(2,'two',2); insert into u values(1,2)", 0, 0, 0);
  sqlite3_set_authorizer(db, ask, 0);
  all(db, "select * from t");
  all(db, "select count(*) from t");
  all(db, "select rowid,upper(b) from main.t where c>1 order by c");
  all(db, "select bb from v");
  all(db, "select x.b from t as x join u on u.x=x.a");
  all(db, "select (select max(x) from u where x=a) from t");
  all(db, "select a from t union select x from u");
  all(db, "insert into t(a,b) values(5,'five')");
  all(db, "insert into u select a,b from t");
  all(db, "update t set c=c+1,b=lower(b) where a<3");
  all(db, "delete from u where x=2");
  all(db, "insert into u(x) values(8) returning x,y+1,rowid");
  all(db, "update u as w set y=1 where x=8 returning *");
  all(db, "delete from u where x=8 returning u.y");
  sqlite3_exec(db, "pragma foreign_keys=1; create table k(a integer primary key); create table c(b references k, d)", 0, 0, 0);
  all(db, "insert into c values(null,1)");
  all(db, "update c set d=2");
  all(db, "create view w as select a from t");
  all(db, "create index i on t(c)");
  all(db, "drop index i");
  all(db, "drop view w");
  all(db, "begin");
  all(db, "savepoint p");
  all(db, "rollback");
  all(db, "pragma user_version=4");
  all(db, "pragma synchronous=full");
  all(db, "pragma wal_checkpoint(full)");
  all(db, "pragma user_version='x y'");
  all(db, "pragma foreign_key_check");
  all(db, "create table m1(x primary key, y unique, z check(length(z)>0), q as (abs(x)), unique(y,z), check(y>x))");
  all(db, "create table m2(k primary key, j, unique(j collate nocase, k)) without rowid");
  all(db, "create table temp.m3(a unique)");
  all(db, "create temp table m4(a unique)");
  all(db, "create view temp.m5 as select 1");
  all(db, "create table m6(a integer primary key autoincrement)");
  all(db, "create table m7(a integer primary key autoincrement)");
  all(db, "create table if not exists m7(x)");
  all(db, "select b->'x', c->>1 from t where 0");
  struct { int action, answer; const char *sql; } cases[] = {
    {SQLITE_READ, SQLITE_IGNORE, "select a,b,c,count(*) from t"},
    {SQLITE_READ, SQLITE_IGNORE, "select bb from v where a is null"},
    {SQLITE_READ, SQLITE_DENY, "select b from t"},
    {SQLITE_READ, SQLITE_DENY, "select count(*) from t"},
    {SQLITE_READ, 77, "select b from t"},
    {SQLITE_SELECT, SQLITE_IGNORE, "select a from t"},
    {SQLITE_SELECT, SQLITE_IGNORE, "select count(*) from t"},
    {SQLITE_SELECT, SQLITE_DENY, "select 1"},
    {SQLITE_FUNCTION, SQLITE_IGNORE, "select upper(b),a from t"},
    {SQLITE_FUNCTION, SQLITE_DENY, "select upper(b),a from t"},
    {SQLITE_UPDATE, SQLITE_IGNORE, "update t set b='changed'"},
    {SQLITE_UPDATE, SQLITE_DENY, "update t set b='changed'"},
    {SQLITE_INSERT, SQLITE_IGNORE, "insert into u values(7,7)"},
    {SQLITE_INSERT, SQLITE_IGNORE, "create table z(x)"},
    {SQLITE_DELETE, SQLITE_IGNORE, "delete from u"},
    {SQLITE_READ, SQLITE_IGNORE, "insert into u values(8,9) returning 'ignored',x,y"},
    {SQLITE_READ, SQLITE_DENY, "insert into u values(8,9) returning x"},
    {SQLITE_SELECT, SQLITE_DENY, "delete from c"},
    {SQLITE_SELECT, SQLITE_DENY, "update c set b=null"},
    {SQLITE_FUNCTION, SQLITE_DENY, "delete from k"},
    {SQLITE_READ, SQLITE_DENY, "insert into c values(null,2)"},
    {SQLITE_READ, SQLITE_IGNORE, "insert into c values(1,2)"},
    {SQLITE_READ, SQLITE_DENY, "update c set d=3"},
    {SQLITE_READ, SQLITE_DENY, "select 1, * from t"},
    {SQLITE_READ, SQLITE_DENY, "select u.* from u"},
    {SQLITE_READ, SQLITE_DENY, "select b from t"},
    {SQLITE_PRAGMA, SQLITE_IGNORE, "pragma user_version=9"},
    {SQLITE_TRANSACTION, SQLITE_IGNORE, "begin"}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    deny_action = cases[i].action, answer = cases[i].answer;
    printf("-- %d answers %d: %s\n", deny_action, answer, cases[i].sql);
    run(db, cases[i].sql);
    printf("%d %d %s @%d\n", sqlite3_errcode(db), sqlite3_get_autocommit(db), sqlite3_errmsg(db), sqlite3_error_offset(db));
  }
  deny_action = 0;
  run(db, "select * from t; select * from u; select name from sqlite_schema; pragma user_version");
  /* Asked again when a statement is compiled anew. */
  sqlite3_prepare_v2(db, "select b from t", -1, &s, 0);
  sqlite3_exec(db, "create table other(x)", 0, 0, 0);
  deny_action = SQLITE_READ, answer = SQLITE_DENY;
  printf("%d %s\n", sqlite3_step(s), sqlite3_errmsg(db));
  sqlite3_finalize(s);
  sqlite3_close(db);
  return 0;
}
