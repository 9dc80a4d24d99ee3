//! `completion(prefix, wholeline)`: words that what is typed may become (documentation page `completion`): keywords, and names of
//! databases, tables, indexes, triggers, columns, functions, modules and collating sequences. Their order means nothing, and a word may come more than once.

use iolite::engine::{
    Constraint, ConstraintOp, Declared, FilterArgs, Host, IndexInfo, Module, ModuleKind, Result, TableArgs,
    Trust, Value, VirtualCursor, VirtualTable,
};
use std::rc::{Rc, Weak};

/// The module.
pub struct Completion;

impl Module for Completion {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, host: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let declaration =
            "CREATE TABLE x(candidate TEXT, prefix TEXT HIDDEN, wholeline TEXT HIDDEN, phase INT HIDDEN)";
        let table = Rc::new(Table { host: Rc::downgrade(host) });
        Ok(Declared { trust: Trust::Innocuous, ..Declared::new(declaration, table) })
    }
}

struct Table {
    host: Weak<dyn Host>,
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let mut passed = 0;
        for k in 0..2 {
            let is = |c: &Constraint| c.column == 1 + k && c.usable && c.op == ConstraintOp::Eq;
            if let Some(at) = info.constraints.iter().position(is) {
                passed += 1;
                info.usage[at].arg = passed;
                info.usage[at].omit = true;
                info.index_num |= 1 << k;
            }
        }
        (info.cost, info.rows) = (5000.0 - 1000.0 * f64::from(passed), 500);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Words {
            host: self.host.clone(),
            given: [Value::Null, Value::Null],
            list: Vec::new(),
            at: 0,
        }))
    }
}

struct Words {
    host: Weak<dyn Host>,
    /// The prefix and the line as they were given.
    given: [Value; 2],
    /// Words, each with the number of the kind it is of.
    list: Vec<(Value, i64)>,
    at: usize,
}

/// What is asked for words, by kind.
const QUERIES: [&str; 7] = [
    "SELECT name FROM pragma_database_list",
    "SELECT name FROM pragma_table_list",
    "SELECT i.name FROM pragma_table_list t, pragma_index_list(t.name, t.schema) i",
    "SELECT c.name FROM pragma_table_list t, pragma_table_xinfo(t.name, t.schema) c",
    "SELECT name FROM pragma_function_list",
    "SELECT name FROM pragma_module_list",
    "SELECT name FROM pragma_collation_list",
];

impl VirtualCursor for Words {
    fn filter(&mut self, given: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        let mut rest = args.iter();
        for k in 0..2 {
            self.given[k] =
                if given & 1 << k != 0 { rest.next().cloned() } else { None }.unwrap_or(Value::Null);
        }
        let [prefix, line] = &self.given;
        // Without a prefix, the last word of the line.
        let prefix = match prefix {
            Value::Null => {
                let line = line.to_string_lossy();
                let from = line.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1);
                line.get(from..).unwrap_or_default().to_string()
            }
            p => p.to_string_lossy(),
        };
        let fits = |word: &str| word.get(..prefix.len()).is_some_and(|w| w.eq_ignore_ascii_case(&prefix));
        self.list.clear();
        self.at = 0;
        for word in (0..iolite_sql::keyword_count()).filter_map(iolite_sql::keyword_name).filter(|w| fits(w))
        {
            self.list.push((Value::text(word)?, 1));
        }
        let Some(host) = self.host.upgrade() else { return Ok(()) };
        for (k, sql) in QUERIES.iter().enumerate() {
            for name in host.query(sql, &[])?.into_iter().flatten().filter(|v| fits(&v.to_string_lossy())) {
                self.list.push((name, k as i64 + 2));
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.list.len()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let Some((word, kind)) = self.list.get(self.at) else { return Ok(Value::Null) };
        Ok(match n {
            0 => word.clone(),
            3 => Value::Int(*kind),
            n => self.given[n - 1].clone(),
        })
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.at as i64 + 1)
    }
}
