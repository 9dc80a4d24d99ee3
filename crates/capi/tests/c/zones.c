/* Local time in several zones, also in years that the system's tables may not have. */
#include "common.h"
#include <time.h>

static void show(sqlite3 *db, const char *when) {
  static const char *calls[] = {"datetime(?1,'localtime')", "datetime(?1,'utc')", "printf('%.7f',julianday(?1,'localtime'))",
    "unixepoch(?1,'utc')", "datetime(?1,'utc','localtime')",
    "strftime('%Y-%m-%d %H:%M:%f',?1,'localtime','start of day','+90 minutes')"};
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
    char *sql = sqlite3_mprintf("SELECT %s", calls[i]);
    sqlite3_stmt *s = 0;
    sqlite3_prepare_v2(db, sql, -1, &s, 0);
    sqlite3_bind_text(s, 1, when, -1, SQLITE_STATIC);
    sqlite3_step(s);
    const unsigned char *t = sqlite3_column_text(s, 0);
    printf("  %s %s = %s\n", sql, when, t ? (const char *)t : "NULL");
    sqlite3_finalize(s);
    sqlite3_free(sql);
  }
}

int main(void) {
  static const char *zones[] = {"UTC", "America/New_York", "EST5EDT,M3.2.0,M11.1.0", "Asia/Kolkata", "XYZ-3:30"};
  static const char *times[] = {"2024-07-01 12:00:00", "2024-01-01 00:30:00", "2024-03-10 01:59:59", "2024-03-10 02:30:00", "2024-03-10 03:00:00",
    "2024-11-03 01:30:00", "1969-12-31 23:59:59", "1970-01-01 00:00:00", "1900-07-04 12:00:00", "2038-01-18 12:00:00",
    "2040-02-29 12:00:00", "2096-07-01 12:00:00", "9999-12-31 12:00:00", "0000-01-01 12:00:00", "-4000-06-01 12:00:00",
    "2024-07-01 12:00:00Z", "2024-07-01 12:00:00+02:00", "2024-07-01 12:00:00.250"};
  sqlite3 *db = db_open(":memory:");
  for (unsigned z = 0; z < sizeof zones / sizeof *zones; z++) {
    setenv("TZ", zones[z], 1);
    tzset();
    printf("%s\n", zones[z]);
    for (unsigned i = 0; i < sizeof times / sizeof *times; i++) show(db, times[i]);
  }
  sqlite3_close(db);
  return 0;
}
