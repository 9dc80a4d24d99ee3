//! What foreign keys do about a change of a row: violations are counted, and actions are triggers made for the purpose.
//!
//! All of it happens behind the change. A violation that was there before and is mended counts as one less, so both
//! rows are asked about, the old one and the new. The counters start at 0 for a statement (immediate keys) or a transaction
//! (deferred ones): nothing is taken off a counter that is 0.

use crate::bind::{KeyRole, KeyTest, Keys, Target};
use crate::compiler::{Compiler, KeyTrigger};
use crate::planner::Planner;
use crate::statement::modify::{RowAction, Test, Which};
use crate::triggers::Event;
use iolite_base::{Code, Error, Result};
use iolite_catalog::Trigger;
use iolite_sql::ast::{ForeignKeyAction, Stmt};
use iolite_sql::print::{expr, quote_name};
use std::rc::Rc;

/// Of which key SQLite complains that it cannot be kept. Where one is touched, it looks at keys that are not as well: at those on the
/// table itself, and where rows go or change, at all whose parent the target is. It does so three times, and the last complaint is the one that is
/// heard.
fn complaint(keys: &Keys, e: &Event, alone: bool) -> Option<Error> {
    let changes = |x: &KeyTest| match e {
        Event::Update(changed) => x.columns.iter().any(|c| changed[*c]),
        _ => true,
    };
    let on_update = matches!(e, Event::Update(_));
    let was = !matches!(e, Event::Insert);
    let wrong = |x: &KeyTest| x.counted(false).err();
    let matters = |x: &KeyTest| changes(x) && !(alone && is_passed_over(x));
    if !keys.children.iter().any(changes) && !keys.parents.iter().any(matters) {
        return None;
    }
    let children: Vec<&KeyTest> = keys.children.iter().filter(|x| x.itself || changes(x)).collect();
    let parents: Vec<&KeyTest> = keys.parents.iter().filter(|x| matters(x)).collect();
    let acts = |x: &&&KeyTest| {
        let action = x.action(on_update);
        was && action != ForeignKeyAction::NoAction
    };
    let by_action = parents.iter().filter(acts).filter_map(|x| wrong(x)).next_back();
    let by_test = || children.iter().chain(&parents).find_map(|x| wrong(x));
    let by_row = || keys.parents.iter().filter(|_| was).filter_map(wrong).next_back();
    by_action.or_else(by_test).or_else(by_row)
}

/// Whether SQLite looks at a key with the target as parent where one row is inserted and nothing else happens: only at deferred ones.
fn is_passed_over(x: &KeyTest) -> bool {
    !x.key().deferred
}

