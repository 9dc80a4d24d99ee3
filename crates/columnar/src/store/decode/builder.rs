//! Collects the values of one column of a segment, and becomes what they ask for: integers or reals as long as there are no
//! others, then entries of the column's dictionary, then values one by one.
//!
//! What it does not know: rows and pages. A value that was appended stays, whatever the form becomes.

use super::page::{Spot, field_at, int_of};
use crate::store::chunk::{Chunk, Dict, Field, Plain};
use iolite_base::{Code, Result, alloc};

/// What a builder has become.
enum Form {
    Int(Vec<i64>),
    Real(Vec<f64>),
    Dict(Vec<u32>),
    Plain(Plain),
}

/// Room of builders that are done, for those to come: memory that is touched for the first time costs a fault a page.
#[derive(Default)]
pub(crate) struct Spare {
    ints: Vec<Vec<i64>>,
    codes: Vec<Vec<u32>>,
    /// The rows that were last built.
    pub(super) rows: usize,
}

/// An empty vector with room, a used one if there is one.
fn emptied<T>(from: &mut Vec<Vec<T>>, n: usize) -> Result<Vec<T>> {
    let mut v = from.pop().unwrap_or_default();
    v.clear();
    alloc::reserve(&mut v, n)?;
    Ok(v)
}

/// Collects the values of one column.
pub(crate) struct Builder<'d> {
    real: bool,
    form: Form,
    nulls: Vec<u32>,
    dict: &'d mut Dict,
    pub(super) pure: bool,
}

