CREATE VIRTUAL TABLE s USING fts3tokenize
SELECT rowid, * FROM s WHERE input = 'This is, a Test_case x86 Ärger'
CREATE VIRTUAL TABLE p USING fts3tokenize(porter)
SELECT token, start, end, position FROM p WHERE input = 'running quickly through relational databases _foo_bar x123456789y abcdefghijklmnopqrstuvwxyz'
SELECT * FROM p
SELECT * FROM p WHERE input = NULL
CREATE VIRTUAL TABLE u USING fts3tokenize('unicode61', 'remove_diacritics=0', 'tokenchars=-')
SELECT token, start, end FROM u WHERE input = 'Ärger foo-bar ÉTÉ'
CREATE VIRTUAL TABLE v USING fts3tokenize(unicode61, "separators=x", "remove_diacritics=2")
SELECT token, start, end FROM v WHERE input = 'Ärger axb ế ÉTÉ ß Σς 日本'
CREATE VIRTUAL TABLE n USING fts3tokenize(foo)
CREATE VIRTUAL TABLE n USING fts3tokenize(unicode61, 'foo=1')
CREATE VIRTUAL TABLE n USING fts4(tokenize=foo)
CREATE VIRTUAL TABLE n USING fts4(tokenize=unicode61 "foo=1")
CREATE VIRTUAL TABLE n USING fts4(a, tokenize=simple 'x' '-')
INSERT INTO n VALUES ('one two-three')
SELECT docid FROM n WHERE n MATCH 'one'
SELECT docid FROM n WHERE n MATCH 'three'
CREATE VIRTUAL TABLE m USING fts4(a, tokenize=unicode61 "tokenchars=-")
INSERT INTO m VALUES ('one two-three')
SELECT docid FROM m WHERE m MATCH 'two-three'
SELECT docid FROM m WHERE m MATCH 'three'
SELECT fts3_tokenizer('simple')
SELECT fts3_tokenizer('nowhere')
SELECT fts3_tokenizer('simple', x'0000000000000000')
SELECT token FROM p WHERE input = 'caresses ponies ties cats feed agreed plastered motoring sing conflated troubled sized hopping tanned falling hissing fizzed failing filing happy sky relational conditional rational valency hesitancy digitizer conformably radically differently vileness analogously vietnamization predication operator feudalism decisiveness hopefulness callousness formality sensitivity sensibility triplicate formative formalize electricity electrical hopeful goodness revival allowance inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent adoption homologous communism activate angularity effective bowdlerize probate rate cease controll roll analogi apologies by say ss s as us oed ing bring ying' ORDER BY position
