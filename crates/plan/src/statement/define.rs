//! Plans of CREATE, DROP and REINDEX: a list of steps.
//!
//! A definition's text is stored as written, from the object's name on. The catalog learns of a change by reading the
//! schema table again ([`Step::ReadSchema`]), so that what it knows is what the file says.

use super::modify::ModifyPlan;
use crate::bind::Target;
use crate::plan::SelectPlan;
use iolite_value::Affinity;
use std::rc::Rc;

/// The plan of a change of the schema.
#[derive(Default)]
pub struct DefinePlan {
    /// What is done, in this order.
    pub steps: Vec<Step>,
}

/// One step of a change of the schema. Trees that are made are numbered from 0.
pub enum Step {
    /// The first change of a new file sets its format and encoding.
    StartFile {
        /// The database.
        db: usize,
    },
    /// A tree is made.
    CreateTree {
        /// The database.
        db: usize,
        /// Its keys are records.
        is_index: bool,
    },
    /// A row is added to the schema table.
    AddRow {
        /// The database.
        db: usize,
        /// The row.
        row: SchemaRow,
    },
    /// An index gets its entries; its tree is empty.
    FillIndex {
        /// The table, with this index alone.
        target: Box<Target>,
        /// The new tree; none: the one that the catalog knows, which is emptied first.
        tree: Option<usize>,
    },
    /// The next row of the schema table has its place from here on, and is all NULL until it is added.
    ReserveRow {
        /// The database.
        db: usize,
    },
    /// The rows of a query go into a new table.
    Store {
        /// The query.
        query: Box<SelectPlan>,
        /// The database.
        db: usize,
        /// The table's tree.
        tree: usize,
        /// The affinities of its columns.
        affinities: Rc<[Affinity]>,
    },
    /// The rows of a table that is to be dropped go one by one, for foreign keys to hear of it. It fails if that violates an
    /// immediate one.
    Empty {
        /// The change.
        rows: Box<ModifyPlan>,
        /// Others refer to the table; else it matters only while there are violations of deferred keys.
        referred: bool,
    },
    /// SQL of the engine's own is run.
    Run {
        /// Its text.
        sql: String,
    },
    /// Everybody is told that the schema is another.
    SetCookie {
        /// The database.
        db: usize,
        /// The new cookie.
        cookie: u32,
    },
    /// The catalog reads what the schema table says about a table.
    ReadSchema {
        /// The database.
        db: usize,
        /// The table's name.
        table: Rc<str>,
    },
    /// The module of a new virtual table makes it.
    MakeVirtual {
        /// The database.
        db: usize,
        /// The table's name.
        name: Rc<str>,
    },
    /// The module of a virtual table takes away what it keeps.
    DestroyVirtual {
        /// The database.
        db: usize,
        /// The table's name.
        name: Rc<str>,
    },
    /// Trees are freed.
    FreeTrees {
        /// The database.
        db: usize,
        /// Their root pages, the highest first: freeing one may move the highest root of all into its place.
        roots: Vec<u32>,
    },
    /// The catalog forgets an object.
    Forget {
        /// The database.
        db: usize,
        /// What it is.
        what: Object,
        /// Its name.
        name: Rc<str>,
    },
}

/// A kind of object that the catalog can forget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// A table or view, with what belongs to it.
    Table,
    /// An index.
    Index,
    /// A trigger.
    Trigger,
}

/// A row for the schema table.
pub struct SchemaRow {
    /// `type`.
    pub kind: &'static str,
    /// `name`.
    pub name: Rc<str>,
    /// `tbl_name`.
    pub table: Rc<str>,
    /// The new tree whose root is `rootpage`; none: 0.
    pub tree: Option<usize>,
    /// `sql`.
    pub sql: Option<String>,
}
