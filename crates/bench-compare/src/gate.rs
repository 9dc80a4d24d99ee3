//! The correctness gate: answers of all engines are compared before any time counts.
//!
//! Integers, texts, blobs and NULLs must be equal; reals may differ by a billionth, since engines add in different orders,
//! and an integer equals the real of the same value (DuckDB's sums of decimals and averages).

use iolite_bench::engine::{Result, Value, show};

/// How far reals may be apart, relative to the larger.
const TOLERANCE: f64 = 1e-9;

fn number(v: &Value) -> Option<f64> {
    match v {
        Value::Int(n) => Some(*n as f64),
        Value::Real(r) => Some(*r),
        _ => None,
    }
}

fn same(a: &Value, b: &Value) -> bool {
    if a == b {
        return true;
    }
    match (a, b) {
        (Value::Int(_), Value::Int(_)) => false,
        _ => match (number(a), number(b)) {
            (Some(x), Some(y)) => (x - y).abs() <= TOLERANCE * x.abs().max(y.abs()).max(1e-6),
            _ => false,
        },
    }
}

/// Compares answers, the first engine's with each other's; `sorted` answers may come in any order.
pub fn equal(what: &str, answers: &[(&str, Vec<Vec<Value>>)], sorted: bool) -> Result<()> {
    let Some((first, rest)) = answers.split_first() else { return Ok(()) };
    let order = |rows: &Vec<Vec<Value>>| {
        let mut r: Vec<&Vec<Value>> = rows.iter().collect();
        if sorted {
            r.sort_by_cached_key(|r| show(r));
        }
        r.into_iter().cloned().collect::<Vec<_>>()
    };
    let a = order(&first.1);
    for (name, rows) in rest {
        let b = order(rows);
        if a.len() != b.len() {
            return Err(format!("{what}: {} has {} rows, {name} {}", first.0, a.len(), b.len()).into());
        }
        for (i, (x, y)) in a.iter().zip(&b).enumerate() {
            if x.len() != y.len() || !x.iter().zip(y).all(|(x, y)| same(x, y)) {
                return Err(format!(
                    "{what}: row {i} differs: {} answers {}, {name} {}",
                    first.0,
                    show(x),
                    show(y)
                )
                .into());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_bench::engine::{int, text};

    fn gate(a: Vec<Vec<Value>>, b: Vec<Vec<Value>>, sorted: bool) -> bool {
        equal("test", &[("a", a), ("b", b)], sorted).is_ok()
    }

    #[test]
    fn a_wrong_answer_is_caught() {
        assert!(gate(vec![vec![int(1), text("x")]], vec![vec![int(1), text("x")]], false));
        assert!(!gate(vec![vec![int(1)]], vec![vec![int(2)]], false));
        assert!(!gate(vec![vec![int(1)]], vec![vec![text("1")]], false));
        assert!(!gate(vec![vec![int(1)]], vec![vec![Value::Null]], false));
        assert!(!gate(vec![vec![int(1)]], vec![], false));
        assert!(!gate(vec![vec![int(1 << 60)]], vec![vec![int((1 << 60) + 1)]], false));
    }

    #[test]
    fn reals_may_differ_in_their_last_digits() {
        let real = |r| vec![vec![Value::Real(r)]];
        assert!(gate(real(0.1 + 0.2), real(0.3), false));
        assert!(gate(real(7.0), vec![vec![int(7)]], false));
        assert!(!gate(real(1.0), real(1.000_001), false));
    }

    #[test]
    fn order_counts_unless_said_otherwise() {
        let (a, b) = (vec![vec![int(1)], vec![int(2)]], vec![vec![int(2)], vec![int(1)]]);
        assert!(!gate(a.clone(), b.clone(), false));
        assert!(gate(a, b, true));
    }

    #[test]
    fn a_third_engine_is_compared_too() {
        let one = vec![vec![int(1)]];
        let e = equal("q", &[("a", one.clone()), ("b", one), ("c", vec![vec![int(3)]])], false);
        assert!(e.unwrap_err().message.contains("c 3"));
    }
}
