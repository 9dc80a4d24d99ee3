/* What calls answer that are wrong or odd, and the message they leave; results of functions; limits. */
#include "../common.h"

#define P(...) (printf(__VA_ARGS__), fflush(stdout))
#define E(x) do{int r_=(x);P("%d: %s = %d ext %d msg %s off %d\n",__LINE__,#x,r_,sqlite3_extended_errcode(db),sqlite3_errmsg(db),sqlite3_error_offset(db));}while(0)
static int ndel;
static void del(void*p){
  P("del %s\n",(char*)p);
}
static void fn(sqlite3_context*c,int n,sqlite3_value**v){
  for(int i=0;i<n;i++){
    sqlite3_value*d=sqlite3_value_dup(v[i]);
    P("t%d nt%d fb%d nc%d st%u enc%d by%d i%d d%g | dup t%d fb%d st%u txt %s\n",sqlite3_value_type(v[i]),sqlite3_value_numeric_type(v[i]),sqlite3_value_frombind(v[i]),sqlite3_value_nochange(v[i]),sqlite3_value_subtype(v[i]),sqlite3_value_encoding(v[i]),sqlite3_value_bytes(v[i]),sqlite3_value_int(v[i]),sqlite3_value_double(v[i]),sqlite3_value_type(d),sqlite3_value_frombind(d),sqlite3_value_subtype(d),sqlite3_value_text(d));
    sqlite3_value_free(d);
    char*a=sqlite3_get_auxdata(c,i);
    P(" aux %s\n",a?a:"-");
    if(!a) sqlite3_set_auxdata(c,i,i==0?"aux0":i==1?"aux1":"aux2",del);
  }
  sqlite3_result_subtype(c,77);
  sqlite3_result_text(c,"res",-1,SQLITE_STATIC);
}
static void f2(sqlite3_context*c,int n,sqlite3_value**v){
  switch(sqlite3_value_int(v[0])){
    case 0: sqlite3_result_error(c,"boom",-1);
    break;
    case 1: sqlite3_result_error_code(c,SQLITE_IOERR);
    break;
    case 2: sqlite3_result_error_toobig(c);
    break;
    case 3: sqlite3_result_error_nomem(c);
    break;
    case 4: sqlite3_result_error(c,"mine",-1);
    sqlite3_result_error_code(c,SQLITE_BUSY);
    break;
    case 5: sqlite3_result_error_code(c,SQLITE_BUSY);
    sqlite3_result_error(c,"mine2",2);
    break;
    case 6: sqlite3_result_zeroblob(c,10);
    break;
    case 7: P("%d\n",sqlite3_result_zeroblob64(c,(sqlite3_uint64)1<<40));
    break;
    case 8: sqlite3_result_text64(c,"abcdef",3,SQLITE_TRANSIENT,SQLITE_UTF8);
    break;
    case 9: sqlite3_result_text16(c,u"äb",-1,SQLITE_STATIC);
    break;
    case 10: sqlite3_result_value(c,v[0]);
    break;
    case 11: sqlite3_result_error16(c,u"söx",-1);
    break;
    case 12: sqlite3_result_blob(c,0,0,0);
    break;
    case 13: sqlite3_result_text(c,0,5,0);
    break;
    case 14: sqlite3_result_text(c,"a\0b",3,SQLITE_STATIC);
    break;
    case 15: sqlite3_result_error_code(c,SQLITE_OK);
    break;
    case 16: sqlite3_result_error_code(c,SQLITE_CONSTRAINT_CHECK);
    break;
    case 17: sqlite3_result_text64(c,"toobig",(sqlite3_uint64)1<<33,del,SQLITE_UTF8);
    break;
    case 18: sqlite3_result_blob64(c,"toobig",(sqlite3_uint64)1<<33,del);
    break;
    case 19: sqlite3_result_pointer(c,"ptr","typ",del);
    break;
    case 20: sqlite3_result_double(c,0.0/0.0);
    break;
    case 21: sqlite3_result_text(c,"x",-1,SQLITE_STATIC);
    sqlite3_result_int(c,5);
    break;
    case 22: sqlite3_result_text16be(c,"\0a\0b",4,SQLITE_STATIC);
    break;
    case 23: sqlite3_result_text16le(c,"a\0b\0",3,SQLITE_STATIC);
    break;
    case 24: sqlite3_result_error_code(c,SQLITE_ABORT);
    break;
    case 25: sqlite3_result_error_code(c,SQLITE_INTERRUPT);
    break;
    case 26: sqlite3_result_error_code(c,9999);
    break;
    case 27: sqlite3_result_error_code(c,SQLITE_DONE);
    break;
  }
}
static void fin(sqlite3_context*c){
  sqlite3_result_int(c,1);
}
static int cmp(void*p,int a,const void*x,int b,const void*y){
  return 0;
}
static int auth(void*a,int c,const char*x,const char*y,const char*z,const char*w){
  return SQLITE_OK;
}
int main(int c,char**v){
  if(c>1&&chdir(v[1])) return 1;
  sqlite3*db=db_open(":memory:");
  sqlite3_stmt*s;
  run(db,"create table t(a,b)");
  sqlite3_create_function(db,"f2",1,SQLITE_UTF8,0,f2,0,0);
  for(int i=0;i<26;i++){
    if(i==15) continue;
    char b[60];
    sprintf(b,"select f2(%d),typeof(f2(%d))",i,i);
    P("%d: ",i);
    run(db,b);
  }
  char longn[300];
  memset(longn,'x',299);
  longn[299]=0;
  E(sqlite3_create_function_v2(db,longn,1,SQLITE_UTF8,"d12",fn,0,0,del));
  longn[255]=0;
  E(sqlite3_create_function_v2(db,longn,1,SQLITE_UTF8,"d13",fn,0,0,del));
  E(sqlite3_create_collation_v2(db,"c1",SQLITE_UTF8,"c1",cmp,del));
  E(sqlite3_create_collation_v2(db,"c1",SQLITE_UTF8,"c2",cmp,del));
  E(sqlite3_create_collation_v2(db,"c1",99,"c3",cmp,del));
  E(sqlite3_overload_function(db,"ov",2));
  run(db,"select ov(1,2)");
  E(sqlite3_overload_function(db,"ov",-3));
  E(sqlite3_overload_function(db,"ov",200));
  E(sqlite3_overload_function(db,"abs",1));
  run(db,"select abs(-1)");
  /* misuse messages */
  E(sqlite3_prepare_v2(db,"select ?",-1,&s,0));
  E(sqlite3_bind_int(s,0,1));
  E(sqlite3_bind_int(s,2,1));
  E(sqlite3_bind_text(s,1,"x",-1,SQLITE_STATIC));
  E(sqlite3_bind_text64(s,1,"x",(sqlite3_uint64)1<<33,del,SQLITE_UTF8));
  E(sqlite3_bind_blob64(s,1,"bx",(sqlite3_uint64)1<<33,del));
  E(sqlite3_bind_zeroblob(s,1,-5));
  E(sqlite3_bind_zeroblob64(s,1,(sqlite3_uint64)1<<40));
  E(sqlite3_bind_pointer(s,9,"pp","t",del));
  E(sqlite3_bind_text(s,9,"tt",-1,del));
  E(sqlite3_bind_blob(s,9,"bb",2,del));
  E(sqlite3_step(s));
  E(sqlite3_bind_int(s,1,1));
  E(sqlite3_bind_blob(s,1,"b2",2,del));
  E(sqlite3_column_int(s,5));
  E(sqlite3_column_type(s,-1));
  E(sqlite3_column_bytes(s,0));
  E(sqlite3_step(s));
  E(sqlite3_step(s));
  E(sqlite3_reset(s));
  E(sqlite3_clear_bindings(s));
  P("%p %p %p\n",sqlite3_column_name(s,5),sqlite3_column_name(s,-1),sqlite3_column_decltype(s,5));
  P("%d %d %s %d\n",sqlite3_bind_parameter_count(s),sqlite3_bind_parameter_index(s,"?"),sqlite3_bind_parameter_name(s,1)?"x":"NULL",sqlite3_bind_parameter_index(s,0));
  P("%p %p\n",sqlite3_bind_parameter_name(s,0),sqlite3_bind_parameter_name(s,2));
  E(sqlite3_finalize(s));
  E(sqlite3_prepare_v2(db,0,-1,&s,0));
  E(sqlite3_prepare_v2(db,"",-1,&s,0));
  E(sqlite3_prepare_v2(db,"select x",-1,&s,0));
  E(sqlite3_prepare_v2(db,"selec",-1,&s,0));
  E(sqlite3_prepare_v2(db,"select 1",0,&s,0));
  P("%p\n",s);
  E(sqlite3_prepare_v2(db,"select 1 from",6,&s,0));
  sqlite3_finalize(s);
  E(sqlite3_set_errmsg(db,SQLITE_CORRUPT,"my msg"));
  E(sqlite3_set_errmsg(db,SQLITE_OK,0));
  E(sqlite3_set_errmsg(db,SQLITE_BUSY_SNAPSHOT,0));
  E(sqlite3_set_errmsg(db,12345,"odd"));
  P("%d\n",sqlite3_set_errmsg(0,1,"x"));
  P("%d\n",sqlite3_errcode(db));
  for(int i=-2;i<35;i++) P("%d %s\n",i,sqlite3_errstr(i));
  P("%s %s %s %s\n",sqlite3_errstr(100),sqlite3_errstr(101),sqlite3_errstr(516),sqlite3_errstr(266));
  P("%s %s\n",sqlite3_errstr(999999),sqlite3_errmsg(0));
  P("%d %d\n",sqlite3_errcode(0),sqlite3_extended_errcode(0));
  E(sqlite3_table_column_metadata(db,0,"t","a",0,0,0,0,0));
  E(sqlite3_table_column_metadata(db,0,"t","zz",0,0,0,0,0));
  E(sqlite3_table_column_metadata(db,0,"zz",0,0,0,0,0,0));
  E(sqlite3_table_column_metadata(db,"nodb","t",0,0,0,0,0,0));
  const char*d,*co;
  int nn,pk,ai;
  E(sqlite3_table_column_metadata(db,0,"t","rowid",&d,&co,&nn,&pk,&ai));
  P("%s %s %d %d %d\n",d,co,nn,pk,ai);
  E(sqlite3_table_column_metadata(db,0,"t",0,&d,&co,&nn,&pk,&ai));
  P("%s %s %d %d %d\n",d?d:"N",co?co:"N",nn,pk,ai);
  E(sqlite3_wal_checkpoint_v2(db,0,99,0,0));
  E(sqlite3_wal_checkpoint_v2(db,"nodb",0,0,0));
  int a=7,b=7;
  E(sqlite3_wal_checkpoint_v2(db,0,0,&a,&b));
  P("%d %d\n",a,b);
  E(sqlite3_wal_checkpoint_v2(db,"",-1,&a,&b));
  P("%d %d\n",a,b);
  E(sqlite3_wal_checkpoint_v2(db,0,-1,&a,&b));
  E(sqlite3_wal_checkpoint_v2(db,0,4,&a,&b));
  E(sqlite3_wal_autocheckpoint(db,0));
  E(sqlite3_wal_checkpoint(db,"main"));
  E(sqlite3_db_readonly(db,"main"));
  E(sqlite3_db_readonly(db,0));
  E(sqlite3_db_readonly(db,"x"));
  P("%s|\n",sqlite3_db_filename(db,"main"));
  P("%p\n",sqlite3_db_filename(db,"x"));
  P("%s %s %p %p\n",sqlite3_db_name(db,0),sqlite3_db_name(db,1),sqlite3_db_name(db,2),sqlite3_db_name(db,-1));
  run(db,"attach ':memory:' as au");
  P("%s %s\n",sqlite3_db_name(db,2),sqlite3_db_filename(db,"au"));
  E(sqlite3_db_cacheflush(db));
  E(sqlite3_db_release_memory(db));
  E(sqlite3_txn_state(db,0));
  E(sqlite3_txn_state(db,"x"));
  E(sqlite3_file_control(db,"x",7,0));
  E(sqlite3_file_control(db,0,9999,0));
  E(sqlite3_autovacuum_pages(db,0,0,0));
  E(sqlite3_busy_timeout(db,10));
  E(sqlite3_setlk_timeout(db,10,0));
  E(sqlite3_setlk_timeout(db,-1,0));
  E(sqlite3_setlk_timeout(db,-2,0));
  E(sqlite3_extended_result_codes(db,1));
  E(sqlite3_get_autocommit(db));
  E(sqlite3_is_interrupted(db));
  sqlite3_interrupt(db);
  E(sqlite3_is_interrupted(db));
  run(db,"select 1");
  E(sqlite3_is_interrupted(db));
  for(int i=-1;i<16;i++){
    if(i==9)continue;
    int o=sqlite3_limit(db,i,-1);
    P("limit %d %d ",i,o);
    sqlite3_limit(db,i,2147483647);
    P("%d ",sqlite3_limit(db,i,0));
    P("%d\n",sqlite3_limit(db,i,o));
  }
  E(sqlite3_get_clientdata(db,"a")==0);
  E(sqlite3_set_clientdata(db,"a","cd1",del));
  E(sqlite3_set_clientdata(db,"a","cd2",del));
  P("%s\n",(char*)sqlite3_get_clientdata(db,"a"));
  E(sqlite3_set_clientdata(db,"b",0,del));
  E(sqlite3_set_clientdata(db,"a",0,0));
  E(sqlite3_close(db));
}
