//! Time values and modifiers as written.

use super::{DAY, Date, LAST, Moment, Time, UNIX_EPOCH, from_number};
use iolite_base::Result;
use iolite_ext::Context;
use iolite_value::num;

/// The last moment of which every system knows the local time: 2038-01-18 00:00, in milliseconds.
const LAST_KNOWN: i64 = 213_014_145_600_000;

/// Exactly `n` digits at the start of `z`, whose number lies in the range; the rest.
fn fixed(z: &[u8], n: usize, low: i32, high: i32) -> Option<(i32, &[u8])> {
    let digits = z.get(..n)?;
    let mut v = 0;
    for d in digits {
        v = v * 10 + d.is_ascii_digit().then(|| (d - b'0') as i32)?;
    }
    (low..=high).contains(&v).then_some((v, &z[n..]))
}

fn literal(z: &[u8], b: u8) -> Option<&[u8]> {
    z.strip_prefix(&[b])
}

fn skip_space(z: &[u8]) -> &[u8] {
    let n = z.iter().take_while(|b| num::is_space(**b)).count();
    &z[n..]
}

/// All of `z` as a number.
fn whole_number(z: &[u8]) -> Option<f64> {
    let p = num::prefix(z);
    (p.any && p.whole).then(|| p.number.to_real())
}

/// A time value: the formats of the documentation.
pub(super) fn time_value(ctx: &Context<'_>, z: &[u8]) -> Result<Option<Moment>> {
    if let Some(m) = date_and_time(z) {
        return Ok(Some(m));
    }
    let mut m = Moment::default();
    if clock(z, &mut m) {
        return Ok(Some(m));
    }
    if z.eq_ignore_ascii_case(b"now") {
        return Ok(Some(now(ctx)?));
    }
    if let Some(r) = whole_number(z) {
        return Ok(Some(from_number(r)));
    }
    if is_subsecond(z) {
        return Ok(Some(Moment { subsecond: true, ..now(ctx)? }));
    }
    Ok(None)
}

fn now(ctx: &Context<'_>) -> Result<Moment> {
    ctx.not_pure()?;
    Ok(Moment { utc: true, ..Moment::at(ctx.host.now_julian_ms()) })
}

fn is_subsecond(z: &[u8]) -> bool {
    z.eq_ignore_ascii_case(b"subsec") || z.eq_ignore_ascii_case(b"subsecond")
}

/// `[-]YYYY-MM-DD`, alone or with a time.
fn date_and_time(z: &[u8]) -> Option<Moment> {
    let (negative, z) = match z.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, z),
    };
    let (year, z) = fixed(z, 4, 0, 9999)?;
    let (month, z) = fixed(literal(z, b'-')?, 2, 1, 12)?;
    let (day, z) = fixed(literal(z, b'-')?, 2, 1, 31)?;
    let n = z.iter().take_while(|b| num::is_space(**b) || **b == b'T').count();
    let z = &z[n..];
    let mut m = Moment::default();
    if !z.is_empty() && !clock(z, &mut m) {
        return None;
    }
    let date = Date { year: if negative { -year } else { year }, month, day };
    m.excess = date.excess();
    m.date = Some(date);
    if m.zone != 0 {
        m.ms();
    }
    Some(m)
}

/// `HH:MM[:SS[.SSS]][zone]`, all of `z`.
fn clock(z: &[u8], m: &mut Moment) -> bool {
    let parsed = || {
        let (hour, z) = fixed(z, 2, 0, 24)?;
        let (minute, mut z) = fixed(literal(z, b':')?, 2, 0, 59)?;
        let mut second = 0.0;
        if let Some(rest) = literal(z, b':') {
            let (s, rest) = fixed(rest, 2, 0, 59)?;
            second = s as f64;
            z = rest;
            if z.len() > 1 && z[0] == b'.' && z[1].is_ascii_digit() {
                let n = z[1..].iter().take_while(|b| b.is_ascii_digit()).count();
                let mut fraction = 0.0;
                let mut scale = 1.0;
                for d in &z[1..=n] {
                    fraction = fraction * 10.0 + (d - b'0') as f64;
                    scale *= 10.0;
                }
                // Cut, lest 59.9999 become the next minute.
                second += (fraction / scale).min(0.999);
                z = &z[n + 1..];
            }
        }
        Some((Time { hour, minute, second }, z))
    };
    let Some((time, z)) = parsed() else { return false };
    m.time = Some(time);
    zone(z, m)
}

