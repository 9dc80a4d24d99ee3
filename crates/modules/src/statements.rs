//! Statements as tables: `sqlite_stmt` lists those that are prepared (documentation page `stmt`); `bytecode` and `tables_used` tell
//! what one is made of, and which trees it reads and writes (`bytecodevtab`).
//!
//! The argument of the latter two is a text, or a pointer to a prepared statement. What they do not know: how often
//! an instruction was run; those columns are 0.

use crate::rows::{Listed, arguments, take_arguments};
use iolite_base::{Code, Error, Result};
use iolite_ext::{
    Declared, Host, IndexInfo, Instruction, Module, ModuleKind, StatementFacts, TableArgs, Trust,
    VirtualCursor, VirtualTable,
};
use iolite_value::Value;
use std::rc::{Rc, Weak};

/// The module of one of the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statements {
    /// `sqlite_stmt`
    Prepared,
    /// `bytecode`
    Instructions,
    /// `tables_used`
    Trees,
}

impl Statements {
    /// Its columns; the argument is the last one.
    fn columns(self) -> &'static str {
        match self {
            Statements::Prepared => "sql,ncol,ro,busy,nscan,nsort,naidx,nstep,reprep,run,mem",
            Statements::Instructions => {
                "addr INT,opcode TEXT,p1 INT,p2 INT,p3 INT,p4 TEXT,p5 INT,comment TEXT,subprog TEXT,nexec INT,ncycle INT,\
                 stmt HIDDEN"
            }
            Statements::Trees => "type TEXT,schema TEXT,name TEXT,wr INT,subprog TEXT,stmt HIDDEN",
        }
    }

    /// The argument's column.
    fn argument(self) -> Option<usize> {
        match self {
            Statements::Prepared => None,
            Statements::Instructions => Some(11),
            Statements::Trees => Some(5),
        }
    }
}

impl Module for Statements {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, host: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let table = Rc::new(Table { what: *self, host: Rc::downgrade(host) });
        let declaration = format!("CREATE TABLE x({})", self.columns());
        Ok(Declared { trust: Trust::Normal, ..Declared::new(declaration, table) })
    }
}

struct Table {
    what: Statements,
    host: Weak<dyn Host>,
}

impl VirtualTable for Table {
    fn holds_nothing(&self) -> bool {
        true
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let Some(column) = self.what.argument() else {
            (info.cost, info.rows) = (500.0, 500);
            return Ok(());
        };
        info.index_num = take_arguments(info, column, 1)?;
        if info.index_num == 0 {
            return Err(Error::new(Code::Constraint, "no statement is given"));
        }
        (info.cost, info.rows) = (10.0, 100);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let (what, host) = (self.what, self.host.clone());
        Ok(Box::new(Listed::new(move |given, args| {
            let host = host.upgrade().ok_or(Code::Misuse)?;
            if what == Statements::Prepared {
                return host.statements().iter().map(prepared).collect();
            }
            let [statement] = arguments::<1>(given, args);
            let statement = statement.filter(|v| !v.is_null());
            let Some(statement) = statement else { return Ok(Vec::new()) };
            let Some(list) = host.instructions(statement)? else {
                let name = if what == Statements::Trees { "tables_used" } else { "bytecode" };
                return Err(Error::sql(format!("argument to {name}() is not a valid SQL statement")));
            };
            match what {
                Statements::Trees => trees(&*host, &list, statement),
                _ => list.iter().map(|i| instruction(i, statement)).collect(),
            }
        })))
    }
}

fn prepared(s: &StatementFacts) -> Result<Vec<Value>> {
    let counts = [s.full_scan_steps, s.sorts, s.auto_index_rows, s.instructions, s.recompiled, s.runs];
    let mut row = vec![Value::text(&s.sql)?, Value::Int(s.columns as i64)];
    row.extend([Value::Int(s.readonly as i64), Value::Int(s.busy as i64)]);
    row.extend(counts.map(|n| Value::Int(n as i64)));
    row.push(Value::Int(s.memory as i64));
    Ok(row)
}

fn subprogram(i: &Instruction) -> Result<Value> {
    i.subprogram.as_ref().map_or(Ok(Value::Null), |n| Value::text(n.as_bytes()))
}

fn instruction(i: &Instruction, statement: &Value) -> Result<Vec<Value>> {
    let number = |n: i32| Value::Int(i64::from(n));
    Ok(vec![
        Value::Int(i.addr as i64),
        Value::text(i.opcode)?,
        number(i.p1),
        number(i.p2),
        number(i.p3),
        if i.p4.is_empty() { Value::Null } else { Value::text(&i.p4)? },
        Value::Int(i64::from(i.p5)),
        Value::Null,
        subprogram(i)?,
        Value::Int(0),
        Value::Int(0),
        statement.clone(),
    ])
}

/// The trees that cursors are opened on, each as often as that is done.
fn trees(host: &dyn Host, list: &[Instruction], statement: &Value) -> Result<Vec<Vec<Value>>> {
    let databases = host.query("SELECT seq, name FROM pragma_database_list", &[])?;
    let mut rows = Vec::new();
    for i in list {
        let writes = match i.opcode {
            "OpenRead" => false,
            "OpenWrite" => true,
            _ => continue,
        };
        let is = |r: &&Vec<Value>| matches!(r.first(), Some(Value::Int(n)) if *n == i64::from(i.p3));
        let Some(schema) = databases.iter().find(is).and_then(|r| r.get(1)) else { continue };
        let (kind, name) = if i.p2 == 1 {
            let name = if i.p3 == 1 { "sqlite_temp_schema" } else { "sqlite_schema" };
            (Value::text("table")?, Value::text(name)?)
        } else {
            let quoted = schema.text_carried().replace('"', "\"\"");
            let sql = format!("SELECT type, name FROM \"{quoted}\".sqlite_schema WHERE rootpage = ?1");
            match host.query(&sql, &[Value::Int(i64::from(i.p2))])?.pop().map(<[Value; 2]>::try_from) {
                Some(Ok([kind, name])) => (kind, name),
                _ => continue,
            }
        };
        rows.push(vec![
            kind,
            schema.clone(),
            name,
            Value::Int(writes as i64),
            subprogram(i)?,
            statement.clone(),
        ]);
    }
    Ok(rows)
}
