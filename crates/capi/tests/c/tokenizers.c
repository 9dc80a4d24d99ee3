/* fts3_tokenizer(): a tokenizer of the program's for tables of FTS3 and FTS4, with words that it passes over and languages; the library's own
   tokenizers called from C and given another name; who may hand pointers in and out. */
#include "common.h"
#include <ctype.h>

typedef struct Tokenizer Tokenizer;
typedef struct Cursor Cursor;
typedef struct Module {
  int version;
  int (*create)(int, const char *const *, Tokenizer **);
  int (*destroy)(Tokenizer *);
  int (*open)(Tokenizer *, const char *, int, Cursor **);
  int (*close)(Cursor *);
  int (*next)(Cursor *, const char **, int *, int *, int *, int *);
  int (*language)(Cursor *, int);
} Module;
struct Tokenizer {
  const Module *module;
  char stop[20];
};
struct Cursor {
  Tokenizer *tokenizer;
  const char *text;
  int n, at, place, language;
  char word[40];
};

static int live;

static int create(int n, const char *const *args, Tokenizer **out) {
  for (int i = 0; i < n; i++) {
    printf("  [argument %s]\n", args[i]);
    if (!strcmp(args[i], "fail")) return SQLITE_ERROR;
  }
  *out = calloc(1, sizeof **out);
  if (n) strncpy((*out)->stop, args[0], 19);
  live++;
  return SQLITE_OK;
}
static int destroy(Tokenizer *t) {
  live--;
  free(t);
  return SQLITE_OK;
}
static int opens(Tokenizer *t, const char *text, int n, Cursor **out) {
  (void)t;
  *out = calloc(1, sizeof **out);
  (*out)->text = text;
  (*out)->n = n < 0 ? (int)strlen(text) : n;
  return SQLITE_OK;
}
static int closes(Cursor *c) {
  free(c);
  return SQLITE_OK;
}
static int next(Cursor *c, const char **token, int *n, int *start, int *end, int *place) {
  while (c->at < c->n) {
    int len = 0;
    while (c->at < c->n && !isalnum((unsigned char)c->text[c->at])) c->at++;
    *start = c->at;
    if (c->language) c->word[len++] = '0' + c->language % 10;
    while (c->at < c->n && isalnum((unsigned char)c->text[c->at])) {
      if (len < 39) c->word[len++] = tolower((unsigned char)c->text[c->at]);
      c->at++;
    }
    if (*start == c->at) break;
    *end = c->at;
    c->word[len] = 0;
    *place = c->place++;
    if (!strcmp(c->word, "error")) return SQLITE_NOMEM;
    if (!strcmp(c->word, c->tokenizer->stop)) continue;
    *token = c->word;
    *n = len;
    return SQLITE_OK;
  }
  return SQLITE_DONE;
}
static int language(Cursor *c, int id) {
  c->language = id;
  return SQLITE_OK;
}
static const Module mine = {1, create, destroy, opens, closes, next, language};

/* Hands a pointer in, or asks for one. */
static const Module *give(sqlite3 *db, const char *name, const Module *m, int bytes) {
  sqlite3_stmt *s;
  const Module *out = 0;
  sqlite3_prepare_v2(db, m ? "select fts3_tokenizer(?, ?)" : "select fts3_tokenizer(?)", -1, &s, 0);
  sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
  if (m) sqlite3_bind_blob(s, 2, &m, bytes, SQLITE_TRANSIENT);
  int rc = sqlite3_step(s);
  if (rc == SQLITE_ROW && sqlite3_column_bytes(s, 0) == sizeof out) memcpy(&out, sqlite3_column_blob(s, 0), sizeof out);
  printf("%s %s: %d, %s\n", m ? "give" : "ask", name, rc, out ? m ? out == m ? "the same" : "another" : "a pointer" : "nothing");
  rc = sqlite3_finalize(s);
  if (rc) printf("  %d %s\n", rc, sqlite3_errmsg(db));
  return out;
}