/// `Z`, `+HH:MM`, `-HH:MM` or nothing.
fn zone(z: &[u8], m: &mut Moment) -> bool {
    let z = skip_space(z);
    let rest = match z.first() {
        None => return true,
        Some(b'Z' | b'z') => {
            m.utc = true;
            m.local = false;
            &z[1..]
        }
        Some(sign @ (b'+' | b'-')) => {
            let parsed = || {
                let (hours, z) = fixed(&z[1..], 2, 0, 14)?;
                let (minutes, z) = fixed(literal(z, b':')?, 2, 0, 59)?;
                Some((hours * 60 + minutes, z))
            };
            let Some((minutes, rest)) = parsed() else { return false };
            m.zone = if *sign == b'-' { -minutes } else { minutes };
            m.utc |= minutes == 0;
            rest
        }
        Some(_) => return false,
    };
    skip_space(rest).is_empty()
}

/// Applies modifier number `index`; `false` if it is none.
pub(super) fn modifier(ctx: &Context<'_>, m: &mut Moment, z: &[u8], index: usize) -> Result<bool> {
    let is = |word: &[u8]| z.eq_ignore_ascii_case(word);
    Ok(match z.first().map(u8::to_ascii_lowercase) {
        Some(b'a') if is(b"auto") => index == 0 && auto(m),
        Some(b'c') if is(b"ceiling") => {
            m.add(0);
            m.excess = 0;
            true
        }
        Some(b'f') if is(b"floor") => {
            m.ms();
            m.add(-m.excess * DAY);
            true
        }
        Some(b'j') if is(b"julianday") => {
            let good = index == 0 && m.ms.is_some() && m.number.is_some();
            m.number = None;
            good
        }
        Some(b'l') if is(b"localtime") => {
            ctx.not_pure()?;
            if !m.local {
                if m.number.is_some() && m.ms.is_none() {
                    // A number that is no time becomes the first one of a date without any part.
                    *m = Moment::at(START_OF_2000);
                }
                let ms = m.ms();
                let (subsecond, excess) = (m.subsecond, m.excess);
                *m = Moment { subsecond, excess, ..Moment::at(ms + local_offset(ctx, ms)?) };
            }
            m.utc = false;
            m.local = true;
            true
        }
        Some(b'u') if is(b"unixepoch") => index == 0 && unix_epoch(m),
        Some(b'u') if is(b"utc") => {
            ctx.not_pure()?;
            if !m.utc {
                utc(ctx, m)?;
            }
            true
        }
        Some(b'w') => weekday(m, z),
        Some(b's') if is_subsecond(z) => {
            m.subsecond = true;
            true
        }
        Some(b's') => start_of(m, z),
        Some(b'+' | b'-' | b'0'..=b'9') => shift(m, z),
        _ => false,
    })
}

/// 2000-01-01 00:00, in milliseconds of the Julian day.
const START_OF_2000: i64 = 211_813_444_800_000;

/// A number that is no Julian day is a Unix time.
fn auto(m: &mut Moment) -> bool {
    if let Some(r) = m.number
        && m.ms.is_none()
        && (-210_866_760_000.0..=253_402_300_799.0).contains(&r)
    {
        m.set((r * 1000.0 + UNIX_EPOCH as f64 + 0.5) as i64);
        m.number = None;
        return true;
    }
    let good = m.number.is_none() || m.ms.is_some();
    if good {
        m.number = None;
    }
    true
}

