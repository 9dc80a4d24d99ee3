//! Queries: read, and run over the index.

mod lexer;
mod near;
mod parser;

pub(crate) use parser::{Expr, Query, Term};

use crate::index::Index;
use iolite_base::Result;
use near::NearRows;
use parser::Phrase;

/// A part of a query that runs. It stands on a row that matches, or is at the end.
enum Node {
    Near(NearRows),
    Nothing,
    And { list: Vec<Node>, rowid: i64, eof: bool },
    Or { list: Vec<Node>, rowid: i64, eof: bool },
    Not { pair: Box<[Node; 2]> },
}

/// A query that runs.
pub(crate) struct Run {
    root: Node,
    backwards: bool,
}

/// Whether one row comes before another.
#[inline]
fn before(a: i64, b: i64, backwards: bool) -> bool {
    if backwards { a > b } else { a < b }
}

impl Node {
    fn new(index: &Index, e: &Expr, phrases: &[Phrase], backwards: bool) -> Result<Node> {
        let all = |l: &[Expr]| -> Result<Vec<Node>> {
            l.iter().map(|e| Node::new(index, e, phrases, backwards)).collect()
        };
        let mut node = match e {
            Expr::Nothing => Node::Nothing,
            Expr::Near(n) => Node::Near(NearRows::new(index, n, phrases, backwards)?),
            Expr::And(l) => Node::And { list: all(l)?, rowid: 0, eof: false },
            Expr::Or(l) => Node::Or { list: all(l)?, rowid: 0, eof: false },
            Expr::Not(l) => {
                let one = |e| Node::new(index, e, phrases, backwards);
                Node::Not { pair: Box::new([one(&l[0])?, one(&l[1])?]) }
            }
        };
        node.settle(backwards)?;
        Ok(node)
    }

    #[inline]
    fn eof(&self) -> bool {
        match self {
            Node::Near(n) => n.eof,
            Node::Nothing => true,
            Node::And { eof, .. } | Node::Or { eof, .. } => *eof,
            Node::Not { pair } => pair[0].eof(),
        }
    }

    #[inline]
    fn rowid(&self) -> i64 {
        match self {
            Node::Near(n) => n.rowid,
            Node::Nothing => 0,
            Node::And { rowid, .. } | Node::Or { rowid, .. } => *rowid,
            Node::Not { pair } => pair[0].rowid(),
        }
    }

    /// Goes to the first row, from where its parts are, that matches.
    fn settle(&mut self, backwards: bool) -> Result<()> {
        match self {
            Node::Near(_) | Node::Nothing => Ok(()),
            Node::And { list, rowid, eof } => {
                let Some(first) = list.first() else { return Ok(()) };
                let mut target = first.rowid();
                let mut agreed = 0;
                let mut i = 0;
                while agreed < list.len() {
                    let n = &mut list[i];
                    if !n.eof() && before(n.rowid(), target, backwards) {
                        n.advance(target, backwards)?;
                    }
                    if n.eof() {
                        *eof = true;
                        return Ok(());
                    }
                    if n.rowid() == target {
                        agreed += 1;
                    } else {
                        (target, agreed) = (n.rowid(), 1);
                    }
                    i = (i + 1) % list.len();
                }
                *rowid = target;
                Ok(())
            }
            Node::Or { list, rowid, eof } => {
                let rows = list.iter().filter(|n| !n.eof()).map(Node::rowid);
                match if backwards { rows.max() } else { rows.min() } {
                    Some(r) => *rowid = r,
                    None => *eof = true,
                }
                Ok(())
            }
            Node::Not { pair } => {
                let [left, right] = &mut **pair;
                while !left.eof() {
                    let row = left.rowid();
                    if !right.eof() && before(right.rowid(), row, backwards) {
                        right.advance(row, backwards)?;
                    }
                    if right.eof() || right.rowid() != row {
                        break;
                    }
                    left.next(backwards)?;
                }
                Ok(())
            }
        }
    }

    fn next(&mut self, backwards: bool) -> Result<()> {
        match self {
            Node::Near(n) => return n.next(),
            Node::Nothing => return Ok(()),
            Node::And { list, .. } => list[0].next(backwards)?,
            Node::Or { list, rowid, .. } => {
                for n in list.iter_mut().filter(|n| !n.eof() && n.rowid() == *rowid) {
                    n.next(backwards)?;
                }
            }
            Node::Not { pair } => pair[0].next(backwards)?,
        }
        self.settle(backwards)
    }

    /// Goes to a row or to the first behind it.
    fn advance(&mut self, to: i64, backwards: bool) -> Result<()> {
        match self {
            Node::Near(n) => return n.advance(to),
            Node::Nothing => return Ok(()),
            Node::And { list, .. } => list[0].advance(to, backwards)?,
            Node::Or { list, .. } => {
                for n in list.iter_mut().filter(|n| !n.eof() && before(n.rowid(), to, backwards)) {
                    n.advance(to, backwards)?;
                }
            }
            Node::Not { pair } => pair[0].advance(to, backwards)?,
        }
        self.settle(backwards)
    }

    fn find(&self, phrase: usize) -> Option<&NearRows> {
        match self {
            Node::Near(n) => n.has(phrase).then_some(n),
            Node::Nothing => None,
            // At the end of a part, its own parts may still stand on rows that they have.
            n if n.eof() => None,
            Node::And { list, .. } | Node::Or { list, .. } => list.iter().find_map(|n| n.find(phrase)),
            Node::Not { pair } => pair.iter().find_map(|n| n.find(phrase)),
        }
    }
}

impl Run {
    /// Runs a query from its first row on, or its last.
    pub fn new(index: &Index, q: &Query, backwards: bool) -> Result<Run> {
        let root = match &q.root {
            Some(e) => Node::new(index, e, &q.phrases, backwards)?,
            None => Node::Nothing,
        };
        Ok(Run { root, backwards })
    }

    /// Whether there is no row any more.
    #[inline]
    pub fn eof(&self) -> bool {
        self.root.eof()
    }

    /// The present row.
    #[inline]
    pub fn rowid(&self) -> i64 {
        self.root.rowid()
    }

    /// Moves on.
    pub fn next(&mut self) -> Result<()> {
        self.root.next(self.backwards)
    }

    /// Moves on to a row or to the first behind it.
    pub fn advance(&mut self, rowid: i64) -> Result<()> {
        if self.eof() || !before(self.rowid(), rowid, self.backwards) {
            return Ok(());
        }
        self.root.advance(rowid, self.backwards)
    }

    /// The phrase's part of the query, if it stands on the present row.
    fn here(&self, phrase: usize) -> Option<&NearRows> {
        self.root.find(phrase).filter(|n| !n.eof && n.rowid == self.rowid())
    }

    /// Appends the list of the places of a phrase in the present row, as the index has it.
    pub fn list(&self, phrase: usize, out: &mut Vec<u8>) -> Result<()> {
        self.here(phrase).map_or(Ok(()), |n| n.list(phrase, out))
    }

    /// Whether the phrase's part of the query stands on the present row.
    pub fn stands(&self, phrase: usize) -> bool {
        self.here(phrase).is_some()
    }
}
