/* Regions of R*Trees in C: a plain one and one with scores, what they are told, and the order in which rows come. */
#include "common.h"

static int freed, dropped, failing;

static void free_user(void *p) {
  freed += *(int *)p;
  free(p);
}

static void drop_context(void *p) {
  dropped++;
  (void)p;
}

static int circle(sqlite3_rtree_geometry *g, int n, double *c, int *inside) {
  if (failing) return failing;
  if (g->nParam != 3) return SQLITE_ERROR;
  if (!g->pUser) {
    g->pUser = malloc(sizeof(int));
    *(int *)g->pUser = 1;
    g->xDelUser = free_user;
    printf("circle of %d coordinates, context %s\n", n, (char *)g->pContext);
  }
  double x = g->aParam[0], y = g->aParam[1], r = g->aParam[2];
  double dx = x < c[0] ? c[0] - x : x > c[1] ? x - c[1] : 0;
  double dy = y < c[2] ? c[2] - y : y > c[3] ? y - c[3] : 0;
  *inside = dx * dx + dy * dy <= r * r;
  return SQLITE_OK;
}

static int told;

/* Its first argument says what the score is. */
static int scored(sqlite3_rtree_query_info *q) {
  const char *how = (const char *)sqlite3_value_text(q->apSqlParam[0]);
  if (told > 0) {
    told--;
    printf("level %d of %d, %d coordinates, parent %d %g, now %d %g, queue", q->iLevel, q->mxLevel, q->nCoord,
           q->eParentWithin, q->rParentScore, q->eWithin, q->rScore);
    for (int i = 0; i <= q->mxLevel; i++) printf(" %u", q->anQueue[i]);
    if (q->iLevel == 0) printf(", row %lld", (long long)q->iRowid);
    printf(", %d parameters, type %d\n", q->nParam, sqlite3_value_type(q->apSqlParam[q->nParam - 1]));
  }
  q->eWithin = PARTLY_WITHIN;
  if (!strcmp(how, "depth")) q->rScore = q->iLevel;
  else if (!strcmp(how, "breadth")) q->rScore = q->mxLevel - q->iLevel;
  else if (!strcmp(how, "same")) q->rScore = 1;
  else if (!strcmp(how, "x")) q->rScore = q->aCoord[0];
  else if (!strcmp(how, "rows")) q->rScore = q->iLevel == 0 ? (q->iRowid * 37 % 11) : 0;
  else if (!strcmp(how, "few")) q->eWithin = q->iLevel == 0 && q->iRowid % 3 ? NOT_WITHIN : FULLY_WITHIN;
  else return SQLITE_ERROR;
  return SQLITE_OK;
}

int main(int argc, char **argv) {
  (void)argc;
  sqlite3 *db = db_open(scratch(argv, "regions.db"));
  static char context[] = "hello";
  printf("%d\n", sqlite3_rtree_geometry_callback(db, "circle", circle, context));
  printf("%d\n", sqlite3_rtree_query_callback(db, "scored", scored, context, drop_context));
  run(db, "PRAGMA page_size=512; CREATE VIRTUAL TABLE t USING rtree(id,x0,x1,y0,y1);"
          "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<400)"
          " INSERT INTO t SELECT i, i*37%101, i*37%101+1, i*53%97, i*53%97+2 FROM c;"
          /* All in the root: versions of SQLite that split otherwise have the same order. */
          "CREATE VIRTUAL TABLE o USING rtree(id,x0,x1,y0,y1); INSERT INTO o SELECT * FROM t WHERE id<18 ORDER BY id");
  run(db, "SELECT id FROM t WHERE id MATCH circle(50,50,10) ORDER BY id");
  run(db, "SELECT count(*) FROM t WHERE x1 MATCH circle(50,50,20) AND x0>50 AND id MATCH circle(60,50,20)");
  run(db, "SELECT id FROM t WHERE id=5 AND id MATCH circle(50,50,1000)");
  printf("freed %d\n", freed);
  run(db, "SELECT id FROM t WHERE id MATCH circle(50,50)");
  run(db, "SELECT id FROM t WHERE id MATCH 5");
  run(db, "SELECT id FROM t WHERE id MATCH x'0102'");
  run(db, "CREATE TABLE kept(v); INSERT INTO kept VALUES(circle(50,50,10)); SELECT id FROM t, kept WHERE id MATCH v");
  failing = SQLITE_IOERR;
  run(db, "SELECT id FROM t WHERE id MATCH circle(50,50,10)");
  failing = 0;
  static const char *orders[] = {"depth", "breadth", "same", "x", "rows", "few", "other"};
  for (int i = 0; i < 7; i++) {
    char sql[200];
    told = 12;
    printf("-- %s\n", orders[i]);
    snprintf(sql, sizeof sql, "SELECT group_concat(id,' ') FROM (SELECT id FROM o WHERE id MATCH scored('%s', 1.5, x'00') AND x0<60)", orders[i]);
    run(db, sql);
  }
  told = 0;
  run(db, "SELECT count(*), sum(id) FROM t WHERE id MATCH scored('few') AND x0<60");
  run(db, "SELECT count(*), sum(id) FROM t WHERE id MATCH scored('x') AND id MATCH circle(50,50,20)");
  run(db, "SELECT group_concat(id,' ') FROM (SELECT id FROM o WHERE id MATCH scored('x') AND id MATCH scored('rows') LIMIT 50)");
  run(db, "SELECT group_concat(id,' ') FROM (SELECT id FROM o WHERE id MATCH scored('x') AND id MATCH circle(50,50,20))");
  run(db, "CREATE VIRTUAL TABLE i USING rtree_i32(id,a,b); INSERT INTO i VALUES(1,2,3),(2,-5,7)");
  told = 2;
  run(db, "SELECT id FROM i WHERE a MATCH scored('depth')");
  run(db, "SELECT id FROM i WHERE a MATCH scored('depth') OR b=7");
  printf("dropped %d\n", dropped);
  printf("%d\n", sqlite3_rtree_query_callback(db, "scored", scored, context, drop_context));
  printf("dropped %d\n", dropped);
  printf("close %d, dropped %d\n", sqlite3_close(db), dropped);
  return 0;
}
