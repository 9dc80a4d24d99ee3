//! The keys of groups, and values of DISTINCT, as packed numbers: the same number is the same value.
//!
//! A key that never changes is no part of it, nor is one that is computed from columns which are keys themselves. Integers
//! count from their least; entries of a dictionary are their codes; reals are numbered by their bits, zeros of both signs as one;
//! what has few values is numbered once for each; all else is interned.
//!
//! What it does not know: what groups hold.

use super::intern::Interner;
use super::keys::{KeyTable, Wide};
use crate::decline::because;
use crate::expr::Ex;
use crate::expr::batch::NONE;
use crate::expr::batch::{Batch, Reals, few_code, int_bounds, is_real};
use crate::expr::columns::Kind;
use crate::expr::scope::Scope;
use crate::expr::vector::{Node, Vector, bounds};
use crate::store::chunk::{Data, Field};
use iolite_base::{Result, alloc};
use iolite_value::Collation;

/// A column of at most so many values has expressions computed once for each.
const FEW: i64 = 1 << 18;

/// The place of a value that is being computed.
const NEW: u32 = NONE - 1;

/// One part of a packed number.
enum Part {
    /// Integers less the least; with NULLs these are 0.
    Int { node: Node, min: i64, nulls: bool },
    /// Codes of a dictionary.
    Code { slot: usize },
    /// Reals or NULL.
    Real { node: Node, ids: Box<RealIds> },
    /// Computed from a column of reals, once for each of its values.
    OfReal { column: Node, ids: Box<RealIds>, node: Node, map: Vec<u32>, interner: Interner },
    /// Computed from a column of few values.
    Few { slot: usize, node: Node, map: Vec<u32>, least: i64, interner: Interner },
    /// Anything.
    Any { node: Node, interner: Interner, by_code: Vec<u32> },
}

/// Numbers of reals: 0, 1, 2, ... in the order in which they are first met.
struct RealIds {
    table: KeyTable<u64>,
    /// The value that each number was first met with; of NULL's, which is `null`, any.
    values: Vec<f64>,
    null: Option<u32>,
    keys: Vec<u64>,
    /// Zeros of both signs are one.
    one_zero: bool,
    /// Which signs zeros have had.
    signs: Signs,
}

/// Whether there has been a zero without a sign, and one with it.
#[derive(Clone, Copy, Default, PartialEq)]
struct Signs(bool, bool);

impl Signs {
    fn take(&mut self, values: &[f64]) {
        self.0 |= values.iter().fold(false, |any, r| any | (r.to_bits() == 0));
        self.1 |= values.iter().fold(false, |any, r| any | (r.to_bits() == 1 << 63));
    }

    fn are_both(self) -> bool {
        self.0 && self.1
    }
}

impl RealIds {
    /// The key of NULL: a NaN, which no column holds.
    const NULL: u64 = u64::MAX;

    fn new(one_zero: bool) -> RealIds {
        let (table, values, keys) = (KeyTable::new(), Vec::new(), Vec::new());
        RealIds { table, values, null: None, keys, one_zero, signs: Signs::default() }
    }

    /// The numbers of some values.
    fn all(&mut self, v: &Reals, out: &mut Vec<u32>) -> Result<()> {
        self.keys.clear();
        alloc::reserve(&mut self.keys, v.values.len())?;
        match self.one_zero {
            // A sum of zeros is zero: -0.0 becomes 0.0, and nothing else changes.
            true => {
                self.signs.take(&v.values);
                self.keys.extend(v.values.iter().map(|r| (r + 0.0).to_bits()));
            }
            false => self.keys.extend(v.values.iter().map(|r| r.to_bits())),
        }
        for (key, _) in self.keys.iter_mut().zip(&v.nulls).filter(|(_, null)| **null) {
            *key = RealIds::NULL;
        }
        let known = self.values.len();
        self.table.find_all(&self.keys, out)?;
        if self.table.len() == known {
            return Ok(());
        }
        alloc::reserve(&mut self.values, self.table.len() - known)?;
        for ((id, key), value) in out.iter().zip(&self.keys).zip(&v.values) {
            if *id as usize == self.values.len() {
                if *key == RealIds::NULL {
                    self.null = Some(*id);
                }
                self.values.push(*value);
            }
        }
        Ok(())
    }

