CREATE VIRTUAL TABLE t USING fts4(a, b)
INSERT INTO t VALUES ('transaction default models default', 'Non transaction reads'), ('the default transaction', 'these semantics present'), ('single request', 'default data')
SELECT hex(matchinfo(t)) FROM t WHERE t MATCH 'default transaction "these semantics"'
SELECT hex(matchinfo(t, 'ns')) FROM t WHERE t MATCH 'default transaction' ORDER BY docid
SELECT docid, hex(matchinfo(t, 'pcnalsxyb')) FROM t WHERE t MATCH 'default' ORDER BY docid
SELECT hex(matchinfo(t, 'z')) FROM t WHERE t MATCH 'default'
SELECT hex(matchinfo(t, '')), hex(matchinfo(t, NULL)) FROM t WHERE t MATCH 'single'
SELECT hex(matchinfo(t)), offsets(t), snippet(t) FROM t
SELECT offsets(a) FROM t WHERE t MATCH 'default'
SELECT matchinfo(1)
SELECT offsets(1)
SELECT optimize(1)
SELECT snippet(t, '[', ']', '...', 0, 2, 1) FROM t WHERE t MATCH 'single'
SELECT snippet(t, NULL) FROM t WHERE t MATCH 'single'
SELECT snippet(t, '[', ']', '...', 0, 0) FROM t WHERE t MATCH 'single'
SELECT snippet(t, '[', ']', '...', 7) FROM t WHERE t MATCH 'single'
CREATE VIRTUAL TABLE s USING fts4
INSERT INTO s VALUES ('  During 30 Nov-1 Dec, 2-3oC drops. Cool in the upper portion, minimum temperature 14-16oC and cool elsewhere, minimum temperature 17-20oC. Cold to very cold on mountaintops, minimum temperature 6-12oC. Northeasterly winds 15-30 km/hr. After that, temperature increases. Northeasterly winds 15-30 km/hr.  ')
SELECT snippet(s) FROM s WHERE s MATCH 'cold'
SELECT snippet(s, '[', ']', '...') FROM s WHERE s MATCH '"min* tem*"'
SELECT snippet(s, '[', ']', '..', -1, 3) FROM s WHERE s MATCH 'cold during increases hr'
SELECT snippet(s, '[', ']', '..', -1, -3) FROM s WHERE s MATCH 'cold during increases hr'
SELECT snippet(s, '[', ']', '..', 0, 100) FROM s WHERE s MATCH 'cold during increases hr'
SELECT snippet(s, '[', ']', '..', 0, 1) FROM s WHERE s MATCH '"northeasterly winds"'
SELECT offsets(s) FROM s WHERE s MATCH 'cold "northeasterly winds" during'
SELECT optimize(t) FROM t LIMIT 1
SELECT optimize(t) FROM t LIMIT 1
CREATE VIRTUAL TABLE old USING fts3(a)
INSERT INTO old VALUES ('one two one')
SELECT hex(matchinfo(old, 'pcsxyb')) FROM old WHERE old MATCH 'one'
SELECT hex(matchinfo(old, 'n')) FROM old WHERE old MATCH 'one'
SELECT hex(matchinfo(old, 'l')) FROM old WHERE old MATCH 'one'
CREATE TABLE elsewhere(a, b)
CREATE VIRTUAL TABLE x USING fts4(a, b, content=elsewhere)
INSERT INTO x(docid, a, b) VALUES (1, 'one two', 'three'), (2, 'two', 'one')
INSERT INTO elsewhere(rowid, a, b) VALUES (2, 'two', NULL)
SELECT docid, a, b, offsets(x), quote(offsets(x)), quote(snippet(x)), hex(matchinfo(x)) FROM x WHERE x MATCH 'one' ORDER BY docid
SELECT docid, quote(offsets(x)), quote(snippet(x)) FROM x WHERE x MATCH 'two' ORDER BY docid
SELECT docid, quote(offsets(x)), quote(snippet(x)) FROM x ORDER BY docid
