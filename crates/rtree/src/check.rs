//! Whether a tree is what it should be: `rtreecheck()` and `PRAGMA integrity_check`.
//!
//! It reads the shadow tables alone and trusts nothing in them. Of a tree in which a node is reached more often than there are
//! nodes it does not look at all ways.

use crate::layout::{self, CoordKind, Layout, MOST_DEPTH, ROOT};
use crate::store::Store;
use crate::words;
use iolite_base::{Code, Error, Result};
use iolite_ext::{Host, NestedStatement};
use iolite_value::Value;

/// So many findings are told.
const MOST_FINDINGS: usize = 100;

struct Check<'a> {
    host: &'a dyn Host,
    database: &'a str,
    table: &'a str,
    layout: Layout,
    read_node: Box<dyn NestedStatement>,
    leaf_of: Box<dyn NestedStatement>,
    parent_of: Box<dyn NestedStatement>,
    findings: Vec<String>,
    leaves: i64,
    inner: i64,
    /// So many nodes may still be looked at.
    left: i64,
}

/// What is wrong with a tree; nothing: an empty text.
pub(crate) fn check(host: &dyn Host, database: &str, table: &str) -> Result<String> {
    let shadow = |suffix: &str| words::table(database, &format!("{table}_{suffix}"));
    let plain = |e: Error| Error::from(e.code());
    let rowids = host.prepare(&format!("SELECT * FROM {}", shadow("rowid"))).map_err(plain)?;
    let auxiliary = rowids.columns().len() as i64 - 2;
    drop(rowids);
    let all = format!("SELECT * FROM {}", words::table(database, table));
    let mut rows = host.prepare(&all).map_err(plain)?;
    let dimensions = (rows.columns().len() as i64 - 1 - auxiliary) / 2;
    if dimensions < 1 {
        return Ok("Schema corrupt or not an rtree".into());
    }
    let first = rows.step();
    let kind = match rows.row().get(1) {
        Some(Value::Int(_)) => CoordKind::Int,
        _ => CoordKind::Real,
    };
    let reset = rows.reset();
    if let Err(e) = first.and(reset)
        && e.code().primary() != Code::Corrupt
    {
        return Err(plain(e));
    }
    drop(rows);
    let layout = Layout { dimensions: dimensions as usize, kind, node_size: 0 };
    let one = |sql: String| host.prepare(&sql).map_err(plain);
    let nodes = host.query(&format!("SELECT count(*) FROM {}", shadow("node")), &[]).map_err(plain)?;
    let nodes = nodes.first().and_then(|r| r.first()).map_or(0, Value::to_int);
    let mut c = Check {
        host,
        database,
        table,
        layout,
        read_node: one(format!("SELECT data FROM {} WHERE nodeno=?1", shadow("node")))?,
        leaf_of: one(format!("SELECT nodeno FROM {} WHERE rowid=?1", shadow("rowid")))?,
        parent_of: one(format!("SELECT parentnode FROM {} WHERE nodeno=?1", shadow("parent")))?,
        findings: Vec::new(),
        leaves: 0,
        inner: 0,
        left: nodes.saturating_mul(4).saturating_add(1000),
    };
    c.node(None, None, ROOT)?;
    c.count("rowid", c.leaves)?;
    c.count("parent", c.inner)?;
    Ok(c.findings.join("\n"))
}

/// What `PRAGMA integrity_check` is told.
pub(crate) fn integrity(store: &Store) -> Result<Option<String>> {
    let host = store.host()?;
    let found = check(&*host, &store.database, &store.table)?;
    Ok((!found.is_empty()).then(|| format!("In RTree {}.{}:\n{found}", store.database, store.table)))
}

/// The value that a statement finds for a key.
fn find(s: &mut Box<dyn NestedStatement>, key: i64) -> Result<Option<Value>> {
    s.bind(1, Value::Int(key))?;
    let found = s.step()?.then(|| s.row().first().cloned().unwrap_or_default());
    s.reset()?;
    Ok(found)
}

impl Check<'_> {
    fn found(&mut self, what: String) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(what);
        }
    }

    /// Looks at a node and what is below it. `height`: above the leaves; the root says its own. `around`: the cell above.
    fn node(&mut self, height: Option<u16>, around: Option<&[f64]>, number: i64) -> Result<()> {
        self.left -= 1;
        if self.left < 0 {
            return Ok(());
        }
        let node = match find(&mut self.read_node, number)? {
            Some(Value::Blob(b, _) | Value::Text(b, _)) => b.to_vec(),
            Some(_) => Vec::new(),
            None => {
                self.found(format!("Node {number} missing from database"));
                return Ok(());
            }
        };
        let size = node.len();
        if size < 4 {
            self.found(format!("Node {number} is too small ({size} bytes)"));
            return Ok(());
        }
        let height = height.unwrap_or(layout::depth(&node));
        if height > MOST_DEPTH {
            self.found(format!("Rtree depth out of range ({height})"));
            return Ok(());
        }
        let cells = layout::count(&node);
        if 4 + cells * self.layout.cell_size() > size {
            self.found(format!("Node {number} is too small for cell count of {cells} ({size} bytes)"));
            return Ok(());
        }
        for n in 0..cells {
            let cell = self.layout.cell(&node, n);
            let bounds = &cell.bounds[..2 * self.layout.dimensions];
            self.boxes(number, n, bounds, around);
            if height > 0 {
                self.mapping(false, cell.id, number)?;
                self.node(Some(height - 1), Some(bounds), cell.id)?;
                self.inner += 1;
            } else {
                self.mapping(true, cell.id, number)?;
                self.leaves += 1;
            }
        }
        Ok(())
    }

    fn boxes(&mut self, number: i64, n: usize, bounds: &[f64], around: Option<&[f64]>) {
        for (d, c) in bounds.chunks(2).enumerate() {
            let what = format!("Dimension {d} of cell {n} on node {number} is corrupt");
            if c[0] > c[1] {
                self.found(what.clone());
            }
            if let Some(p) = around.map(|a| &a[2 * d..2 * d + 2])
                && (c[0] < p[0] || c[1] > p[1])
            {
                self.found(format!("{what} relative to parent"));
            }
        }
    }

    /// Whether it is written down where a cell is.
    fn mapping(&mut self, leaf: bool, key: i64, expected: i64) -> Result<()> {
        let (s, table) = match leaf {
            true => (&mut self.leaf_of, "%_rowid"),
            false => (&mut self.parent_of, "%_parent"),
        };
        match find(s, key)?.map(|v| v.to_int()) {
            None => self.found(format!("Mapping ({key} -> {expected}) missing from {table} table")),
            Some(n) if n != expected => {
                self.found(format!("Found ({key} -> {n}) in {table} table, expected ({key} -> {expected})"))
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn count(&mut self, suffix: &str, expected: i64) -> Result<()> {
        let table = words::table(self.database, &format!("{}_{suffix}", self.table));
        let rows = self.host.query(&format!("SELECT count(*) FROM {table}"), &[])?;
        let actual = rows.first().and_then(|r| r.first()).map_or(0, Value::to_int);
        if actual != expected {
            self.found(format!(
                "Wrong number of entries in %_{suffix} table - expected {expected}, actual {actual}"
            ));
        }
        Ok(())
    }
}