    /// The value that a number stands for; `None`: one of the two zeros.
    fn value(&self, number: u32) -> Option<Field<'_>> {
        if self.null == Some(number) {
            return Some(Field::Null);
        }
        let value = self.values[number as usize];
        (value != 0.0 || !self.signs.are_both()).then_some(Field::Real(value))
    }

    fn bytes(&self) -> usize {
        self.table.bytes() + self.values.len() * 8
    }
}

/// See the module's head.
pub(crate) struct Numbers {
    parts: Vec<(Part, u32)>,
    /// The expression that each part is of.
    of: Vec<usize>,
    ids: Vec<u32>,
}

/// Whether an expression reads none but these columns, and cannot fail.
fn follows_from(ex: &Ex, slots: &[usize]) -> bool {
    let mut all = !calls(ex);
    ex.slots(&mut |s| all &= slots.contains(&s));
    all
}

fn calls(ex: &Ex) -> bool {
    let mut any = matches!(ex, Ex::Call { .. });
    ex.children(&mut |e| any |= calls(e));
    any
}

impl Part {
    /// What has given it its numbers, where that is an interner.
    fn interner(&self) -> Option<&Interner> {
        match self {
            Part::Any { interner, .. } | Part::Few { interner, .. } | Part::OfReal { interner, .. } => {
                Some(interner)
            }
            Part::Int { .. } | Part::Code { .. } | Part::Real { .. } => None,
        }
    }
}

impl Numbers {
    /// Of some expressions with their collating sequences.
    pub fn new(list: &[Ex], colls: &[Collation], s: &Scope<'_>) -> Result<Numbers> {
        let slots: Vec<usize> =
            list.iter().filter_map(|e| if let Ex::Slot(i) = e { Some(*i) } else { None }).collect();
        let mut parts: Vec<(Part, u32)> = Vec::new();
        let mut seen: Vec<usize> = Vec::new();
        let mut of = Vec::new();
        for (n, (ex, coll)) in list.iter().zip(colls).enumerate() {
            match ex {
                Ex::Const(_) => continue,
                Ex::Slot(i) if seen.contains(i) => continue,
                Ex::Slot(i) => seen.push(*i),
                e if follows_from(e, &slots) => continue,
                _ => {}
            }
            parts.push(part(ex, coll, s)?);
            of.push(n);
        }
        // Of very wide numbers the widest are interned.
        while parts.iter().map(|p| p.1).sum::<u32>() > 128 {
            let Some(p) = parts.iter_mut().filter(|p| matches!(p.0, Part::Int { .. })).max_by_key(|p| p.1)
            else {
                return Err(because("keys that are too wide"));
            };
            let Part::Int { node, .. } = std::mem::replace(&mut p.0, Part::Code { slot: 0 }) else {
                return Err(because("keys that are too wide"));
            };
            *p = (Part::Any { node, interner: Interner::default(), by_code: Vec::new() }, 32);
        }
        Ok(Numbers { parts, of, ids: Vec::new() })
    }

    /// How many bits a number has.
    pub fn bits(&self) -> u32 {
        self.parts.iter().map(|p| p.1).sum()
    }

    /// Whether the numbers are 0, 1, 2, ... in the order in which they are first met.
    pub fn are_ids(&self) -> bool {
        matches!(&self.parts[..], [(p, _)] if p.interner().is_some() || matches!(p, Part::Real { .. }))
    }

    /// The part of expression `n`, and its bits' place.
    fn part_of(&self, n: usize) -> Option<(&Part, u32, u32)> {
        let k = self.of.iter().position(|of| *of == n)?;
        let behind = self.parts[k + 1..].iter().map(|p| p.1).sum();
        Some((&self.parts[k].0, behind, self.parts[k].1))
    }

