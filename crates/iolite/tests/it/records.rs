//! Records at the edges of the format: what is read is what was written.

use iolite::Connection;

#[test]
fn headers_that_continue_on_overflow_pages_belong_to_their_own_row() {
    let c = Connection::open_in_memory().unwrap();
    let columns: Vec<String> = (0..900).map(|n| format!("c{n}")).collect();
    let ones = vec!["1000"; 900].join(",");
    let texts = vec!["'text'"; 900].join(",");
    c.execute_batch(&format!(
        "PRAGMA page_size = 512; CREATE TABLE t({}); INSERT INTO t VALUES({ones}), ({texts}), ({ones})",
        columns.join(",")
    ))
    .unwrap();
    let rows = c.query("SELECT c0, c450, c899, c899 || c1 FROM t", &[]).unwrap();
    let seen: Vec<Vec<String>> = rows
        .iter()
        .map(|r| r.iter().map(|v| String::from_utf8_lossy(&v.text_bytes().unwrap()).into()).collect())
        .collect();
    assert_eq!(
        seen,
        [
            ["1000", "1000", "1000", "10001000"],
            ["text", "text", "text", "texttext"],
            ["1000", "1000", "1000", "10001000"]
        ]
    );
}