impl Compiler<'_> {
    /// What is heard where the keys of an INSERT's DO UPDATE cannot be kept: what its own have to say comes last.
    pub(super) fn last_complaint(&self, t: &Target, e: Error) -> Error {
        let said = |x: &KeyTest| x.counted(false).err().is_some_and(|own| own.message() == e.message());
        match t.keys.children.iter().chain(&t.keys.parents).any(said) {
            true => complaint(&t.keys, &Event::Insert, false).unwrap_or(e),
            false => e,
        }
    }

    /// What the foreign keys of the target do behind a change; of an UPDATE, with the columns that change. `alone`: one row is inserted,
    /// and nothing else happens.
    pub(super) fn key_actions(
        &mut self,
        t: &Target,
        e: &Event,
        alone: bool,
        p: &mut Planner<'_>,
    ) -> Result<Vec<RowAction>> {
        let mut out = Vec::new();
        let changes = |columns: &[usize]| match e {
            Event::Update(changed) => columns.iter().any(|c| changed[*c]),
            _ => true,
        };
        let (was, is) = (!matches!(e, Event::Insert), !matches!(e, Event::Delete));
        if let Some(complaint) = complaint(&t.keys, e, alone) {
            return Err(complaint);
        }
        let (updates, inserts) = (was && is, !was);
        for (k, test) in t.keys.children.iter().enumerate().filter(|(_, x)| changes(&x.columns)) {
            let count = |row, adds, without_new| RowAction::Count {
                role: KeyRole::Child,
                key: k,
                row,
                adds,
                without_new,
            };
            if was {
                out.push(count(Which::Old, false, updates && test.itself));
            }
            if is {
                out.push(count(Which::New, true, false));
            }
        }
        let counts =
            |x: &KeyTest| changes(&x.columns) && !(alone && is_passed_over(x) && x.counted(false).is_err());
        for (k, test) in t.keys.parents.iter().enumerate().filter(|(_, x)| counts(x)) {
            // The row itself is looked at as a child.
            let also_child = test.itself && changes(&test.key().columns);
            let count = |row, adds, without_new| RowAction::Count {
                role: KeyRole::Parent,
                key: k,
                row,
                adds,
                without_new,
            };
            if was {
                out.push(count(Which::Old, true, also_child && updates));
            }
            if is {
                out.push(count(Which::New, false, also_child && (updates || inserts)));
            }
        }
        self.plan_counts(t, &out, p)?;
        if was {
            for test in t.keys.parents.iter().filter(|x| changes(&x.columns)) {
                if let Some(trigger) = self.key_trigger(t, test, updates)? {
                    let restricts = test.action(updates) == ForeignKeyAction::Restrict;
                    out.push(RowAction::Key { trigger: self.trigger(t, t.db, &trigger, None)?, restricts });
                }
            }
        }
        self.counts_keys |= !out.is_empty();
        self.undo |= !out.is_empty();
        Ok(out)
    }

    /// What a statement asks that inserts one row and does nothing else: for its parents.
    pub(super) fn parent_tests(&mut self, t: &Target, p: &mut Planner<'_>) -> Result<Vec<Test>> {
        for x in &t.keys.children {
            p.nested(x.counted(false)?)?;
        }
        Ok((0..t.keys.children.len()).map(|key| Test::Parent { key }).collect())
    }

    /// The row that such a statement inserts may be a parent that others miss only where all keys are deferred for now:
    /// otherwise nothing is violated when it begins.
    pub(super) fn awaited(&mut self, t: &Target, p: &mut Planner<'_>) -> Result<Vec<RowAction>> {
        let mut out = Vec::new();
        for (key, x) in t.keys.parents.iter().enumerate().filter(|(_, x)| x.counted(false).is_ok()) {
            let without_new = x.itself;
            out.push(RowAction::Count {
                role: KeyRole::Parent,
                key,
                row: Which::New,
                adds: false,
                without_new,
            });
        }
        self.plan_counts(t, &out, p)?;
        Ok(out)
    }

    /// Plans the queries of tests that are made, each once.
    fn plan_counts(&mut self, t: &Target, list: &[RowAction], p: &mut Planner<'_>) -> Result<()> {
        let mut planned = Vec::new();
        for a in list {
            let RowAction::Count { role, key, without_new, .. } = *a else { continue };
            if !planned.contains(&(role, key, without_new)) {
                planned.push((role, key, without_new));
                p.nested(t.keys.test(role, key).counted(without_new)?)?;
            }
        }
        Ok(())
    }

    /// The trigger for the action of a key, of which the target is the parent.
    fn key_trigger(&mut self, t: &Target, test: &KeyTest, on_update: bool) -> Result<Option<Rc<Trigger>>> {
        let key = test.key();
        let action = test.action(on_update);
        if action == ForeignKeyAction::NoAction {
            return Ok(None);
        }
        let known = |x: &&KeyTrigger| {
            Rc::ptr_eq(&x.child, &test.child) && x.key == test.key && x.on_update == on_update
        };
        if let Some(x) = self.key_triggers.iter().find(known) {
            return Ok(Some(x.trigger.clone()));
        }
        let (child, parent) = (&test.child, &t.table);
        let pairs: Vec<(String, String)> = test
            .columns
            .iter()
            .zip(&key.columns)
            .map(|(p, c)| {
                let name = |n: &str| quote_name(n).into_owned();
                (name(&parent.columns[*p].name), name(&child.columns[*c].name))
            })
            .collect();
        let join = |f: &dyn Fn(&(String, String)) -> String, by: &str| {
            pairs.iter().map(f).collect::<Vec<String>>().join(by)
        };
        let refers = join(&|(p, c)| format!("OLD.{p} = {c}"), " AND ");
        let name = quote_name(&child.name);
        let set = |f: &dyn Fn(&(String, String)) -> String| {
            format!("UPDATE {name} SET {} WHERE {refers}", join(f, ", "))
        };
        let step = match action {
            ForeignKeyAction::Cascade if on_update => set(&|(p, c)| format!("{c} = NEW.{p}")),
            ForeignKeyAction::Cascade => format!("DELETE FROM {name} WHERE {refers}"),
            ForeignKeyAction::SetNull => set(&|(_, c)| format!("{c} = NULL")),
            ForeignKeyAction::SetDefault => {
                let mut defaults = key.columns.iter().map(|c| match &child.columns[*c].default {
                    Some(d) => format!("({})", expr(&d.expr)),
                    None => "NULL".into(),
                });
                let list: Vec<String> = pairs
                    .iter()
                    .map(|(_, c)| format!("{c} = {}", defaults.next().unwrap_or_default()))
                    .collect();
                format!("UPDATE {name} SET {} WHERE {refers}", list.join(", "))
            }
            _ => format!("SELECT RAISE(ABORT, 'FOREIGN KEY constraint failed') FROM {name} WHERE {refers}"),
        };
        let when = match on_update {
            true => format!("WHEN NOT ({}) ", join(&|(p, _)| format!("OLD.{p} IS NEW.{p}"), " AND ")),
            false => String::new(),
        };
        let event = if on_update { "UPDATE" } else { "DELETE" };
        let text = format!(
            "CREATE TRIGGER {name} AFTER {event} ON {} {when}BEGIN {step}; END",
            quote_name(&parent.name)
        );
        let Stmt::CreateTrigger(ast) = iolite_sql::parse_stmt(&text)?.stmt else {
            return Err(Code::Internal.into());
        };
        let trigger = Rc::new(iolite_catalog::trigger_from_ast(*ast, &text));
        self.key_triggers.push(KeyTrigger {
            child: child.clone(),
            key: test.key,
            on_update,
            trigger: trigger.clone(),
        });
        Ok(Some(trigger))
    }
}