    /// The value of expression `n` that a number stands for; `None`: it has to be computed.
    pub fn value(&self, n: usize, number: u128) -> Option<Field<'_>> {
        let (part, behind, bits) = self.part_of(n)?;
        let number = (number >> behind) as u64 & u64::MAX >> (64 - bits);
        match part {
            Part::Int { nulls: true, .. } if number == 0 => Some(Field::Null),
            Part::Int { min, nulls, .. } => {
                Some(Field::Int(min.wrapping_add(number.wrapping_sub(*nulls as u64) as i64)))
            }
            Part::Real { ids, .. } => ids.value(number as u32),
            other => other.interner().map(|known| known.value(number as u32)),
        }
    }

    /// Where the bits of expression `n` lie, how many they are, and whether NULL is among them, as the least: `None` where they do not
    /// sort as the values do.
    pub fn sorted_bits(&self, n: usize) -> Option<(u32, u32, bool)> {
        match self.part_of(n)? {
            (Part::Int { nulls, .. }, behind, bits) => Some((behind, bits, *nulls)),
            _ => None,
        }
    }

    /// Whether zeros of both signs, which are one key, have been met.
    pub fn have_both_zeros(&self) -> bool {
        self.parts.iter().any(|p| matches!(&p.0, Part::Real { ids, .. } if ids.signs.are_both()))
    }

    /// Whether these expressions tell all numbers apart.
    pub fn are_all(&self, expressions: &[usize]) -> bool {
        self.of.iter().all(|n| expressions.contains(n))
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        let of = |p: &Part| {
            let beside = match p {
                Part::Any { by_code: list, .. } | Part::Few { map: list, .. } => list.len() * 4,
                Part::Real { ids, .. } => ids.bytes(),
                Part::OfReal { ids, map, .. } => ids.bytes() + map.len() * 4,
                Part::Int { .. } | Part::Code { .. } => 0,
            };
            beside + p.interner().map_or(0, Interner::bytes)
        };
        self.parts.iter().map(|p| of(&p.0)).sum()
    }

    /// The number that stands for NULL, of one value. `None`: no row has had it.
    pub fn null(&self, s: &Scope<'_>) -> Option<u64> {
        match &self.parts[..] {
            [(Part::Int { nulls: true, .. }, _)] => Some(0),
            [(Part::Code { slot }, _)] => {
                let (t, c) = s.places.at[*slot];
                s.cols[t].loaded.dicts[c].find(Field::Null).map(u64::from)
            }
            [(Part::Real { ids, .. }, _)] => ids.null.map(u64::from),
            [(p, _)] => p.interner()?.null().map(u64::from),
            _ => None,
        }
    }

    /// How many different ones there have been; only where [`Numbers::are_ids`].
    pub fn count(&self) -> usize {
        match &self.parts[..] {
            [(Part::Real { ids, .. }, _)] => ids.values.len(),
            [(p, _)] => p.interner().map_or(0, Interner::len),
            _ => 0,
        }
    }

    /// The numbers of a block's rows, of at most 64 bits.
    pub fn narrow(&mut self, b: &Batch<'_>, s: &Scope<'_>, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        let ids = &mut self.ids;
        for (k, (part, bits)) in self.parts.iter_mut().enumerate() {
            let shift = if k == 0 { 0 } else { *bits };
            if k == 0 {
                out.resize(b.outer.len(), 0);
            }
            part.add(b, s, ids, &mut |i, n| out[i] = (out[i] << shift) | n)?;
        }
        out.resize(b.outer.len(), 0);
        Ok(())
    }

    /// The same, of at most 128 bits.
    pub fn wide(&mut self, b: &Batch<'_>, s: &Scope<'_>, out: &mut Vec<Wide>) -> Result<()> {
        out.clear();
        out.resize(b.outer.len(), Wide::default());
        let ids = &mut self.ids;
        for (part, bits) in &mut self.parts {
            let bits = *bits;
            part.add(b, s, ids, &mut |i, n| {
                let all = (out[i].1 as u128) << 64 | out[i].0 as u128;
                out[i] = (all.unbounded_shl(bits) | n as u128).into();
            })?;
        }
        Ok(())
    }
}

