//! `bm25`: how well a row answers, by how rare its phrases are and how often it has them, measured against its length. The
//! better, the farther below zero.

use super::Row;
use iolite_base::Result;
use iolite_value::Value;
use std::cell::RefCell;
use std::rc::Rc;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// What is the same for all rows of a query.
struct Known {
    /// The average number of tokens in a row.
    average: f64,
    /// How rare each phrase is.
    rarity: Vec<f64>,
    /// How often the row has each phrase.
    frequency: RefCell<Vec<f64>>,
}

/// How rare a phrase is that `hits` of all rows have.
pub(crate) fn rarity(rows: i64, hits: i64) -> f64 {
    let idf = ((rows.wrapping_sub(hits) as f64 + 0.5) / (hits as f64 + 0.5)).ln();
    // A phrase that most rows have still counts a little.
    if idf <= 0.0 { 1e-6 } else { idf }
}

/// What a phrase adds to a row's score.
#[inline]
pub(crate) fn part(rarity: f64, frequency: f64, length: f64, average: f64) -> f64 {
    rarity * ((frequency * (K1 + 1.0)) / (frequency + K1 * (1.0 - B + B * length / average)))
}

fn known(row: &dyn Row) -> Result<Rc<Known>> {
    if let Some(k) = row.kept("bm25").and_then(|k| k.downcast::<Known>().ok()) {
        return Ok(k);
    }
    let rows = row.row_count()?;
    let tokens = row.column_total(-1)?;
    let mut rarity = Vec::new();
    for phrase in 0..row.phrase_count() {
        rarity.push(self::rarity(rows, row.phrase_rows(phrase)?));
    }
    let k = Rc::new(Known { average: tokens as f64 / rows as f64, rarity, frequency: RefCell::default() });
    row.keep("bm25", k.clone());
    Ok(k)
}

pub(super) fn bm25(row: &dyn Row, weights: &[Value]) -> Result<Value> {
    let known = known(row)?;
    let mut frequency = known.frequency.borrow_mut();
    frequency.clear();
    frequency.resize(known.rarity.len(), 0.0);
    for i in row.instances()?.iter() {
        let weight = weights.get(i.column as usize).map_or(1.0, Value::to_real);
        frequency[i.phrase] += weight;
    }
    let length = row.column_size(-1)? as f64;
    let mut score = 0.0;
    for (f, rarity) in frequency.iter().zip(&known.rarity) {
        score += part(*rarity, *f, length, known.average);
    }
    Ok(Value::real(-score))
}
