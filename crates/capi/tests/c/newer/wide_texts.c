/* SQL in UTF-16 whose length is given as more than there is up to the zero, or as less. */
#include "../common.h"

static void wide(const char *from, unsigned short *to) {
  while ((*to++ = (unsigned char)*from++)) {}
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  static const char *const TEXTS[] = {
      "create table u(x)",
      "alter table u add column y default 9",
      "create view v as select x, y from u",
      "create trigger r after insert on u begin update u set y = 8; end",
      "insert into u values(1, 2)",
      "select x, y from u; select 2",
      "",
  };
  for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
    unsigned short text[256];
    memset(text, '!', sizeof text);
    wide(TEXTS[i], text);
    int size = 2 * strlen(TEXTS[i]);
    const int lengths[] = {500, size + 2, size, size > 2 ? size - 2 : 0, 2, 0};
    for (int k = 0; k < 6; k++) {
      sqlite3_stmt *s = 0;
      const void *rest = 0;
      int rc = sqlite3_prepare16_v2(db, text, lengths[k], &s, &rest);
      printf("%d %d: %d '%s' rest %d", (int)i, k, rc, s ? sqlite3_sql(s) : "", rc ? 0 : (int)((char *)rest - (char *)text));
      if (k == 0 && s) printf(" step %d", sqlite3_step(s));
      printf(" %d\n", sqlite3_finalize(s));
    }
  }
  run(db, "select sql from sqlite_schema; select * from u");
  sqlite3_close(db);
  return 0;
}