/// The part that an expression becomes, and its bits.
fn part(ex: &Ex, coll: &Collation, s: &Scope<'_>) -> Result<(Part, u32)> {
    if let Some((lo, hi, nulls)) = int_bounds(ex, s.cols, s.places, &|_| false) {
        let span = hi.wrapping_sub(lo) as u64;
        let node = Node::of(ex, s)?;
        if let Some(most) = span.checked_add(nulls as u64) {
            return Ok((Part::Int { node, min: lo, nulls }, (64 - most.leading_zeros()).max(1)));
        }
        return Ok((Part::Any { node, interner: Interner::default(), by_code: Vec::new() }, 32));
    }
    if is_real(ex, s) {
        let (node, ids) = (Node::of(ex, s)?, Box::new(RealIds::new(true)));
        return Ok((Part::Real { node, ids }, 32));
    }
    if !coll.is_binary() {
        // Of texts that are equal and not the same the first one counts.
        return Err(because("keys of another collating sequence"));
    }
    if let Ex::Slot(slot) = ex {
        let (t, c) = s.places.at[*slot];
        let dict = &s.cols[t].loaded.dicts[c];
        if s.cols[t].kinds[c] == Kind::Dict {
            if !dict.is_plain() {
                return Err(because("integers and reals among one key"));
            }
            return Ok((Part::Code { slot: *slot }, (32 - (dict.len() as u32).leading_zeros()).max(1)));
        }
        let by_code = vec![NONE; dict.len()];
        return Ok((Part::Any { node: Node::of(ex, s)?, interner: Interner::default(), by_code }, 32));
    }
    if let Some(slot) = ex.only_slot() {
        let (t, c) = s.places.at[slot];
        let cols = &s.cols[t];
        let (lo, hi) = cols.bounds[c];
        if cols.kinds[c] == Kind::Real {
            let (column, node) = (Node::of(&Ex::Slot(slot), s)?, Node::of(ex, s)?);
            let (ids, map, interner) = (Box::new(RealIds::new(false)), Vec::new(), Interner::default());
            return Ok((Part::OfReal { column, ids, node, map, interner }, 32));
        }
        let n = match cols.kinds[c] {
            Kind::Dict => cols.loaded.dicts[c].len() as i64 + 1,
            Kind::Int if lo > hi => 1,
            Kind::Int => hi.checked_sub(lo).and_then(|d| d.checked_add(2)).unwrap_or(i64::MAX),
            _ => i64::MAX,
        };
        if n <= FEW.min(cols.loaded.rows as i64 + 2) {
            let map = vec![NONE; n as usize];
            let node = Node::of(ex, s)?;
            let part = Part::Few { slot, node, map, least: lo, interner: Interner::default() };
            return Ok((part, 32));
        }
    }
    if let Some((lo, hi, nulls)) = bounds(ex, s)
        && let Some(most) = (hi.wrapping_sub(lo) as u64).checked_add(nulls as u64)
    {
        let bits = (64 - most.leading_zeros()).max(1);
        return Ok((Part::Int { node: Node::of(ex, s)?, min: lo, nulls }, bits));
    }
    Ok((Part::Any { node: Node::of(ex, s)?, interner: Interner::default(), by_code: Vec::new() }, 32))
}

/// The numbers of a block's values.
fn intern(values: &Vector<'_>, n: usize, interner: &mut Interner, ids: &mut Vec<u32>) -> Result<()> {
    match values {
        Vector::Fields(list) => interner.all(list, ids),
        other => interner.all(&(0..n).map(|i| other.get(i)).collect::<Vec<_>>(), ids),
    }
}

