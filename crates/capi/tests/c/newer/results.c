/* What becomes of a function's failure when it also gives results, and of a text that is asked whether it is a number. */
#include "../common.h"

/* Does what the letters of its argument say, one after another. */
static void act(sqlite3_context *cx, int n, sqlite3_value **args) {
  (void)n;
  const char *p = (const char *)sqlite3_value_text(args[0]);
  for (; *p; p++) switch (*p) {
    case 't': sqlite3_result_text(cx, "text", -1, SQLITE_STATIC); break;
    case 'i': sqlite3_result_int(cx, 7); break;
    case 'r': sqlite3_result_double(cx, 1.5); break;
    case 'n': sqlite3_result_null(cx); break;
    case 'z': sqlite3_result_zeroblob(cx, 3); break;
    case 'v': sqlite3_result_value(cx, args[0]); break;
    case 's': sqlite3_result_subtype(cx, 74); break;
    case 'e': sqlite3_result_error(cx, "failed", -1); break;
    case 'B': sqlite3_result_error_toobig(cx); break;
    case 'M': sqlite3_result_error_nomem(cx); break;
    case '0': sqlite3_result_error_code(cx, SQLITE_OK); break;
    case '-': sqlite3_result_error_code(cx, -1); break;
    case '5': sqlite3_result_error_code(cx, SQLITE_BUSY); break;
    case '7': sqlite3_result_error_code(cx, SQLITE_CONSTRAINT_CHECK); break;
  }
}

static void finish(sqlite3_context *cx) {
  sqlite3_result_error(cx, "no sum", -1);
  sqlite3_result_int(cx, 7);
}

static void step(sqlite3_context *cx, int n, sqlite3_value **args) {
  (void)n;
  if (sqlite3_value_int(args[0]) == 2) sqlite3_result_error_code(cx, SQLITE_PERM);
  sqlite3_result_null(cx);
}

static void kinds(sqlite3_context *cx, int n, sqlite3_value **args) {
  (void)n;
  int before = sqlite3_value_type(args[0]), number = sqlite3_value_numeric_type(args[0]), after = sqlite3_value_type(args[0]);
  const char *t = (const char *)sqlite3_value_text(args[0]);
  char *s = sqlite3_mprintf("%d %d %d %s", before, number, after, t ? t : "NULL");
  sqlite3_result_text(cx, s, -1, sqlite3_free);
}

int main(void) {
  sqlite3 *db = db_open(":memory:");
  sqlite3_create_function(db, "act", 1, SQLITE_UTF8 | SQLITE_RESULT_SUBTYPE, 0, act, 0, 0);
  sqlite3_create_function(db, "late", 1, SQLITE_UTF8, 0, 0, step, finish);
  sqlite3_create_function(db, "kinds", 1, SQLITE_UTF8, 0, kinds, 0, 0);
  const char *list[] = {"t0", "i0", "n0", "0", "-", "e0", "en", "ei", "er", "et", "ez", "ev", "es", "ee", "5", "5n", "5i", "5t", "t5", "i5", "n5", "z5", "v5",
                        "i-", "t-", "e5", "5e", "50", "57", "B", "B0", "Bn", "Bt", "eB", "Be", "M", "Mn", "Mt", "M0", "tM", "7", "7n", "ie", "7t0"};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
    char *sql = sqlite3_mprintf("select '%s', quote(act('%s'))", list[i], list[i]);
    run(db, sql);
    sqlite3_free(sql);
  }
  run(db, "select late(1)");
  run(db, "select late(value) from json_each('[1, 2, 3]')");
  run(db, "create table t(a check(act('ei')), b check(act('e0')))");
  run(db, "insert into t values(1, 2)");
  const char *texts[] = {"'12'", "' 3 '", "'1.50'", "'12x'", "''", "'1e400'", "'0x1'", "'9223372036854775808'", "x'31'", "null", "5", "2.0"};
  for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
    char *sql = sqlite3_mprintf("select kinds(%s)", texts[i]);
    run(db, sql);
    sqlite3_free(sql);
  }
  sqlite3_close(db);
  return 0;
}
