//! The best rows of a query by `bm25`, without scoring every row that matches: lists of phrases' rows and the sizes of rows are kept in
//! memory, never in the file.
//!
//! Which queries are answered so is decided in [`Wanted::of`] alone; all others go through the index row by row. `MATCH '*ranked'` tells how
//! many were, `MATCH '*kept'` how many bytes are kept; plans look alike.
//!
//! What always holds: scores and order are those of going through the index, to the bit. What is kept belongs to one state of the tables
//! `_data` and `_docsize`, and to one connection; changes of other tables, by whomever, leave it as it is
//! ([`iolite_ext::Host::changed_since`]). Where the table itself has changed, lists go, and of the sizes those of rows that changed are read again. What has
//! changed is asked before anything is used, and again before anything is kept. Where it cannot be told, as within a transaction that has changed
//! the table, what is read is for one query. So it is where this table has changes that are not in the file yet.
//!
//! What one query pays is bounded by what it would pay without: each phrase's rows are read once, as `bm25` does to count them, and sizes
//! are read one by one until they are many ([`AT_ONCE`], [`IN_ALL`]).

mod best;
mod list;
mod sizes;

use crate::auxiliary::Auxiliary;
use crate::config::{Config, Detail};
use crate::query::{Expr, Query};
use crate::storage::{Storage, Totals};
use best::{Hit, Search, Tree};
use iolite_base::hash::FastMap;
use iolite_base::{Code, Error, Result, alloc};
use iolite_ext::{Changed, Changes, ReadNote};
use iolite_value::Value;
use list::{List, Weights};
pub(crate) use sizes::Asked;
use sizes::Sizes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// So many bytes of lists are kept for a table at the most.
const MOST_OF_TABLE: usize = 32 << 20;
/// So many bytes are kept in the process at the most.
const MOST: usize = 128 << 20;
/// Where nobody says how many rows are wanted, so many are found at first.
const FIRST: usize = 64;

/// Sizes of all rows are read where a query needs those of one of so many: one after the other they cost a seventh of each by itself.
const AT_ONCE: i64 = 8;
/// Or where the queries of a state needed those of one of so many, counting all queries.
const IN_ALL: i64 = 4;
/// At most so many sizes that were read one by one are kept.
const SOME: usize = 1 << 16;

/// The place of `_docsize` among the tables that are asked for.
const DOCSIZE: usize = 1;

/// Bytes that are kept in the process.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A list that is kept.
struct Entry {
    list: Rc<List>,
    used: u64,
    bytes: usize,
}

impl Entry {
    fn new(list: Rc<List>, used: u64) -> Entry {
        let bytes = list.bytes();
        KEPT.fetch_add(bytes, Relaxed);
        Entry { list, used, bytes }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.bytes, Relaxed);
    }
}

/// What is kept of one state.
#[derive(Default)]
struct State {
    note: ReadNote,
    lists: FastMap<Vec<u8>, Entry>,
    sizes: Option<Rc<Sizes>>,
    /// How many sizes queries needed one by one, the same ones too.
    needed: i64,
    /// Sizes that were read one by one.
    some_sizes: FastMap<i64, u32>,
    queries: u64,
}

impl State {
    /// What is kept where the table has changed: sizes.
    fn follow(&mut self, storage: &Storage, changes: &Changes) {
        if *changes == Changes::Nothing {
            return;
        }
        let (note, sizes) = (self.note.take(), self.sizes.take());
        *self = State { note, ..State::default() };
        self.sizes = sizes.and_then(|s| match changes.of(DOCSIZE) {
            Changed::Nothing => Some(s),
            // What cannot be read is missed by who needs it.
            Changed::Rows(rows) => s.follow(storage, &rows).ok()?.map(Rc::new),
            Changed::All => None,
        });
    }

    fn bytes(&self) -> usize {
        self.lists.values().map(|e| e.bytes).sum()
    }

    /// Lets go of what was not used for the longest time, until the rest is little enough.
    fn shrink(&mut self) {
        // Where a program limits the heap, an eighth of that.
        let limit = |n: i64| usize::try_from(n).ok().filter(|n| *n > 0).map_or(usize::MAX, |n| n / 8);
        let most = MOST_OF_TABLE.min(limit(alloc::hard_limit(-1))).min(limit(alloc::soft_limit(-1)));
        let mut bytes = self.bytes();
        while bytes > most || KEPT.load(Relaxed) > MOST {
            let oldest = self.lists.iter().min_by_key(|e| e.1.used).map(|e| e.0.clone());
            let Some(gone) = oldest.and_then(|key| self.lists.remove(&key)) else { return };
            bytes -= gone.bytes;
        }
    }
}

