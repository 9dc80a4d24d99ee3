//! The columnar engine as an executor: which blocks of a statement it runs, and how a run reaches it.

use super::engine::{Run, store, stores};
use super::size::{is_small, large, seems_small, watch};
use crate::column_store::At;
use crate::connection::{Connection, Inner};
use crate::settings::Analytics;
use iolite_base::{Code, Encoding, Few, Result};
use iolite_btree::Btree;
use iolite_columnar::{Answer, Compiled, Profile};
use iolite_ext::{RowSource, SourceFactory};
use iolite_plan::StatementPlan;
use iolite_plan::bound::SourceKind;
use iolite_plan::executor::{Block, Estimate, Executor, Offer, few_entries};
use iolite_plan::plan::{CorePlan, Grouping, SourceRun};
use iolite_plan::print::source_name;
use iolite_value::Value;
use std::cell::RefCell;
use std::rc::Rc;

/// Decides which blocks of a statement are run in columns. `explained`: somebody asks how it would be run now.
pub(crate) fn choose(conn: &Connection, plan: &StatementPlan, explained: bool) -> Result<()> {
    let c = &conn.0;
    let mode = c.settings.analytics();
    // Other threads would not know of other digits.
    if mode == Analytics::Off || c.settings.real_digits() != iolite_value::num::USUAL_DIGITS {
        return Ok(());
    }
    let force = mode == Analytics::Force;
    let columns = Columns { conn: c, force, explained, watched: RefCell::default() };
    iolite_plan::executor::choose(plan, &columns)
}

struct Columns<'c> {
    conn: &'c Rc<Inner>,
    /// Wherever it is possible.
    force: bool,
    explained: bool,
    /// The last watch, for further blocks over the same tables.
    watched: RefCell<Option<(Few<At>, SourceFactory)>>,
}

impl Columns<'_> {
    /// Whether columns do not know what the connection is set to.
    fn rows_only(&self) -> bool {
        let c = self.conn;
        // Who shares a cache may see what others have not committed: columns know committed states.
        c.txn.is_nested()
            || c.sharing.is_some()
            || c.settings.reverse_unordered()
            || c.encoding() != Encoding::Utf8
    }

    /// The tables of a block, and of the queries nested in the statement's expressions, if all of them are small.
    fn small(&self, block: &Block<'_>) -> Option<Few<At>> {
        let mut seen: Few<At> = Few::new();
        let nested = block.nested.iter().flat_map(|(_, q)| q.cores.iter());
        let all = std::iter::once(block.core).chain(nested).all(|c| self.all_small(c, &mut seen));
        Some(seen).filter(|s| all && !s.is_empty())
    }

    /// Whether the tables of a block, and of its queries in FROM, are small; notes them.
    fn all_small(&self, core: &CorePlan, seen: &mut Few<At>) -> bool {
        if let Some(w) = &core.window
            && !self.all_small(&w.input, seen)
        {
            return false;
        }
        core.levels.iter().all(|l| {
            let SourceKind::Table { db, table } = &l.source.kind else {
                let arms = l.query.iter().flat_map(|q| q.select.cores.iter());
                return arms.into_iter().all(|c| self.all_small(c, seen));
            };
            let at = (*db, table.root.get());
            if seen.contains(&at) {
                return true;
            }
            seen.push(at);
            table.has_rowid()
                && match self.explained {
                    true => is_small(self.conn, at),
                    false => seems_small(self.conn, *db, table),
                }
        })
    }
}

impl Executor for Columns<'_> {
    fn estimate(&self, block: &Block<'_>) -> Result<Estimate> {
        // What is seldom true is asked first.
        if !self.force && !iolite_columnar::pays(block) || self.rows_only() {
            return Ok(Estimate::Loops);
        }
        if self.force {
            return Ok(Estimate::Pays);
        }
        let Some(tables) = self.small(block) else { return Ok(Estimate::Pays) };
        let mut last = self.watched.borrow_mut();
        match &*last {
            Some((same, watch)) if same[..] == tables[..] => Ok(Estimate::Small(watch.clone())),
            _ => {
                let watch = watch(Rc::downgrade(self.conn), tables.clone());
                *last = Some((tables, watch.clone()));
                Ok(Estimate::Small(watch))
            }
        }
    }

    fn compile(&self, block: &Block<'_>) -> Result<Offer> {
        let known = self.conn.overridden.borrow();
        let overridden = |name: &str| known.iter().any(|n| n.eq_ignore_ascii_case(name));
        let compiled = match Compiled::new(block, &overridden) {
            Ok(c) => c,
            Err(why) => return Ok(Offer::Declined(self.force.then_some(why))),
        };
        if self.explained && !self.force && refused(self.conn, &compiled) {
            // It would be tried, and left to its loops.
            return Ok(Offer::Declined(None));
        }
        let params = compiled.params().to_vec();
        let lines = if self.explained { lines(block, &compiled) } else { Vec::new() };
        let source = source(self.conn, compiled, self.force, block);
        let few = if self.force { None } else { few_entries(block.core) };
        Ok(Offer::Run(SourceRun { source, params, lines, number: block.number, few }))
    }
}

