//! Derived join codes: a column of an inner table, laid beside the rows of the outer one.
//!
//! Where an inner table is reached by a unique integer key, what its columns say of each outer row can be kept with the
//! outer table's segments: a join becomes a filter on narrow codes, and a group's key a code of the outer table. Such a
//! chunk holds as long as the segment it belongs to and the state of the inner table, whose stamp it carries. It is
//! built when it is wanted for the second time.
//!
//! A row that finds no match has the code of NULL; columns that have NULLs of their own are not derived.

use crate::expr::Eval;
use crate::expr::batch::NONE;
use crate::expr::columns::{Columns, Kind};
use crate::expr::filter::Pred;
use crate::expr::scope::Places;
use crate::query::Query;
use crate::star::build::{InnerTable, Share};
use crate::store::chunk::{Chunk, Codes, Data, Field};
use crate::store::decode::ColKey;
use crate::store::{DerivedKey, Loaded, Part, Store, TableState};
use iolite_base::Result;
use iolite_value::Affinity;
use std::sync::Arc;

/// Outer tables of fewer rows are not worth it.
const FEW_ROWS: usize = 100_000;
/// An inner table's column of integers of at most this span is derived.
const SPAN: i64 = 1 << 16;

/// What there is to derive from.
pub(crate) struct Inputs<'a> {
    pub q: &'a Query,
    pub outer: usize,
    pub states: &'a [Arc<TableState>],
    pub keys: &'a [Vec<ColKey>],
    pub eval: &'a Eval<'a>,
    pub store: &'a Store,
    /// Small tables, too.
    pub force: bool,
}

/// Takes an inner table out of the query by deriving its columns `slots`; `key` is the join's column of it, `fk` that of
/// the outer table. Answers the condition that a match exists, if some row has none; `None`: it stays.
#[allow(clippy::option_option)]
pub(crate) fn derive(
    g: &Inputs<'_>,
    table: usize,
    key: usize,
    fk: usize,
    slots: &[usize],
    cols: &mut [Columns],
    places: &mut Places,
) -> Result<Option<Option<Pred>>> {
    let (outer, inner) = (g.outer, &cols[table]);
    let stamp = g.states[table].stamp;
    let rows = cols[outer].loaded.rows;
    let few = !g.force && (rows < FEW_ROWS || inner.loaded.rows * 4 > rows);
    // A key that was itself derived hangs on the state of a further table.
    let chained = fk >= g.keys[outer].len();
    if few || chained || slots.is_empty() || !g.states[outer].keep || !g.states[table].keep {
        return Ok(None);
    }
    if cols[outer].kinds[fk] != Kind::Int || inner.kinds[key] != Kind::Int {
        return Ok(None);
    }
    let mut worth = true;
    for s in slots {
        let c = places.at[*s].1;
        let (lo, hi) = inner.bounds[c];
        let known = match inner.kinds[c] {
            Kind::Int => !inner.nullable[c] && lo <= hi && hi.checked_sub(lo).is_some_and(|d| d < SPAN),
            Kind::Dict => inner.loaded.dicts[c].len() < SPAN as usize,
            _ => false,
        };
        if !known {
            return Ok(None);
        }
        worth &= g.store.worth_deriving(key_of(g, table, key, fk, c), stamp);
    }
    // A value that reaches into overflow pages may change behind the stamp.
    let mut own: Vec<ColKey> = slots.iter().map(|s| g.keys[table][places.at[*s].1]).collect();
    own.push(g.keys[table][key]);
    if !worth || !g.states[table].holds(&own) || !g.states[outer].holds(&[g.keys[outer][fk]]) {
        return Ok(None);
    }
    let of = &places.of_table[table];
    let mut map: Option<InnerTable> = None;
    let mut made = Vec::new();
    for s in slots {
        let c = places.at[*s].1;
        let null = match inner.kinds[c] {
            Kind::Int => None,
            _ => match g.store.null_code(&g.states[table], &g.keys[table][c])? {
                Some(n) => Some(n),
                None => return Ok(None),
            },
        };
        let name = key_of(g, table, key, fk, c);
        let mut codes: Option<Vec<u32>> = None;
        let mut chunks = Vec::new();
        for (part, segment) in cols[outer].loaded.parts.iter().zip(&g.states[outer].segments) {
            if let Some(c) = segment.derived(&name, stamp) {
                chunks.push(c);
                continue;
            }
            if map.is_none() {
                let up = g.keys[table][key].field.is_none();
                map = InnerTable::build(
                    inner,
                    &[key],
                    up,
                    Affinity::Integer,
                    true,
                    &[],
                    of,
                    g.eval,
                    Some(Share::ALL),
                )?;
            }
            let Some(map) = map.as_ref().filter(|m| m.unique()) else { return Ok(None) };
            if codes.is_none() {
                codes = Some(codes_by_row(inner, c)?);
            }
            let codes = codes.as_deref().unwrap_or(&[]);
            let absent = null.as_ref().map(|n| n.0);
            let made = Arc::new(build(part, fk, map, codes, inner.bounds[c], absent)?);
            g.store.keep_derived(segment, name, stamp, &made);
            chunks.push(made);
        }
        made.push((*s, c, null, chunks));
    }
    let mut pred = None;
    for (s, c, null, chunks) in made {
        let missing = chunks.iter().any(|c| c.absent);
        let (kind, bounds) = (cols[table].kinds[c], cols[table].bounds[c]);
        let dict = null.map_or_else(|| cols[table].loaded.dicts[c].clone(), |n| n.1);
        let o = &mut cols[outer];
        let col = o.kinds.len();
        if missing && pred.is_none() {
            pred = Some(match kind {
                Kind::Int => Pred::Range { col, lo: bounds.0, hi: bounds.1, not: false },
                _ => {
                    let mut set = crate::kernel::Bits::new(dict.len())?;
                    for code in 0..dict.len() as u32 {
                        if !matches!(dict.get(code), Field::Null) {
                            set.set(code as usize);
                        }
                    }
                    Pred::DictSet { col, set }
                }
            });
        }
        o.kinds.push(kind);
        o.bounds.push(bounds);
        o.nullable.push(missing);
        let Loaded { parts, dicts, .. } = &mut o.loaded;
        dicts.push(dict);
        for (p, chunk) in parts.iter_mut().zip(chunks) {
            p.cols.push(chunk);
        }
        places.at[s] = (outer, col);
        places.of_table[table][s] = None;
        places.of_table[outer][s] = Some(col);
    }
    Ok(Some(pred))
}