/// What a table keeps.
#[derive(Default)]
pub(crate) struct Kept {
    state: RefCell<State>,
    /// How many queries were answered from lists.
    answered: Cell<i64>,
}

/// What a cursor wants.
pub(crate) struct Request<'r> {
    pub query: &'r Query,
    pub function: &'r dyn Auxiliary,
    pub args: &'r [Value],
    /// The first and the last rowid.
    pub bounds: (i64, i64),
    /// The last rows come first.
    pub worst: bool,
    /// How many rows are wanted; none: nobody knows.
    pub limit: Option<usize>,
}

/// Rows in the order of their ranks, and how to find more.
pub(crate) struct Ranked {
    /// Ranks and rowids.
    pub rows: Vec<(Value, i64)>,
    rest: Option<Search>,
    worst: bool,
    hits: Vec<Option<i64>>,
}

impl Ranked {
    fn of(hits: &[Hit], rest: Option<Search>, worst: bool, counts: Vec<Option<i64>>) -> Ranked {
        let rows = hits.iter().map(|h| (Value::real(-h.score), h.rowid)).collect();
        Ranked { rows, rest, worst, hits: counts }
    }

    /// Rows that are all there are.
    pub fn whole(rows: Vec<(Value, i64)>) -> Ranked {
        Ranked { rows, rest: None, worst: false, hits: Vec::new() }
    }

    /// All rows, if these were not all; the first ones are the same. They are those of the state in which the query began.
    pub fn extend(&mut self) -> bool {
        let Some(search) = self.rest.take() else { return false };
        let before = self.rows.len();
        let hits = search.all(self.worst);
        self.rows = hits.iter().map(|h| (Value::real(-h.score), h.rowid)).collect();
        self.rows.len() > before
    }

    /// How many rows have a phrase, if that is known.
    pub fn phrase_rows(&self, phrase: usize) -> Option<i64> {
        *self.hits.get(phrase)?
    }
}

/// A query that is answered from lists.
struct Wanted {
    tree: Tree,
    weights: Weights,
}

impl Wanted {
    /// Decides. The index has to say where phrases are and how long rows are. Weights below zero make bounds no bounds.
    fn of(config: &Config, r: &Request<'_>) -> Option<Wanted> {
        if config.detail != Detail::Full || !config.column_size || !r.function.is_bm25() {
            return None;
        }
        let mut weights: Vec<f64> = r.args.iter().map(Value::to_real).collect();
        if weights.iter().any(|w| !(0.0..1e100).contains(w)) {
            return None;
        }
        weights.truncate(config.columns.len());
        let weights = weights.iter().any(|w| *w != 1.0).then_some(weights);
        Some(Wanted { tree: tree(r.query.root.as_ref()?), weights })
    }
}

fn tree(e: &Expr) -> Tree {
    let all = |l: &[Expr]| -> Vec<Tree> { l.iter().map(tree).collect() };
    match e {
        Expr::Near(n) => match n.phrases[..] {
            [phrase] => Tree::Leaf(phrase),
            // Their lists have the rows in which they are near each other.
            _ => Tree::And(n.phrases.iter().map(|p| Tree::Leaf(*p)).collect()),
        },
        Expr::Nothing => Tree::Nothing,
        Expr::And(l) => Tree::And(all(l)),
        Expr::Or(l) => Tree::Or(all(l)),
        Expr::Not(l) => Tree::Not(Box::new([tree(&l[0]), tree(&l[1])])),
    }
}

/// The phrases of a part of a query; `scoring`: without those that rows must not have.
fn phrases(t: &Tree, scoring: bool, out: &mut Vec<usize>) {
    match t {
        Tree::Nothing => {}
        Tree::Leaf(p) => out.push(*p),
        Tree::And(l) | Tree::Or(l) => l.iter().for_each(|t| phrases(t, scoring, out)),
        Tree::Not(pair) => {
            phrases(&pair[0], scoring, out);
            if !scoring {
                phrases(&pair[1], scoring, out);
            }
        }
    }
}

