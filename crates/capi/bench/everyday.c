/*
** everyday DIRECTORY: a mixed script in the manner of everyday programs, over the C functions with default settings.
**
** Prints a line for each step: its name, a tab, and the processor time it took in microseconds; and a last line with a sum over
** what the queries answered, so that two libraries can be held against each other. `cargo xtask speed` runs it with stock
** SQLite and with iolite in turn.
*/
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static sqlite3 *db;
static unsigned long long sum;
static unsigned long long seed = 42;
static const char *directory;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, db ? sqlite3_errmsg(db) : "no database");
    exit(1);
}

/* A number below `n`; the same row of numbers in each run. */
static int draw(int n) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((seed >> 33) % (unsigned)n);
}

static const char *words[] = {"river", "stone", "amber", "cloud", "maple", "north", "silver", "garden", "winter", "harbor",
                              "candle", "meadow", "copper", "forest", "lantern", "orchid"};

/* A text of `n` words. */
static const char *text(int n) {
    static char buf[600];
    char *p = buf;
    while (n-- > 0 && p < buf + 580) p += sprintf(p, "%s%d ", words[draw(16)], draw(1000));
    p[-1] = 0;
    return buf;
}

static long long now(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000ll + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static void run(const char *sql) {
    if (sqlite3_exec(db, sql, 0, 0, 0) != SQLITE_OK) fail(sql);
}

static sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(db, sql, -1, &s, 0) != SQLITE_OK) fail(sql);
    return s;
}

/* Runs a statement to its end, looks at each value, and makes it ready again. */
static void finish(sqlite3_stmt *s) {
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        int n = sqlite3_column_count(s);
        for (int i = 0; i < n; i++) {
            switch (sqlite3_column_type(s, i)) {
            case SQLITE_INTEGER: sum = sum * 31 + (unsigned long long)sqlite3_column_int64(s, i); break;
            case SQLITE_FLOAT: sum = sum * 31 + (unsigned long long)(sqlite3_column_double(s, i) * 16); break;
            case SQLITE_NULL: sum = sum * 31 + 7; break;
            default: {
                const unsigned char *p = sqlite3_column_blob(s, i);
                int k = sqlite3_column_bytes(s, i);
                sum = sum * 31 + (unsigned)k + (k ? p[0] + p[k - 1] : 0);
            }
            }
        }
    }
    if (rc != SQLITE_DONE) fail(sqlite3_sql(s));
    sqlite3_reset(s);
}

static void query(const char *sql) {
    sqlite3_stmt *s = prepare(sql);
    finish(s);
    sqlite3_finalize(s);
}

/* As [query], `n` times with two drawn parameters: one below `most`, and that one plus `width`. */
static void repeat(int n, const char *sql, int most, int width) {
    sqlite3_stmt *s = prepare(sql);
    int parameters = sqlite3_bind_parameter_count(s);
    for (int i = 0; i < n; i++) {
        int at = draw(most);
        sqlite3_bind_int(s, 1, at);
        if (parameters > 1) sqlite3_bind_int(s, 2, at + width);
        finish(s);
    }
    sqlite3_finalize(s);
}

static void open_database(void) {
    char path[500];
    snprintf(path, sizeof path, "%s/everyday.db", directory);
    if (sqlite3_open(path, &db) != SQLITE_OK) fail(path);
}

#define STEP(name) for (long long begun = now(), once = 1; once; once = 0, printf("%s\t%lld\n", name, now() - begun))

/* Rows of a table (id, number, text), in the given order of ids. */
static void fill(const char *table, int n, int random, int words) {
    char sql[200];
    snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?1,?2,?3)", table);
    run("BEGIN");
    sqlite3_stmt *s = prepare(sql);
    for (int i = 0; i < n; i++) {
        /* 7,919 has no factor in common with the numbers of rows here. */
        sqlite3_bind_int64(s, 1, random ? (long long)i * 7919 % n : i);
        sqlite3_bind_int(s, 2, draw(n));
        sqlite3_bind_text(s, 3, text(words), -1, SQLITE_TRANSIENT);
        finish(s);
    }
    sqlite3_finalize(s);
    run("COMMIT");
}

