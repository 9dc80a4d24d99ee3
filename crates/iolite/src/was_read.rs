//! What has changed in tables since somebody read them: [`iolite_ext::Host::changed_since`].
//!
//! A note names a state of the database by its mark, and has the pages of each table's tree, once they were looked for. Which pages differ
//! between two states is asked of the pager, as the column cache asks it; of those that are the tree's follows which rows are concerned.
//! Trees are first looked for when the state has changed: as long as it has not, a note costs nothing.
//!
//! What always holds: a note is of a committed state. Within a transaction that writes it is of the state at which that began, and there is an
//! answer only where the transaction has changed no page of the trees; otherwise it can be asked what differs from a note, which stays what it
//! was. Nothing here knows what is kept.

use crate::connection::Inner;
use iolite_base::{Pgno, Result};
use iolite_btree::{Btree, Extent, Mark, RowsChanged};
use iolite_catalog::TableKind;
use iolite_ext::{Changed, Changes, ReadNote, WasRead};
use std::rc::Rc;

/// Where the present transaction has changed more pages than these, it is not asked which: there is no answer.
const MOST_OWN: usize = 20_000;

/// What a note holds.
#[derive(Clone)]
struct Note {
    mark: Mark,
    page_size: u32,
    trees: Vec<Tree>,
}

#[derive(Clone)]
struct Tree {
    root: Pgno,
    /// Not looked for yet: none.
    extent: Option<Rc<Extent>>,
}

fn told(changed: RowsChanged) -> Changed {
    match changed {
        RowsChanged::Nothing => Changed::Nothing,
        RowsChanged::Some(rows) => Changed::Rows(rows),
        RowsChanged::All => Changed::All,
    }
}

impl Inner {
    /// See [`iolite_ext::Host::changed_since`].
    pub(crate) fn changes_of(&self, db: usize, tables: &[WasRead], note: &mut ReadNote) -> Option<Changes> {
        let b = self.btree_of(db).ok()?;
        let known = note.as_ref().and_then(|n| n.downcast_ref::<Note>());
        let (mark, own) = match b.mark() {
            Some(mark) => (mark, Vec::new()),
            None => b.began_from().filter(|f| f.1.len() <= MOST_OWN)?,
        };
        if own.is_empty() && known.is_some_and(|k| k.mark == mark) {
            return Some(Changes::Nothing);
        }
        // Damage is found by who reads the rows.
        let (new, changes) = self.follow(&b, db, tables, known, (mark, &own)).ok()??;
        *note = Some(Box::new(new));
        Some(changes)
    }

    /// See [`iolite_ext::Host::changed_within`].
    pub(crate) fn changes_within(&self, db: usize, tables: &[WasRead], note: &ReadNote) -> Option<Changes> {
        let b = self.btree_of(db).ok()?;
        let known = note.as_ref().and_then(|n| n.downcast_ref::<Note>())?;
        let (began, own) = b.began_from().filter(|f| f.1.len() <= MOST_OWN)?;
        if known.page_size != b.page_size() || known.trees.len() != tables.len() {
            return None;
        }
        let mut pages = own;
        if known.mark != began {
            pages.extend(b.changed_since(&known.mark).ok()??);
        }
        let mut all = Vec::with_capacity(tables.len());
        for (t, then) in tables.iter().zip(&known.trees) {
            if self.root_of(db, &t.table).ok()?? != then.root {
                return None;
            }
            let changed = match then.extent.as_ref().filter(|e| e.is_for(&b, t.longest)) {
                Some(e) => e.follow(&b, &pages, true),
                None => Rc::new(Extent::read(&b, then.root, t.longest).ok()?).follow(&b, &pages, false),
            };
            all.push(told(changed.ok()?.1));
        }
        Some(Changes::Tables(all))
    }

    fn follow(
        &self,
        b: &Btree,
        db: usize,
        tables: &[WasRead],
        known: Option<&Note>,
        (mark, own): (Mark, &[Pgno]),
    ) -> Result<Option<(Note, Changes)>> {
        let page_size = b.page_size();
        let pages = match known.filter(|k| k.page_size == page_size && k.trees.len() == tables.len()) {
            Some(k) => b.changed_since(&k.mark)?,
            None => None,
        };
        let mut new = Note { mark, page_size, trees: Vec::with_capacity(tables.len()) };
        let mut all = Vec::with_capacity(tables.len());
        for (at, t) in tables.iter().enumerate() {
            let Some(root) = self.root_of(db, &t.table)? else { return Ok(None) };
            let is_for = |e: &Option<Rc<Extent>>| e.as_ref().is_none_or(|e| e.is_for(b, t.longest));
            let then = known.and_then(|k| k.trees.get(at));
            let then = then.filter(|then| then.root == root && is_for(&then.extent));
            let (mut extent, changed) = match (&pages, then) {
                (Some(pages), Some(_)) if pages.is_empty() => {
                    (then.and_then(|t| t.extent.clone()), RowsChanged::Nothing)
                }
                (Some(pages), Some(Tree { extent: Some(e), .. })) => {
                    let (e, changed) = e.follow(b, pages, true)?;
                    (Some(e), changed)
                }
                (Some(pages), Some(_)) => {
                    let now = Rc::new(Extent::read(b, root, t.longest)?);
                    let (e, changed) = now.follow(b, pages, false)?;
                    (Some(e), changed)
                }
                _ => (None, RowsChanged::All),
            };
            if !own.is_empty() {
                let e = match extent.take() {
                    Some(e) => e,
                    None => Rc::new(Extent::read(b, root, t.longest)?),
                };
                if e.has_any(own) {
                    return Ok(None);
                }
                extent = Some(e);
            }
            new.trees.push(Tree { root, extent });
            all.push(told(changed));
        }
        if tables.is_empty() {
            // The database as a whole.
            return Ok(Some((new, Changes::Tables(all))));
        }
        let nothing = all.iter().all(|c| *c == Changed::Nothing);
        Ok(Some((new, if nothing { Changes::Nothing } else { Changes::Tables(all) })))
    }

    /// The root of a table's tree.
    fn root_of(&self, db: usize, table: &str) -> Result<Option<Pgno>> {
        self.be_current(None, false)?;
        let catalog = self.catalog.borrow();
        let found = catalog.schemas.get(db).and_then(|s| s.table(table));
        Ok(found.filter(|t| matches!(t.kind, TableKind::Rowid)).map(|t| t.root.get()))
    }
}
