/* What a WAL hook is told, that it stands for automatic checkpoints, and hooks where a table is emptied. */
#include "../common.h"

#define P(...) (printf(__VA_ARGS__), fflush(stdout))
static int walh(void*a,sqlite3*db,const char*d,int n){
  P("wal %s %d\n",d,n);
  return *(int*)a;
}
static void pre(void*a,sqlite3*db,int op,const char*d,const char*t,sqlite3_int64 k,sqlite3_int64 n){
  P("before %d %s %lld\n",op,t,k);
}
static void upd(void*a,int op,const char*d,const char*t,sqlite3_int64 k){
  P("changed %d %s %lld\n",op,t,k);
}
int main(int c,char**v){
  if(c>1&&chdir(v[1])) return 1;
  sqlite3*db=db_open("bw.db");
  int z=0;
  run(db,"pragma journal_mode=wal; create table t(a integer primary key,b); insert into t values(1,zeroblob(10))");
  sqlite3_wal_hook(db,walh,&z);
  run(db,"insert into t select 2, zeroblob(6000000)");
  run(db,"pragma wal_autocheckpoint");
  run(db,"pragma wal_autocheckpoint=10");
  run(db,"insert into t values(4,1)");
  sqlite3_wal_hook(db,walh,&z);
  run(db,"pragma wal_autocheckpoint");
  z=SQLITE_BUSY;
  P("rc %d\n",sqlite3_exec(db,"insert into t values(5,1)",0,0,0));
  P("%d %s\n",sqlite3_errcode(db),sqlite3_errmsg(db));
  z=0;
  run(db,"select count(*) from t");
  run(db,"attach 'bx.db' as x; pragma x.journal_mode=wal; create table x.y(a)");
  run(db,"insert into x.y values(1)");
  run(db,"begin; insert into x.y values(1); insert into t values(7,7); commit");
  run(db,"pragma journal_mode=wal");
  sqlite3_wal_autocheckpoint(db,0);
  run(db,"insert into t values(8,1)");
  run(db,"pragma wal_autocheckpoint");
  sqlite3_wal_hook(db,0,0);
  run(db,"pragma wal_autocheckpoint");
  run(db,"begin; insert into t values(9,1); savepoint a; insert into t values(10,1); commit");
  sqlite3_blob*b;
  sqlite3_wal_hook(db,walh,&z);
  sqlite3_blob_open(db,"main","t","b",1,1,&b);
  sqlite3_blob_write(b,"ab",2,1);
  sqlite3_blob_close(b);
  run(db,"select 1; insert or ignore into t values(1,1)");
  sqlite3_preupdate_hook(db,pre,0);
  sqlite3_update_hook(db,upd,0);
  run(db,"delete from t");
  sqlite3_close(db);
}