static void tables(void) {
    STEP("tables and indexes made") {
        run("CREATE TABLE plain(a INTEGER, b INTEGER, c TEXT)");
        run("CREATE TABLE keyed(a INTEGER PRIMARY KEY, b INTEGER, c TEXT)");
        run("CREATE TABLE indexed(a INTEGER, b INTEGER, c TEXT)");
        run("CREATE INDEX indexed_b ON indexed(b)");
        run("CREATE INDEX indexed_c ON indexed(c)");
        run("CREATE TABLE named(a TEXT PRIMARY KEY, b INTEGER, c TEXT)");
        run("CREATE TABLE worded(a TEXT PRIMARY KEY, b INTEGER, c TEXT) WITHOUT ROWID");
    }
    STEP("insert 40,000 rows, no index") fill("plain", 40000, 0, 3);
    STEP("insert 40,000 rows by key, in order") fill("keyed", 40000, 0, 3);
    STEP("insert 20,000 rows, two indexes") fill("indexed", 20000, 0, 2);
    run("CREATE TABLE mixed(a INTEGER PRIMARY KEY, b INTEGER, c TEXT)");
    STEP("insert 20,000 rows by key, mixed") fill("mixed", 20000, 1, 3);
    STEP("insert 20,000 rows by text key") fill("named", 20000, 1, 2);
    STEP("insert 20,000 rows by text key, WITHOUT ROWID") fill("worded", 20000, 1, 2);
    STEP("insert 2,000 rows by their texts") {
        run("BEGIN");
        for (int i = 0; i < 2000; i++) {
            char sql[700];
            snprintf(sql, sizeof sql, "INSERT INTO plain VALUES(%d,%d,'%s')", 40000 + i, draw(40000), text(3));
            run(sql);
        }
        run("COMMIT");
    }
    STEP("insert 100 rows, a transaction each") {
        for (int i = 0; i < 100; i++) repeat(1, "INSERT INTO keyed(b,c) VALUES(?1,'one row')", 40000, 0);
    }
    STEP("insert 300 rows of 34 columns") {
        run("CREATE TABLE wide(c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24,c25,c26,c27,c28,c29,c30,"
            "c31,c32,c33)");
        sqlite3_stmt *s = prepare("INSERT INTO wide VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
        run("BEGIN");
        for (int i = 0; i < 6000; i++) {
            for (int k = 1; k <= 34; k++) {
                if (k % 3 == 0) sqlite3_bind_text(s, k, words[k % 16], -1, SQLITE_STATIC);
                else if (k % 3 == 1) sqlite3_bind_int(s, k, i * k);
                else sqlite3_bind_text(s, k, words[i % 16], -1, SQLITE_TRANSIENT);
            }
            finish(s);
        }
        run("COMMIT");
        sqlite3_finalize(s);
    }
    STEP("CREATE INDEX on numbers") run("CREATE INDEX plain_b ON plain(b)");
    STEP("CREATE INDEX on texts") run("CREATE INDEX plain_c ON plain(c)");
    STEP("CREATE INDEX on two columns") run("CREATE INDEX mixed_bc ON mixed(b, c)");
}

static void reads(void) {
    STEP("20,000 rows by key") repeat(20000, "SELECT * FROM keyed WHERE a=?1", 40000, 0);
    STEP("20,000 rows by index") repeat(20000, "SELECT a, c FROM plain WHERE b=?1", 40000, 0);
    STEP("20,000 rows by text key") repeat(20000, "SELECT * FROM named WHERE a=CAST(?1 AS TEXT)", 20000, 0);
    STEP("200 ranges of keys") repeat(200, "SELECT count(*), avg(b) FROM keyed WHERE a BETWEEN ?1 AND ?2", 30000, 1000);
    STEP("200 ranges of an index") repeat(200, "SELECT count(*), sum(a), max(c) FROM plain WHERE b BETWEEN ?1 AND ?2", 30000, 300);
    STEP("100 ranges of rows") repeat(100, "SELECT * FROM keyed WHERE a BETWEEN ?1 AND ?2", 30000, 1000);
    STEP("10 scans with a condition") repeat(10, "SELECT count(*), avg(a) FROM plain WHERE b+0 BETWEEN ?1 AND ?2", 30000, 3000);
    STEP("10 scans with LIKE") for (int i = 0; i < 10; i++) query("SELECT count(*), min(a) FROM plain WHERE c LIKE '%silver7%'");
    STEP("20 LIKEs by an index") {
        run("CREATE INDEX plain_nocase ON plain(c COLLATE NOCASE)");
        for (int i = 0; i < 20; i++) query("SELECT count(*), sum(a) FROM plain WHERE c LIKE 'river1%'");
    }
    STEP("ORDER BY without an index") for (int i = 0; i < 3; i++) query("SELECT a, b, c FROM keyed ORDER BY c, b");
    STEP("ORDER BY with LIMIT") for (int i = 0; i < 10; i++) query("SELECT a, c FROM keyed ORDER BY b, a LIMIT 10");
    STEP("ORDER BY an index") query("SELECT a, b FROM plain ORDER BY b");
    STEP("GROUP BY numbers") query("SELECT b%100 AS g, count(*), sum(a), max(c) FROM keyed GROUP BY g ORDER BY g");
    STEP("GROUP BY texts") query("SELECT substr(c,1,6) AS g, count(*) FROM keyed GROUP BY g HAVING count(*)>3 ORDER BY 2 DESC, 1");
    STEP("DISTINCT") for (int i = 0; i < 3; i++) query("SELECT DISTINCT b FROM keyed");
    STEP("DISTINCT of texts") query("SELECT count(*) FROM (SELECT DISTINCT substr(c,1,9) FROM keyed)");
    STEP("UNION") query("SELECT b FROM keyed UNION SELECT b FROM plain");
    STEP("EXCEPT") query("SELECT b FROM keyed EXCEPT SELECT b FROM plain");
    STEP("INTERSECT") query("SELECT b FROM keyed INTERSECT SELECT b FROM plain");
    STEP("a window") query("SELECT a, sum(b) OVER (PARTITION BY b%50 ORDER BY a) FROM mixed");
    STEP("IN lists and subqueries") {
        for (int i = 0; i < 10; i++) query("SELECT count(*) FROM plain WHERE b IN (SELECT a FROM mixed WHERE b<2000)");
        repeat(2000, "SELECT count(*) FROM keyed WHERE a IN (?1,?2,7,9,1000,20000)", 40000, 5);
    }
    STEP("a nested query for each row") query("SELECT sum(a), count((SELECT 1 FROM plain WHERE plain.b=mixed.b AND plain.a<20000)) FROM mixed");
}

static void joins(void) {
    STEP("four tables made") {
        run("CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city INTEGER);"
            "CREATE TABLE city(id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, day TEXT);"
            "CREATE TABLE item(id INTEGER PRIMARY KEY, orders INTEGER, product TEXT, price REAL);"
            "CREATE INDEX orders_customer ON orders(customer); CREATE INDEX item_orders ON item(orders); BEGIN");
        repeat(100, "INSERT INTO city(name) VALUES('city '||?1)", 1000, 0);
        repeat(2000, "INSERT INTO customer(name,city) VALUES('customer '||?1, ?1%100+1)", 100000, 0);
        repeat(8000, "INSERT INTO orders(customer,day) VALUES(?1, date('2024-01-01', '+'||(?1%365)||' days'))", 2000, 0);
        repeat(24000, "INSERT INTO item(orders,product,price) VALUES(?1%8000+1, 'product '||(?1%50), ?1/7.0)", 100000, 0);
        run("COMMIT");
    }
    STEP("300 joins of four tables, few rows") {
        repeat(300,
               "SELECT c.name, o.day, i.product, t.name FROM customer c JOIN orders o ON o.customer=c.id JOIN item i ON i.orders=o.id "
               "JOIN city t ON t.id=c.city WHERE c.id=?1",
               2000, 0);
    }
    STEP("a join of four tables, all rows") {
        query("SELECT t.name, count(*), sum(i.price) FROM customer c JOIN orders o ON o.customer=c.id JOIN item i ON i.orders=o.id "
              "JOIN city t ON t.id=c.city GROUP BY t.name ORDER BY 3 DESC, 1");
    }
    STEP("LEFT JOIN") query("SELECT c.id, count(o.id) FROM customer c LEFT JOIN orders o ON o.customer=c.id AND o.day>'2024-06' GROUP BY c.id");
    STEP("a join without an index") query("SELECT count(*) FROM mixed JOIN wide ON wide.c3=mixed.b");
}

static void recursion(void) {
    STEP("recursive CTE of numbers") query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<50000) SELECT count(*), sum(i) FROM n");
    STEP("recursive CTE of texts") {
        query("WITH RECURSIVE n(i,s) AS (SELECT 1,'' UNION ALL SELECT i+1, substr(s||char(65+i%26),-40) FROM n WHERE i<30000) "
              "SELECT count(*), max(s), sum(length(s)) FROM n");
    }
    STEP("CTE used twice") {
        query("WITH t AS (SELECT b%200 AS g, count(*) AS n FROM keyed GROUP BY 1) SELECT count(*) FROM t x JOIN t y ON x.g=y.g+1 WHERE x.n>=y.n");
    }
}