fn unix_epoch(m: &mut Moment) -> bool {
    let Some(r) = m.number else { return false };
    let ms = r * 1000.0 + UNIX_EPOCH as f64;
    if !(0.0..(LAST + 1) as f64).contains(&ms) {
        return false;
    }
    m.set((ms + 0.5) as i64);
    m.number = None;
    true
}

/// The local time zone's offset in milliseconds at a moment of UTC. Years that the system may not know are taken for one
/// of 1997 to 2003 with the same leap day (documentation page `lang_datefunc`, section 3.1).
fn local_offset(ctx: &Context<'_>, ms: i64) -> Result<i64> {
    let mut known = ms;
    if !(UNIX_EPOCH..=LAST_KNOWN).contains(&ms) {
        let mut m = Moment::at(ms);
        let (date, time) = m.parts();
        if !m.bad {
            let date = Date { year: 2000 + date.year % 4, ..date };
            known = Moment { date: Some(date), time: Some(time), ..Moment::default() }.ms();
        }
    }
    Ok(ctx.host.local_offset((known - UNIX_EPOCH).div_euclid(1000))? * 1000)
}

/// Finds the moment whose local time is `m`: offsets change, so the answer is approached. As in SQLite, `subsec` has
/// to come after `utc`.
fn utc(ctx: &Context<'_>, m: &mut Moment) -> Result<()> {
    let local = m.ms();
    let (mut guess, mut error) = (local, 0);
    // Within an hour that the clock leaves out, none is right: the fourth is taken as it is.
    for _ in 0..4 {
        guess -= error;
        let reached = guess + local_offset(ctx, guess)?;
        if reached > LAST {
            *m = Moment { utc: true, bad: true, ..Moment::default() };
            return Ok(());
        }
        error = reached - local;
        if error == 0 {
            break;
        }
    }
    *m = Moment { utc: true, ..Moment::at(guess) };
    Ok(())
}

/// `weekday N`.
fn weekday(m: &mut Moment, z: &[u8]) -> bool {
    let Some(n) =
        z.get(..8).filter(|w| w.eq_ignore_ascii_case(b"weekday ")).and_then(|_| whole_number(&z[8..]))
    else {
        return false;
    };
    if !(0.0..7.0).contains(&n) || n.fract() != 0.0 {
        return false;
    }
    let (_, _) = m.parts();
    m.zone = 0;
    m.ms = None;
    let ms = m.ms();
    let today = (ms + DAY / 2 + DAY) / DAY % 7;
    m.set(ms + (n as i64 - today).rem_euclid(7) * DAY);
    true
}

/// `start of day`, `start of month`, `start of year`.
fn start_of(m: &mut Moment, z: &[u8]) -> bool {
    if !z.get(..9).is_some_and(|w| w.eq_ignore_ascii_case(b"start of ")) {
        return false;
    }
    if m.ms.is_none() && m.date.is_none() && m.time.is_none() {
        return false;
    }
    let mut d = m.date();
    m.time = Some(Time::default());
    m.number = None;
    m.zone = 0;
    m.ms = None;
    match &z[9..] {
        w if w.eq_ignore_ascii_case(b"day") => {}
        w if w.eq_ignore_ascii_case(b"month") => d.day = 1,
        w if w.eq_ignore_ascii_case(b"year") => {
            d.month = 1;
            d.day = 1;
        }
        _ => return false,
    }
    m.date = Some(d);
    true
}

/// Moves a date by months; its day stays, even beyond the month's end. What is out of range has no date to move.
fn add_months(m: &mut Moment, years: i32, months: i32) {
    let (mut d, _) = m.parts();
    if m.date.is_some() {
        let n = d.month - 1 + months;
        d.year = d.year.saturating_add(years).saturating_add(n.div_euclid(12));
        d.month = n.rem_euclid(12) + 1;
        m.excess = d.excess();
        m.date = Some(d);
    }
    m.ms = None;
}

