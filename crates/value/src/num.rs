//! Numbers and text (documentation pages `datatype3`, `floatingpoint`, `lang_expr` on CAST).
//!
//! Text becomes a number by its longest numeric prefix; whether the prefix was the whole text decides about
//! affinity. A real takes its value from the significant digits that fit 64 bits, correctly rounded; further ones
//! only count for the exponent, as in SQLite.
//!
//! A real becomes text with 17 significant digits, or with 15 where 17 digits would end in a run of 0s or 9s
//! and 15 read back as the same real. The digits come from one multiplication of 64 by 64 bits, whose last digit
//! may differ from the exact expansion's; SQLite 3.53 does the same, and a file's text forms must agree with it.

use crate::pow10;
use std::cell::Cell;

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
    let mut i = 0;
    while text.get(i).is_some_and(|&b| is_space(b)) {
        i += 1;
    }
    let negative = text.get(i) == Some(&b'-');
    if negative || text.get(i) == Some(&b'+') {
        i += 1;
    }
    let mut d = Digits::default();
    let from = i;
    i = d.take(text, i, 0);
    let mut any = i > from;
    let whole_digits = !d.dropped;
    let mut real = false;
    if text.get(i) == Some(&b'.') {
        let end = d.take(text, i + 1, -1);
        if any || end > i + 1 {
            any = true;
            real = true;
            i = end;
        }
    }
    if !any {
        return Prefix { number: Number::Int(0), any: false, whole: false };
    }
    if matches!(text.get(i), Some(b'e' | b'E')) {
        let sign = matches!(text.get(i + 1), Some(b'+' | b'-')) as usize;
        let from = i + 1 + sign;
        let mut exponent = 0i32;
        let mut j = from;
        while let Some(&b) = text.get(j).filter(|b| b.is_ascii_digit()) {
            exponent = (exponent * 10 + (b - b'0') as i32).min(99_999);
            j += 1;
        }
        if j > from {
            d.exponent += if text[i + 1] == b'-' { -exponent } else { exponent };
            real = true;
            i = j;
        }
    }
    // A NUL ends a number's text as the end does.
    let whole = text[i..].iter().take_while(|b| **b != 0).all(|&b| is_space(b));
    let limit = i64::MAX as u64 + negative as u64;
    let number = if !real && whole_digits && d.value <= limit {
        Number::Int(if negative { (d.value as i64).wrapping_neg() } else { d.value as i64 })
    } else {
        let r = scale(d.value, d.exponent);
        Number::Real(if negative { -r } else { r })
    };
    Prefix { number, any: true, whole }
}

/// The significant digits of a number that fit 64 bits (19, or 20 below 1.8446...), and where its point is.
#[derive(Default)]
struct Digits {
    value: u64,
    /// Further digits did not fit.
    dropped: bool,
    /// The number is `value` times ten to this.
    exponent: i32,
}

impl Digits {
    /// Takes the digits from `text[i]` on; each adds `step` to the exponent. Answers where they end.
    #[inline]
    fn take(&mut self, text: &[u8], mut i: usize, step: i32) -> usize {
        while let Some(&b) = text.get(i).filter(|b| b.is_ascii_digit()) {
            if self.value <= (u64::MAX - 9) / 10 {
                self.value = self.value * 10 + (b - b'0') as u64;
                self.exponent += step;
            } else {
                self.dropped = true;
                self.exponent += step + 1;
            }
            i += 1;
        }
        i
    }
}

