/* A transaction in memory is taken back where there is no memory left: by the statement that asked for too much. */
#include "common.h"

int main(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_stmt *more = 0;
  run(db, "pragma page_size = 512");
  run(db, "create table t(i integer primary key, x); create temp table u(i integer primary key, x)");
  run(db, "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into t select i, hex(zeroblob(90)) from n");
  run(db, "insert into u select * from t");
  sqlite3_prepare_v2(db, "insert into t(x) values(zeroblob(3000000))", -1, &more, 0);
  run(db, "begin; update t set x = i where i % 2; delete from u where i % 3; savepoint s; update t set x = 'later'");
  sqlite3_hard_heap_limit64(sqlite3_memory_used() + 1);
  printf("step %d\n", sqlite3_step(more));
  sqlite3_hard_heap_limit64(0);
  printf("auto-commit %d\n", sqlite3_get_autocommit(db));
  sqlite3_finalize(more);
  run(db, "select count(*), min(x), max(x) from t; select count(*) from u; pragma integrity_check");
  printf("closed %d\n", sqlite3_close(db));
  return 0;
}
