//! Queries within queries, far deeper than anybody writes them: they are answered or refused, on whatever stack.

use iolite::engine::Connection;

fn chain_of_queries(n: usize) -> String {
    let more: String = (1..n).map(|i| format!(", c{i} AS (SELECT * FROM c{})", i - 1)).collect();
    format!("WITH c0 AS (SELECT 1 AS a){more} SELECT a FROM c{}", n - 1)
}

fn nested_queries(n: usize) -> String {
    format!("{}SELECT 1{}", "WITH c AS (".repeat(n), ") SELECT * FROM c".repeat(n))
}

fn values_in_values(n: usize) -> String {
    format!("SELECT {}1{}", "(SELECT ".repeat(n), ")".repeat(n))
}

fn answered_or_refused(c: &Connection, sql: &str) {
    match c.query(sql, &[]) {
        Ok(rows) => assert_eq!(format!("{rows:?}"), "[[Int(1)]]"),
        Err(e) => {
            let told = e.message();
            let known = ["queries are nested too deeply", "Recursion limit", "maximum depth"];
            assert!(known.iter().any(|k| told.contains(k)), "{told}");
        }
    }
}

#[test]
fn a_small_stack_is_enough_to_refuse() {
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    let done = thread.spawn(|| {
        let c = Connection::open_in_memory().unwrap();
        for n in [10, 50, 100, 200, 350, 490, 830] {
            answered_or_refused(&c, &nested_queries(n));
            answered_or_refused(&c, &values_in_values(n));
            answered_or_refused(&c, &format!("SELECT {}1{}", "abs(".repeat(n), ")".repeat(n)));
            let tables = format!("SELECT * FROM {}(SELECT 1){}", "(SELECT * FROM ".repeat(n), ")".repeat(n));
            answered_or_refused(&c, &tables);
        }
    });
    done.unwrap().join().expect("no overflow");
}

#[test]
fn deep_queries_leave_the_stack_alone() {
    for size in [1 << 20, 2 << 20, 8 << 20] {
        let thread = std::thread::Builder::new().stack_size(size);
        let done = thread.spawn(|| {
            let c = Connection::open_in_memory().unwrap();
            c.execute_batch("CREATE VIEW v0 AS SELECT 1 AS a").unwrap();
            for n in [1, 10, 50, 100, 200, 400, 1000, 3000] {
                answered_or_refused(&c, &chain_of_queries(n));
                answered_or_refused(&c, &nested_queries(n));
                answered_or_refused(&c, &values_in_values(n));
            }
            for n in 1..600 {
                c.execute_batch(&format!("CREATE VIEW v{n} AS SELECT * FROM v{}", n - 1)).unwrap();
                if n % 50 == 0 {
                    answered_or_refused(&c, &format!("SELECT * FROM v{n}"));
                }
            }
        });
        done.unwrap().join().expect("no overflow");
    }
}
