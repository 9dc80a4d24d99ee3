//! Moments as text.

use super::{DAY, Date, Moment, UNIX_EPOCH};
use iolite_base::Result;
use iolite_value::num;

/// `n` with at least `width` digits.
pub(super) fn number(out: &mut Vec<u8>, n: i32, width: usize) {
    if n < 0 {
        out.push(b'-');
    }
    padded(out, n.unsigned_abs(), width, b'0');
}

/// `n` with zeros up to `width`, which counts the sign.
fn signed(out: &mut Vec<u8>, n: i32, width: usize) {
    number(out, n, width - (n < 0) as usize);
}

fn padded(out: &mut Vec<u8>, n: u32, width: usize, pad: u8) {
    let mut buf = [0; 24];
    let digits = num::int_text(n as i64, &mut buf);
    out.extend(std::iter::repeat_n(pad, width.saturating_sub(digits.len())));
    out.extend_from_slice(digits);
}

/// `YYYY-MM-DD`.
pub(super) fn date(m: &mut Moment, out: &mut Vec<u8>) {
    let d = m.date();
    number(out, d.year, 4);
    out.push(b'-');
    number(out, d.month, 2);
    out.push(b'-');
    number(out, d.day, 2);
}

/// `HH:MM:SS`, with milliseconds if asked for.
pub(super) fn time(m: &mut Moment, out: &mut Vec<u8>) {
    let t = m.time();
    number(out, t.hour, 2);
    out.push(b':');
    number(out, t.minute, 2);
    out.push(b':');
    if m.subsecond {
        let ms = (t.second * 1000.0 + 0.5) as i32;
        number(out, ms / 1000, 2);
        out.push(b'.');
        number(out, ms % 1000, 3);
    } else {
        number(out, t.second as i32, 2);
    }
}

/// Milliseconds of a day as `HH:MM:SS.SSS`.
pub(super) fn clock(out: &mut Vec<u8>, ms: i64) {
    let ms = ms as i32;
    number(out, ms / 3_600_000, 2);
    out.push(b':');
    number(out, ms / 60_000 % 60, 2);
    out.push(b':');
    number(out, ms / 1000 % 60, 2);
    out.push(b'.');
    number(out, ms % 1000, 3);
}

/// Days since the same time of the first of January.
fn day_of_year(m: &mut Moment) -> i32 {
    let (d, t) = m.parts();
    let first =
        Moment { date: Some(Date { year: d.year, month: 1, day: 1 }), time: Some(t), ..Moment::default() }
            .ms();
    ((m.ms() - first + DAY / 2) / DAY) as i32
}

/// Monday is 0.
fn days_after_monday(m: &mut Moment) -> i32 {
    ((m.ms() + DAY / 2) / DAY % 7) as i32
}

/// Sunday is 0.
fn days_after_sunday(m: &mut Moment) -> i32 {
    ((m.ms() + DAY / 2 + DAY) / DAY % 7) as i32
}

/// The Thursday of the same week: ISO 8601 counts weeks by it.
fn thursday(m: &mut Moment) -> Moment {
    let shift = 3 - days_after_monday(m);
    Moment::at(m.ms() + shift as i64 * DAY)
}

/// Appends `pattern` with its substitutions; `false` if one is unknown.
pub(super) fn strftime(m: &mut Moment, pattern: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<bool> {
    let (d, t) = m.parts();
    let twelve = |h: i32| if h % 12 == 0 { 12 } else { h % 12 };
    let mut rest = pattern;
    while let Some(p) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..p]);
        let Some(&kind) = rest.get(p + 1) else { return Ok(false) };
        rest = &rest[p + 2..];
        match kind {
            b'd' => number(out, d.day, 2),
            b'e' => padded(out, d.day as u32, 2, b' '),
            b'f' => {
                let ms = (t.second.min(59.999) * 1000.0 + 0.5) as i32;
                number(out, ms / 1000, 2);
                out.push(b'.');
                number(out, ms % 1000, 3);
            }
            b'F' => {
                signed(out, d.year, 4);
                out.push(b'-');
                number(out, d.month, 2);
                out.push(b'-');
                number(out, d.day, 2);
            }
            b'G' => signed(out, thursday(m).date().year, 4),
            b'g' => signed(out, thursday(m).date().year % 100, 2),
            b'H' => number(out, t.hour, 2),
            b'k' => padded(out, t.hour as u32, 2, b' '),
            b'I' => number(out, twelve(t.hour), 2),
            b'l' => padded(out, twelve(t.hour) as u32, 2, b' '),
            b'j' => number(out, day_of_year(m) + 1, 3),
            b'J' => {
                let days = m.ms() as f64 / DAY as f64;
                let values = [iolite_value::Value::Real(days)];
                out.extend_from_slice(&crate::printf::format(b"%.16g", &values, 64)?.unwrap_or_default());
            }
            b'm' => number(out, d.month, 2),
            b'M' => number(out, t.minute, 2),
            b'p' => out.extend_from_slice(if t.hour >= 12 { b"PM" } else { b"AM" }),
            b'P' => out.extend_from_slice(if t.hour >= 12 { b"pm" } else { b"am" }),
            b'R' => {
                number(out, t.hour, 2);
                out.push(b':');
                number(out, t.minute, 2);
            }
            b's' if m.subsecond => {
                let seconds = (m.ms() - UNIX_EPOCH) as f64 / 1000.0;
                let values = [iolite_value::Value::Real(seconds)];
                out.extend_from_slice(&crate::printf::format(b"%.3f", &values, 64)?.unwrap_or_default());
            }
            b's' => {
                let seconds = m.ms() / 1000 - UNIX_EPOCH / 1000;
                out.extend_from_slice(num::int_text(seconds, &mut [0; 24]));
            }
            b'S' => number(out, t.second as i32, 2),
            b'T' => {
                number(out, t.hour, 2);
                out.push(b':');
                number(out, t.minute, 2);
                out.push(b':');
                number(out, t.second as i32, 2);
            }
            b'u' => number(out, days_after_monday(m) + 1, 1),
            b'w' => number(out, days_after_sunday(m), 1),
            b'U' => number(out, (day_of_year(m) - days_after_sunday(m) + 7) / 7, 2),
            b'V' => number(out, day_of_year(&mut thursday(m)) / 7 + 1, 2),
            b'W' => number(out, (day_of_year(m) - days_after_monday(m) + 7) / 7, 2),
            b'Y' => signed(out, d.year, 4),
            b'%' => out.push(b'%'),
            _ => return Ok(false),
        }
        if out.len() > limit {
            return Err(crate::scalar::too_big());
        }
    }
    out.extend_from_slice(rest);
    Ok(true)
}
