//! What foreign keys ask of a row that is written: bound once for a target, from texts in which the row is `"own row"`.
//!
//! As child, a row violates a key if all its columns have values and no parent has them. As parent, it is told how many
//! children refer to it. A row of a key on its own table may be both: one that refers to itself is in order, and where the
//! row is looked for among others, what it became (`"new row"`) can be left out.

use super::{Binder, Columns, Scope, ScopeSource, Target};
use crate::bound::{Expr, TableId};
use iolite_base::{Error, Few, Result, same_name};
use iolite_catalog::{ForeignKey, IndexOrigin, Table};
use iolite_sql::ast::ForeignKeyAction;
use iolite_sql::print::quote_name;
use std::rc::Rc;

/// The foreign keys of a table that is written.
#[derive(Clone, Default)]
pub struct Keys {
    /// The number by which expressions refer to the row.
    pub own: TableId,
    /// The number by which they refer to what it became.
    pub new: TableId,
    /// In which it is the child.
    pub children: Vec<KeyTest>,
    /// In which it is the parent.
    pub parents: Vec<KeyTest>,
}

/// A row's part in a foreign key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyRole {
    /// It refers to another.
    Child,
    /// Others refer to it.
    Parent,
}

/// One foreign key, as a row meets it.
#[derive(Clone)]
pub struct KeyTest {
    /// The child table.
    pub child: Rc<Table>,
    /// The key's place in it.
    pub key: usize,
    /// Columns of the target that take part, in the key's order.
    pub columns: Vec<usize>,
    /// Child and parent are the target.
    pub itself: bool,
    /// How many violations there are if the row, as parent, is missing, or, as child, is there; or why that cannot be
    /// told.
    violations: Result<Expr>,
    /// The same without what the row became; only where `itself` is set.
    without_new: Option<Result<Expr>>,
    /// Whether the key's actions are taken.
    acts: bool,
}

impl Keys {
    /// The test of a row in this role.
    pub fn test(&self, role: KeyRole, key: usize) -> &KeyTest {
        match role {
            KeyRole::Child => &self.children[key],
            KeyRole::Parent => &self.parents[key],
        }
    }

    /// Whether none is deferred by its definition.
    pub fn are_immediate(&self) -> bool {
        self.children.iter().chain(&self.parents).all(|t| !t.key().deferred)
    }

    /// Leaves out the tests that cannot be made.
    pub fn keep_sound(&mut self) {
        for list in [&mut self.children, &mut self.parents] {
            list.retain(|t| t.violations.is_ok());
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty() && self.parents.is_empty()
    }
}

impl KeyTest {
    /// The key.
    pub fn key(&self) -> &ForeignKey {
        &self.child.foreign_keys[self.key]
    }

    /// What is done about children.
    pub fn action(&self, on_update: bool) -> ForeignKeyAction {
        match self.acts {
            true if on_update => self.key().on_update,
            true => self.key().on_delete,
            false => ForeignKeyAction::NoAction,
        }
    }

    /// What counts violations, perhaps without those by what the row became.
    pub fn counted(&self, without_new: bool) -> Result<&Expr> {
        let e = self.without_new.as_ref().filter(|_| without_new).unwrap_or(&self.violations);
        e.as_ref().map_err(Clone::clone)
    }
}

/// The parent's columns that a key refers to, in its order.
pub struct ParentKey {
    /// Their numbers.
    pub columns: Vec<usize>,
    /// By what each is compared with the child's; `None`: as the column is.
    pub collations: Vec<Option<Rc<str>>>,
}

impl ParentKey {
    fn of_columns(columns: Vec<usize>) -> ParentKey {
        ParentKey { collations: vec![None; columns.len()], columns }
    }