static void json(void) {
    STEP("JSON rows made") {
        run("CREATE TABLE doc(id INTEGER PRIMARY KEY, j TEXT); CREATE TABLE bin(id INTEGER PRIMARY KEY, j BLOB); BEGIN");
        repeat(6000, "INSERT INTO doc(j) VALUES(json_object('name','n'||?1,'size',?1,'tags',json_array('a',?1%10,'c'),'in',json_object('x',?1)))", 5000, 0);
        run("INSERT INTO bin SELECT id, jsonb(j) FROM doc; COMMIT");
    }
    STEP("JSON values read") query("SELECT sum(j->>'$.size'), count(j->'$.in'), max(j->>'$.tags[1]') FROM doc");
    STEP("JSONB values read") query("SELECT sum(j->>'$.size'), count(j->'$.in'), max(j->>'$.tags[1]') FROM bin");
    STEP("JSON edited") run("UPDATE doc SET j=json_set(j,'$.size',id,'$.new','x')");
    STEP("JSONB edited") run("UPDATE bin SET j=jsonb_set(j,'$.size',id,'$.new','x')");
    STEP("JSON patched") run("UPDATE doc SET j=json_patch(j,'{\"in\":{\"y\":2},\"tags\":null}') WHERE id%2");
    STEP("index on JSON made") run("CREATE INDEX doc_size ON doc(j->>'$.size')");
    STEP("2,000 rows by an index on JSON") repeat(2000, "SELECT id FROM doc WHERE j->>'$.size'=?1", 6000, 0);
    STEP("rows under an index on JSON edited") run("UPDATE doc SET j=json_set(j,'$.size',id+1) WHERE id<2000");
    STEP("json_each") query("SELECT count(*), sum(e.value) FROM bin, json_each(bin.j,'$.tags') e WHERE e.type='integer'");
    STEP("json_group_array") query("SELECT id%20, length(json_group_array(j->>'name')) FROM doc GROUP BY 1");
}

