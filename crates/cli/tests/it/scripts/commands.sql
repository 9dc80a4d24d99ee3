.help import
.show
.limit length
.databases
.echo on
select 1;
.echo off
.eqp on
create table t(a integer primary key, b);
select * from t where a = 1;
.eqp off
explain query plan select * from t, t u where t.b = u.a;
.trace on
select 2;
.trace off
# a comment
select 3
;
select 4
go
select
  5
/
.mode --once json
select 6 as x;
select 7 as x;
.mode --list
.parameter set $v "'it''s'"
.parameter set :w plain
.parameter list
select $v, :w;
.parameter unset :w
.parameter clear
.parameter list
.schema --indent
insert into t values(1,'a'),(2,'b');
.dump t
.fullschema
.explain off
.q
select 'not reached';
