//! R*Trees on both engines: drawn histories give the same answers and the same nodes, also where the engines take turns on one
//! file; damaged nodes are errors. `IOLITE_RTREE_ROUNDS=N` draws N histories, from `IOLITE_RTREE_SEED` on.

use crate::drawn::{Draw, rounds};
use iolite_conform::differ::pair::{Pair, Stmt};
use iolite_conform::engine::Db;
use iolite_stock as stock;
use iolite_testkit::Scratch;

/// All that is kept, as queries, and a check.
const NODES: [&str; 4] = [
    "SELECT nodeno, hex(data) FROM t_node ORDER BY nodeno",
    "SELECT * FROM t_rowid ORDER BY rowid",
    "SELECT * FROM t_parent ORDER BY nodeno",
    "SELECT rtreecheck('t')",
];

/// A table and what is done with it.
struct History {
    d: Draw,
    dimensions: usize,
    polygons: bool,
    auxiliary: bool,
    statements: Vec<String>,
}

impl History {
    fn new(seed: u64) -> History {
        let mut d = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (dimensions, polygons, auxiliary) = (1 + d.below(5), d.one_in(4), d.one_in(3));
        let mut h = History { d, dimensions, polygons, auxiliary, statements: Vec::new() };
        let page = h.d.of(&["512", "1024", "4096"]);
        let names: Vec<String> = (0..2 * dimensions).map(|k| format!("c{k}")).collect();
        let more = if auxiliary { ",+n" } else { "" };
        let made = match (polygons, h.d.one_in(3)) {
            (true, _) => "geopoly(n)".to_string(),
            (_, true) => format!("rtree_i32(id,{}{more})", names.join(",")),
            _ => format!("rtree(id,{}{more})", names.join(",")),
        };
        h.statements.push(format!("PRAGMA page_size={page}"));
        h.statements.push(format!("CREATE VIRTUAL TABLE t USING {made}"));
        h
    }

    fn number(&mut self) -> String {
        match self.d.below(8) {
            0 => format!("{}", self.d.below(20)),
            1 => format!("{}.{}", self.d.below(100), self.d.below(1000)),
            2 => format!("-{}", self.d.below(1000)),
            _ => format!("{}", self.d.below(1000)),
        }
    }

    fn id(&mut self) -> usize {
        1 + self.d.below(400)
    }

    fn shape(&mut self) -> String {
        let (x, y, r) = (self.number(), self.number(), self.d.below(50));
        format!("geopoly_regular({x},{y},{r}.5,{})", 3 + self.d.below(9))
    }

    fn row(&mut self) -> String {
        let id = if self.d.one_in(9) { "NULL".to_string() } else { self.id().to_string() };
        let mut out = vec![id];
        if self.polygons {
            out.push(self.shape());
        } else {
            for _ in 0..self.dimensions {
                let low = self.number();
                let size = self.d.below(40);
                out.push(low.clone());
                out.push(format!("{low}+{size}"));
            }
        }
        if self.polygons || self.auxiliary {
            out.push(format!("'n{}'", self.d.below(9)));
        }
        out.join(",")
    }

    fn condition(&mut self) -> String {
        if self.polygons {
            let shape = self.shape();
            return match self.d.below(4) {
                0 => format!("rowid={}", self.id()),
                1 => format!("geopoly_within(_shape,{shape})"),
                _ => format!("geopoly_overlap(_shape,{shape})"),
            };
        }
        if self.d.one_in(4) {
            return format!("id={}", self.id());
        }
        let mut out = Vec::new();
        for _ in 0..1 + self.d.below(3) {
            let column = self.d.below(2 * self.dimensions);
            let op = self.d.of(&["<", "<=", ">", ">=", "<", ">", "="]);
            out.push(format!("c{column}{op}{}", self.number()));
        }
        out.join(" AND ")
    }

    fn step(&mut self) {
        let columns = match (self.polygons, self.auxiliary) {
            (true, _) => "t(rowid,_shape,n)",
            _ => "t",
        };
        let sql = match self.d.below(14) {
            0..7 => {
                let verb =
                    self.d.of(&["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR IGNORE"]);
                let rows: Vec<String> =
                    (0..1 + self.d.below(12)).map(|_| format!("({})", self.row())).collect();
                format!("{verb} INTO {columns} VALUES{}", rows.join(","))
            }
            7 => format!("DELETE FROM t WHERE rowid={}", self.id()),
            8 => format!("DELETE FROM t WHERE rowid%{}=1", 3 + self.d.below(9)),
            9 if self.d.one_in(3) => format!("DELETE FROM t WHERE {}", self.condition()),
            9 => format!("DELETE FROM t WHERE rowid<{}", self.d.below(60)),
            10 if self.polygons => {
                format!("UPDATE t SET _shape={} WHERE rowid%7={}", self.shape(), self.d.below(7))
            }
            10 => format!(
                "UPDATE OR IGNORE t SET c0={0}, c1={0}+3 WHERE id%7={1}",
                self.number(),
                self.d.below(7)
            ),
            11 if self.polygons => format!("UPDATE t SET n='m' WHERE {}", self.condition()),
            11 => format!("UPDATE OR REPLACE t SET id=id+{} WHERE id={}", self.d.below(9), self.id()),
            _ => format!("SELECT rowid, * FROM t WHERE {}", self.condition()),
        };
        self.statements.push(sql);
    }
}