impl<'d> Builder<'d> {
    /// Begins a column. `real`: integers stand for reals. `ints`: the same leaves gave integers before, and so they do again,
    /// though others have filled the dictionary meanwhile: a query may know of those.
    pub fn new(
        real: bool,
        ints: bool,
        dict: &'d mut Dict,
        rows: usize,
        spare: &mut Spare,
    ) -> Result<Builder<'d>> {
        let form = if real {
            Form::Real(crate::memory::room(rows)?)
        } else if dict.len() > 0 && !ints {
            // Other segments of the column hold texts.
            Form::Dict(emptied(&mut spare.codes, rows)?)
        } else {
            Form::Int(emptied(&mut spare.ints, rows)?)
        };
        Ok(Builder { real, form, nulls: Vec::new(), dict, pure: true })
    }

    fn len(&self) -> usize {
        match &self.form {
            Form::Int(v) => v.len(),
            Form::Real(v) => v.len(),
            Form::Dict(v) => v.len(),
            Form::Plain(_) => 0,
        }
    }

    /// Appends a value.
    #[inline(always)]
    pub fn push(&mut self, f: Field<'_>) -> Result<()> {
        match (&mut self.form, f) {
            (Form::Int(v), Field::Int(i)) => {
                alloc::reserve(v, 1)?;
                v.push(i);
                Ok(())
            }
            (Form::Real(v), Field::Real(r)) if !r.is_nan() => {
                alloc::reserve(v, 1)?;
                v.push(r);
                Ok(())
            }
            // Whole numbers of a REAL column are stored as integers.
            (Form::Real(v), Field::Int(i)) if self.real => {
                alloc::reserve(v, 1)?;
                v.push(i as f64);
                Ok(())
            }
            (Form::Dict(codes), Field::Text(_)) => match self.dict.code(f)? {
                Some(c) => {
                    alloc::reserve(codes, 1)?;
                    codes.push(c);
                    Ok(())
                }
                None => self.push_other(f),
            },
            _ => self.push_other(f),
        }
    }

    /// Appends the values of some spots.
    pub(super) fn push_all(&mut self, page: &[u8], spots: &[Spot]) -> Result<()> {
        let mut left = spots.iter().copied();
        // The kinds that a column mostly holds, without looking at the form again.
        let other = match &mut self.form {
            Form::Int(v) => {
                let start = v.len();
                alloc::reserve(v, left.len())?;
                v.resize(start + left.len(), 0);
                let mut other = None;
                let mut n = start;
                for (to, s) in v[start..].iter_mut().zip(&mut left) {
                    let Some(i) = int_of(page, s) else {
                        other = Some(s);
                        break;
                    };
                    *to = i;
                    n += 1;
                }
                v.truncate(n);
                other
            }
            Form::Real(v) => {
                alloc::reserve(v, left.len())?;
                loop {
                    let Some(s) = left.next() else { break None };
                    match field_at(page, s)? {
                        Field::Real(r) => v.push(r),
                        Field::Int(i) if self.real => v.push(i as f64),
                        _ => break Some(s),
                    }
                }
            }
            _ => left.next(),
        };
        for s in other.into_iter().chain(left) {
            self.push(field_at(page, s)?)?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn push_other(&mut self, f: Field<'_>) -> Result<()> {
        let f = match f {
            // Whole numbers of a REAL column are stored as integers.
            Field::Int(i) if self.real => Field::Real(i as f64),
            f => f,
        };
        match (&mut self.form, f) {
            (Form::Real(v), Field::Real(r)) if !r.is_nan() => {
                alloc::reserve(v, 1)?;
                v.push(r);
                Ok(())
            }
            (Form::Int(v), Field::Null) => {
                alloc::reserve(&mut self.nulls, 1)?;
                self.nulls.push(v.len() as u32);
                alloc::reserve(v, 1)?;
                v.push(0);
                Ok(())
            }
            (Form::Real(v), Field::Null) => {
                alloc::reserve(&mut self.nulls, 1)?;
                self.nulls.push(v.len() as u32);
                alloc::reserve(v, 1)?;
                v.push(0.0);
                Ok(())
            }
            (Form::Dict(codes), f) => match self.dict.code(f)? {
                Some(c) => {
                    alloc::reserve(codes, 1)?;
                    codes.push(c);
                    Ok(())
                }
                None => {
                    self.become_plain()?;
                    self.push_other(f)
                }
            },
            (Form::Plain(p), f) => p.push(f),
            (Form::Int(v), Field::Real(_)) if v.len() == self.nulls.len() => {
                // Nothing but NULLs so far: a column of reals.
                let mut reals = crate::memory::room(v.capacity())?;
                reals.resize(v.len(), 0.0);
                self.form = Form::Real(reals);
                self.push(f)
            }
            _ => {
                self.become_dict()?;
                self.push_other(f)
            }
        }
    }

    /// Goes over to a dictionary.
    fn become_dict(&mut self) -> Result<()> {
        let n = self.len();
        let old = std::mem::replace(&mut self.form, Form::Dict(crate::memory::room(n)?));
        let nulls = std::mem::take(&mut self.nulls);
        let mut null = nulls.iter().peekable();
        for i in 0..n {
            let f = if null.peek() == Some(&&(i as u32)) {
                null.next();
                Field::Null
            } else {
                match &old {
                    Form::Int(v) => Field::Int(v[i]),
                    Form::Real(v) => Field::Real(v[i]),
                    _ => return Err(Code::Internal.into()),
                }
            };
            self.push_other(f)?;
        }
        Ok(())
    }

    fn become_plain(&mut self) -> Result<()> {
        let Form::Dict(codes) = std::mem::replace(&mut self.form, Form::Plain(Plain::default())) else {
            return Err(Code::Internal.into());
        };
        if let Form::Plain(p) = &mut self.form {
            for c in codes {
                p.push(self.dict.get(c))?;
            }
        }
        Ok(())
    }

    /// The chunk.
    pub fn finish(self, rowids: bool, spare: &mut Spare) -> Result<Chunk> {
        match self.form {
            Form::Int(mut v) => {
                let made = match rowids {
                    true => Chunk::of_rowids(&mut v),
                    false => Chunk::of_ints(&mut v, &self.nulls),
                };
                spare.ints.push(v);
                made
            }
            Form::Real(v) => Chunk::of_reals(v, &self.nulls),
            Form::Dict(v) => {
                let made = Chunk::of_codes(&v);
                spare.codes.push(v);
                made
            }
            Form::Plain(p) => Chunk::of_plain(p),
        }
    }
}
