//! A column's graph in memory: its rows, those of which codes say nothing, and how many of the others are linked.
//!
//! ```text
//! a row --> waits: each search looks at it --> linked, some by each search --> gone: the walk goes on through it
//! ```
//!
//! A search links so many of the rows that wait as take about as long as the look at all of them did.
//!
//! What always holds: node `n` of the graph stands for row `n`; both follow the table as `rows` says.

use super::code::Coded;
use super::graph::{Graph, Scratch};
use super::stored::{self, Stored};
use crate::config::Hnsw;
use crate::ivf::code::prepared;
use crate::ivf::format::packed;
use crate::kernel::{Metric, numbers};
use crate::rows::{Kept, OfRows, Rows};
use crate::store::{Place, Store};
use crate::vector::Kind;
use iolite_base::hash::FastMap;
use iolite_base::{Code, Error, Result};

/// So many bytes of nodes and links are kept for a column at the most.
const MOST_BYTES: usize = 1 << 30;
/// So many rows wait before some of them are linked, and one of so many more.
const FEW: usize = 256;
const PART: usize = 1024;
/// So many are linked by a search at the least, and one more for so many that wait.
const AT_ONCE: usize = 2;
const FOR_ONE: usize = 12_000;
/// Links that were stored are used, if not more than one of so many nodes are gone since.
const MOST_OTHERS: usize = 4;
/// Where codes say nothing of more rows, the graph is not used.
const MOST_ODD: usize = 1024;

/// What a table has in memory.
#[derive(Default)]
pub(crate) struct Graphs {
    kept: Kept<Index>,
    scratch: Scratch,
}

impl Graphs {
    /// Links all rows of a column and stores that. `anew`: nothing of what is there is used.
    pub fn build(&mut self, store: &Store, column: usize, anew: bool) -> Result<()> {
        if anew {
            stored::forget(store, column)?;
            self.kept.forget(column);
        }
        // Within a transaction that has changed the table, it is of no use later.
        let (mut own, kept) = match self.kept.now(store, column)? {
            Some(index) => (None, Some(index)),
            None => (Index::make(store, column)?, None),
        };
        match own.as_mut().or(kept) {
            Some(index) => {
                if index.rows.gone() > index.rows.len() / MOST_OTHERS {
                    *index = Index::new(store, column);
                    index.fill(store, column)?;
                }
                index.bridge(&mut self.scratch);
                index.link_all(store, &mut self.scratch)?;
                stored::write(store, column, &index.graph, &index.rows)
            }
            None => Err(Error::sql("too many vectors for a graph in memory")),
        }
    }

    /// The graph of a column as it is in the present state; none: there is none (yet).
    pub fn of(&mut self, store: &Store, column: usize) -> Result<Option<(&mut Index, &mut Scratch)>> {
        Ok(self.kept.present(store, column)?.map(|index| (index, &mut self.scratch)))
    }
}

/// The graph of a column.
pub(crate) struct Index {
    pub graph: Graph,
    pub rows: Rows,
    /// Nodes of which codes say nothing.
    odd: Vec<u32>,
    kind: Kind,
    metric: Metric,
    coded: Coded,
}

impl Index {
    fn new(store: &Store, column: usize) -> Index {
        let c = &store.config.vectors[column];
        let (m, breadth) = c.graph().map_or((2, 1), |o| (o.m, o.ef_construction));
        Index {
            graph: Graph::new(c.dimensions, m, breadth),
            rows: Rows::default(),
            odd: Vec::new(),
            kind: c.kind,
            metric: c.metric,
            coded: Coded::default(),
        }
    }

    /// How many rows there are.
    pub fn live(&self) -> usize {
        self.rows.len() - self.rows.gone()
    }

    /// Whether a search by it costs less than a scan.
    pub fn is_of_use(&self) -> bool {
        self.graph.linked() > 0 && self.odd.len() <= MOST_ODD
    }

