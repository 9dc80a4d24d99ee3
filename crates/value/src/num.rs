//! Numbers and text (documentation pages `datatype3`, `floatingpoint`, `lang_expr` on CAST).
//!
//! Text becomes a number by its longest numeric prefix; whether the prefix was the whole text decides about
//! affinity. A real becomes text with 15 significant digits if those read back as the same real, else with 17.

/// A number read from text.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Number {
    Int(i64),
    Real(f64),
}

impl Number {
    /// As a real.
    #[inline]
    pub fn to_real(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Real(r) => r,
        }
    }
}

/// The longest numeric prefix of a text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prefix {
    /// Its value; integer 0 where there is none.
    pub number: Number,
    /// At least one digit was there.
    pub any: bool,
    /// Nothing but space around it.
    pub whole: bool,
}

/// SQLite's white space.
#[inline]
pub fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Reads the longest numeric prefix of `text`. Integers too large for 64 bits become reals.
pub fn prefix(text: &[u8]) -> Prefix {
    let start = text.iter().position(|&b| !is_space(b)).unwrap_or(text.len());
    let t = &text[start..];
    let mut i = 0;
    let negative = t.first() == Some(&b'-');
    if negative || t.first() == Some(&b'+') {
        i = 1;
    }
    let digits_at = i;
    let mut int: u64 = 0;
    let mut overflow = false;
    while let Some(d) = t.get(i).filter(|b| b.is_ascii_digit()) {
        match int.checked_mul(10).and_then(|v| v.checked_add((d - b'0') as u64)) {
            Some(v) => int = v,
            None => overflow = true,
        }
        i += 1;
    }
    let mut digits = i - digits_at;
    let mut real = false;
    let mut end = i;
    if t.get(i) == Some(&b'.') {
        let from = i + 1;
        let mut j = from;
        while t.get(j).is_some_and(u8::is_ascii_digit) {
            j += 1;
        }
        if digits > 0 || j > from {
            digits += j - from;
            real = true;
            end = j;
        }
    }
    if digits == 0 {
        return Prefix { number: Number::Int(0), any: false, whole: false };
    }
    if matches!(t.get(end), Some(b'e' | b'E')) {
        let mut j = end + 1;
        if matches!(t.get(j), Some(b'+' | b'-')) {
            j += 1;
        }
        let from = j;
        while t.get(j).is_some_and(u8::is_ascii_digit) {
            j += 1;
        }
        if j > from {
            real = true;
            end = j;
        }
    }
    let whole = t[end..].iter().all(|&b| is_space(b));
    let number = if !real && !overflow && int <= i64::MAX as u64 {
        Number::Int(if negative { -(int as i64) } else { int as i64 })
    } else if !real && !overflow && negative && int == 1 << 63 {
        Number::Int(i64::MIN)
    } else {
        let s = std::str::from_utf8(&t[..end]).unwrap_or("0");
        Number::Real(s.parse().unwrap_or(0.0))
    };
    Prefix { number, any: true, whole }
}

/// The integer that `CAST(text AS INTEGER)` gives: the integer prefix alone, cut to 64 bits.
pub fn text_to_int(text: &[u8]) -> i64 {
    let start = text.iter().position(|&b| !is_space(b)).unwrap_or(text.len());
    let t = &text[start..];
    let negative = t.first() == Some(&b'-');
    let sign = (negative || t.first() == Some(&b'+')) as usize;
    let mut v: i64 = 0;
    for &d in t[sign..].iter().take_while(|b| b.is_ascii_digit()) {
        let d = (d - b'0') as i64;
        let next = v.checked_mul(10).and_then(|v| if negative { v.checked_sub(d) } else { v.checked_add(d) });
        match next {
            Some(n) => v = n,
            None => return if negative { i64::MIN } else { i64::MAX },
        }
    }
    v
}

/// Truncation towards zero, cut to 64 bits.
#[inline]
pub fn real_to_int(r: f64) -> i64 {
    r as i64
}

/// The integer equal to `r`, if there is one that a real represents exactly and that SQLite would store in place
/// of the real: magnitudes below 2^51 always, beyond only if the round trip is exact.
#[inline]
pub fn real_as_int(r: f64) -> Option<i64> {
    let i = r as i64;
    if i as f64 == r && i > i64::MIN && i < i64::MAX { Some(i) } else { None }
}

/// The digits of `i` in `buf`.
#[inline]
pub fn int_text(i: i64, buf: &mut [u8; 24]) -> &[u8] {
    let mut at = buf.len();
    let mut v = i.unsigned_abs();
    loop {
        at -= 1;
        buf[at] = b'0' + (v % 10) as u8;
        v /= 10;
        if v == 0 {
            break;
        }
    }
    if i < 0 {
        at -= 1;
        buf[at] = b'-';
    }
    &buf[at..]
}

/// A real as text: `2.5`, `1.0e+20`, `-Inf`.
pub fn real_text(r: f64) -> String {
    if r.is_infinite() {
        return if r > 0.0 { "Inf".into() } else { "-Inf".into() };
    }
    if r == 0.0 {
        return "0.0".into();
    }
    let mut text = format!("{:.14e}", r.abs());
    if text.parse::<f64>() != Ok(r.abs()) {
        text = format!("{:.16e}", r.abs());
    }
    let (mantissa, exponent) = text.split_once('e').expect("{:e} prints an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} prints a decimal exponent");
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let mut out = String::with_capacity(26);
    if r < 0.0 {
        out.push('-');
    }
    if !(-4..=16).contains(&exponent) {
        out.push_str(&digits[..1]);
        out.push('.');
        out.push_str(if digits.len() > 1 { &digits[1..] } else { "0" });
        out.push_str(&format!("e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()));
    } else if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.push_str(digits);
    } else {
        let point = exponent as usize + 1;
        if digits.len() > point {
            out.push_str(&digits[..point]);
            out.push('.');
            out.push_str(&digits[point..]);
        } else {
            out.push_str(digits);
            out.extend(std::iter::repeat_n('0', point - digits.len()));
            out.push_str(".0");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let p = |s: &str| {
            let p = prefix(s.as_bytes());
            format!("{:?} {} {}", p.number, p.any as u8, p.whole as u8)
        };
        for (text, want) in [
            (" 12 ", "Int(12) 1 1"),
            ("12x", "Int(12) 1 0"),
            ("1e", "Int(1) 1 0"),
            ("1e2", "Real(100.0) 1 1"),
            (".5", "Real(0.5) 1 1"),
            ("5.", "Real(5.0) 1 1"),
            (".", "Int(0) 0 0"),
            ("-9223372036854775808", "Int(-9223372036854775808) 1 1"),
            ("9223372036854775808", "Real(9.223372036854776e18) 1 1"),
            ("", "Int(0) 0 0"),
        ] {
            assert_eq!(p(text), want, "{text:?}");
        }
    }

    #[test]
    fn reals_print_with_15_or_17_digits() {
        for (r, want) in [
            (0.1, "0.1"),
            (100.0, "100.0"),
            (1e20, "1.0e+20"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.33333333333333331"),
            (-2.5e-7, "-2.5e-07"),
            (123456789012345.0, "123456789012345.0"),
        ] {
            assert_eq!(real_text(r), want);
        }
    }
}
