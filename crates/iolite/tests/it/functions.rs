//! Functions where stock SQLite gives something else than its documentation says.

use iolite::engine::Connection;

/// Stock loses count of rows that are the empty string once the frame moves.
#[test]
fn empty_strings_in_a_moving_group_concat() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, v, s)").unwrap();
    c.execute_batch(
        "INSERT INTO t(v, s) VALUES ('', '-'), ('', '--'), ('b', ''), (NULL, '+'), ('', '='), ('c', '/')",
    )
    .unwrap();
    let sql = "SELECT group_concat(v, s) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t";
    let rows = c.query(sql, &[]).unwrap();
    let shown: Vec<String> = rows.iter().map(|r| r[0].to_string_lossy().to_string()).collect();
    assert_eq!(shown, ["--", "--b", "b", "b=", "c", "c"]);
}
