//! Groups by keys of any kind, and distinct rows: blocks of rows come in, groups with their aggregates go out.
//!
//! What always holds: groups are numbered in the order in which they are first met, and know the first row of each; a key's
//! value is computed from that row. So nothing of the keys is held but packed numbers.
//!
//! What it does not know: conditions, and how rows are found. It takes no more than the work size; beyond that it
//! declines, and the star path goes by files.

use super::keys::{KeyTable, Wide};
use super::number::Numbers;
use super::state::States;
use crate::decline::because;
use crate::expr::batch::Batch;
use crate::expr::batch::NONE;
use crate::expr::scope::Scope;
use crate::memory::{filled, within};
use crate::store::chunk::Field;
use iolite_base::{Result, alloc};

/// Numbers of at most so many bits are places of an array; ...
const DIRECT: u32 = 18;
/// ... of so many where the array has no more than two places for each row.
const DIRECT_MOST: u32 = 26;

/// How a number becomes a group.
enum Lookup {
    One,
    /// Numbers are groups.
    Same,
    Direct(Vec<u32>),
    Narrow(KeyTable<u64>),
    Wide(KeyTable<Wide>),
}

/// The groups that were found: the numbers of their keys, and the first row of each.
pub(crate) struct Found {
    pub first: Vec<u32>,
    numbers: Option<Numbers>,
}

impl Found {
    /// Key `n` of a group, if it need not be computed from the group's first row.
    pub fn key(&self, n: usize, group: u32) -> Option<Field<'_>> {
        self.numbers.as_ref()?.value(n, group)
    }
}

/// See the module's head.
pub(crate) struct Grouping<'a> {
    numbers: Option<Numbers>,
    lookup: Lookup,
    /// The first row of each group.
    pub first: Vec<u32>,
    pub states: States<'a>,
    found: Vec<u64>,
    wide: Vec<Wide>,
    at: Vec<u32>,
}

impl<'a> Grouping<'a> {
    /// By packed numbers, or one group for all rows, of at most `rows`.
    pub fn new(numbers: Option<Numbers>, states: States<'a>, rows: usize) -> Result<Grouping<'a>> {
        let direct = |bits: u32| bits <= DIRECT || bits <= DIRECT_MOST && 1 << bits <= rows * 2;
        let lookup = match &numbers {
            None => Lookup::One,
            Some(n) if n.are_ids() => Lookup::Same,
            Some(n) if direct(n.bits()) => Lookup::Direct(filled(1 << n.bits(), NONE)?),
            Some(n) if n.bits() <= 64 => Lookup::Narrow(KeyTable::new()),
            Some(_) => Lookup::Wide(KeyTable::new()),
        };
        let first = Vec::new();
        Ok(Grouping { numbers, lookup, first, states, found: Vec::new(), wide: Vec::new(), at: Vec::new() })
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        let table = match &self.lookup {
            Lookup::Narrow(t) => t.bytes(),
            Lookup::Wide(t) => t.bytes(),
            Lookup::Direct(places) => places.len() * size_of::<u32>(),
            _ => 0,
        };
        let numbers = self.numbers.as_ref().map_or(0, Numbers::bytes);
        numbers + table + self.first.len() * 4 + self.states.bytes()
    }

    /// What was found, and the groups' states.
    pub fn split(self) -> (Found, States<'a>) {
        (Found { first: self.first, numbers: self.numbers }, self.states)
    }

    /// How many groups.
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Takes in a block.
    pub fn push(&mut self, b: &Batch<'a>, s: &Scope<'_>) -> Result<()> {
        let start = b.cols[0].loaded.parts[b.part].start as u32;
        let Some(numbers) = &mut self.numbers else {
            if self.first.is_empty() {
                self.first.extend(b.outer.first().map(|r| start + r));
            }
            self.states.push(b, &[], s)?;
            return if within(self.bytes()) { Ok(()) } else { Err(because("no room for groups")) };
        };
        let at = &mut self.at;
        match &mut self.lookup {
            Lookup::Wide(t) => {
                numbers.wide(b, s, &mut self.wide)?;
                t.find_all(&self.wide, at)?;
            }
            Lookup::Narrow(t) => {
                numbers.narrow(b, s, &mut self.found)?;
                t.find_all(&self.found, at)?;
            }
            Lookup::Direct(places) => {
                numbers.narrow(b, s, &mut self.found)?;
                at.clear();
                let mut next = self.first.len() as u32;
                at.extend(self.found.iter().map(|n| {
                    let place = &mut places[*n as usize];
                    if *place == NONE {
                        *place = next;
                        next += 1;
                    }
                    *place
                }));
            }
            Lookup::Same | Lookup::One => {
                numbers.narrow(b, s, &mut self.found)?;
                at.clear();
                at.extend(self.found.iter().map(|n| *n as u32));
            }
        }
        let before = self.first.len();
        for (g, row) in at.iter().zip(&b.outer) {
            if *g as usize == self.first.len() {
                alloc::reserve(&mut self.first, 1)?;
                self.first.push(start + row);
            }
        }
        if self.first.len() > before {
            self.states.grow(self.first.len());
        }
        self.states.push(b, at, s)?;
        if !within(self.bytes()) {
            return Err(because("no room for groups"));
        }
        Ok(())
    }
}