    /// For each pair of columns, of `parent` as the FROM clause names it and (under the name that `own` gives) of the child, the
    /// condition that they are the same. The parent's affinity and collating sequence decide.
    pub fn same(
        &self,
        parent: &Table,
        named: &str,
        of_child: &[usize],
        own: impl Fn(usize) -> String,
    ) -> Vec<String> {
        let pairs = self.columns.iter().zip(&self.collations).zip(of_child);
        pairs
            .map(|((p, collation), c)| {
                let name = quote_name(&parent.columns[*p].name);
                let collate =
                    collation.as_ref().map_or(String::new(), |c| format!(" COLLATE {}", quote_name(c)));
                format!("{named}.{name}{collate} = +{}", own(*c))
            })
            .collect()
    }
}

/// What a key refers to in its parent. `None`: no UNIQUE or PRIMARY KEY holds those columns apart as they compare. A key that names no
/// columns means the PRIMARY KEY, however that compares.
pub fn parent_key(parent: &Table, key: &ForeignKey) -> Option<ParentKey> {
    let named: Vec<usize> =
        key.parent_columns.iter().map(|n| parent.column(n)).collect::<Option<Vec<usize>>>()?;
    if let Some(alias) = parent.rowid_alias
        && key.columns.len() == 1
        && (named.is_empty() || named == [alias])
    {
        return Some(ParentKey::of_columns(vec![alias]));
    }
    for i in parent.indexes.borrow().iter() {
        if i.unique.is_none() || i.filter.is_some() || i.key_len != key.columns.len() {
            continue;
        }
        let of_index: Option<Vec<usize>> = i.columns[..i.key_len]
            .iter()
            .map(|c| match c.source {
                iolite_catalog::ColumnSource::Column(k)
                    if named.is_empty() || same_collation(&c.collation, &parent.columns[k].collation) =>
                {
                    Some(k)
                }
                _ => None,
            })
            .collect();
        let Some(of_index) = of_index else { continue };
        if named.is_empty() {
            if i.origin == IndexOrigin::PrimaryKey {
                let binary: Rc<str> = "BINARY".into();
                let by =
                    i.columns.iter().map(|c| Some(c.collation.clone().unwrap_or_else(|| binary.clone())));
                return Some(ParentKey { collations: by.take(of_index.len()).collect(), columns: of_index });
            }
        } else if named.iter().all(|n| of_index.contains(n)) && of_index.iter().all(|k| named.contains(k)) {
            return Some(ParentKey::of_columns(named));
        }
    }
    None
}

fn same_collation(a: &Option<Rc<str>>, b: &Option<Rc<str>>) -> bool {
    let name = |c: &Option<Rc<str>>| c.clone().unwrap_or_else(|| "BINARY".into());
    same_name(&name(a), &name(b))
}

/// The complaint about a key whose parent columns are not unique.
pub fn mismatch(child: &Table, key: &ForeignKey) -> Error {
    Error::sql(format!("foreign key mismatch - \"{}\" referencing \"{}\"", child.name, key.parent))
}

/// Whether the authorizer is asked for what columns in this role are held against.
type Asked<'a> = dyn Fn(KeyRole, &[usize]) -> bool + 'a;

impl Binder<'_> {
    /// Binds what foreign keys ask of the rows of a target. `asked`: whether the authorizer is asked for what the target's columns
    /// in this role are held against.
    pub(super) fn foreign_keys(&mut self, t: &mut Target, asked: &Asked<'_>) {
        if !self.env.foreign_keys || t.table.is_view() || t.table.is_virtual() {
            return;
        }
        let schema = &self.env.catalog.schemas[t.db];
        // SQLite takes the newest first: it shows in which of several complains. Root pages grow, mostly.
        let mut referring: Vec<(Rc<Table>, usize)> = schema
            .tables()
            .flat_map(|c| c.foreign_keys.iter().enumerate().map(move |(k, f)| (c, k, f)))
            .filter(|(_, _, f)| same_name(&f.parent, &t.table.name))
            .map(|(c, k, _)| (c.clone(), k))
            .collect();
        referring.sort_by_key(|(c, k)| std::cmp::Reverse((c.root.get(), *k)));
        if t.table.foreign_keys.is_empty() && referring.is_empty() {
            return;
        }
        let mut keys = Keys { own: self.new_table(), new: self.new_table(), ..Keys::default() };
        for k in (0..t.table.foreign_keys.len()).rev() {
            let test = self.as_child(t, &keys, k, asked);
            keys.children.push(test);
        }
        for (child, k) in referring {
            let test = self.as_parent(t, &keys, child, k, asked);
            keys.parents.push(test);
        }
        t.keys = keys;
    }

    fn as_child(&mut self, t: &Target, keys: &Keys, key: usize, asked: &Asked<'_>) -> KeyTest {
        let f = &t.table.foreign_keys[key];
        let parent = self.env.catalog.schemas[t.db].table(&f.parent).cloned();
        let itself = parent.as_ref().is_some_and(|p| Rc::ptr_eq(p, &t.table));
        let texts = self.child_texts(t, f, parent.as_deref(), itself);
        let asks = asked(KeyRole::Child, &f.columns);
        let (violations, without_new) = self.bind_test(t, keys, itself, texts, asks);
        KeyTest {
            child: t.table.clone(),
            key,
            columns: f.columns.clone(),
            itself,
            violations,
            without_new,
            acts: self.env.key_actions,
        }
    }

    /// The tests of a child, as texts: as it is, and without what the row became.
    fn child_texts(
        &self,
        t: &Target,
        f: &ForeignKey,
        parent: Option<&Table>,
        itself: bool,
    ) -> Result<(String, String)> {
        let schema = &self.env.catalog.schemas[t.db];
        let Some(parent) = parent else {
            return Err(Error::sql(format!("no such table: {}.{}", schema.name, f.parent)));
        };
        let Some(in_parent) = parent_key(parent, f) else { return Err(mismatch(&t.table, f)) };
        let own = |c: usize| format!("\"own row\".{}", quote_name(&t.table.columns[c].name));
        let given: Vec<String> = f.columns.iter().map(|c| format!("{} IS NOT NULL", own(*c))).collect();
        let refers: Vec<String> = in_parent
            .columns
            .iter()
            .zip(&f.columns)
            .map(|(p, c)| format!("\"own row\".{} = +{}", quote_name(&parent.columns[*p].name), own(*c)))
            .collect();
        let same = in_parent.same(parent, "\"parent row\"", &f.columns, own);
        let from = format!("{}.{} AS \"parent row\"", quote_name(&schema.name), quote_name(&parent.name));
        let (given, same) = (given.join(" AND "), same.join(" AND "));
        let missing = format!("{given} AND NOT EXISTS (SELECT 1 AS n FROM {from} WHERE {same}");
        if !itself {
            return Ok((format!("{missing})"), String::new()));
        }
        let refers = format!(" AND ({}) IS NOT TRUE", refers.join(" AND "));
        let other = other_than_new(t, "parent row");
        Ok((format!("{missing}){refers}"), format!("{missing} AND {other}){refers}")))
    }

