/* Tokenizers and auxiliary functions in C for fts5, by fts5_api. */
#include "../common.h"
#include <ctype.h>

static fts5_api *api_of(sqlite3 *db) {
  fts5_api *api = 0;
  sqlite3_stmt *s = 0;
  if (sqlite3_prepare(db, "SELECT fts5(?1)", -1, &s, 0) == SQLITE_OK) {
    sqlite3_bind_pointer(s, 1, (void *)&api, "fts5_api_ptr", NULL);
    printf("step %d", sqlite3_step(s));
    printf(" type %d\n", sqlite3_column_type(s, 0));
  }
  sqlite3_finalize(s);
  return api;
}

/* A tokenizer of words between blanks, in lower case; with the argument "twice", "x" before each as a synonym. */
typedef struct { int twice; } Words;
static int made, deleted, destroyed;
static int w_create(void *user, const char **args, int n, Fts5Tokenizer **out) {
  if (n > 0 && !strcmp(args[0], "wrong")) return SQLITE_ERROR;
  Words *w = calloc(1, sizeof *w);
  w->twice = n > 0 && !strcmp(args[0], "twice");
  printf("create %s:", (const char *)user);
  for (int i = 0; i < n; i++) printf(" [%s]", args[i]);
  printf("\n");
  made++;
  *out = (Fts5Tokenizer *)w;
  return SQLITE_OK;
}
static void w_delete(Fts5Tokenizer *t) { deleted++; free(t); }
static int words(Words *w, void *cx, const char *text, int n, int (*take)(void *, int, const char *, int, int, int)) {
  char token[64];
  int at = 0, rc = SQLITE_OK;
  while (rc == SQLITE_OK && at < n) {
    while (at < n && text[at] == ' ') at++;
    int from = at;
    while (at < n && text[at] != ' ') at++;
    if (at == from) break;
    int len = at - from < 60 ? at - from : 60;
    for (int i = 0; i < len; i++) token[i] = tolower(text[from + i]);
    if (len == 4 && !memcmp(token, "fail", 4)) return SQLITE_IOERR;
    rc = take(cx, 0, token, len, from, at);
    if (rc == SQLITE_OK && w->twice) {
      memmove(token + 1, token, len);
      token[0] = 'x';
      rc = take(cx, FTS5_TOKEN_COLOCATED, token, len + 1, from, at);
    }
  }
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
static int w_tokenize(Fts5Tokenizer *t, void *cx, int flags, const char *text, int n, int (*take)(void *, int, const char *, int, int, int)) {
  (void)flags;
  return words((Words *)t, cx, text, n, take);
}
static int w_tokenize_v2(Fts5Tokenizer *t, void *cx, int flags, const char *text, int n, const char *locale, int nl, int (*take)(void *, int, const char *, int, int, int)) {
  printf("tokenize %d '%.*s' locale '%.*s'\n", flags, n, text, nl, locale ? locale : "");
  return words((Words *)t, cx, text, n, take);
}
static void w_destroy(void *user) { destroyed++; printf("destroy %s\n", (const char *)user); }

static int print_token(void *cx, int flags, const char *token, int n, int from, int to) {
  printf(" %d:%.*s@%d-%d", flags, n, token, from, to);
  int *left = cx;
  return left && --*left == 0 ? SQLITE_DONE : SQLITE_OK;
}

static int each(const Fts5ExtensionApi *x, Fts5Context *cx, void *user) {
  int n = 0, *left = user;
  x->xInstCount(cx, &n);
  printf("   row %lld has %d, %d phrases\n", x->xRowid(cx), n, x->xPhraseCount(cx));
  return --*left == 0 ? SQLITE_DONE : SQLITE_OK;
}

static void kept(void *p) { printf("  auxiliary data %s goes\n", (char *)p); }

/* Shows all that there is to be seen of a row. */
static void show(const Fts5ExtensionApi *x, Fts5Context *cx, sqlite3_context *out, int n, sqlite3_value **args) {
  sqlite3_int64 total = -1;
  int size = -1, count = -1, rc;
  printf("  version %d user %s row %lld, arguments %d, columns %d\n", x->iVersion, (char *)x->xUserData(cx), x->xRowid(cx), n, x->xColumnCount(cx));
  rc = x->xRowCount(cx, &total);
  printf("  rows %d %lld", rc, total);
  for (int i = -1; i <= x->xColumnCount(cx); i++) {
    const char *text = 0, *locale = 0;
    int len = -1, ll = -1;
    total = size = -1;
    rc = x->xColumnTotalSize(cx, i, &total);
    printf("; %d: total %d %lld", i, rc, rc ? 0 : total);
    rc = x->xColumnSize(cx, i, &size);
    printf(" size %d %d", rc, rc ? 0 : size);
    if (i >= 0) {
      rc = x->xColumnText(cx, i, &text, &len);
      printf(" text %d '%.*s'", rc, rc ? 0 : len, text ? text : "");
      if (x->iVersion >= 4) {
        rc = x->xColumnLocale(cx, i, &locale, &ll);
        printf(" locale %d '%.*s'", rc, rc ? 0 : ll, locale ? locale : "");
      }
    }
  }
  printf("\n");
  for (int p = -1; p <= x->xPhraseCount(cx) && x->xPhraseCount(cx); p++) {
    Fts5PhraseIter it;
    int column = -1, offset = -1;
    printf("  phrase %d size %d", p, x->xPhraseSize(cx, p));
    if (p >= 0 && p < x->xPhraseCount(cx)) {
      for (x->xPhraseFirst(cx, p, &it, &column, &offset); column >= 0; x->xPhraseNext(cx, &it, &column, &offset)) printf(" %d.%d", column, offset);
      printf(" columns");
      for (x->xPhraseFirstColumn(cx, p, &it, &column); column >= 0; x->xPhraseNextColumn(cx, &it, &column)) printf(" %d", column);
      for (int t = -1; t <= x->xPhraseSize(cx, p); t++) {
        const char *token = 0;
        int len = 0;
        rc = x->xQueryToken(cx, p, t, &token, &len);
        printf(" token %d '%.*s'", rc, rc ? 0 : len, token ? token : "");
      }
    }
    printf("\n");
  }
  rc = x->xInstCount(cx, &count);
  printf("  instances %d %d", rc, count);
  for (int i = -1; i <= count; i++) {
    int phrase = -1, column = -1, offset = -1, len = 0;
    const char *token = 0;
    rc = x->xInst(cx, i, &phrase, &column, &offset);
    printf("; %d %d %d %d", rc, rc ? 0 : phrase, rc ? 0 : column, rc ? 0 : offset);
    for (int t = -1; i >= 0 && t < 3; t++) {
      rc = x->xInstToken(cx, i, t, &token, &len);
      printf(" %d '%.*s'", rc, rc ? 0 : len, token ? token : "");
    }
  }
  printf("\n");
  int left = 10;
  rc = x->xQueryPhrase(cx, 0, &left, each);
  left = 1;
  printf("  query %d", rc);
  rc = x->xQueryPhrase(cx, 0, &left, each);
  printf(" %d", rc);
  printf(" %d\n", x->xQueryPhrase(cx, 99, &left, each));
  char *data = x->xGetAuxdata(cx, 0);
  printf("  auxiliary data %s\n", data ? data : "none");
  if (!data) printf("  set %d\n", x->xSetAuxdata(cx, "first", kept));
  printf("  tokens");
  left = 2;
  rc = x->xTokenize(cx, "Some Words here", 15, &left, print_token);
  printf(" rc %d", rc);
  if (x->iVersion >= 4) rc = x->xTokenize_v2(cx, "More words", 10, "de", 2, 0, print_token);
  printf(" rc %d\n", rc);
  sqlite3_result_int64(out, x->xRowid(cx) * 10 + n);
}

static void data(const Fts5ExtensionApi *x, Fts5Context *cx, sqlite3_context *out, int n, sqlite3_value **args) {
  (void)n;
  (void)args;
  char *old = x->xGetAuxdata(cx, 1), *again = x->xGetAuxdata(cx, 0);
  sqlite3_result_text(out, sqlite3_mprintf("%s %s", old ? old : "none", again ? again : "none"), -1, sqlite3_free);
  x->xSetAuxdata(cx, x->xRowid(cx) == 1 ? "one" : "more", kept);
  if (x->xRowid(cx) == 2) x->xSetAuxdata(cx, "two", kept);
  if (x->xRowid(cx) == 4) sqlite3_result_error(out, "no to four", -1);
}

int main(int argc, char **argv) {
  sqlite3 *db = db_open(":memory:");
  fts5_api *api = api_of(db);
  printf("version %d same %d\n", api->iVersion, api_of(db) == api);
  run(db, "select fts5(null); select fts5(1)");
  run(db, "select fts5()");

  fts5_tokenizer plain = {w_create, w_delete, w_tokenize};
  fts5_tokenizer_v2 local = {2, w_create, w_delete, w_tokenize_v2};
  printf("create %d", api->xCreateTokenizer(api, "words", "plain", &plain, w_destroy));
  printf(" %d\n", api->xCreateTokenizer_v2(api, "local", "local", &local, w_destroy));
  run(db, "create virtual table t using fts5(a, b, tokenize='words twice more')");
  run(db, "create virtual table wrong using fts5(a, tokenize='words wrong')");
  run(db, "create virtual table wrong using fts5(a, tokenize='nosuch')");
  run(db, "insert into t values('One two three', 'two four'), ('five TWO', 'six'), ('seven', 'two three two three'), ('nothing', '')");
  run(db, "insert into t values('this will fail now', 'x')");
  run(db, "select rowid, a from t('two'); select rowid from t('xtwo'); select rowid from t('b:two three'); select rowid from t('thr*')");
  run(db, "select rowid from t('fail')");

  printf("function %d", api->xCreateFunction(api, "show", "shown", show, w_destroy));
  printf(" %d\n", api->xCreateFunction(api, "data", 0, data, 0));
  run(db, "select rowid, show(t, 1, 'x') from t('two AND thr*') limit 2");
  run(db, "select rowid, show(t) from t('\"two three\" OR five')");
  run(db, "select data(t) from t('two'); select data(t) from t");
  run(db, "select show(1)");
  run(db, "select show(t) from t where rowid = 1");
  run(db, "insert into t(t, rank) values('rank', 'data(1)'); select rowid, rank from t('three')");

  run(db, "create virtual table l using fts5(a, tokenize='local', locale=1)");
  run(db, "insert into l values(fts5_locale('en_US', 'Hello there')), ('plain words')");
  run(db, "select rowid from l('hello'); select rowid from l(fts5_locale('xx', 'words')); select rowid from l('wor*')");
  run(db, "select show(l) from l('hello OR words')");

  /* Ours, called by C, and one that wraps another. */
  void *user = 0;
  fts5_tokenizer found;
  fts5_tokenizer_v2 *found2 = 0;
  const char *args[] = {"remove_diacritics", "2", "tokenchars", "-"};
  Fts5Tokenizer *t = 0;
  const char *names[] = {"unicode61", "ascii", "porter", "trigram", "words", "local", "nosuch"};
  for (int i = 0; i < 7; i++) {
    int rc = api->xFindTokenizer(api, names[i], &user, &found);
    printf("find %s %d:", names[i], rc);
    if (rc == SQLITE_OK) {
      rc = found.xCreate(user, args, 0, &t);
      printf(" created %d", rc);
      rc = found.xTokenize(t, 0, FTS5_TOKENIZE_DOCUMENT, "Running D\xc3\xb6gs-and cats", 21, print_token);
      printf(" rc %d", rc);
      found.xDelete(t);
    }
    printf("\n");
    rc = api->xFindTokenizer_v2(api, names[i], &user, &found2);
    printf("find %s %d:", names[i], rc);
    if (rc == SQLITE_OK) {
      int left = 2;
      rc = found2->xCreate(user, args, i == 0 ? 4 : 0, &t);
      printf(" created %d", rc);
      rc = found2->xTokenize(t, &left, FTS5_TOKENIZE_QUERY, "Running D\xc3\xb6gs-and cats", 21, "en", 2, print_token);
      printf(" rc %d", rc == SQLITE_DONE ? SQLITE_OK : rc);
      found2->xDelete(t);
    }
    printf("\n");
  }
  printf("wrong %d\n", api->xFindTokenizer(api, "unicode61", &user, &found) || found.xCreate(user, args + 2, 1, &t));

  /* Replaced, and gone with the connection. */
  printf("replace %d\n", api->xCreateTokenizer(api, "WORDS", "other", &plain, w_destroy));
  run(db, "create virtual table u using fts5(a, tokenize='porter words'); insert into u values('Running dogs'); select rowid from u('run')");
  printf("close %d\n", sqlite3_close(db));
  printf("made %d deleted %d destroyed %d\n", made, deleted, destroyed);
  (void)argc;
  (void)argv;
  return 0;
}
