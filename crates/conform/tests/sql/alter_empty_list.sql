-- What is sought in an empty list is not looked at where a column is renamed.
create table r1(a, b, c check(a in ()), d as (a not in ()), e as (b in (1, a)));
create view rv as select a in (), a in (select a from r1 where a in ()) from r1 where a not in ();
create trigger rt after insert on r1 when new.a not in () begin update r1 set b = a in () where a not in (); end;
alter table r1 rename column a to zz;
select sql from sqlite_schema;
