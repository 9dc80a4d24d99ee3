-- Rows of json_each and json_tree: keys, paths and numbers of elements.
select * from json_tree('{"a":[1,{"b c":2,"d\u0041":[]}],"":null,"x.y":{"z":{}}}');
select key,fullkey,path from json_each('{"a":[1,{"b c":2,"d\u0041":[]}],"":null}','$.a[1]');
select * from json_each('5');
select * from json_each('[1,2]','$[1]');
select * from json_tree('[[1],{"q":[3]}]','$[1].q');
select key,value,type,fullkey,path from jsonb_tree('{a:[1,2,{b:"\n"}]}');
select fullkey from json_tree('{"a":{"b":{"c":1}}}') order by 1 desc;
select key, id, parent from json_tree(jsonb('{"a":[true,false,null,1.5,"t"]}'));