    fn as_parent(
        &mut self,
        t: &Target,
        keys: &Keys,
        child: Rc<Table>,
        key: usize,
        asked: &Asked<'_>,
    ) -> KeyTest {
        let f = &child.foreign_keys[key];
        let itself = Rc::ptr_eq(&child, &t.table);
        let found = parent_key(&t.table, f).map(|k| k.columns);
        let texts = match &found {
            Some(columns) => Ok(self.parent_texts(t, &child, f, columns)),
            None => Err(mismatch(&child, f)),
        };
        // Even without a key that holds them apart, they are the columns that matter.
        let columns = found.unwrap_or_else(|| match f.parent_columns.is_empty() {
            true => (0..t.table.columns.len()).filter(|c| t.table.columns[*c].pk > 0).collect(),
            false => f.parent_columns.iter().filter_map(|n| t.table.column(n)).collect(),
        });
        let asks = asked(KeyRole::Parent, &columns);
        let (violations, without_new) = self.bind_test(t, keys, itself, texts, asks);
        KeyTest {
            child: child.clone(),
            key,
            columns,
            itself,
            violations,
            without_new,
            acts: self.env.key_actions,
        }
    }

    /// The tests of a parent, as texts.
    fn parent_texts(&self, t: &Target, child: &Table, f: &ForeignKey, columns: &[usize]) -> (String, String) {
        let schema = &self.env.catalog.schemas[t.db];
        let same: Vec<String> = columns
            .iter()
            .zip(&f.columns)
            .map(|(p, c)| {
                let (p, c) = (&t.table.columns[*p].name, &child.columns[*c].name);
                format!("\"own row\".{} = \"child row\".{}", quote_name(p), quote_name(c))
            })
            .collect();
        let from = format!("{}.{} AS \"child row\"", quote_name(&schema.name), quote_name(&child.name));
        let count = format!("(SELECT count(*) AS n FROM {from} WHERE {}", same.join(" AND "));
        (format!("{count})"), format!("{count} AND {})", other_than_new(t, "child row")))
    }

    fn bind_test(
        &mut self,
        t: &Target,
        keys: &Keys,
        itself: bool,
        texts: Result<(String, String)>,
        asks: bool,
    ) -> (Result<Expr>, Option<Result<Expr>>) {
        match texts {
            Ok((all, other)) => {
                let all = match asks {
                    true => self.asking_for_reads(|b| b.key_expr(t, keys, &all)),
                    false => self.asking_nobody(|b| b.key_expr(t, keys, &all)),
                };
                (all, itself.then(|| self.asking_nobody(|b| b.key_expr(t, keys, &other))))
            }
            Err(e) => (Err(e), None),
        }
    }

    /// Binds a text over the two rows.
    fn key_expr(&mut self, t: &Target, keys: &Keys, text: &str) -> Result<Expr> {
        let e = iolite_sql::parse_expr(text)?;
        let source = |id, name: &str| ScopeSource {
            id,
            db: None,
            name: name.into(),
            columns: Columns::Table(t.table.clone()),
            hidden: Vec::new(),
        };
        let mut sources = Few::one(source(keys.own, "own row"));
        sources.push(source(keys.new, "new row"));
        let scopes = std::mem::replace(&mut self.scopes, Few::one(Scope { sources, ..Scope::default() }));
        let saved = (std::mem::take(&mut self.trigger), self.restriction, self.log.take());
        let out = self.expr(&e);
        (self.trigger, self.restriction, self.log) = saved;
        self.scopes = scopes;
        out.map_err(Error::without_offset)
    }
}

/// The condition that a row of the target's table is not what the row became.
fn other_than_new(t: &Target, other: &str) -> String {
    let other = quote_name(other);
    let differs = |name: &str| format!("{other}.{name} IS NOT \"new row\".{name}");
    if let Some(pk) = t.table.primary_index() {
        let column = |c: &iolite_catalog::IndexColumn| match c.source {
            iolite_catalog::ColumnSource::Column(k) => differs(&quote_name(&t.table.columns[k].name)),
            _ => "0".into(),
        };
        let all: Vec<String> = pk.columns[..pk.key_len].iter().map(column).collect();
        return format!("({})", all.join(" OR "));
    }
    if let Some(alias) = t.table.rowid_alias {
        return differs(&quote_name(&t.table.columns[alias].name));
    }
    let free = ["rowid", "oid", "_rowid_"].into_iter().find(|n| t.table.column(n).is_none());
    free.map_or("1".into(), differs)
}