    /// The nodes of which codes say nothing.
    pub fn odd(&self) -> impl Iterator<Item = u32> + '_ {
        self.odd.iter().copied()
    }

    /// Makes the code of a vector; false: codes say nothing of it.
    fn code(&mut self, vector: &[u8]) -> bool {
        let mut x = numbers(self.kind, vector);
        let usual = prepared(self.metric, &mut x);
        self.coded.make(&x, usual);
        usual
    }

    /// Links some of the rows that wait, if they are many.
    pub fn link_some(&mut self, options: Hnsw, s: &mut Scratch) -> Result<()> {
        let waiting = self.graph.len() - self.graph.linked();
        let begun = self.graph.linked() > 0 || options.train > 0 && self.live() > options.train;
        if begun && waiting > FEW + self.graph.linked() / PART {
            self.link_next(AT_ONCE + waiting / FOR_ONE, 1, s)?;
        }
        Ok(())
    }

    /// Links all rows that wait.
    fn link_all(&mut self, store: &Store, s: &mut Scratch) -> Result<()> {
        while self.graph.linked() < self.graph.len() {
            store.check_interrupt()?;
            self.link_next(usize::MAX, store.threads(), s)?;
        }
        Ok(())
    }

    /// Leads links around rows that are gone.
    fn bridge(&mut self, s: &mut Scratch) {
        if self.rows.gone() > 0 {
            let rows = &self.rows;
            self.graph.bridge(|node| rows.is_gone(node as usize), s);
        }
    }

    /// Gives `take` all rows of the table, with their places and vectors; false: they are too many.
    fn each_row(
        &mut self,
        store: &Store,
        column: usize,
        mut take: impl FnMut(&mut Index, i64, Place, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        let (bytes, mut fits) = (store.config.vectors[column].bytes(), true);
        store.chunks("1", &[], |chunk| {
            let taken = (0..chunk.size).filter(|at| chunk.is_taken(*at)).count();
            fits = fits && self.has_room(taken, bytes);
            if !fits {
                return Ok(());
            }
            let vectors = store.vectors(column, &chunk)?;
            for at in (0..chunk.size).filter(|at| chunk.is_taken(*at)) {
                let place = Place { chunk: chunk.id, at };
                take(self, chunk.rowid(at), place, &vectors[bytes * at..][..bytes])?;
            }
            Ok(())
        })?;
        Ok(fits)
    }

    /// Adds all rows of the table; false: they are too many.
    fn fill(&mut self, store: &Store, column: usize) -> Result<bool> {
        self.each_row(store, column, |index, rowid, place, vector| {
            index.rows.push(rowid, place);
            index.push(vector)
        })
    }

    /// Adds all rows of the table to links that were stored. Rows that have none wait; links to rows that are others are led around them, where
    /// these are not too many.
    fn restore(mut self, store: &Store, column: usize, stored: Stored) -> Result<Option<Index>> {
        let mut numbers: FastMap<u64, u32> = FastMap::default();
        numbers.try_reserve(stored.nodes.len()).map_err(|_| Code::Nomem)?;
        numbers.extend(stored.nodes.iter().enumerate().map(|(n, node)| (node.0, n as u32)));
        if !self.has_room(stored.nodes.len(), 0) {
            return Ok(None);
        }
        self.graph.restore(stored.links)?;
        (0..stored.nodes.len()).for_each(|_| self.rows.push_gone());
        let fits = self.each_row(store, column, |index, rowid, place, vector| {
            let node = numbers.get(&packed(place)?).map(|n| *n as usize);
            if let Some(node) = node
                && index.code(vector)
                && stored::code_sum(&index.coded.bytes()) == stored.nodes[node].1
                && index.rows.is_gone(node)
            {
                index.graph.set(node, &index.coded);
                index.rows.set(node, rowid, place);
                return Ok(());
            }
            index.rows.push(rowid, place);
            index.push(vector)
        })?;
        if fits && self.rows.gone() > stored.nodes.len() / MOST_OTHERS {
            let mut anew = Index::new(store, column);
            return Ok(anew.fill(store, column)?.then_some(anew));
        }
        self.graph.find_entry();
        self.bridge(&mut Scratch::default());
        Ok(fits.then_some(self))
    }

    /// Links some of the rows that wait.
    fn link_next(&mut self, most: usize, threads: usize, s: &mut Scratch) -> Result<()> {
        let rows = &self.rows;
        self.graph.link(most, threads, |node| rows.is_gone(node as usize), s)
    }
}

impl OfRows for Index {
    fn make(store: &Store, column: usize) -> Result<Option<Index>> {
        let mut index = Index::new(store, column);
        match stored::read(store, column, index.graph.m())? {
            Some(stored) => index.restore(store, column, stored),
            None => Ok(index.fill(store, column)?.then_some(index)),
        }
    }

    fn rows(&self) -> &Rows {
        &self.rows
    }

    fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    fn has_room(&mut self, more: usize, _: usize) -> bool {
        self.graph.bytes(self.rows.len() + more) <= MOST_BYTES
            && self.graph.reserve(more).is_ok()
            && self.rows.reserve(more).is_ok()
    }

    fn is(&mut self, row: usize, vector: &[u8]) -> Result<bool> {
        // What codes say nothing of is read when it is measured.
        self.code(vector);
        Ok(self.graph.is(row, &self.coded))
    }

    fn push(&mut self, vector: &[u8]) -> Result<()> {
        if !self.code(vector) {
            self.odd.push(self.graph.len() as u32);
        }
        self.graph.push(&self.coded)
    }
}