static void writes(void) {
    STEP("UPDATE by 200 ranges of an index") {
        run("BEGIN");
        repeat(200, "UPDATE plain SET a=a+1 WHERE b BETWEEN ?1 AND ?2", 30000, 100);
        run("COMMIT");
    }
    STEP("UPDATE of 10,000 rows by key") {
        run("BEGIN");
        repeat(10000, "UPDATE keyed SET b=b+1 WHERE a=?1", 40000, 0);
        run("COMMIT");
    }
    STEP("UPDATE of 5,000 rows with an index") {
        run("BEGIN");
        repeat(5000, "UPDATE indexed SET b=b+1000 WHERE b=?1", 20000, 0);
        run("COMMIT");
    }
    STEP("UPDATE of texts by key") {
        run("BEGIN");
        repeat(5000, "UPDATE mixed SET c='changed '||?1 WHERE a=?1", 20000, 0);
        run("COMMIT");
    }
    STEP("UPDATE of all rows") run("UPDATE mixed SET b=b+1");
    STEP("UPDATE 100 rows, a transaction each") for (int i = 0; i < 100; i++) repeat(1, "UPDATE keyed SET b=?2 WHERE a=?1", 40000, 3);
    STEP("INSERT ... SELECT into a filled table") run("INSERT INTO plain SELECT a+100000, b, c FROM mixed");
    STEP("INSERT ... SELECT, sorted") run("INSERT INTO indexed SELECT a, b, c FROM mixed ORDER BY c");
    STEP("REPLACE on integer keys") {
        run("BEGIN");
        repeat(10000, "REPLACE INTO keyed VALUES(?1,?2,'replaced')", 60000, 5);
        run("COMMIT");
    }
    STEP("REPLACE on text keys") {
        run("BEGIN");
        repeat(10000, "REPLACE INTO named VALUES(CAST(?1 AS TEXT),?2,'replaced')", 30000, 5);
        run("COMMIT");
    }
    STEP("UPSERT") {
        run("BEGIN");
        repeat(10000, "INSERT INTO named VALUES(CAST(?1 AS TEXT),?2,'new') ON CONFLICT(a) DO UPDATE SET b=b+excluded.b", 40000, 5);
        run("COMMIT");
    }
    STEP("triggers") {
        run("CREATE TABLE log(what TEXT, at INTEGER);"
            "CREATE TRIGGER keyed_log AFTER UPDATE OF b ON keyed WHEN new.b%2 BEGIN INSERT INTO log VALUES('changed', new.a); END; BEGIN");
        repeat(8000, "UPDATE keyed SET b=b+1 WHERE a=?1", 40000, 0);
        run("COMMIT; DROP TRIGGER keyed_log");
    }
    STEP("foreign keys") {
        run("PRAGMA foreign_keys=ON; CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES mixed(a) ON DELETE CASCADE);"
            "CREATE INDEX child_parent ON child(parent); BEGIN");
        repeat(8000, "INSERT INTO child(parent) VALUES(?1)", 20000, 0);
        repeat(500, "DELETE FROM mixed WHERE a=?1", 20000, 0);
        run("COMMIT; PRAGMA foreign_keys=OFF");
    }
    STEP("ANALYZE") run("ANALYZE");
    STEP("DELETE by 100 ranges of an index") {
        run("BEGIN");
        repeat(100, "DELETE FROM plain WHERE b BETWEEN ?1 AND ?2", 30000, 40);
        run("COMMIT");
    }
    STEP("DELETE of 5,000 rows by key") {
        run("BEGIN");
        repeat(5000, "DELETE FROM keyed WHERE a=?1", 40000, 0);
        run("COMMIT");
    }
    STEP("DELETE of 3,000 rows by text key") {
        run("BEGIN");
        repeat(3000, "DELETE FROM worded WHERE a=CAST(?1 AS TEXT)", 20000, 0);
        run("COMMIT");
    }
    STEP("DELETE of half the rows") run("DELETE FROM indexed WHERE rowid%2");
    STEP("savepoints") {
        run("BEGIN");
        for (int i = 0; i < 1000; i++) {
            run("SAVEPOINT s");
            repeat(2, "UPDATE keyed SET b=b+1 WHERE a=?1", 40000, 0);
            run(i % 3 ? "RELEASE s" : "ROLLBACK TO s; RELEASE s");
        }
        run("COMMIT");
    }
    STEP("integrity_check") query("PRAGMA integrity_check");
    STEP("VACUUM") run("VACUUM");
    STEP("DELETE of all rows") run("DELETE FROM indexed");
    STEP("DROP TABLE") run("DROP TABLE indexed; DROP TABLE mixed");
}

