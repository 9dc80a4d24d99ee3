//! The numbers of a batch's rows: each source's own number is added to what those before it made.
//!
//! Where states are arrays, a row's number is its group; where a hash table finds it, numbers are wider. Both are made by
//! the same code. Codes that follow each other are taken in a run, without looking at the list of rows.

use super::{Groups, Source, State};
use crate::decline::DECLINED;
use crate::expr::Ex;
use crate::expr::batch::NONE;
use crate::expr::batch::{Batch, BatchRow, few_code};
use crate::expr::scope::OneField;
use crate::kernel::of_three;
use crate::star::scope::JoinScope;
use crate::store::chunk::{Codes, Data, Dict, Field};
use iolite_base::{Code, Result};
use iolite_value::Value;

/// A number in the making.
pub(super) trait Number: Copy {
    /// This one, then `n` of `radix`.
    fn then(self, radix: u64, n: u64) -> Self;
}

/// Of groups whose states are arrays: the product of all radixes is small.
impl Number for u32 {
    #[inline(always)]
    fn then(self, radix: u64, n: u64) -> u32 {
        self.wrapping_mul(radix as u32).wrapping_add(n as u32)
    }
}

impl Number for u64 {
    #[inline(always)]
    fn then(self, radix: u64, n: u64) -> u64 {
        self * radix + n
    }
}

/// Adds codes, `shift` added.
fn add_codes<N: Number>(codes: &Codes, shift: u64, radix: u64, b: &Batch<'_>, out: &mut [N]) {
    let first = b.outer.first().map_or(0, |r| *r as usize);
    let span = first..first + b.outer.len();
    fn run<N: Number, C: Copy>(
        codes: &[C],
        shift: u64,
        radix: u64,
        out: &mut [N],
        value: impl Fn(C) -> u32 + Copy,
    ) {
        out.iter_mut().zip(codes).for_each(|(o, c)| *o = o.then(radix, shift + value(*c) as u64));
    }
    match codes {
        Codes::U8(c) if b.whole => return run(&c[span], shift, radix, out, u32::from),
        Codes::U16(c) if b.whole => return run(&c[span], shift, radix, out, u32::from),
        Codes::U24(c) if b.whole => return run(&c[span], shift, radix, out, of_three),
        Codes::U32(c) if b.whole => return run(&c[span], shift, radix, out, |c| c),
        _ => {}
    }
    let mut out = out.iter_mut();
    let add = |c: u32| {
        if let Some(o) = out.next() {
            *o = o.then(radix, shift + c as u64);
        }
    };
    match codes {
        // Blocks begin at even rows.
        Codes::U4(_) if b.whole => codes.each_half(span, add),
        _ => codes.each(&b.outer, add),
    }
}