/* The tokens of a text by a tokenizer of the library's. */
static void show(const Module *m, int n, const char *const *args, const char *text) {
  Tokenizer *t = 0;
  Cursor *c = 0;
  int rc = m->create(n, args, &t);
  printf("made %d, version %d:", rc, m->version);
  if (rc) {
    printf("\n");
    return;
  }
  t->module = m;
  if (m->open(t, text, -1, &c) == SQLITE_OK) {
    const char *token;
    int len, start, end, place;
    c->tokenizer = t;
    while (m->next(c, &token, &len, &start, &end, &place) == SQLITE_OK) printf(" %.*s(%d-%d, %d)", len, token, start, end, place);
    m->close(c);
  }
  printf("\n");
  m->destroy(t);
}

int main(int argc, char **argv) {
  (void)argc;
  sqlite3 *db = db_open(scratch(argv, "tokens.db"));
  /* Whether it is on from the start is the builder's choice. */
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, 0);
  const char *plain[] = {"tokenchars=-", "separators=X"}, *symbols[] = {"ab"};
  show(give(db, "simple", 0, 0), 0, 0, "One two-Three  4x");
  show(give(db, "porter", 0, 0), 0, 0, "running Runs easily");
  show(give(db, "unicode61", 0, 0), 2, plain, "Gr\xc3\xb6\xc3\x9f" "e-xX y");
  show(give(db, "simple", 0, 0), 1, symbols, "a b,c;d");
  give(db, "nosuch", 0, 0);
  give(db, "own", &mine, sizeof(void *));
  give(db, "own", &mine, 3);
  give(db, "own", 0, 0);
  run(db, "select typeof(fts3_tokenizer('simple')), typeof(fts3_tokenizer('own'))");
  run(db, "select fts3_tokenizer('x', x'0000000000000000')");
  run(db, "select fts3_tokenizer('OWN')");
  run(db, "select fts3_tokenizer(null)");
  run(db, "create virtual table a using fts4(t, tokenize=own the)");
  run(db, "insert into a values('The cat and the dog'), ('Cat dog'), ('dog the cat'), ('cat the dog')");
  run(db, "select rowid, offsets(a), snippet(a, '[', ']', '...', -1, 3) from a where a match 'dog'");
  run(db, "select rowid from a where a match '\"cat dog\"'; select rowid from a where a match 'cat near/0 dog'");
  run(db, "select rowid from a where a match 'the'; select rowid from a where a match '\"cat the dog\"'");
  run(db, "insert into a values('an error here')");
  run(db, "select count(*) from a; insert into a(a) values('integrity-check')");
  run(db, "create virtual table l using fts4(t, languageid=lid, tokenize=own)");
  run(db, "insert into l(t, lid) values('one two', 0), ('one two', 5); insert into l(l) values('integrity-check')");
  run(db, "select rowid, offsets(l) from l where l match 'one' and lid = 5; select rowid from l where l match 'one'");
  run(db, "delete from l where lid = 5; select rowid from l where l match 'two' and lid = 5");
  run(db, "create virtual table k using fts3tokenize(own, two)");
  run(db, "select token, start, end, position from k where input = 'One TWO three'");
  run(db, "create virtual table f using fts3(t, tokenize=own fail)");
  run(db, "create virtual table f using fts3(t, tokenize=unknown)");
  sqlite3_close(db);
  printf("live %d\n", live);
  /* Another connection does not know it. */
  db = db_open(scratch(argv, "tokens.db"));
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, 0);
  run(db, "select rowid from a where a match 'dog'");
  give(db, "own", give(db, "porter", 0, 0), sizeof(void *));
  run(db, "select rowid from a where a match 'dog'; create virtual table p using fts3(t, tokenize=own); insert into p values('running')");
  run(db, "select t from p where t match 'run'");
  int on;
  printf("switch %d", sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 1, &on));
  printf(" %d\n", on);
  run(db, "select typeof(fts3_tokenizer('simple')), fts3_tokenizer('other', fts3_tokenizer('simple')) = fts3_tokenizer('simple')");
  run(db, "select fts3_tokenizer('other', 5)");
  run(db, "create virtual table q using fts3(t, tokenize=other); insert into q values('Running'); select t from q where t match 'running'");
  sqlite3_close(db);
  printf("live %d\n", live);
  return 0;
}
