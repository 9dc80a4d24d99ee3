/* Extensions: loaded from a library that is compiled here, and automatic ones; what is refused, and in which words. */
#include "common.h"
#include <stdlib.h>
#include <string.h>

static const char *extension =
    "#include <sqlite3ext.h>\n"
    "SQLITE_EXTENSION_INIT1\n"
    "static void twice(sqlite3_context *c, int n, sqlite3_value **v) {\n"
    "  char *s = sqlite3_mprintf(\"%s-%s\", sqlite3_value_text(v[0]), sqlite3_value_text(v[0]));\n"
    "  sqlite3_result_text(c, s, -1, sqlite3_free);\n"
    "}\n"
    "int sqlite3_twice_init(sqlite3 *db, char **e, const sqlite3_api_routines *api) {\n"
    "  SQLITE_EXTENSION_INIT2(api);\n"
    "  return sqlite3_create_function_v2(db, \"twice\", 1, SQLITE_UTF8, 0, twice, 0, 0, 0);\n"
    "}\n"
    "int refusing(sqlite3 *db, char **e, const sqlite3_api_routines *api) {\n"
    "  SQLITE_EXTENSION_INIT2(api);\n"
    "  *e = sqlite3_mprintf(\"not today, %d\", sqlite3_libversion_number() > 3000000);\n"
    "  return SQLITE_ERROR;\n"
    "}\n"
    "int lasting(sqlite3 *db, char **e, const sqlite3_api_routines *api) {\n"
    "  SQLITE_EXTENSION_INIT2(api);\n"
    "  sqlite3_exec(db, \"create table if not exists made(x)\", 0, 0, 0);\n"
    "  return SQLITE_OK_LOAD_PERMANENTLY;\n"
    "}\n";

static const char *folder;

static void say(const char *what, int rc, char *error) {
  /* Where the library is differs. */
  char *at = error ? strstr(error, folder) : 0;
  if (at) memmove(at, at + strlen(folder), strlen(at + strlen(folder)) + 1);
  printf("%s: %d %s\n", what, rc, error ? error : "NULL");
  sqlite3_free(error);
}

static int ran;
static int automatic(sqlite3 *db, char **e, const void *api) {
  (void)e;
  ran++;
  printf("automatic: api %s\n", api ? "given" : "NULL");
  return sqlite3_exec(db, "create temp table automatic(x)", 0, 0, 0);
}
static int failing(sqlite3 *db, char **e, const void *api) {
  (void)db, (void)api;
  *e = sqlite3_mprintf("no luck");
  return SQLITE_NOTFOUND;
}

int main(int argc, char **argv) {
  (void)argc;
  folder = argv[1];
  char name[1000], command[4000];
  snprintf(name, sizeof name, "%s/twice.c", folder);
  FILE *f = fopen(name, "w");
  fputs(extension, f);
  fclose(f);
  snprintf(command, sizeof command, "cc -shared -fPIC -o %s/libtwice.so %s", folder, name);
  if (system(command)) return 1;
  snprintf(name, sizeof name, "%s/libtwice.so", folder);
  char stem[1000];
  snprintf(stem, sizeof stem, "%s/libtwice", folder);

  sqlite3 *db = db_open(":memory:");
  char *e = 0;
  int rc = sqlite3_load_extension(db, name, 0, &e);
  say("not allowed", rc, e);
  run(db, "select load_extension('x')");
  int on = -1;
  printf("db_config: %d", sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, &on));
  printf(" %d\n", on);
  rc = sqlite3_load_extension(db, name, 0, &e);
  say("by its name", rc, e);
  run(db, "select twice('ab')");
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, &on);
  printf("off: %d\n", on);
  rc = sqlite3_load_extension(db, name, 0, &e);
  say("off again", rc, e);
  printf("enable: %d\n", sqlite3_enable_load_extension(db, 1));
  rc = sqlite3_load_extension(db, stem, 0, &e);
  say("without ending", rc, e);
  rc = sqlite3_load_extension(db, name, "refusing", &e);
  say("refusing", rc, e);
  rc = sqlite3_load_extension(db, name, "nothing", &e);
  say("no such entry", rc, e);
  rc = sqlite3_load_extension(db, name, "nothing", 0);
  say("no error wanted", rc, 0);
  rc = sqlite3_load_extension(db, name, "lasting", &e);
  say("lasting", rc, e);
  run(db, "select name from sqlite_schema");
  rc = sqlite3_load_extension(db, "/no/such/library", 0, &e);
  printf("no such library: %d %s\n", rc, e && *e ? "said" : "not said");
  sqlite3_free(e);
  sqlite3_close(db);

  db = db_open(":memory:");
  sqlite3_enable_load_extension(db, 1);
  snprintf(command, sizeof command, "select load_extension('%s')", name);
  run(db, command);
  run(db, "select twice('cd')");
  snprintf(command, sizeof command, "select load_extension('%s', 'refusing')", name);
  run(db, command);
  sqlite3_enable_load_extension(db, 0);
  run(db, "select load_extension('x')");
  sqlite3_close(db);

  printf("auto: %d\n", sqlite3_auto_extension((void (*)(void))automatic));
  printf("auto again: %d\n", sqlite3_auto_extension((void (*)(void))automatic));
  db = db_open(":memory:");
  run(db, "select name from sqlite_temp_schema");
  sqlite3_close(db);
  printf("cancel: %d\n", sqlite3_cancel_auto_extension((void (*)(void))failing));
  printf("auto: %d\n", sqlite3_auto_extension((void (*)(void))failing));
  rc = sqlite3_open(":memory:", &db);
  printf("open: %d %s\n", rc, sqlite3_errmsg(db));
  sqlite3_close(db);
  printf("cancel: %d\n", sqlite3_cancel_auto_extension((void (*)(void))failing));
  sqlite3_reset_auto_extension();
  db = db_open(":memory:");
  sqlite3_close(db);
  printf("ran %d\n", ran);
  return 0;
}
