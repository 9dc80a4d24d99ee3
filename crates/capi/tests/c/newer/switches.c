/* Switches of a connection and what they do, traces, what a statement says about itself. */
#include "../common.h"

#define P(...) (printf(__VA_ARGS__), fflush(stdout))
#define E(x) do{int r_=(x);P("%d: %s = %d ext %d msg %s\n",__LINE__,#x,r_,sqlite3_extended_errcode(db),sqlite3_errmsg(db));}while(0)
static int trc(unsigned t,void*c,void*p,void*x){
  if(t==SQLITE_TRACE_STMT)P("stmt %s\n",(char*)x);
  if(t==SQLITE_TRACE_PROFILE)P("profile %d\n",*(sqlite3_int64*)x>=0);
  if(t==SQLITE_TRACE_ROW)P("row\n");
  if(t==SQLITE_TRACE_CLOSE)P("close\n");
  return 0;
}
int main(int c,char**v){
  if(c>1&&chdir(v[1])) return 1;
  sqlite3*db=db_open("e.db");
  int i,o;
  for(i=1002;i<=1024;i++){
    o=-7;
    int r=sqlite3_db_config(db,i,-1,&o);
    P("%d: %d %d ",i,r,o);
    r=sqlite3_db_config(db,i,1,&o);
    P("%d %d ",r,o);
    r=sqlite3_db_config(db,i,0,&o);
    P("%d %d\n",r,o);
  }
  sqlite3_close(db);
  remove("e.db");
  db=db_open("e.db");
  E(sqlite3_db_config(db,999,0,0));
  E(sqlite3_db_config(db,1001,(void*)0,128,10));
  /* legacy file format */
  sqlite3_close(db);
  remove("e2.db");
  db=db_open("e2.db");
  sqlite3_db_config(db,SQLITE_DBCONFIG_LEGACY_FILE_FORMAT,1,0);
  run(db,"create table t(a,b); create index i on t(a desc); insert into t values(1,2),(2,3)");
  char h[100];
  FILE*q=fopen("e2.db","rb");
  fread(h,1,100,q);
  fclose(q);
  P("format %d\n",h[47]);
  run(db,"vacuum; select a from t order by a desc; pragma integrity_check");
  q=fopen("e2.db","rb");
  fread(h,1,100,q);
  fclose(q);
  P("format %d\n",h[47]);
  sqlite3_db_config(db,SQLITE_DBCONFIG_LEGACY_FILE_FORMAT,0,0);
  run(db,"pragma legacy_file_format; pragma legacy_file_format=1");
  /* comments */
  sqlite3_db_config(db,SQLITE_DBCONFIG_ENABLE_COMMENTS,0,&o);
  P("comments %d\n",o);
  run(db,"select 1 -- c");
  run(db,"select /* x */ 2");
  run(db,"create table cc(a /* hi */)");
  run(db,"select 3");
  run(db,"-- only");
  run(db,"select '--', '/*' ");
  sqlite3_db_config(db,SQLITE_DBCONFIG_ENABLE_COMMENTS,1,0);
  run(db,"create view v as select 1 /* in view */");
  sqlite3_db_config(db,SQLITE_DBCONFIG_ENABLE_COMMENTS,0,0);
  run(db,"select * from v");
  sqlite3_close(db);
  db=db_open("e2.db");
  sqlite3_db_config(db,SQLITE_DBCONFIG_ENABLE_COMMENTS,0,0);
  run(db,"select * from v");
  sqlite3_db_config(db,SQLITE_DBCONFIG_ENABLE_COMMENTS,1,0);
  sqlite3_stmt*s;
  /* trace, expanded */
  E(sqlite3_trace_v2(db,15,trc,0));
  run(db,"select 1");
  run(db,"insert into t values(1,2)");
  sqlite3_prepare_v2(db,"select ?1, :a, @b, $c, ?",-1,&s,0);
  sqlite3_bind_text(s,1,"it's",-1,0);
  sqlite3_bind_int64(s,2,1LL<<40);
  sqlite3_bind_double(s,3,1.5);
  sqlite3_bind_blob(s,4,"\x01\xff",2,0);
  char*z=sqlite3_expanded_sql(s);
  P("%s\n",z);
  sqlite3_free(z);
  P("%s\n",sqlite3_sql(s));
  sqlite3_step(s);
  sqlite3_finalize(s);
  sqlite3_trace_v2(db,0,0,0);
  /* stmt status, readonly, isexplain, explain */
  sqlite3_prepare_v2(db,"select * from t order by b",-1,&s,0);
  while(sqlite3_step(s)==100);
  for(i=1;i<=8;i++) P("%d ",sqlite3_stmt_status(s,i,1)>0);
  P("\n");
  P("%d ",sqlite3_stmt_status(s,SQLITE_STMTSTATUS_RUN,0));
  P("%d %d\n",sqlite3_stmt_isexplain(s),sqlite3_stmt_readonly(s));
  sqlite3_reset(s);
  E(sqlite3_stmt_explain(s,2));
  P("%d %d\n",sqlite3_stmt_isexplain(s),sqlite3_column_count(s));
  while(sqlite3_step(s)==100)P("%s\n",sqlite3_column_text(s,3));
  sqlite3_reset(s);
  E(sqlite3_stmt_explain(s,0));
  sqlite3_step(s);
  E(sqlite3_stmt_explain(s,1));
  E(sqlite3_stmt_explain(s,5));
  sqlite3_finalize(s);
  const char*ro[]={"begin","begin immediate","commit","rollback","savepoint a","attach ':memory:' as q","detach q","vacuum","analyze","reindex","pragma user_version","pragma user_version=5","pragma journal_mode","pragma journal_mode=wal","pragma cache_size=5","create temp table tt(x)","create table if not exists t(a)","drop table if exists zzz","explain insert into t values(1,1)","with x as (select 1) select * from x","pragma wal_checkpoint","pragma integrity_check","pragma incremental_vacuum","pragma foreign_keys=1","values(1)","release a","end","insert into t select 1,2 where 0","delete from t where 0","pragma synchronous=1","pragma temp_store=1","pragma auto_vacuum=1","pragma encoding='utf8'","pragma schema_version","pragma application_id=3","select load_extension('x')",0};
  for(i=0;ro[i];i++){
    int r=sqlite3_prepare_v2(db,ro[i],-1,&s,0);
    P("%s: %d ro %d cols %d ex %d\n",ro[i],r,sqlite3_stmt_readonly(s),sqlite3_column_count(s),sqlite3_stmt_isexplain(s));
    sqlite3_finalize(s);
  }
  sqlite3_close(db);
}
