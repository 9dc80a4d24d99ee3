#!/bin/sh
# GDAL's drivers for GeoPackage, SQLite and SpatiaLite, and its SQL dialect, which stands on virtual tables of its own. Each
# command's answer is printed; Debian's package gdal-bin is installed.
rm -rf gdal.out && mkdir gdal.out && cd gdal.out || exit 1

run() {
    echo "$ $*"
    "$@" 2>&1
    echo "ended with $?"
}

awk 'BEGIN {
    printf "{\"type\":\"FeatureCollection\",\"features\":["
    for (i = 0; i < 600; i++) {
        x = (i * 7919) % 360 - 180; y = (i * 104729) % 170 - 85
        printf "%s{\"type\":\"Feature\",\"properties\":{\"id\":%d,\"name\":\"n\303\244me %d\",\"v\":%.3f,\"day\":\"2024-01-%02d\",\"square\":%s},", i ? "," : "", i, i, i / 7, i % 28 + 1, i % 7 ? i * i : "null"
        printf "\"geometry\":{\"type\":\"Point\",\"coordinates\":[%d,%d]}}", x, y
    }
    print "]}"
}' >all.json

run ogr2ogr -f GPKG a.gpkg all.json -nln things
run ogr2ogr -f SQLite a.sqlite all.json -nln things
run ogr2ogr -f SQLite -dsco SPATIALITE=YES b.sqlite all.json -nln things
for file in a.gpkg a.sqlite b.sqlite; do
    run ogrinfo -so $file things
    run ogrinfo -spat 0 0 20 20 -q $file things
    run ogrinfo $file -q -sql "select count(*), sum(square), max(name), avg(v) from things where square > 1000"
    run ogrinfo $file -q -dialect OGRSQL -sql "select name, v from things order by v desc limit 3"
    run ogrinfo $file -q -sql "update things set v = v + 1 where id < 100"
    run ogrinfo $file -q -sql "alter table things add column extra text"
    run ogrinfo $file -q -sql "delete from things where id % 3 = 0"
    run ogrinfo $file -q -sql "select count(*), min(v) from things"
    run ogrinfo $file -q -sql "vacuum"
    run ogrinfo $file -q -sql "pragma integrity_check"
done
for sql in \
    "select count(*), day, sum(square) from 'all' group by day order by 2 limit 5" \
    "select a.name, b.name from 'all' a, 'all' b where a.id = b.square and b.id < 30" \
    "select st_astext(geometry), name from 'all' where id in (2, 4, 6)" \
    "select name from 'all' where name like 'n%5' and v > 60 order by id desc limit 4"; do
    run ogrinfo all.json -q -dialect SQLITE -sql "$sql"
done
run ogrinfo a.gpkg -q -dialect SQLITE -sql "select st_astext(geom), name from things where id in (1, 2, 5)"
run ogrinfo a.gpkg -q -sql "select * from rtree_things_geom where minx > 100 and maxy < 0 order by id limit 4"
run ogr2ogr -update -append a.gpkg b.sqlite things -nln things
run ogr2ogr -update -overwrite a.gpkg b.sqlite things -nln other
run ogrinfo -so -al a.gpkg
run ogr2ogr -f CSV /vsistdout/ a.gpkg -sql "select fid, name, v from things order by name limit 10"
run ogr2ogr -f GPKG c.gpkg all.json -nln m -lco SPATIAL_INDEX=NO -gt 10 --config OGR_SQLITE_JOURNAL WAL
run ogrinfo c.gpkg -q -sql "select CreateSpatialIndex('m', 'geom')"
run ogrinfo c.gpkg -q -sql "drop table m"
run ogrinfo c.gpkg -q -sql "pragma integrity_check"