/// The modifiers that start with a sign or a digit.
fn shift(m: &mut Moment, z: &[u8]) -> bool {
    let signed = matches!(z[0], b'+' | b'-');
    // The number ends at a space, at a colon, or at the dash behind a year of four or five digits.
    let dash = [5, 6].into_iter().find(|&n| {
        signed && z.get(n) == Some(&b'-') && z[1..n].iter().all(u8::is_ascii_digit) && n <= z.len()
    });
    let end = z.iter().skip(1).position(|&b| b == b':' || num::is_space(b)).map_or(z.len(), |p| p + 1);
    if let Some(n) = dash.filter(|n| *n < end) {
        return shift_date(m, z, n);
    }
    let Some(r) = whole_number(&z[..end]) else { return false };
    if z.get(end) == Some(&b':') {
        return shift_clock(m, if z[0].is_ascii_digit() { z } else { &z[1..] }, z[0] == b'-');
    }
    let unit = skip_space(&z[end..]);
    if !(3..=10).contains(&unit.len()) {
        return false;
    }
    let unit = match unit {
        [name @ .., b's' | b'S'] => name,
        name => name,
    };
    shift_units(m, r, unit)
}

/// `±YYYY-MM-DD[ HH:MM[:SS[.SSS]]]`, the year ending at `n`.
fn shift_date(m: &mut Moment, z: &[u8], n: usize) -> bool {
    let parsed = || {
        let (years, rest) = fixed(&z[1..], n - 1, 0, 99_999)?;
        let (months, rest) = fixed(literal(rest, b'-')?, 2, 0, 11)?;
        let (days, rest) = fixed(literal(rest, b'-')?, 2, 0, 30)?;
        Some((years, months, days, rest))
    };
    let Some((years, months, days, rest)) = parsed() else { return false };
    let sign = if z[0] == b'-' { -1 } else { 1 };
    if years > 14_712 {
        return false;
    }
    add_months(m, sign * years, sign * months);
    m.add((sign * days) as i64 * DAY);
    match rest.first() {
        None => true,
        Some(&b) if num::is_space(b) => shift_clock(m, &rest[1..], sign < 0),
        Some(_) => false,
    }
}

/// `HH:MM[:SS[.SSS]]`.
fn shift_clock(m: &mut Moment, z: &[u8], back: bool) -> bool {
    let mut t = Moment::default();
    if !clock(z, &mut t) {
        return false;
    }
    let by = (t.ms() + DAY / 2).rem_euclid(DAY);
    m.add(if back { -by } else { by });
    true
}

/// `NNN days` and the like. Months and years move the date; their fraction counts as days of a 30-day month or a
/// 365-day year.
fn shift_units(m: &mut Moment, r: f64, unit: &[u8]) -> bool {
    const UNITS: [(&[u8], f64, f64); 6] = [
        (b"second", 4.6427e14, 1.0),
        (b"minute", 7.7379e12, 60.0),
        (b"hour", 1.2897e11, 3600.0),
        (b"day", 5_373_485.0, 86_400.0),
        (b"month", 176_546.0, 2_592_000.0),
        (b"year", 14_713.0, 31_536_000.0),
    ];
    m.ms();
    let Some((name, most, seconds)) = UNITS.iter().find(|u| u.0.eq_ignore_ascii_case(unit)) else {
        return false;
    };
    if r <= -most || r >= *most {
        return false;
    }
    m.excess = 0;
    let mut rest = r;
    match *name {
        b"month" => {
            add_months(m, 0, r as i32);
            rest = r.fract();
        }
        b"year" => {
            add_months(m, r as i32, 0);
            rest = r.fract();
        }
        _ => {}
    }
    m.add((rest * 1000.0 * seconds + if r < 0.0 { -0.5 } else { 0.5 }) as i64);
    true
}