/// What names a phrase's list: of all its rows, or of those in which it is where the query wants it.
fn key(query: &Query, phrase: usize, weights: &Weights, anywhere: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let number = |n: usize, out: &mut Vec<u8>| out.extend((n as u64).to_le_bytes());
    let alone = [phrase];
    let mut phrases = &alone[..];
    if let Some(near) = query.near_of(phrase).filter(|n| !anywhere && n.phrases.len() > 1) {
        phrases = &near.phrases;
        number(near.phrases.iter().position(|p| *p == phrase).unwrap_or(0), &mut out);
        number(near.distance as usize, &mut out);
    }
    number(phrases.len(), &mut out);
    for p in phrases {
        let terms = &query.phrases[*p].terms;
        number(terms.len(), &mut out);
        for t in terms {
            out.push(t.prefix as u8 | (t.first as u8) << 1);
            number(t.tokens.len(), &mut out);
            for token in &t.tokens {
                number(token.len(), &mut out);
                out.extend_from_slice(token);
            }
        }
    }
    let columns = query.columns_of(phrase);
    number(columns.map_or(0, |c| c.len() + 1), &mut out);
    columns.iter().copied().flatten().for_each(|c| number(*c as usize, &mut out));
    weights.iter().flatten().for_each(|w| out.extend(w.to_bits().to_le_bytes()));
    out
}

impl Kept {
    /// How many queries were answered from lists, for `MATCH '*ranked'`.
    pub fn answered(&self) -> i64 {
        self.answered.get()
    }

    /// How many bytes are kept, for `MATCH '*kept'`.
    pub fn bytes(&self) -> i64 {
        let state = self.state.borrow();
        (state.bytes() + state.sizes.as_ref().map_or(0, |s| s.bytes())) as i64
    }

    /// Calls `f` with what is kept of the present state, or with what is thrown away afterwards, and whether it is kept.
    fn with<T>(&self, storage: &Storage, f: impl FnOnce(&mut State, bool) -> T) -> T {
        // Nobody holds it while statements run: they may come back here.
        let mut state = self.state.take();
        let known = storage.changes(&mut state.note);
        let mut now = match &known {
            Some(changes) => {
                state.follow(storage, changes);
                std::mem::take(&mut state)
            }
            None => State::default(),
        };
        let found = f(&mut now, known.is_some());
        if known.is_none() {
            self.state.replace(state);
        } else if storage.changes(&mut now.note) == Some(Changes::Nothing) {
            now.shrink();
            self.state.replace(now);
        }
        found
    }

    /// The sizes of all rows, if they are kept, or are to be read for a query that asked for those of so many, of `more` since it was here.
    pub fn sizes(&self, storage: &Storage, asked: i64, more: i64) -> Option<Rc<Sizes>> {
        let rows = storage.totals().ok()?.rows;
        self.with(storage, |state, _| {
            state.needed += if asked == 0 { 0 } else { more };
            let many = asked > rows / AT_ONCE || state.needed > rows / IN_ALL;
            if state.sizes.is_none() && many && Sizes::fit(rows) {
                // Who asks for a row's size finds out what is wrong.
                state.sizes = Sizes::read(storage).ok().flatten().map(Rc::new);
            }
            state.sizes.clone()
        })
    }

    /// How many rows have a phrase; `None`: ask the index.
    pub fn hits(&self, storage: &Storage, query: &Query, phrase: usize) -> Result<Option<i64>> {
        if storage.config.detail != Detail::Full || query.near_of(phrase).is_none() {
            return Ok(None);
        }
        let list = self.with(storage, |state, keeps| -> Result<Option<Rc<List>>> {
            let key = key(query, phrase, &None, true);
            if let Some(e) = state.lists.get(&key) {
                return Ok(Some(e.list.clone()));
            }
            let Some(list) = List::read(storage, query, phrase, &None)? else { return Ok(None) };
            let list = Rc::new(list);
            if keeps {
                state.lists.insert(key, Entry::new(list.clone(), state.queries));
            }
            Ok(Some(list))
        });
        match list {
            Err(e) if matches!(e.code().primary(), Code::Corrupt | Code::Nomem) => Ok(None),
            list => Ok(list?.map(|l| l.hits)),
        }
    }