fn key_of(g: &Inputs<'_>, table: usize, key: usize, fk: usize, column: usize) -> DerivedKey {
    DerivedKey {
        outer: g.keys[g.outer][fk],
        root: g.q.tables[table].table.root.get(),
        key: g.keys[table][key],
        column: g.keys[table][column],
    }
}

/// The codes of a column of the inner table by row: entries of the dictionary, or integers less the least, plus 1.
fn codes_by_row(inner: &Columns, c: usize) -> Result<Vec<u32>> {
    let mut out = crate::memory::room(inner.loaded.rows)?;
    let least = inner.bounds[c].0;
    for p in &inner.loaded.parts {
        match &p.cols[c].data {
            Data::Dict { codes } => out.extend((0..p.rows).map(|i| codes.get(i))),
            _ => out.extend((0..p.rows).map(|i| p.cols[c].int(i).map_or(0, |v| (v - least) as u32 + 1))),
        }
    }
    Ok(out)
}

/// The chunk of one segment.
fn build(
    part: &Part,
    fk: usize,
    map: &InnerTable,
    codes: &[u32],
    bounds: (i64, i64),
    null: Option<u32>,
) -> Result<Chunk> {
    let mut out: Vec<u32> = crate::memory::room(part.rows)?;
    let chunk = &part.cols[fk];
    let absent = null.unwrap_or(0);
    let of = |row: u32| if row == NONE { absent } else { codes[row as usize] };
    for i in 0..part.rows {
        out.push(chunk.int(i).map_or(absent, |v| of(map.find_int(v))));
    }
    let max = out.iter().copied().max().unwrap_or(0);
    let missing = out.contains(&absent);
    if null.is_some() {
        let mut c = Chunk::of_dict_codes(Codes::pack(&out, max)?, part.rows)?;
        c.absent = missing;
        return Ok(c);
    }
    let (mut base, mut least) = (bounds.0 - 1, bounds.0);
    if !missing {
        // No row without a match: codes begin at the least value, as everywhere.
        out.iter_mut().for_each(|c| *c -= 1);
        (base, least) = (bounds.0, bounds.0);
    }
    let max = out.iter().copied().max().unwrap_or(0);
    let mut c = Chunk::of_int_codes(base, missing, Codes::pack(&out, max)?, part.rows, least, bounds.1)?;
    c.absent = missing;
    Ok(c)
}
