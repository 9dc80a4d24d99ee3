-- same
create table t(a int primary key, b);
insert into t values(1,2);
insert into t values(1,2);
select 1,
  nosuch from t;
selec 1;
select * from t where a in (select aaaaaaaaaaaaa from t where nosuchfunction(1));
.foo
create view v as select * from t;
create index i on t(b);
.tables
.indexes
.schema
.schema t
.print a 'b c' "d\te"
select 'é' || char(9) || 'x';
.mode csv
select 'a b', 'é', 'it''s','x;y','t,',char(10), x'4142', 1.5, null, '';
.mode table
select * from t;
.mode markdown
select * from t;
.mode column
select a, b as bcdef from t;
.mode html
.headers on
select 1,'<a&"' as x;
.mode tcl
select 1,'a"b
',null;
.mode json
select 1 as a,'x"
y' as b,null as c,1.5 as d union all select 2,3,4,5;
.mode quote
.headers off
select 1,'it''s',null,1.5;
.mode list
.changes on
update t set b = 5;
.changes off
.nullvalue nil
select null, 1;
.separator ; @
select 1, 2;
.separator | "\n"
.width 3
.parameter set :x 5
.parameter list
select :x;
.read nosuchfile
.dump
select x;