/// Whether a block was left to its loops when it last ran.
fn refused(conn: &Inner, compiled: &Compiled) -> bool {
    let Some((db, ..)) = compiled.tables().first().cloned() else { return false };
    conn.btree_of(db).and_then(|bt| store(conn, db, &bt)).is_ok_and(|s| compiled.was_refused(&s))
}

/// What a run does, for EXPLAIN QUERY PLAN.
fn lines(block: &Block<'_>, compiled: &Compiled) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let window = block.core.window.as_ref();
    let core = window.map_or(block.core, |w| &w.input);
    for l in core.levels.iter().filter(|l| l.source.exists.is_none()) {
        let word = if out.is_empty() { "SCAN" } else { "JOIN" };
        out.push(format!("{word} {} IN COLUMNS", source_name(&l.source)));
    }
    // The tables under windows stand above.
    let above = if window.is_some() { out.len() } else { 0 };
    let nested = compiled.tables().into_iter().filter_map(|t| t.2).skip(above);
    out.extend(nested.map(|name| format!("NESTED {name} IN COLUMNS")));
    if window.is_some() {
        out.push("WINDOWS IN COLUMNS".into());
    }
    out
}

/// Whether the loops of a block would still read its tables when their first row is out.
fn reads_on(block: &Block<'_>) -> bool {
    let core = block.core;
    (block.order.is_empty() || core.delivered > 0)
        && core.window.is_none()
        && matches!(core.grouping, Grouping::None | Grouping::Ordered)
}

/// What opens a run of a block in columns.
fn source(conn: &Rc<Inner>, compiled: Compiled, force: bool, block: &Block<'_>) -> SourceFactory {
    let conn = Rc::downgrade(conn);
    let (number, reads_on) = (block.number, reads_on(block));
    let tables: Vec<At> = compiled.tables().into_iter().map(|(db, root, _)| (db, root)).collect();
    SourceFactory(Rc::new(move |host, given| {
        let Some(conn) = conn.upgrade() else { return Err(Code::Misuse.into()) };
        let wanted = given.first().map_or(-1, Value::to_int);
        let params = given.get(1..).unwrap_or(&[]);
        let profile = conn.profile.borrow().is_some().then(Profile::default);
        let run = Run { conn: &conn, host, force, profile: profile.as_ref() };
        if !force && (compiled.walks_few(&run, params) || large(&conn, &tables).is_none()) {
            return Ok(None);
        }
        let rows = match compiled.run(&run, params, wanted) {
            Err(e) if !matches!(e.code().primary(), Code::Interrupt | Code::Nomem | Code::Full) => {
                conn.column_errors.set(conn.column_errors.get() + 1);
                // Loops answer: they need not come where pages are damaged. Anything else is a fault of the engine, which
                // nobody shall overlook where columns are insisted on, as tests do.
                let damage = matches!(e.code().primary(), Code::Corrupt | Code::Ioerr);
                if force && !damage {
                    return Err(e);
                }
                None
            }
            other => other?,
        };
        stores(&conn).iter().for_each(|(s, bt)| s.after_run(bt));
        if let (Some(p), Some(lines)) = (profile, &mut *conn.profile.borrow_mut()) {
            lines.extend(p.into_lines().into_iter().map(|l| (number, l)));
        }
        let Some(answer) = rows else { return Ok(None) };
        conn.column_runs.set(conn.column_runs.get() + 1);
        let read = match tables.first() {
            Some((db, _)) if reads_on => Some(conn.btree_of(*db)?),
            _ => None,
        };
        let read = read.map(|tree| (tree.cuts(), tree));
        Ok(Some(Box::new(Rows { answer, read }) as Box<dyn RowSource>))
    }))
}

/// Computed rows.
struct Rows {
    answer: Answer,
    /// Where the loops would still read: cursors of this tree stop as soon as it cuts them, and so do the rows.
    read: Option<(u32, Btree)>,
}

impl RowSource for Rows {
    fn next(&mut self, out: &mut [Value]) -> Result<bool> {
        if self.read.as_ref().is_some_and(|(cuts, tree)| *cuts != tree.cuts()) {
            return Err(Code::AbortRollback.into());
        }
        self.answer.next(out)
    }
}