    /// The rows of a query in the order of their ranks; `None`: it has to go through the index.
    pub fn find(&self, storage: &Storage, r: &Request<'_>) -> Result<Option<Ranked>> {
        let Some(wanted) = Wanted::of(&storage.config, r) else { return Ok(None) };
        let totals = storage.totals()?;
        if totals.rows <= 0 || totals.tokens.iter().sum::<i64>() <= 0 {
            return Ok(None);
        }
        let found =
            self.with(storage, |state, keeps| Running { storage, r, totals, state, keeps }.run(wanted));
        self.answered.set(self.answered.get() + matches!(found, Ok(Some(_))) as i64);
        match found {
            // Without memory, or on damage: the way without lists tells what is wrong, if it comes across it.
            Err(e) if matches!(e.code().primary(), Code::Corrupt | Code::Nomem) => Ok(None),
            found => found,
        }
    }
}

/// A query that is being answered.
struct Running<'r> {
    storage: &'r Storage,
    r: &'r Request<'r>,
    totals: Totals,
    state: &'r mut State,
    keeps: bool,
}

impl Running<'_> {
    fn run(&mut self, wanted: Wanted) -> Result<Option<Ranked>> {
        let Wanted { tree, weights } = wanted;
        let query = self.r.query;
        let (mut all, mut scoring) = (Vec::new(), Vec::new());
        phrases(&tree, false, &mut all);
        phrases(&tree, true, &mut scoring);
        self.state.queries += 1;
        let mut lists: Vec<Option<Rc<List>>> = vec![None; query.phrases.len()];
        for &p in &all {
            if lists[p].is_none() && !self.lists_of(p, &weights, &mut lists)? {
                return Ok(None);
            }
        }
        let counts: Vec<_> = lists.iter().map(|l| l.as_ref().map(|l| l.hits)).collect();
        if counts.iter().flatten().any(|n| *n > self.totals.rows) {
            // What was counted is wrong.
            return Ok(None);
        }
        let mut search = Search { tree, lists, bounds: self.r.bounds };
        let (mut matches, worst) = (search.at_most(), self.r.worst);
        let unscored = |s: &Search| -> usize {
            let rows = |p: &usize| s.lists[*p].as_ref().filter(|l| !l.scored).map_or(0, |l| l.rows.len());
            scoring.iter().map(rows).sum()
        };
        let mut left = unscored(&search);
        if left > 0 && self.state.sizes.is_none() {
            let any = |l: &[Tree]| l.iter().all(|t| matches!(t, Tree::Leaf(_)));
            if !matches!(&search.tree, Tree::Leaf(_)) && !matches!(&search.tree, Tree::Or(l) if any(l)) {
                // That many was only a bound.
                matches = search.count_matches();
            }
            let rows = self.totals.rows;
            let needed = matches.min(left) as i64;
            self.state.needed += needed;
            if Sizes::fit(rows) && (needed > rows / AT_ONCE || self.state.needed > rows / IN_ALL) {
                self.state.sizes = Sizes::read(self.storage)?.map(Rc::new);
            }
        }
        if self.state.sizes.is_some() || left <= 2 * matches {
            for &p in &scoring {
                if !self.score(&mut search, p, &weights)? {
                    return Ok(None);
                }
            }
            left = 0;
        }
        if left > 0 {
            return self.score_matches(&search, counts);
        }
        let limit = self.r.limit.unwrap_or(FIRST);
        if worst || matches <= limit {
            return Ok(Some(Ranked::of(&search.all(worst), None, worst, counts)));
        }
        let hits = search.best(limit);
        let rest = (hits.len() == limit).then_some(search);
        Ok(Some(Ranked::of(&hits, rest, worst, counts)))
    }

    /// A list that is kept.
    fn kept(&mut self, key: &[u8]) -> Option<Rc<List>> {
        let e = self.state.lists.get_mut(key)?;
        e.used = self.state.queries;
        Some(e.list.clone())
    }

    /// The list of all rows of a phrase; none: they are too many.
    fn list_anywhere(&mut self, phrase: usize, weights: &Weights) -> Result<Option<Rc<List>>> {
        let query = self.r.query;
        let key = key(query, phrase, weights, true);
        if let Some(list) = self.kept(&key) {
            return Ok(Some(list));
        }
        Ok(List::read(self.storage, query, phrase, weights)?.map(|list| self.keep(key, list)))
    }

    /// The lists of a phrase and of those that have to be near it; false: they are too long.
    fn lists_of(&mut self, phrase: usize, weights: &Weights, out: &mut [Option<Rc<List>>]) -> Result<bool> {
        let query = self.r.query;
        let near = query.near_of(phrase).map_or(&[][..], |n| &n.phrases);
        if near.len() < 2 {
            out[phrase] = self.list_anywhere(phrase, weights)?;
            return Ok(out[phrase].is_some());
        }
        let keys: Vec<Vec<u8>> = near.iter().map(|p| key(query, *p, weights, false)).collect();
        for (p, key) in near.iter().zip(&keys) {
            out[*p] = self.kept(key);
        }
        if near.iter().all(|p| out[*p].is_some()) {
            return Ok(true);
        }
        let mut hits = Vec::new();
        for p in near {
            let Some(list) = self.list_anywhere(*p, weights)? else { return Ok(false) };
            hits.push(list.hits);
        }
        let Some(lists) = List::read_near(self.storage, query, near, weights)? else { return Ok(false) };
        for (((p, key), mut list), hits) in near.iter().zip(keys).zip(lists).zip(hits) {
            list.hits = hits;
            out[*p] = Some(self.keep(key, list));
        }
        Ok(true)
    }

    /// Keeps a list, if it may be kept.
    fn keep(&mut self, key: Vec<u8>, list: List) -> Rc<List> {
        let list = Rc::new(list);
        if self.keeps {
            self.state.lists.insert(key, Entry::new(list.clone(), self.state.queries));
        }
        list
    }

    /// Makes sure that a phrase's list is scored; false: it cannot be.
    fn score(&mut self, search: &mut Search, phrase: usize, weights: &Weights) -> Result<bool> {
        let Some(list) = search.lists[phrase].take_if(|l| !l.scored) else { return Ok(true) };
        let key = key(self.r.query, phrase, weights, false);
        // Another phrase of the query may be the same one.
        if let Some(e) = self.state.lists.get(&key).filter(|e| e.list.scored) {
            search.lists[phrase] = Some(e.list.clone());
            return Ok(true);
        }
        self.state.lists.remove(&key);
        let mut list = match Rc::try_unwrap(list) {
            Ok(list) => list,
            Err(shared) => shared.copy()?,
        };
        let average = average(&self.totals);
        let sizes = self.state.sizes.clone();
        let scored = match sizes {
            Some(sizes) => list.score_by(self.totals.rows, average, &sizes)?,
            None => {
                let mut columns = Vec::new();
                list.score(self.totals.rows, average, |row| self.size(row, &mut columns))?
            }
        };
        if scored {
            search.lists[phrase] = Some(self.keep(key, list));
        }
        Ok(scored)
    }

    /// The number of tokens of a row, if it is known.
    fn size(&mut self, row: i64, columns: &mut Vec<i64>) -> Result<Option<u32>> {
        if let Some(n) = self.state.some_sizes.get(&row) {
            return Ok(Some(*n));
        }
        if !self.storage.read_sizes(row, columns)? {
            return Ok(None);
        }
        let n = u32::try_from(columns.iter().sum::<i64>()).ok();
        if let Some(n) = n.filter(|_| self.state.some_sizes.len() < SOME) {
            self.state.some_sizes.insert(row, n);
        }
        Ok(n)
    }

    /// Scores the rows that match, which are few, without scoring the lists.
    fn score_matches(&mut self, search: &Search, counts: Vec<Option<i64>>) -> Result<Option<Ranked>> {
        let average = average(&self.totals);
        let rarity: Vec<f64> =
            counts.iter().map(|n| crate::auxiliary::bm25::rarity(self.totals.rows, n.unwrap_or(0))).collect();
        let scored: Vec<bool> = search.lists.iter().map(|l| l.as_ref().is_some_and(|l| l.scored)).collect();
        let mut hits = Vec::new();
        let (mut columns, mut usable) = (Vec::new(), true);
        search.each(|rowid, values| {
            let Some(n) = self.size(rowid, &mut columns)? else {
                usable = false;
                return Ok(());
            };
            let mut score = 0.0;
            for (p, value) in values.iter().enumerate() {
                score += match scored[p] {
                    true => *value,
                    false => crate::auxiliary::bm25::part(rarity[p], *value, f64::from(n), average),
                };
            }
            usable &= (0.0..f64::INFINITY).contains(&score);
            hits.push(Hit { score, rowid });
            Ok::<(), Error>(())
        })?;
        best::sort(&mut hits, self.r.worst);
        Ok(usable.then(|| Ranked::of(&hits, None, self.r.worst, counts)))
    }
}

fn average(totals: &Totals) -> f64 {
    totals.tokens.iter().sum::<i64>() as f64 / totals.rows as f64
}
