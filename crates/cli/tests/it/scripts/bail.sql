-- same
select 1;
.bail on
select x;
select 'not reached';