impl Part {
    /// Gives the numbers of a block's rows one after the other.
    #[inline]
    fn add(
        &mut self,
        b: &Batch<'_>,
        s: &Scope<'_>,
        ids: &mut Vec<u32>,
        put: &mut impl FnMut(usize, u64),
    ) -> Result<()> {
        match self {
            Part::Int { node, min, nulls } => {
                let Vector::Ints(v) = node.values(b, s)? else {
                    return Err(because("keys that are too wide"));
                };
                let shift = *nulls as u64;
                if v.nulls.is_empty() {
                    for (i, x) in v.values.iter().enumerate() {
                        put(i, (x.wrapping_sub(*min) as u64).wrapping_add(shift));
                    }
                } else {
                    for (i, (x, null)) in v.values.iter().zip(&v.nulls).enumerate() {
                        put(i, if *null { 0 } else { (x.wrapping_sub(*min) as u64).wrapping_add(shift) });
                    }
                }
            }
            Part::Real { node, ids: numbers } => {
                let Vector::Reals(v) = node.values(b, s)? else {
                    return Err(because("keys that are too wide"));
                };
                numbers.all(&v, ids)?;
                ids.iter().enumerate().for_each(|(i, n)| put(i, *n as u64));
            }
            Part::Code { slot } => {
                let (t, c) = b.places.at[*slot];
                let Data::Dict { codes } = &b.cols[t].loaded.parts[b.part].cols[c].data else {
                    return Err(because("keys that are too wide"));
                };
                let mut i = 0;
                codes.each(&b.outer, |code| {
                    put(i, code as u64);
                    i += 1;
                });
            }
            Part::OfReal { column, ids: numbers, node, map, interner } => {
                let Vector::Reals(v) = column.values(b, s)? else {
                    return Err(because("keys that are too wide"));
                };
                numbers.all(&v, ids)?;
                if numbers.values.len() > map.len() {
                    // Values that are new are computed together, each from the first row that has it.
                    let (mut places, mut next) = (Vec::new(), map.len());
                    for (i, id) in ids.iter().enumerate() {
                        if *id as usize == next {
                            places.push(i);
                            next += 1;
                        }
                    }
                    let mut new = Vec::new();
                    intern(&node.values(&b.only(&places), s)?, places.len(), interner, &mut new)?;
                    alloc::reserve(map, new.len())?;
                    map.append(&mut new);
                }
                ids.iter().enumerate().for_each(|(i, id)| put(i, map[*id as usize] as u64));
            }
            Part::Few { slot, node, map, least, interner } => {
                let (t, c) = b.places.at[*slot];
                let chunk = &b.cols[t].loaded.parts[b.part].cols[c];
                let null = map.len() - 1;
                // Values that are new are computed together, each from the first row that has it.
                let (mut codes, mut places) = (Vec::new(), Vec::new());
                for (i, row) in b.outer.iter().enumerate() {
                    let known = &mut map[few_code(chunk, *row as usize, *least, null)];
                    if *known == NONE {
                        *known = NEW;
                        codes.push(few_code(chunk, *row as usize, *least, null));
                        places.push(i);
                    }
                }
                if !places.is_empty() {
                    intern(&node.values(&b.only(&places), s)?, places.len(), interner, ids)?;
                    codes.iter().zip(&*ids).for_each(|(code, id)| map[*code] = *id);
                }
                for (i, row) in b.outer.iter().enumerate() {
                    put(i, map[few_code(chunk, *row as usize, *least, null)] as u64);
                }
            }
            Part::Any { node, interner, by_code } => {
                if let Node::Column(slot) = node {
                    let (t, c) = b.places.at[*slot];
                    let loaded = &b.cols[t].loaded;
                    if let Data::Dict { codes } = &loaded.parts[b.part].cols[c].data {
                        // Those that are new go to the interner together: it asks memory for their places ahead.
                        let (mut new, mut fields) = (Vec::new(), Vec::new());
                        codes.each(&b.outer, |code| {
                            if by_code[code as usize] == NONE {
                                new.push(code);
                                fields.push(loaded.dicts[c].get(code));
                            }
                        });
                        interner.all(&fields, ids)?;
                        new.iter().zip(&*ids).for_each(|(code, id)| by_code[*code as usize] = *id);
                        let mut i = 0;
                        codes.each(&b.outer, |code| {
                            put(i, by_code[code as usize] as u64);
                            i += 1;
                        });
                        return Ok(());
                    }
                }
                intern(&node.values(b, s)?, b.outer.len(), interner, ids)?;
                ids.iter().enumerate().for_each(|(i, n)| put(i, *n as u64));
            }
        }
        Ok(())
    }
}
