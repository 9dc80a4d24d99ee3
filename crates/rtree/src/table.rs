//! The tables of `rtree` and `rtree_i32`: rows of an id, coordinates and auxiliary columns.

use crate::constraint::Constraint;
use crate::cursor::{Shared, Walk};
use crate::layout::{self, Cell, CoordKind, MOST_DIMENSIONS};
use crate::plan;
use crate::tree::Tree;
use iolite_base::{Code, Error, Result};
use iolite_ext::{Change, FilterArgs, IndexInfo, OnConflict, VirtualCursor, VirtualTable};
use iolite_value::{Affinity, Value};
use std::rc::Rc;

/// What an update has to know beside the tree.
pub(crate) struct RTree {
    pub shared: Rc<Shared>,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// About how many rows it has.
    pub rows: i64,
}

/// What is answered where an entry of this rowid is there.
pub(crate) fn not_unique(table: &str, column: &str) -> Error {
    Error::new(Code::Constraint, format!("UNIQUE constraint failed: {table}.{column}"))
}

/// Makes room for an entry that gets a rowid which it had not: one that has it goes if that is what conflicts call for.
pub(crate) fn make_room(shared: &Shared, rowid: i64, conflict: OnConflict, column: &str) -> Result<()> {
    if shared.store.leaf_of(rowid)?.is_none() {
        return Ok(());
    }
    if conflict != OnConflict::Replace {
        return Err(not_unique(&shared.store.table, column));
    }
    remove(shared, rowid)
}

/// Takes an entry out.
pub(crate) fn remove(shared: &Shared, rowid: i64) -> Result<()> {
    let mut tree = Tree::open(&shared.store, shared.layout)?;
    tree.delete(rowid)?;
    tree.finish()
}

/// Puts an entry in.
pub(crate) fn add(shared: &Shared, cell: &Cell) -> Result<()> {
    let mut tree = Tree::open(&shared.store, shared.layout)?;
    tree.insert(cell)?;
    tree.finish()
}

/// The rowid that a value in a query stands for, if it can be one.
fn wanted_rowid(v: &Value) -> Result<Option<i64>> {
    let mut v = v.clone();
    if let Value::Text(..) = v {
        Affinity::Numeric.apply(&mut v)?;
    }
    Ok(match v {
        Value::Int(n) => Some(n),
        Value::Real(r) => iolite_value::num::real_as_int(r),
        _ => None,
    })
}

impl RTree {
    fn coordinates(&self) -> usize {
        2 * self.shared.layout.dimensions
    }

    /// The box that a row's values are, without an id.
    fn cell(&self, values: &[Value]) -> Result<Cell> {
        let mut bounds = [0.0; 2 * MOST_DIMENSIONS];
        let given = values.get(1..).unwrap_or(&[]);
        for (k, v) in given.iter().take(self.coordinates()).enumerate() {
            bounds[k] = match (self.shared.layout.kind, k % 2) {
                (CoordKind::Int, _) => v.to_int() as i32 as f64,
                (CoordKind::Real, 0) => layout::rounded_down(v.to_real()),
                (CoordKind::Real, _) => layout::rounded_up(v.to_real()),
            };
            if k % 2 == 1 && bounds[k - 1] > bounds[k] {
                let (table, c) = (&self.shared.store.table, &self.columns);
                let message = format!("rtree constraint failed: {table}.({}<={})", c[k], c[k + 1]);
                return Err(Error::new(Code::Constraint, message));
            }
        }
        Ok(Cell { id: 0, bounds })
    }
}

impl VirtualTable for RTree {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        plan::choose(info, self.coordinates(), self.rows);
        Ok(())
    }

    fn takes_pointers(&self) -> bool {
        true
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let table = (self.shared.layout, self.coordinates());
        Ok(Box::new(Cursor { walk: Walk::new(&self.shared), kind: table.0.kind, coordinates: table.1 }))
    }

    fn writable(&self) -> bool {
        true
    }

    fn update(&self, change: &Change<'_>) -> Result<i64> {
        let shared = &*self.shared;
        shared.check_changeable()?;
        let old = change.old.map(Value::to_int);
        let Some((_, values)) = change.new else {
            remove(shared, old.unwrap_or(0))?;
            return Ok(0);
        };
        let mut cell = self.cell(values)?;
        let id = values.first().filter(|v| !v.is_null()).map(Value::to_int);
        if let Some(id) = id.filter(|id| old != Some(*id)) {
            make_room(shared, id, change.conflict, &self.columns[0])?;
        }
        if let Some(old) = old {
            remove(shared, old)?;
        }
        cell.id = match id {
            Some(id) => id,
            None => shared.store.new_rowid()?,
        };
        add(shared, &cell)?;
        if shared.store.auxiliary > 0 {
            let values = values.get(1 + self.coordinates()..).unwrap_or(&[]);
            shared.store.set_auxiliary(cell.id, values.iter().cloned())?;
        }
        Ok(cell.id)
    }

    fn rename(&self, name: &str) -> Result<()> {
        self.shared.store.rename(name)
    }

    fn destroy(&self) -> Result<()> {
        self.shared.store.destroy()
    }

    fn integrity(&self, _: bool) -> Result<Option<String>> {
        crate::check::integrity(&self.shared.store)
    }
}

struct Cursor {
    walk: Walk,
    kind: CoordKind,
    coordinates: usize,
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, index_num: i32, index_str: &str, args: &FilterArgs<'_>) -> Result<()> {
        self.walk.reset();
        if index_num == plan::BY_ROWID {
            let wanted = args.first().map(wanted_rowid).transpose()?.flatten();
            return wanted.map_or(Ok(()), |id| self.walk.seek(id));
        }
        let pairs = index_str.as_bytes().chunks_exact(2).zip(args.iter());
        let constraints = pairs.map(|(c, v)| Constraint::new(c[0], c[1], v)).collect::<Result<Vec<_>>>()?;
        self.walk.start(constraints)
    }

    fn next(&mut self) -> Result<()> {
        self.walk.next()
    }

    fn eof(&self) -> bool {
        self.walk.eof()
    }

    fn column(&self, n: usize) -> Result<Value> {
        if n == 0 {
            return self.rowid().map(Value::Int);
        }
        if n > self.coordinates {
            return self.walk.auxiliary(n - 1 - self.coordinates);
        }
        let v = self.walk.coordinate(n - 1)?;
        Ok(match self.kind {
            CoordKind::Real => Value::real(v),
            CoordKind::Int => Value::Int(v as i64),
        })
    }

    fn rowid(&self) -> Result<i64> {
        self.walk.rowid()
    }
}
