//! Files that are shorter than their header says, as after a copy that broke off.

use crate::attached::Folder;
use iolite::engine::{Code, Connection};
use std::os::unix::fs::FileExt;

#[test]
fn what_is_there_is_read_where_the_schema_may_be_written() {
    let dir = Folder::new("short-files");
    let path = dir.file("short.db");
    let c = Connection::open(&path).unwrap();
    c.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES(zeroblob(20000)), (1)").unwrap();
    drop(c);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&500u32.to_be_bytes(), 28).unwrap();
    let c = Connection::open(&path).unwrap();
    let count = || c.query("SELECT count(*) FROM t", &[]).map(|rows| rows[0][0].to_int());
    assert_eq!(count().unwrap_err().code(), Code::Corrupt);
    c.execute_batch("PRAGMA writable_schema = on").unwrap();
    assert_eq!(count().unwrap(), 2);
    // The next change puts it right.
    c.execute_batch("INSERT INTO t VALUES(2)").unwrap();
    let other = Connection::open(&path).unwrap();
    assert_eq!(other.query("SELECT count(*) FROM t", &[]).unwrap()[0][0].to_int(), 3);
}
