/* Names that are URIs, names of files, sqlite3_file_control, images. */
#include "../common.h"

#define P(...) (printf(__VA_ARGS__), fflush(stdout))
#define E(x) do{int r_=(x);P("%d: %s = %d ext %d msg %s\n",__LINE__,#x,r_,sqlite3_extended_errcode(db),sqlite3_errmsg(db));}while(0)
static unsigned avp(void*p,const char*s,unsigned n,unsigned f,unsigned sz){
  P("avp %s %u %u %u\n",s,n,f,sz);
  return f;
}
static void del(void*p){
  P("del %s\n",(char*)p);
}
int main(int c,char**v){
  if(c>1&&chdir(v[1])) return 1;
  sqlite3*db;
  int i;
  /* uri */
  const char*f=0;
  E(sqlite3_open_v2("file:u.db?psow=0&a=b%20c&flag=on&num=0x10&neg=-5&empty=&bad=zz&a=second&%41=x#frag",&db,6|SQLITE_OPEN_URI,0));
  f=sqlite3_db_filename(db,"main");
  P("%s %d %d %d %lld %lld %lld\n",sqlite3_uri_parameter(f,"a"),sqlite3_uri_boolean(f,"flag",0),sqlite3_uri_boolean(f,"bad",1),sqlite3_uri_boolean(f,"none",1),sqlite3_uri_int64(f,"num",1),sqlite3_uri_int64(f,"neg",1),sqlite3_uri_int64(f,"bad",9));
  for(i=0;i<12;i++){
    const char*k=sqlite3_uri_key(f,i);
    P("%s ",k?k:"NULL");
  }
  P("\n%p %p\n",sqlite3_uri_parameter(0,"a"),sqlite3_uri_parameter(f,0));
  P("[%s]\n",sqlite3_uri_parameter(f,"empty"));
  const char*j=sqlite3_filename_journal(f),*w=sqlite3_filename_wal(f),*d=sqlite3_filename_database(j);
  P("%s %s %s\n",strrchr(j,'/'),strrchr(w,'/'),strrchr(d,'/'));
  P("%d\n",d==f);
  sqlite3_close(db);
  const char*par[]={"k1","v1","k2","v2"};
  sqlite3_filename cf=sqlite3_create_filename("/x/db","/x/jo","/x/wa",2,par);
  P("%s %s %s %s %s %s\n",cf,sqlite3_filename_journal(cf),sqlite3_filename_wal(cf),sqlite3_filename_database(sqlite3_filename_wal(cf)),sqlite3_uri_parameter(cf,"k2"),sqlite3_uri_key(cf,0));
  sqlite3_free_filename(cf);
  sqlite3_free_filename(0);
  const char*uris[]={"file:u.db?mode=ro","file:u.db?mode=bad","file:u.db?cache=bad","file:nosuch.db?mode=rw","file://host/u.db","file:///nosuchdir/u.db","file:u.db?vfs=none","file:u.db?mode=memory","file:?mode=memory","file:","file:u.db?immutable=1","file:u.db?nolock=1","file:%00u.db","file:u%2edb?mode=ro","file://localhost/nosuch/x","file:u.db?mode=rwc","file:u.db?cache=shared&mode=ro","file:u.db?readonly_shm=1","",0};
  for(i=0;uris[i];i++){
    int rc=sqlite3_open_v2(uris[i],&db,SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE|SQLITE_OPEN_URI,0);
    P("%s: %d %s ro %d %s\n",uris[i],rc,sqlite3_errmsg(db),sqlite3_db_readonly(db,"main"),sqlite3_db_filename(db,"main")?(strrchr(sqlite3_db_filename(db,"main"),'/')?:"-"):"NULL");
    run(db,"select count(*) from sqlite_master");
    sqlite3_close(db);
  }
  for(i=0;i<8;i++){
    db=0;
    int rc=sqlite3_open_v2("u.db",&db,i,0);
    P("flags %d: %d %d\n",i,rc,db!=0);
    sqlite3_close(db);
  }
  E(sqlite3_open_v2("u.db",&db,SQLITE_OPEN_READONLY|SQLITE_OPEN_URI,0));
  run(db,"create table x(y)");
  sqlite3_close(db);
  E(sqlite3_open_v2("file:u.db?mode=rw",&db,SQLITE_OPEN_READONLY|SQLITE_OPEN_URI,0));
  sqlite3_close(db);
  E(sqlite3_open_v2("nodir/u.db",&db,6,0));
  P("sys %d\n",sqlite3_system_errno(db));
  E(sqlite3_exec(db,"select 1",0,0,0));
  sqlite3_close(db);
  /* file controls */
  E(sqlite3_open("w.db",&db));
  run(db,"pragma auto_vacuum=full; create table t(a); insert into t values(randomblob(10000)),(randomblob(100000))");
  E(sqlite3_autovacuum_pages(db,avp,"avpd",del));
  run(db,"delete from t where rowid=2");
  E(sqlite3_autovacuum_pages(db,avp,"avp2",del));
  E(sqlite3_autovacuum_pages(db,0,0,0));
  char*z=0;
  int n=-1;
  sqlite3_int64 l=-1;
  unsigned u=0;
  sqlite3_file*fp=0;
  void*vp=0;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_VFSNAME,&z));
  P("%s\n",z);
  sqlite3_free(z);
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_LOCKSTATE,&n));
  P("%d\n",n);
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_FILE_POINTER,&fp));
  P("%d %d\n",fp!=0,fp->pMethods->iVersion);
  sqlite3_int64 sz;
  fp->pMethods->xFileSize(fp,&sz);
  P("size %lld sec %d dc %d\n",sz,fp->pMethods->xSectorSize(fp),fp->pMethods->xDeviceCharacteristics(fp));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_JOURNAL_POINTER,&fp));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_VFS_POINTER,&vp));
  P("%s\n",((sqlite3_vfs*)vp)->zName);
  n=-1;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_PERSIST_WAL,&n));
  P("%d\n",n);
  n=1;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_PERSIST_WAL,&n));
  P("%d\n",n);
  n=-1;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_PERSIST_WAL,&n));
  P("%d\n",n);
  n=-1;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_POWERSAFE_OVERWRITE,&n));
  P("%d\n",n);
  n=0;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_POWERSAFE_OVERWRITE,&n));
  n=-1;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_POWERSAFE_OVERWRITE,&n));
  P("%d\n",n);
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_DATA_VERSION,&u));
  unsigned u0=u;
  run(db,"insert into t values(1)");
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_DATA_VERSION,&u));
  P("dv same %d\n",u==u0);
  n=4096;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_CHUNK_SIZE,&n));
  l=100000;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_SIZE_HINT,&l));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_HAS_MOVED,&n));
  P("%d\n",n);
  z=0;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_TEMPFILENAME,&z));
  P("%d\n",z!=0);
  sqlite3_free(z);
  l=-1;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_MMAP_SIZE,&l));
  P("%lld\n",l);
  l=8192;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_MMAP_SIZE,&l));
  l=-1;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_MMAP_SIZE,&l));
  P("%lld\n",l);
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_LAST_ERRNO,&n));
  P("%d\n",n);
  n=5;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_RESERVE_BYTES,&n));
  P("%d\n",n);
  n=-1;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_RESERVE_BYTES,&n));
  P("%d\n",n);
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_RESET_CACHE,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_EXTERNAL_READER,&n));
  P("%d\n",n);
  l=0;
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_SIZE_LIMIT,&l));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_BUSYHANDLER,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_TRACE,"x"));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_BEGIN_ATOMIC_WRITE,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_CKPT_DONE,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_PDB,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_FILESTAT,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_WIN32_AV_RETRY,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_COMMIT_PHASETWO,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_SYNC,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_OVERWRITE,&n));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_GET_LOCKPROXYFILE,&z));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_ZIPVFS,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_CKSM_FILE,0));
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_CKPT_START,0));
  char*pr[4]={0,"xyzzy",0,0};
  E(sqlite3_file_control(db,"main",SQLITE_FCNTL_PRAGMA,pr));
  run(db,"vacuum; pragma journal_mode=wal; insert into t values(5)");
  char hdr[100];
  FILE*q=fopen("w.db","rb");
  fread(hdr,1,100,q);
  fclose(q);
  P("reserve %d\n",hdr[20]);
  sqlite3_close(db);
  P("wal kept %d\n",access("w.db-wal",0)==0);
  /* readonly_shm */
  sqlite3*wr=db_open("r.db");
  run(wr,"pragma journal_mode=wal; create table t(a); insert into t values(1)");
  sqlite3_close(wr);
  E(sqlite3_open_v2("file:r.db?readonly_shm=1",&db,6|SQLITE_OPEN_URI,0));
  run(db,"select * from t");
  sqlite3_close(db);
  /* serialize */
  db=db_open(":memory:");
  run(db,"create table t(a); insert into t values(1)");
  unsigned char*p;
  E((p=sqlite3_serialize(db,"main",&sz,SQLITE_SERIALIZE_NOCOPY))!=0);
  P("%lld\n",sz);
  E((p=sqlite3_serialize(db,"nodb",&sz,0))!=0);
  P("%lld\n",sz);
  E((p=sqlite3_serialize(db,"temp",&sz,0))!=0);
  P("%lld\n",sz);
  p=sqlite3_serialize(db,0,&sz,0);
  P("%lld\n",sz);
  sqlite3*d2=db_open(":memory:");
  E(sqlite3_deserialize(d2,"main",p,sz,sz,SQLITE_DESERIALIZE_READONLY|SQLITE_DESERIALIZE_FREEONCLOSE));
  run(d2,"select * from t; insert into t values(2)");
  sqlite3_close(d2);
  p=sqlite3_serialize(db,0,&sz,0);
  d2=db_open(":memory:");
  E(sqlite3_deserialize(d2,"main",p,sz,sz,SQLITE_DESERIALIZE_FREEONCLOSE));
  run(d2,"select * from t; update t set a=7; select * from t");
  run(d2,"insert into t values(zeroblob(20000))");
  sqlite3_close(d2);
  d2=db_open(":memory:");
  char junk[1024]="not a database at all";
  E(sqlite3_deserialize(d2,"main",(void*)junk,1024,1024,0));
  run(d2,"select * from sqlite_master");
  sqlite3_close(d2);
  sqlite3_close(db);
}