/// `value` * 10^`exponent`, correctly rounded.
fn scale(value: u64, exponent: i32) -> f64 {
    const EXACT: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    if value < 1 << 53 {
        // Both factors are exact, so one operation rounds once.
        if (0..=22).contains(&exponent) {
            return value as f64 * EXACT[exponent as usize];
        }
        if (-22..0).contains(&exponent) {
            return value as f64 / EXACT[-exponent as usize];
        }
    }
    if value == 0 {
        return 0.0;
    }
    let mut text = [0u8; 32];
    let mut room = &mut text[..];
    let written = std::io::Write::write_fmt(&mut room, format_args!("{value}e{exponent}"));
    let left = room.len();
    match (written, std::str::from_utf8(&text[..32 - left])) {
        (Ok(()), Ok(s)) => s.parse().unwrap_or(0.0),
        _ => 0.0,
    }
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

/// The digits of `i` in `buf`, which has room for 20.
#[inline]
pub fn int_text(i: i64, buf: &mut [u8]) -> &[u8] {
    let end = buf.len();
    let mut at = put_digits(i.unsigned_abs(), buf, end);
    if i < 0 {
        at -= 1;
        buf[at] = b'-';
    }
    &buf[at..]
}

/// The digits of the numbers below a hundred, two for each.
const PAIRS: [u8; 200] = {
    let mut out = [0; 200];
    let mut n = 0;
    while n < 100 {
        out[2 * n] = b'0' + n as u8 / 10;
        out[2 * n + 1] = b'0' + n as u8 % 10;
        n += 1;
    }
    out
};

/// Writes the decimal digits of `v`, one at least, so that they end before `end` of `buf`; where they begin.
#[inline]
pub fn put_digits(mut v: u64, buf: &mut [u8], end: usize) -> usize {
    let mut at = end;
    while v >= 10 {
        let two = 2 * (v % 100) as usize;
        v /= 100;
        at -= 2;
        buf[at..at + 2].copy_from_slice(&PAIRS[two..two + 2]);
    }
    if v > 0 || at == end {
        at -= 1;
        buf[at] = b'0' + v as u8;
    }
    at
}

/// The decimal digits of a real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: [u8; 20],
    len: u8,
    /// The decimal point stands behind this many digits; it may lie outside of them.
    pub point: i32,
}

/// Where a real is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To so many significant digits.
    Significant(i32),
    /// To so many digits behind the point.
    Fraction(i32),
}

impl Decimal {
    /// The digits, in ASCII, without zeros at the end; never empty.
    #[inline]
    pub fn digits(&self) -> &[u8] {
        &self.digits[..self.len as usize]
    }

    /// The digits of `r`, whose sign is ignored, rounded half up, to at most `most` significant digits.
    /// `r` must be finite.
    pub fn of(r: f64, round: Round, most: i32) -> Decimal {
        // For up to 16 digits one more is cut off, and decides; for more, and behind the point, 18 are rounded and
        // rounded again. So does SQLite, and ties fall as there.
        let mut d = match round {
            Round::Significant(n @ 1..=16) => Decimal::long(r.abs(), n + 1, false),
            _ => Decimal::long(r.abs(), 18, true),
        };
        let wanted = match round {
            Round::Significant(n) => n,
            Round::Fraction(n) => n.saturating_add(d.point),
        };
        let wanted = wanted.min(most);
        if wanted < d.len as i32 {
            if wanted == 17
                && let Some(short) = d.shortened(r.abs())
            {
                return short;
            }
            d.round(wanted);
        }
        while d.len > 1 && d.digits[d.len as usize - 1] == b'0' {
            d.len -= 1;
        }
        if d.digits() == b"0" {
            d.point = 1;
        }
        d
    }

    /// `n` digits, or one more; the last one rounded or cut.
    fn long(r: f64, n: i32, rounded: bool) -> Decimal {
        let mut d = Decimal { digits: [b'0'; 20], len: 1, point: 1 };
        if r == 0.0 {
            return d;
        }
        let bits = r.to_bits();
        let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
        // r = mantissa * 2^(e - 63), the mantissa's top bit set.
        let full = if biased == 0 { fraction } else { fraction | 1 << 52 };
        let zeros = full.leading_zeros();
        let mantissa = full << zeros;
        let e = biased.max(1) - 1012 - zeros as i32;
        // Digits before the point of 2^e, less one; `n` digits in all for the smallest number of this exponent.
        let p = n - 1 - ((e * 315653) >> 20);
        let q = (p * 217706) >> 16;
        let high = (mantissa as u128 * pow10::LEADING[(p - pow10::FIRST) as usize] as u128) >> 64;
        let shift = (62 - e - q) as u32;
        let half = if rounded { 1 << (shift - 1) } else { 0 };
        // With zeros behind, so that what is moved to the front has one length.
        let mut wide = [b'0'; 40];
        let at = put_digits(((high + half) >> shift) as u64, &mut wide, 20);
        d.len = 20 - at as u8;
        d.digits.copy_from_slice(&wide[at..at + 20]);
        d.point = d.len as i32 - p;
        d
    }