/// Adds the numbers of a source that is a column, or columns of an inner table; `false`: it is another one.
pub(super) fn plain_numbers<N: Number>(
    source: &Source,
    radix: u64,
    out: &mut [N],
    b: &Batch<'_>,
    s: &JoinScope<'_>,
) -> Result<bool> {
    let outer = s.places.outer;
    match source {
        Source::Row { table, .. } if *table == outer => {
            let start = s.cols[outer].loaded.parts[b.part].start as u64;
            out.iter_mut().zip(&b.outer).for_each(|(o, r)| *o = o.then(radix, start + *r as u64));
        }
        Source::Row { table, .. } => {
            // The number behind the last row's is that of a row of NULLs.
            let none = s.cols[*table].loaded.rows as u64;
            for (o, r) in out.iter_mut().zip(&b.inner[*table]) {
                *o = o.then(radix, if *r == NONE { none } else { *r as u64 });
            }
        }
        Source::InnerTable { table, numbers, null, .. } => {
            let null = *null as u64;
            for (o, row) in out.iter_mut().zip(&b.inner[*table]) {
                let n = if *row == NONE { null } else { numbers[*row as usize] as u64 };
                *o = o.then(radix, n);
            }
        }
        Source::Int { table, col, min, nullable, .. } if *table != outer => {
            let one = *nullable as u64;
            let mut out = out.iter_mut();
            b.each(*table, *col, |place| {
                let n = place.and_then(|(chunk, i)| chunk.int(i)).map_or(0, |v| (v - *min) as u64 + one);
                if let Some(o) = out.next() {
                    *o = o.then(radix, n);
                }
            });
        }
        Source::Dict { table, col, .. } if *table != outer => {
            let none = s.cols[*table].loaded.dicts[*col].len() as u64;
            let mut out = out.iter_mut();
            b.each(*table, *col, |place| {
                let n = match place.map(|(chunk, i)| (&chunk.data, i)) {
                    Some((Data::Dict { codes }, i)) => codes.get(i) as u64,
                    _ => none,
                };
                if let Some(o) = out.next() {
                    *o = o.then(radix, n);
                }
            });
        }
        Source::Int { col, min, nullable, .. } => {
            let chunk = &s.cols[outer].loaded.parts[b.part].cols[*col];
            let one = *nullable as u64;
            if let Data::Int { base, nulls: false, codes } = &chunk.data {
                add_codes(codes, (base - *min) as u64 + one, radix, b, out);
            } else {
                for (o, r) in out.iter_mut().zip(&b.outer) {
                    let n = chunk.int(*r as usize).map_or(0, |v| (v - *min) as u64 + one);
                    *o = o.then(radix, n);
                }
            }
        }
        Source::Dict { col, .. } => {
            let chunk = &s.cols[outer].loaded.parts[b.part].cols[*col];
            let Data::Dict { codes } = &chunk.data else { return Err(Code::Internal.into()) };
            add_codes(codes, 0, radix, b, out);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

impl Groups<'_> {
    /// Adds the numbers of one source.
    pub(super) fn number_rows(&mut self, i: usize, b: &Batch<'_>, s: &JoinScope<'_>) -> Result<()> {
        let radix = self.radix[i];
        let full = matches!(self.sources[i], Source::Any { .. }) && self.is_full();
        let State { numbers, at, lost, .. } = &mut self.st;
        let known = match self.dense {
            true => plain_numbers(&self.sources[i], radix, at, b, s)?,
            false => plain_numbers(&self.sources[i], radix, numbers, b, s)?,
        };
        if known {
            return Ok(());
        }
        match &mut self.sources[i] {
            Source::Mapped { key, slot, map, dict } => {
                let compute = |f: Field<'_>| s.eval.value(&self.keys[*key], &OneField(f));
                match self.dense {
                    true => mapped_numbers(*slot, map, dict, &compute, radix, at, b, s),
                    false => mapped_numbers(*slot, map, dict, &compute, radix, numbers, b, s),
                }
            }
            Source::Any { key, dict, reals } => {
                if let (Ex::Slot(slot), false) = (&self.keys[*key], full)
                    && reals.add(*slot, b, radix, dict, numbers)?
                {
                    return Ok(());
                }
                let mut put = |j: usize, f: Field<'_>| -> Result<()> {
                    let code = if full { dict.find(f) } else { dict.code(f)? };
                    if code.is_none() {
                        lost.resize(b.outer.len(), false);
                        lost[j] = true;
                    }
                    numbers[j] = numbers[j].then(radix, code.unwrap_or(0) as u64);
                    Ok(())
                };
                // A column's values need no evaluation.
                if let Ex::Slot(slot) = &self.keys[*key] {
                    let (t, col) = s.places.at[*slot];
                    let entries = &s.cols[t].loaded.dicts[col];
                    let (mut j, mut done) = (0, Ok(()));
                    b.each(t, col, |place| {
                        if done.is_ok() {
                            done = put(j, place.map_or(Field::Null, |(chunk, i)| chunk.field(i, entries)));
                        }
                        j += 1;
                    });
                    return done;
                }
                for j in 0..b.outer.len() {
                    let v = s.eval.value(&self.keys[*key], &BatchRow { batch: b, i: j })?;
                    put(j, Field::of(&v))?;
                }
                Ok(())
            }
            _ => Err(Code::Internal.into()),
        }
    }
}

/// The entries of a dictionary that are reals, by their bits.
#[derive(Default)]
pub(super) struct RealCodes {
    /// Open addressing: bits, and 0 (empty) or entry + 1.
    slots: Vec<(u64, u32)>,
    count: usize,
}

impl RealCodes {
    /// About what it takes.
    pub fn held(&self) -> usize {
        self.slots.len() * size_of::<(u64, u32)>()
    }

    /// Adds the entries of a column of reals without NULLs beside the scan; `false`: it is something else, or has more
    /// values than a dictionary holds, and nothing was added.
    fn add(
        &mut self,
        slot: usize,
        b: &Batch<'_>,
        radix: u64,
        dict: &mut Dict,
        out: &mut [u64],
    ) -> Result<bool> {
        let (t, col) = b.places.at[slot];
        if t != b.places.outer {
            return Ok(false);
        }
        let Data::Real { values, nulls: None } = &b.cols[t].loaded.parts[b.part].cols[col].data else {
            return Ok(false);
        };
        // All are numbered before any is added.
        let mut codes: Vec<u32> = crate::memory::room(b.outer.len())?;
        codes.resize(b.outer.len(), 0);
        for (r, to) in b.outer.iter().zip(&mut codes) {
            let real = values[*r as usize];
            *to = match self.find(real.to_bits()) {
                Some(c) => c,
                None => match self.add_one(real, dict)? {
                    Some(c) => c,
                    None => return Ok(false),
                },
            };
        }
        out.iter_mut().zip(&codes).for_each(|(o, c)| *o = o.then(radix, *c as u64));
        Ok(true)
    }

    #[inline(always)]
    fn find(&self, bits: u64) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = Self::home(bits) & mask;
        loop {
            match self.slots[at] {
                (_, 0) => return None,
                (known, code) if known == bits => return Some(code - 1),
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[cold]
    fn add_one(&mut self, real: f64, dict: &mut Dict) -> Result<Option<u32>> {
        let code = dict.code(if real.is_nan() { Field::Null } else { Field::Real(real) })?;
        let Some(c) = code else { return Ok(None) };
        if self.slots.len() <= (self.count + 1) * 2 {
            self.grow()?;
        }
        self.put((real.to_bits(), c + 1));
        self.count += 1;
        Ok(code)
    }

    /// Puts an entry into the first free place.
    fn put(&mut self, slot: (u64, u32)) {
        let mask = self.slots.len() - 1;
        let mut at = Self::home(slot.0) & mask;
        while self.slots[at].1 != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    #[inline(always)]
    fn home(bits: u64) -> usize {
        let m = bits as u128 * 0x9e37_79b9_7f4a_7c15;
        ((m as u64) ^ (m >> 64) as u64) as usize
    }

    fn grow(&mut self) -> Result<()> {
        let n = (self.slots.len() * 2).max(256);
        let mut slots = crate::memory::room(n)?;
        slots.resize(n, (0, 0));
        let before = std::mem::replace(&mut self.slots, slots);
        before.into_iter().filter(|s| s.1 != 0).for_each(|s| self.put(s));
        Ok(())
    }
}

/// Adds the numbers of what is computed from one column, for each of its values when it is met first.
#[allow(clippy::too_many_arguments)]
fn mapped_numbers<N: Number>(
    slot: usize,
    map: &mut [u32],
    dict: &mut Dict,
    compute: &dyn Fn(Field<'_>) -> Result<Value>,
    radix: u64,
    out: &mut [N],
    b: &Batch<'_>,
    s: &JoinScope<'_>,
) -> Result<()> {
    let (t, col) = s.places.at[slot];
    let (least, null) = (s.cols[t].bounds[col].0, map.len() - 1);
    let entries = &s.cols[t].loaded.dicts[col];
    let (mut out, mut failed) = (out.iter_mut(), None);
    b.each(t, col, |place| {
        let code = place.map_or(null, |(chunk, i)| few_code(chunk, i, least, null));
        if map[code] == NONE {
            let f = place.map_or(Field::Null, |(chunk, i)| chunk.field(i, entries));
            match compute(f).and_then(|v| dict.code(Field::of(&v))?.ok_or(DECLINED.into())) {
                Ok(c) => map[code] = c,
                Err(e) => failed = Some(e),
            }
        }
        if let Some(o) = out.next() {
            *o = o.then(radix, map[code] as u64);
        }
    });
    failed.map_or(Ok(()), Err)
}
