//! Groups by keys of any kind, and distinct rows: blocks of rows come in, groups with their aggregates go out.
//!
//! What always holds: groups are numbered in the order in which they are first met, and know the first row of each, and its packed
//! number. A key's value is what the number stands for, or is computed from that row.
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
use crate::memory::{filled, listed, within};
use crate::sort::by_number;
use crate::store::chunk::Field;
use iolite_base::{Result, alloc};
use iolite_value::compare::KeyField;

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

/// The groups that were found: the first row of each, and what its keys are.
pub(crate) struct Found {
    pub first: Vec<u32>,
    numbers: Option<Numbers>,
    packed: Packed,
}

/// The packed number of each group.
enum Packed {
    /// It is the group's own.
    Same,
    Narrow(Vec<u64>),
    Wide(Vec<Wide>),
}

impl Packed {
    fn get(&self, group: u32) -> u128 {
        match self {
            Packed::Same => group as u128,
            Packed::Narrow(list) => list[group as usize] as u128,
            Packed::Wide(list) => {
                let Wide(low, high) = list[group as usize];
                (high as u128) << 64 | low as u128
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Packed::Same => 0,
            Packed::Narrow(list) => list.len() * 8,
            Packed::Wide(list) => list.len() * 16,
        }
    }
}

/// What groups are sorted by.
pub(crate) enum Term<'t> {
    Key(usize),
    /// An integer for each group.
    Numbers(&'t [i64]),
}

impl Found {
    /// Key `n` of a group, if it need not be computed from the group's first row.
    pub fn key(&self, n: usize, group: u32) -> Option<Field<'_>> {
        self.numbers.as_ref()?.value(n, self.packed.get(group))
    }

    /// Whether it matters which row a group's keys are taken from.
    pub fn have_both_zeros(&self) -> bool {
        self.numbers.as_ref().is_some_and(Numbers::have_both_zeros)
    }

    /// Whether key `n` is an integer or NULL in all groups.
    pub fn is_int(&self, n: usize) -> bool {
        self.numbers.as_ref().is_some_and(|numbers| numbers.sorted_bits(n).is_some())
    }

    /// Sorts groups by one number for each that is packed from all terms. `None`: they do not fit, do not tell all groups apart, or there
    /// is no room.
    pub fn sorted(
        &self,
        list: &[u32],
        terms: &[(Term<'_>, &KeyField)],
        limit: Option<usize>,
    ) -> Result<Option<Vec<u32>>> {
        let Some(numbers) = &self.numbers else { return Ok(None) };
        let keys_of = |terms: &[(Term<'_>, &KeyField)]| -> Vec<usize> {
            terms.iter().filter_map(|t| if let Term::Key(n) = t.0 { Some(n) } else { None }).collect()
        };
        // The sort has a copy beside the list.
        if !numbers.are_all(&keys_of(terms)) || !within(2 * list.len() * size_of::<(u64, u32)>()) {
            return Ok(None);
        }
        let mut at: Vec<(u64, u32)> = listed(list.iter().map(|g| (0, *g)))?;
        let mut used = 0;
        // Adds what a term says of each group to its number.
        let mut add = |bits: u32, desc: bool, of: &dyn Fn(u32) -> u64| {
            let most = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            used += bits;
            if used <= 64 {
                for (number, group) in &mut at {
                    let n = of(*group);
                    *number = number.unbounded_shl(bits) | if desc { most - n } else { n };
                }
            }
            used <= 64
        };
        for (k, (term, field)) in terms.iter().enumerate() {
            if numbers.are_all(&keys_of(&terms[..k])) {
                // What comes now decides nothing.
                break;
            }
            let fits = match term {
                Term::Key(n) => {
                    let Some((behind, bits, nulls)) = numbers.sorted_bits(*n) else { return Ok(None) };
                    let mask = u64::MAX >> (64 - bits);
                    let of = |group| (self.packed.get(group) >> behind) as u64 & mask;
                    !(nulls && field.nulls_large) && add(bits, field.desc, &of)
                }
                Term::Numbers(all) => {
                    let of_list = || list.iter().map(|g| all[*g as usize]);
                    let (min, max) = of_list().fold((i64::MAX, i64::MIN), |(a, b), n| (a.min(n), b.max(n)));
                    let span = if min <= max { max.wrapping_sub(min) as u64 } else { 0 };
                    let of = |group: u32| all[group as usize].wrapping_sub(min) as u64;
                    add(64 - span.leading_zeros(), field.desc, &of)
                }
            };
            if !fits {
                return Ok(None);
            }
        }
        let n = limit.unwrap_or(usize::MAX).min(at.len());
        if n > 0 && n < at.len() {
            at.select_nth_unstable(n - 1);
        }
        at.truncate(n);
        by_number(&mut at);
        listed(at.into_iter().map(|e| e.1)).map(Some)
    }
}

/// See the module's head.
pub(crate) struct Grouping<'a> {
    numbers: Option<Numbers>,
    lookup: Lookup,
    /// The first row of each group.
    pub first: Vec<u32>,
    packed: Packed,
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
        let packed = match &lookup {
            Lookup::One | Lookup::Same => Packed::Same,
            Lookup::Direct(_) | Lookup::Narrow(_) => Packed::Narrow(Vec::new()),
            Lookup::Wide(_) => Packed::Wide(Vec::new()),
        };
        let (first, found, wide, at) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Grouping { numbers, lookup, first, packed, states, found, wide, at })
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
        numbers + table + self.packed.bytes() + self.first.len() * 4 + self.states.bytes()
    }

    /// What was found, and the groups' states.
    pub fn split(self) -> (Found, States<'a>) {
        (Found { first: self.first, numbers: self.numbers, packed: self.packed }, self.states)
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
        let groups = at.iter().fold(0, |most, g| most.max(*g as usize + 1));
        let more = groups.saturating_sub(self.first.len());
        if more > 0 {
            alloc::reserve(&mut self.first, more)?;
            match &mut self.packed {
                Packed::Same => {}
                Packed::Narrow(list) => alloc::reserve(list, more)?,
                Packed::Wide(list) => alloc::reserve(list, more)?,
            }
            for (i, (g, row)) in at.iter().zip(&b.outer).enumerate() {
                if *g as usize != self.first.len() {
                    continue;
                }
                self.first.push(start + row);
                match &mut self.packed {
                    Packed::Same => {}
                    Packed::Narrow(list) => list.push(self.found[i]),
                    Packed::Wide(list) => list.push(self.wide[i]),
                }
            }
            self.states.grow(groups);
        }
        self.states.push(b, at, s)?;
        if !within(self.bytes()) {
            return Err(because("no room for groups"));
        }
        Ok(())
    }
}
