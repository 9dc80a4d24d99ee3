/* Two connections and the locks between them; what pragmas read within a transaction. */
#include "../common.h"

#define P(...) (printf(__VA_ARGS__), fflush(stdout))
int main(int c,char**v){
  if(c>1&&chdir(v[1])) return 1;
  sqlite3*a=db_open("e.db"),*b=db_open("e.db");
  run(a,"create table t(x); insert into t values(1)");
  P("A\n");
  run(a,"pragma journal_mode=wal");
  run(b,"pragma journal_mode=delete");
  P("B\n");
  run(a,"pragma journal_mode=delete");
  run(b,"pragma locking_mode=exclusive");
  run(b,"select * from t");
  P("C\n");
  run(a,"insert into t values(2)");
  run(b,"pragma locking_mode=normal; select 1 from t limit 1");
  run(a,"insert into t values(2)");
  run(a,"begin immediate");
  P("D\n");
  run(b,"delete from t where 0");
  run(b,"update t set x=1 where x=999");
  run(b,"insert into t select 1 where 0");
  run(b,"create table if not exists t(x)");
  run(b,"drop table if exists nope");
  run(b,"pragma user_version=3");
  run(b,"begin; commit");
  run(b,"begin immediate");
  run(b,"vacuum");
  run(b,"analyze");
  run(b,"pragma journal_mode=wal");
  run(b,"pragma wal_checkpoint");
  run(b,"reindex");
  run(b,"pragma incremental_vacuum");
  run(b,"create index if not exists i on nope(x)");
  run(a,"commit");
  run(a,"pragma journal_mode=wal");
  run(a,"begin immediate");
  P("E\n");
  run(b,"delete from t where 0");
  run(b,"pragma journal_mode=delete");
  run(b,"pragma wal_checkpoint(truncate)");
  run(b,"create table if not exists t(x)");
  run(b,"select count(*) from t");
  run(a,"commit");
  sqlite3_close(a);
  sqlite3_close(b);
  a=db_open(":memory:");
  run(a,"pragma locking_mode=normal; pragma locking_mode=exclusive; pragma locking_mode; create temp table q(x); pragma temp.locking_mode; pragma main.locking_mode=normal");
  sqlite3_close(a);
  const char*q[]={"freelist_count","page_count","max_page_count","max_page_count=1000","data_version","page_size","cache_size","user_version","schema_version","application_id","journal_mode","locking_mode","synchronous","auto_vacuum","integrity_check","table_info(t)","database_list","wal_checkpoint","wal_autocheckpoint","journal_size_limit","secure_delete","cache_spill","mmap_size","index_list(t)","default_cache_size","incremental_vacuum","quick_check(t)","collation_list","table_list","optimize(0)","cache_size=20","page_size=1024","auto_vacuum=1","user_version=5",0};
  a=db_open("e3.db");
  run(a,"create table t(x); insert into t values(1)");
  sqlite3_close(a);
  for(int i=0;q[i];i++) for(int j=0;j<2;j++){
    a=db_open("e3.db");
    if(j)run(a,"select count(*) from t");
    sqlite3_exec(a,"begin",0,0,0);
    char b[100];
    sprintf(b,"pragma %s",q[i]);
    int rc=sqlite3_exec(a,b,0,0,0);
    P("%s %d: %d state %d\n",q[i],j,rc,sqlite3_txn_state(a,"main"));
    sqlite3_close(a);
  }
}