    /// Keeps `n` digits; a next digit of 5 or more rounds up.
    fn round(&mut self, n: i32) {
        let zero = Decimal { digits: [b'0'; 20], len: 1, point: 1 };
        if n < 0 {
            *self = zero;
            return;
        }
        let n = n as usize;
        let mut up = self.digits[n] >= b'5';
        self.len = n as u8;
        for d in self.digits[..n].iter_mut().rev() {
            if !up {
                return;
            }
            up = *d == b'9';
            *d = if up { b'0' } else { *d + 1 };
        }
        if up {
            self.digits.copy_within(..n, 1);
            self.digits[0] = b'1';
            self.len = n.max(1) as u8;
            self.point += 1;
        } else if n == 0 {
            *self = zero;
        }
    }

    /// The form with 15 digits, if the digits 14 to 16 hint at one and it reads back as `r`.
    fn shortened(&self, r: f64) -> Option<Decimal> {
        let mut d = *self;
        d.len = 15;
        match &self.digits[13..16] {
            [_, b'9', b'9'] => {
                d.digits[15] = b'9';
                d.round(15);
            }
            [b'0', b'0', z] if *z == b'0' || self.point >= self.len as i32 => {}
            _ => return None,
        }
        while d.len > 1 && d.digits[d.len as usize - 1] == b'0' {
            d.len -= 1;
        }
        let value = d.digits().iter().fold(0, |v, b| v * 10 + (b - b'0') as u64);
        (scale(value, d.point - d.len as i32) == r).then_some(d)
    }
}

/// Room for [`write_real`].
pub type RealBuf = [u8; 32];

/// A real as text, as [`real_text`] gives it, in `buf`; `digits` is the number of significant digits, at most 23
/// (`SQLITE_DBCONFIG_FP_DIGITS`).
pub fn write_real(r: f64, digits: i32, buf: &mut RealBuf) -> &[u8] {
    let mut out = Out { buf, len: 0 };
    if r < 0.0 {
        out.push(b"-");
    }
    if r.is_infinite() {
        out.push(b"Inf");
        return out.done();
    }
    let d = Decimal::of(r, Round::Significant(digits), 20);
    let shown = d.digits();
    let exponent = d.point - 1;
    if exponent < -4 || exponent >= digits {
        out.push(&shown[..1]);
        out.push(b".");
        out.push(if shown.len() > 1 { &shown[1..] } else { b"0" });
        out.push(if exponent < 0 { b"e-" } else { b"e+" });
        let e = exponent.unsigned_abs();
        if e >= 100 {
            out.push(&[b'0' + (e / 100) as u8]);
        }
        out.push(&[b'0' + (e / 10 % 10) as u8, b'0' + (e % 10) as u8]);
    } else if exponent < 0 {
        out.push(&b"0.000"[..(1 - exponent) as usize]);
        out.push(shown);
    } else {
        let point = d.point as usize;
        out.push(&shown[..shown.len().min(point)]);
        for _ in shown.len()..point {
            out.push(b"0");
        }
        out.push(b".");
        out.push(if shown.len() > point { &shown[point..] } else { b"0" });
    }
    out.done()
}

struct Out<'a> {
    buf: &'a mut RealBuf,
    len: usize,
}

impl<'a> Out<'a> {
    #[inline]
    fn push(&mut self, b: &[u8]) {
        self.buf[self.len..self.len + b.len()].copy_from_slice(b);
        self.len += b.len();
    }

    fn done(self) -> &'a [u8] {
        &self.buf[..self.len]
    }
}

/// The significant digits of a real as text, where nobody says otherwise.
pub const USUAL_DIGITS: i32 = 17;