static void programs(void) {
    STEP("3,000 statements prepared") {
        for (int i = 0; i < 1000; i++) {
            char sql[300];
            snprintf(sql, sizeof sql, "SELECT a, b, c FROM keyed WHERE a=%d AND b>%d", i, i);
            sqlite3_finalize(prepare(sql));
            snprintf(sql, sizeof sql, "SELECT c.name, o.day FROM customer c JOIN orders o ON o.customer=c.id WHERE c.id=%d ORDER BY o.day", i);
            sqlite3_finalize(prepare(sql));
            snprintf(sql, sizeof sql, "UPDATE plain SET a=%d WHERE b=%d", i, i);
            sqlite3_finalize(prepare(sql));
        }
    }
    STEP("open, one statement, close, 300 times") {
        sqlite3_close(db);
        for (int i = 0; i < 300; i++) {
            open_database();
            repeat(1, "SELECT * FROM customer WHERE id=?1", 2000, 0);
            sqlite3_close(db);
        }
        open_database();
    }
    STEP("functions of texts") {
        query("SELECT sum(length(upper(c))), count(replace(c,'river','lake')), max(trim(substr(c,3,9))||'x'), sum(instr(c,'stone')) FROM keyed");
    }
    STEP("dates") query("SELECT max(strftime('%Y-%m',day)), sum(julianday(day)), count(date(day,'+1 month')) FROM orders");
    STEP("printf") query("SELECT max(printf('%05d %s %.2f',a,c,b/3.0)) FROM keyed");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: everyday DIRECTORY\n");
        return 2;
    }
    directory = argv[1];
    open_database();
    tables();
    reads();
    joins();
    recursion();
    json();
    writes();
    programs();
    sqlite3_close(db);
    printf("sum\t%llu\n", sum);
    return 0;
}