#[test]
fn histories_answer_as_on_stock() {
    let mut found = String::new();
    for seed in rounds("RTREE", 30) {
        let dir = std::env::temp_dir().join(format!("iolite-rtree-{}-{seed}", std::process::id()));
        let mut pair = Pair::new(&dir, true);
        let mut h = History::new(seed);
        for _ in 0..80 {
            h.step();
        }
        let made = h.statements[..2].join("; ");
        let last = NODES.iter().map(|b| b.to_string());
        for sql in h.statements.into_iter().chain(last) {
            let different = pair.run(&Stmt { ordered: true, ..Stmt::plain("rtree", sql.clone()) });
            // How many rows of its own tables a change changes is not compared.
            if let Some(d) = different.filter(|d| d.what != "state") {
                found +=
                    &format!("{seed}: {made}\n{sql}\n{}\nstock: {}\nours:  {}\n", d.what, d.stock, d.ours);
                break;
            }
        }
        let _ = std::fs::remove_dir_all(dir);
    }
    assert!(found.is_empty(), "{found}");
}

fn dump(path: &str) -> String {
    let c = stock::Connection::open(path).expect("stock opens the file");
    // For `rtreecheck` a geopoly table is none of its tables.
    let fine = c.query("SELECT rtreecheck('t') IN ('ok', 'Schema corrupt or not an rtree')");
    assert!(
        matches!(fine.as_deref(), Ok([row]) if matches!(row[..], [stock::Value::Int(1)])),
        "{path}: damaged"
    );
    NODES.iter().map(|sql| format!("{:?}\n", c.query(sql).map_err(|e| e.message))).collect()
}

#[test]
fn engines_take_turns_on_a_file() {
    for seed in rounds("RTREE", 8) {
        let scratch = Scratch::new();
        let (alone, shared) = (scratch.name("alone.db"), scratch.name("shared.db"));
        let mut h = History::new(seed);
        for turn in 0..6 {
            for _ in 0..20 {
                h.step();
            }
            let statements = std::mem::take(&mut h.statements);
            for (path, engine) in [(&alone, "stock"), (&shared, ["iolite", "stock"][turn % 2])] {
                let db = Db::open(engine, path).expect("the file opens");
                let _ = db.run("PRAGMA synchronous = OFF");
                for sql in &statements {
                    // What is refused is refused by both.
                    let _ = db.run(sql);
                }
            }
            assert_eq!(dump(&alone), dump(&shared), "seed {seed}, turn {turn}");
        }
    }
}

/// Statements that go through a tree from all sides.
const PROBES: &[&str] = &[
    "SELECT count(*), sum(c0) FROM t",
    "SELECT * FROM t WHERE c0>5 AND c1<500",
    "SELECT * FROM t WHERE id=17",
    "SELECT rtreecheck('t')",
    "PRAGMA integrity_check",
    "SELECT rtreenode(1,data), rtreedepth(data) FROM t_node",
    "INSERT INTO t(id,c0,c1) VALUES(1001,3,4)",
    "INSERT INTO t(id,c0,c1) VALUES(1002,300,400)",
    "UPDATE t SET c0=1, c1=2 WHERE id=18",
    "DELETE FROM t WHERE id=19",
    "DELETE FROM t WHERE id<30",
    "WITH RECURSIVE c(i) AS (SELECT 2000 UNION ALL SELECT i+1 FROM c WHERE i<2100) INSERT INTO t(id,c0,c1) SELECT i,i%50,i%50+1 FROM c",
    "DELETE FROM t",
    "SELECT count(*) FROM t",
];

#[test]
fn damaged_nodes_are_errors() {
    for seed in rounds("RTREE", 150) {
        let mut d = Draw(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let c = iolite::engine::Connection::open_in_memory().expect("a database opens");
        let rows = [20, 120, 900][d.below(3)];
        c.execute_batch(&format!(
            "PRAGMA page_size=512;
             CREATE VIRTUAL TABLE t USING rtree(id,c0,c1,d0,d1);
             WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<{rows})
             INSERT INTO t SELECT i,i*37%1001,i*37%1001+2,i*53%997,i*53%997+4 FROM c"
        ))
        .expect("a table");
        let nodes = c.query("SELECT nodeno, data FROM t_node", &[]).expect("nodes");
        let numbers: Vec<i64> = nodes.iter().map(|n| n[0].to_int()).collect();
        for _ in 0..1 + d.below(4) {
            let at = d.below(nodes.len());
            let row = &nodes[at];
            let number = row[0].to_int();
            let any = numbers[d.below(numbers.len())];
            let mut bytes = row[1].bytes().map(|b| b.to_vec()).unwrap_or_default();
            match d.below(8) {
                0 => bytes.truncate(d.below(bytes.len() + 1)),
                1 => bytes.push(0),
                2 => bytes[d.below(4)] = d.below(256) as u8,
                3 => bytes[1] = d.below(60) as u8,
                // A child that is any node, the parent itself or the root among them.
                4 | 5 => {
                    let cell = 4 + 24 * d.below(15);
                    bytes[cell..cell + 8].copy_from_slice(&any.to_be_bytes());
                }
                6 => {
                    let sql = format!("UPDATE t_parent SET parentnode={any} WHERE nodeno={number}");
                    c.execute_batch(&sql).expect("a change");
                    let sql = format!("UPDATE t_rowid SET nodeno={any} WHERE rowid%5={}", d.below(5));
                    c.execute_batch(&sql).expect("a change");
                }
                _ => {
                    let at = d.below(bytes.len());
                    bytes[at] = d.below(256) as u8;
                }
            }
            let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            let sql = format!("UPDATE t_node SET data = x'{hex}' WHERE nodeno = {number}");
            c.execute_batch(&sql).expect("a change");
        }
        for sql in PROBES {
            if let Err(e) = c.query(sql, &[]) {
                let known = matches!(e.code().primary().number(), 1 | 11 | 13 | 19);
                assert!(known, "seed {seed}: {sql}: {} {}", e.code().number(), e.message());
            }
        }
    }
}
