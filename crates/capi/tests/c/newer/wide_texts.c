/* SQL in UTF-16 whose length is given as more than there is up to the zero, or as less; texts with a mark of the order of their
   bytes, and with what is no character. */
#include "../common.h"

static void wide(const char *from, unsigned short *to) {
  while ((*to++ = (unsigned char)*from++)) {}
}

static void units(sqlite3 *db) {
  static const unsigned short TEXTS[][3] = {
      {0xfeff, 'A', 'b'}, {0xfffe, 0x4100, 0x6200}, {0xffff, 'A', 'b'}, {'A', 0xfffe, 'b'},
      {'A', 'b', 0xd83d}, {'A', 0xd83d, 0xde00},    {'A', 0xfeff, 'b'},
  };
  for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
    for (int how = 0; how < 3; how++) {
      sqlite3_stmt *s;
      sqlite3_prepare_v2(db, "select ?1, hex(?1), length(?1)", -1, &s, 0);
      if (how == 0) sqlite3_bind_text16(s, 1, TEXTS[i], 6, SQLITE_STATIC);
      else sqlite3_bind_text64(s, 1, (const char *)TEXTS[i], 6, SQLITE_STATIC, how == 1 ? SQLITE_UTF16 : SQLITE_UTF16LE);
      sqlite3_step(s);
      const unsigned short *wide = sqlite3_column_text16(s, 0);
      printf("text %d %d: %d bytes", (int)i, how, sqlite3_column_bytes16(s, 0));
      while (wide && *wide) printf(" %04x", *wide++);
      printf(", %s, length %d\n", sqlite3_column_text(s, 1), sqlite3_column_int(s, 2));
      sqlite3_finalize(s);
    }
  }
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
  units(db);
  sqlite3_close(db);
  return 0;
}
