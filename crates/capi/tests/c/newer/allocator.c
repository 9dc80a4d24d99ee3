/* A program's own allocator, and what sqlite3_config answers. */
#include "../common.h"

#define P(...) (printf(__VA_ARGS__), fflush(stdout))
/* user's allocator */
static sqlite3_mem_methods def;
static long nm,nf,nr,ni,ns,live;
static void*xm(int n){
  nm++;
  void*p=def.xMalloc(n);
  if(p)live++;
  return p;
}
static void xf(void*p){
  nf++;
  live--;
  def.xFree(p);
}
static void*xr(void*p,int n){
  nr++;
  return def.xRealloc(p,n);
}
static int xs(void*p){
  return def.xSize(p);
}
static int xru(int n){
  return def.xRoundup(n);
}
static int xi(void*p){
  ni++;
  P("init %d\n",p==(void*)77);
  return def.xInit(def.pAppData);
}
static void xsh(void*p){
  ns++;
  P("shutdown\n");
  def.xShutdown(def.pAppData);
}
int main(int c,char**v){
  if(c>1&&chdir(v[1])) return 1;
  P("get %d\n",sqlite3_config(SQLITE_CONFIG_GETMALLOC,&def));
  P("%d %d %d\n",def.xMalloc!=0,def.xRoundup!=0,def.xInit!=0);
  sqlite3_mem_methods m={xm,xf,xr,xs,xru,xi,xsh,(void*)77};
  P("set %d\n",sqlite3_config(SQLITE_CONFIG_MALLOC,&m));
  P("init %d\n",sqlite3_initialize());
  P("%d\n",sqlite3_config(SQLITE_CONFIG_MALLOC,&m));
  long b=nm;
  void*p=sqlite3_malloc(100);
  P("used user malloc %d\n",nm>b);
  long bf=nf;
  sqlite3_free(p);
  P("user free %d\n",nf>bf);
  b=nm;
  char*z=sqlite3_mprintf("%s %d","abc",5);
  P("mprintf %d\n",nm>b);
  sqlite3_free(z);
  b=nm;
  sqlite3*db=db_open(":memory:");
  P("open %d\n",nm>b);
  b=nm;
  run(db,"create table t(a,b); insert into t values(1,2)");
  P("run %d\n",nm>b);
  char*e=0;
  sqlite3_exec(db,"select x",0,0,&e);
  b=nf;
  sqlite3_free(e);
  P("free errmsg %d\n",nf>b);
  sqlite3_int64 n;
  unsigned char*s=sqlite3_serialize(db,"main",&n,0);
  b=nf;
  sqlite3_free(s);
  P("ser %d\n",nf>b);
  sqlite3_close(db);
  P("used %lld live %ld\n",sqlite3_memory_used(),live);
  P("shut %d\n",sqlite3_shutdown());
  P("cfg %d\n",sqlite3_config(SQLITE_CONFIG_MALLOC,&def));
  /* each config verb after shutdown */
  P("single %d\n",sqlite3_config(SQLITE_CONFIG_SINGLETHREAD));
  P("threadsafe %d mutex %d\n",sqlite3_threadsafe(),0);
  P("multi %d\n",sqlite3_config(SQLITE_CONFIG_MULTITHREAD));
  P("ser %d\n",sqlite3_config(SQLITE_CONFIG_SERIALIZED));
  P("memst %d\n",sqlite3_config(SQLITE_CONFIG_MEMSTATUS,0));
  db=db_open(":memory:");
  P("mem used %lld\n",sqlite3_memory_used());
  sqlite3_close(db);
  sqlite3_shutdown();
  P("memst %d\n",sqlite3_config(SQLITE_CONFIG_MEMSTATUS,1));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_LOOKASIDE,512,100));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_URI,1));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_COVERING_INDEX_SCAN,1));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_MMAP_SIZE,(sqlite3_int64)-1,(sqlite3_int64)-1));
  int h=-1;
  P("%d %d\n",sqlite3_config(SQLITE_CONFIG_PCACHE_HDRSZ,&h),h>=0);
  P("%d\n",sqlite3_config(SQLITE_CONFIG_PMASZ,(unsigned)250));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL,100));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_SMALL_MALLOC,1));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_MEMDB_MAXSIZE,(sqlite3_int64)100000));
  P("view %d\n",sqlite3_config(SQLITE_CONFIG_ROWID_IN_VIEW,&h));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_SCRATCH,0,0,0));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_PAGECACHE,0,0,0));
  P("heap %d\n",sqlite3_config(SQLITE_CONFIG_HEAP,0,0,0));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_PCACHE,0));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_GETPCACHE,0));
  P("%d\n",sqlite3_config(999));
  P("%d\n",sqlite3_config(0));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_SQLLOG,0,0));
  P("%d\n",sqlite3_config(SQLITE_CONFIG_WIN32_HEAPSIZE,0));
  sqlite3_mutex_methods mm;
  memset(&mm,0,sizeof mm);
  P("getmutex %d %d\n",sqlite3_config(SQLITE_CONFIG_GETMUTEX,&mm),mm.xMutexAlloc!=0);
  sqlite3_pcache_methods2 pm;
  memset(&pm,0,sizeof pm);
  P("getpcache %d %d\n",sqlite3_config(SQLITE_CONFIG_GETPCACHE2,&pm),pm.xCreate!=0);
  /* memdb maxsize */
  db=db_open(":memory:");
  run(db,"create table t(a); insert into t values(zeroblob(3000))");
  sqlite3_int64 sz;
  s=sqlite3_serialize(db,0,&sz,0);
  sqlite3*d2=db_open(":memory:");
  P("deser %d\n",sqlite3_deserialize(d2,"main",s,sz,sz,SQLITE_DESERIALIZE_FREEONCLOSE|SQLITE_DESERIALIZE_RESIZEABLE));
  run(d2,"with recursive c(i) as (values(1) union all select i+1 from c where i<200) insert into t select zeroblob(1000) from c");
  sqlite3_int64 lim=-1;
  P("%d %lld\n",sqlite3_file_control(d2,"main",SQLITE_FCNTL_SIZE_LIMIT,&lim),lim);
  lim=10000000;
  P("%d %lld\n",sqlite3_file_control(d2,"main",SQLITE_FCNTL_SIZE_LIMIT,&lim),lim);
  run(d2,"with recursive c(i) as (values(1) union all select i+1 from c where i<200) insert into t select zeroblob(1000) from c; select count(*) from t");
  sqlite3_close(d2);
  sqlite3_close(db);
  db=db_open("file::memory:?cache=private");
  run(db,"select file from pragma_database_list");
  sqlite3_close(db);
}
