//! Bound parameters: literals of a statement are taken out of its text and bound instead.
//!
//! Only literals behind an operator or in a list of VALUES are taken: elsewhere a number may be that of a result column,
//! or a literal may have to equal another one (GROUP BY), or no parameter may stand.

use super::pair::V;
use super::rng::Rng;
use super::shrink::tokens;

/// Words and signs behind which a literal is a value like any other.
const BEFORE: &[&str] =
    &["=", "<", ">", "+", "*", "/", "%", "|", "AND", "BETWEEN", "THEN", "ELSE", "IS", "LIKE"];

/// The statement with some of its literals as parameters, and their values.
pub fn lift(sql: &str, rng: &mut Rng) -> (String, Vec<V>) {
    let mut values: Vec<V> = Vec::new();
    if sql.contains("GROUP BY") {
        return (sql.into(), values);
    }
    let mut out = String::new();
    let mut before = String::new();
    // Depth of parentheses within VALUES.
    let mut list: Option<usize> = None;
    for t in tokens(sql) {
        let word = t.trim();
        let value_place = match list {
            Some(1) => before == "(" || before == ",",
            _ => BEFORE.contains(&before.as_str()),
        };
        match (word, &mut list) {
            ("VALUES", _) => list = Some(0),
            ("(", Some(d)) => *d += 1,
            (")", Some(d)) if *d > 0 => *d -= 1,
            ("SELECT" | "ON" | "RETURNING", l) => *l = None,
            _ => {}
        }
        match literal(word) {
            Some(v) if value_place && rng.chance(60) => {
                values.push(v);
                let n = values.len();
                let space = &t[..t.len() - t.trim_start().len()];
                out += &match rng.below(3) {
                    0 => format!("{space}?"),
                    1 => format!("{space}?{n}"),
                    _ => format!("{space}:p{n}"),
                };
            }
            _ => out += &t,
        }
        before = word.into();
    }
    (out, values)
}

fn literal(word: &str) -> Option<V> {
    let first = word.chars().next()?;
    if first.is_ascii_digit() {
        return match word.parse::<i64>() {
            Ok(i) => Some(V::Int(i)),
            Err(_) => word.parse::<f64>().ok().filter(|r| r.is_finite()).map(|r| V::Real(r.to_bits())),
        };
    }
    let inner = word.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(V::Text(inner.replace("''", "'").into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_parameters_where_they_are_values() {
        let mut rng = Rng::new(7);
        let sql = "SELECT a FROM t WHERE b = 5 AND c LIKE 'it''s' ORDER BY 1 LIMIT 3";
        let (text, values) = loop {
            let (text, values) = lift(sql, &mut rng);
            if values.len() == 2 {
                break (text, values);
            }
        };
        assert!(text.ends_with("ORDER BY 1 LIMIT 3"), "{text}");
        assert_eq!(values, [V::Int(5), V::Text(b"it's".to_vec())]);
    }
}
