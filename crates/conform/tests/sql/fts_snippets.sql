-- Snippets where the index has no offsets.
create virtual table t using fts5(a unindexed, b);
insert into t values('x one y. z one','two three one'),('zeta be z','q r s one t u v');
select snippet(t,-1,'[',']','..',3) from t('one');
create virtual table t2 using fts5(a unindexed, b, columnsize=0);
insert into t2 values('x one y. z one','two three one'),('zeta be z','q r s one t u v');
select snippet(t2,-1,'[',']','..',3) from t2('one');
select snippet(t2,-1,'[',']','..',3),highlight(t2,0,'[',']') from t2('one') order by rank;
create virtual table t3 using fts5(a unindexed, b, columnsize=0, detail=column);
insert into t3 values('x one y. z one','two three one'),('zeta be z','q r s one t u v');
select snippet(t3,-1,'[',']','..',3) from t3('one');
select snippet(t3,-1,'[',']','..',3),highlight(t3,0,'[',']') from t3('one') order by rank;
select snippet(t3,0,'[',']','..',3) from t3('one');
select snippet(t,0,'[',']','..',3) from t('one');
select snippet(t,1,'[',']','..',2) from t;