thread_local! {
    /// As many digits has what this thread makes text of at the moment: values know no connection.
    static DIGITS: Cell<i32> = const { Cell::new(USUAL_DIGITS) };
}

/// While it lives, reals become texts of as many digits as it was made with.
pub struct Shown(i32);

impl Shown {
    /// From now on, on this thread.
    pub fn digits(digits: i32) -> Shown {
        Shown(DIGITS.replace(digits))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        DIGITS.set(self.0);
    }
}

/// A real as text: `2.5`, `1.0e+20`, `-Inf`.
pub fn real_text(r: f64) -> String {
    String::from_utf8_lossy(lent_real_text(r, &mut [0; 32])).into_owned()
}

/// As [`real_text`], in `buf`.
pub fn lent_real_text(r: f64, buf: &mut RealBuf) -> &[u8] {
    write_real(r, DIGITS.get(), buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_for_a_while() {
        let third = || real_text(1.0 / 3.0);
        let usual = third();
        {
            let _few = Shown::digits(4);
            let _more = Shown::digits(15);
            assert_eq!(
                (third(), real_text(1e300 / 7.0)),
                ("0.333333333333333".into(), "1.42857142857143e+299".into())
            );
        }
        assert_eq!((&*usual, third()), ("0.33333333333333332", usual.clone()));
    }

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
            (0.0, "0.0"),
            (-0.0, "0.0"),
            (0.1, "0.1"),
            (4.35, "4.35"),
            (100.0, "100.0"),
            (1e16, "10000000000000000.0"),
            (1e17, "1.0e+17"),
            (1e20, "1.0e+20"),
            (0.0001, "0.0001"),
            (0.00001, "1.0e-05"),
            (0.1 + 0.2, "0.30000000000000004"),
            // The exact expansion ends in 31: the eighteenth digit is rounded first.
            (1.0 / 3.0, "0.33333333333333332"),
            (2.0 / 3.0, "0.66666666666666663"),
            (-2.5e-7, "-2.5e-07"),
            (123456789012345.67, "123456789012345.67"),
            // 15 digits read back, but the digits do not hint at them.
            (20131.055867216, "20131.055867216001"),
            (9.74e21, "9.74e+21"),
            (9.7e21, "9.699999999999999e+21"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(real_text(r), want);
        }
    }

    #[test]
    fn text_of_a_real_reads_back_as_it() {
        let mut x = 1u64;
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let r = f64::from_bits(x);
            if r.is_finite() {
                assert_eq!(prefix(real_text(r).as_bytes()).number.to_real(), r, "{r:e}");
            }
        }
    }

    #[test]
    fn digits_beyond_64_bits_do_not_count() {
        let read = |s: &str| prefix(s.as_bytes()).number.to_real();
        assert_eq!(read("8095200.4439986306248"), 8095200.44399863);
        assert_eq!(read("9007199254740993.0"), 9007199254740992.0);
        assert_eq!(read("1e400"), f64::INFINITY);
        assert_eq!(read("-1e-400"), 0.0);
        assert_eq!(read(&format!("1{}e-500", "0".repeat(500))), 1.0);
        assert_eq!(read(&format!("0.{}1", "0".repeat(400))), 0.0);
        assert_eq!(read(&format!("0.{}1e401", "0".repeat(400))), 1.0);
    }

    #[test]
    fn rounding_to_few_digits() {
        let show = |r: f64, round| {
            let d = Decimal::of(r, round, 16);
            format!("{} {}", std::str::from_utf8(d.digits()).unwrap(), d.point)
        };
        assert_eq!(show(9.96, Round::Fraction(1)), "1 2");
        assert_eq!(show(0.06, Round::Fraction(1)), "1 0");
        assert_eq!(show(0.04, Round::Fraction(1)), "0 1");
        assert_eq!(show(0.6, Round::Fraction(0)), "1 1");
        assert_eq!(show(1234.5, Round::Fraction(-2)), "12 4");
        assert_eq!(show(0.004, Round::Fraction(1)), "0 1");
        assert_eq!(show(1e300, Round::Fraction(2)), "1 301");
        assert_eq!(show(4.35, Round::Significant(17)), "435 1");
    }
}
