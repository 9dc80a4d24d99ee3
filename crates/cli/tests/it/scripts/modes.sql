create table t(a, "b c", d);
insert into t values(1,'x y',null),(2.5,'it''s "q" <b>',x'4142'),(-3,'two
lines','');
.mode list
select * from t;
.mode csv
select * from t;
.mode tabs
.headers on
select * from t;
.mode quote
select * from t;
.mode json
select * from t;
.mode line
select * from t;
.mode html
select * from t;
.mode tcl
select * from t;
.headers off
.mode insert t2
select * from t;
.mode column
select * from t;
.mode box
select * from t;
.mode table
select * from t;
.mode markdown
select * from t;
.mode psql
select * from t;
.mode qbox
select * from t;
.mode box --wrap 5 --ww
select 'the quick brown fox' as x, 12 as y;
.mode column
.width 4 -6
select 'abcdefgh' as x, 12 as y;
.mode ascii
select 1,2;
.mode count
select * from t;
.mode c
select * from t;
.mode jobject
select * from t;
.mode list
.nullvalue NIL
.separator ", "
select * from t;
