//! Date and time functions (documentation page `lang_datefunc`).
//!
//! A moment is a number of milliseconds since the Julian epoch (noon, 4714-11-24 BC). What was written may still
//! be in parts: `2023-02-31` stays that date, until something asks for the moment, which is March 3. So a
//! [`Moment`] holds the milliseconds, or the date and time as written, or both; what is known last wins. A bare
//! number is a Julian day until a modifier says otherwise.
//!
//! The proleptic Gregorian calendar, years -4713 to 9999; days have 86,400 seconds.

mod format;
mod parse;

use crate::entry::{Entry, pure, scalar};
use iolite_base::Result;
use iolite_ext::{Context, FunctionFlags};
use iolite_value::Value;
use iolite_value::utf8;

const DAY: i64 = 86_400_000;
/// 1970-01-01 00:00 in milliseconds since the Julian epoch.
const UNIX_EPOCH: i64 = 210_866_760_000_000;
/// The last millisecond of the year 9999.
const LAST: i64 = 464_269_060_799_999;

/// A moment in the making. See the module's head.
#[derive(Clone, Copy, Default, Debug)]
struct Moment {
    ms: Option<i64>,
    date: Option<Date>,
    time: Option<Time>,
    /// A bare number that no modifier has interpreted yet.
    number: Option<f64>,
    /// Minutes east of UTC that the time as written is ahead.
    zone: i32,
    /// How many days `floor` goes back: the last shift by months ended beyond its month by so many.
    excess: i64,
    subsecond: bool,
    utc: bool,
    local: bool,
    /// Out of range: the result is NULL, unless `utc` follows, which forgets it, as in SQLite.
    bad: bool,
}

#[derive(Clone, Copy, Debug)]
struct Date {
    year: i32,
    month: i32,
    day: i32,
}

#[derive(Clone, Copy, Default, Debug)]
struct Time {
    hour: i32,
    minute: i32,
    second: f64,
}

/// Days from the Julian epoch's noon to the noon of a date, whose day may lie outside of its month.
fn day_number(d: Date) -> i64 {
    // Years start in March, so that a leap day comes last.
    let (y, m) = if d.month <= 2 {
        (d.year as i64 - 1, d.month as i64 + 9)
    } else {
        (d.year as i64, d.month as i64 - 3)
    };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 + d.day as i64 + 1_721_119
}

/// The date of a day number.
fn date_of(day: i64) -> Date {
    let n = day - 1_721_120;
    let era = n.div_euclid(146_097);
    let of_era = n.rem_euclid(146_097);
    let y = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * y + y / 4 - y / 100);
    let m = (5 * of_year + 2) / 153;
    let day = of_year - (153 * m + 2) / 5 + 1;
    let month = if m < 10 { m + 3 } else { m - 9 };
    let year = y + era * 400 + (month <= 2) as i64;
    Date { year: year as i32, month: month as i32, day: day as i32 }
}

fn leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl Date {
    /// How many days the date lies beyond the end of its month.
    fn excess(self) -> i64 {
        let length = match self.month {
            2 => 28 + leap(self.year) as i32,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (self.day - length).max(0) as i64
    }
}

impl Moment {
    fn at(ms: i64) -> Moment {
        Moment { ms: Some(ms), ..Moment::default() }
    }

    fn fail(&mut self) {
        *self = Moment { bad: true, ..Moment::default() };
    }

    /// The milliseconds, computed from the parts if need be.
    fn ms(&mut self) -> i64 {
        if let Some(ms) = self.ms {
            return ms;
        }
        let date = self.date.unwrap_or(Date { year: 2000, month: 1, day: 1 });
        if !(-4713..=9999).contains(&date.year) || self.number.is_some() {
            self.fail();
            return 0;
        }
        let mut ms = day_number(date) * DAY - DAY / 2;
        if let Some(t) = self.time {
            ms += t.hour as i64 * 3_600_000 + t.minute as i64 * 60_000 + (t.second * 1000.0 + 0.5) as i64;
            if self.zone != 0 {
                ms -= self.zone as i64 * 60_000;
                self.date = None;
                self.time = None;
                self.zone = 0;
                self.utc = true;
                self.local = false;
            }
        }
        self.ms = Some(ms);
        ms
    }

    /// Sets the moment; the parts are forgotten.
    fn set(&mut self, ms: i64) {
        self.ms = Some(ms);
        self.date = None;
        self.time = None;
        self.zone = 0;
    }

    /// Moves the moment; the parts are forgotten.
    fn add(&mut self, ms: i64) {
        let at = self.ms();
        if self.ms.is_some() {
            self.set(at + ms);
        }
    }

    fn date(&mut self) -> Date {
        if let Some(d) = self.date {
            return d;
        }
        let d = match self.ms {
            None => Date { year: 2000, month: 1, day: 1 },
            Some(ms) if (0..=LAST).contains(&ms) => date_of((ms + DAY / 2) / DAY),
            Some(_) => {
                self.fail();
                return Date { year: 0, month: 0, day: 0 };
            }
        };
        self.date = Some(d);
        d
    }

    fn time(&mut self) -> Time {
        if let Some(t) = self.time {
            return t;
        }
        let of_day = (self.ms() + DAY / 2) % DAY;
        let t = Time {
            hour: (of_day / 3_600_000) as i32,
            minute: (of_day / 60_000 % 60) as i32,
            second: (of_day % 60_000) as f64 / 1000.0,
        };
        self.number = None;
        self.time = Some(t);
        t
    }

    /// Date and time, of which the moment is to be computed again.
    fn parts(&mut self) -> (Date, Time) {
        let date = self.date();
        let time = self.time();
        (date, time)
    }
}

/// A number as a time value: a Julian day if it can be one.
fn from_number(r: f64) -> Moment {
    let mut m = Moment { number: Some(r), ..Moment::default() };
    if (0.0..5_373_484.5).contains(&r) {
        m.ms = Some((r * 86_400_000.0 + 0.5) as i64);
    }
    m
}

/// The moment that a time value and modifiers mean; `None`: NULL.
fn moment(ctx: &mut Context<'_>, args: &[Value]) -> Result<Option<Moment>> {
    let Some((first, modifiers)) = args.split_first() else {
        ctx.not_pure()?;
        return Ok(Some(Moment::at(ctx.host.now_julian_ms())));
    };
    let mut m = match first {
        Value::Null => return Ok(None),
        Value::Int(_) | Value::Real(_) => from_number(first.to_real()),
        v => match parse::time_value(ctx, utf8::to_nul(v.lent_text(&mut [0; 32])))? {
            Some(m) => m,
            None => return Ok(None),
        },
    };
    for (i, v) in modifiers.iter().enumerate() {
        if v.is_null() {
            return Ok(None);
        }
        if !parse::modifier(ctx, &mut m, utf8::to_nul(v.lent_text(&mut [0; 32])), i)? {
            return Ok(None);
        }
    }
    let ms = m.ms();
    if m.bad || !(0..=LAST).contains(&ms) {
        return Ok(None);
    }
    // A date as written may lie beyond its month's end.
    if args.len() == 1 && m.date.is_some_and(|d| d.day > 28) {
        m.date = None;
    }
    Ok(Some(m))
}

fn render(ctx: &mut Context<'_>, args: &[Value], f: fn(&mut Moment, &mut Vec<u8>)) -> Result<Value> {
    let Some(mut m) = moment(ctx, args)? else { return Ok(Value::Null) };
    let mut out = Vec::with_capacity(32);
    f(&mut m, &mut out);
    Value::text(&out)
}

fn date(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    render(ctx, args, format::date)
}

fn time(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    render(ctx, args, format::time)
}

fn datetime(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    render(ctx, args, |m, out| {
        format::date(m, out);
        out.push(b' ');
        format::time(m, out);
    })
}

fn julianday(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(match moment(ctx, args)? {
        Some(mut m) => Value::real(m.ms() as f64 / DAY as f64),
        None => Value::Null,
    })
}

fn unixepoch(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(match moment(ctx, args)? {
        Some(mut m) if m.subsecond => Value::real((m.ms() - UNIX_EPOCH) as f64 / 1000.0),
        Some(mut m) => Value::Int(m.ms() / 1000 - UNIX_EPOCH / 1000),
        None => Value::Null,
    })
}

fn strftime(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let Some((pattern, rest)) = args.split_first() else { return Ok(Value::Null) };
    if pattern.is_null() {
        return Ok(Value::Null);
    }
    let pattern = pattern.text_bytes()?;
    let Some(mut m) = moment(ctx, rest)? else { return Ok(Value::Null) };
    let mut out = Vec::new();
    if format::strftime(&mut m, utf8::to_nul(&pattern), &mut out, crate::scalar::limit(ctx))? {
        Value::text(&out)
    } else {
        Ok(Value::Null)
    }
}

/// `timediff(a, b)`: years, months, days and time that lead from `b` to `a`.
fn timediff(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let Some(mut a) = moment(ctx, &args[..1])? else { return Ok(Value::Null) };
    let Some(mut b) = moment(ctx, &args[1..2])? else { return Ok(Value::Null) };
    let (late, early) = (a.ms().max(b.ms()), a.ms().min(b.ms()));
    let forward = a.ms() >= b.ms();
    // Whole months: forward they are added to `b`, the earlier; backward taken from `b`, the later.
    let (to, (from, at)) = (a.date(), b.parts());
    let of_day = at.hour as i64 * 3_600_000 + at.minute as i64 * 60_000 + (at.second * 1000.0 + 0.5) as i64;
    let mut months = ((to.year - from.year) * 12 + to.month - from.month).abs();
    let (unmoved, apart) = (b.ms(), months != 0);
    let shifted = |months: i32| {
        if !apart {
            return unmoved;
        }
        let d = b_date_shifted(from, if forward { months } else { -months });
        day_number(d) * DAY - DAY / 2 + of_day
    };
    let target = a.ms();
    while months > 0 && (forward && shifted(months) > target || !forward && shifted(months) < target) {
        months -= 1;
    }
    let rest = (target - shifted(months)).abs();
    debug_assert!(late >= early);
    let mut out = Vec::with_capacity(32);
    out.push(if forward { b'+' } else { b'-' });
    format::number(&mut out, months / 12, 4);
    out.push(b'-');
    format::number(&mut out, months % 12, 2);
    out.push(b'-');
    format::number(&mut out, (rest / DAY) as i32, 2);
    out.push(b' ');
    format::clock(&mut out, rest % DAY);
    Value::text(&out)
}

fn b_date_shifted(d: Date, months: i32) -> Date {
    let n = d.year * 12 + d.month - 1 + months;
    Date { year: n.div_euclid(12), month: n.rem_euclid(12) + 1, day: d.day }
}

fn current_date(ctx: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    date(ctx, &[])
}

fn current_time(ctx: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    time(ctx, &[])
}

fn current_timestamp(ctx: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    datetime(ctx, &[])
}

const NOW: FunctionFlags = FunctionFlags::INNOCUOUS.and(FunctionFlags::SLOW_CHANGE);
const DATE: FunctionFlags = crate::PURE.and(FunctionFlags::SLOW_CHANGE).and(FunctionFlags::TEXTS);

/// The table. The functions are pure unless they are given `now`, `localtime` or `utc`.
pub(crate) const TABLE: &[Entry] = &[
    scalar(
        "date",
        -1,
        DATE,
        date,
        &[
            "date('2024-02-29 13:00') => '2024-02-29'",
            "date('2023-02-31') => '2023-03-03'",
            "date('2024-02-29', '+1 year') => '2025-03-01'",
            "date('2024-02-29', '+1 year', 'floor') => '2025-02-28'",
            "date('2024-01-31', '+1 month', 'ceiling') => '2024-03-02'",
            "date('2024-05-15', 'start of month', '-1 day') => '2024-04-30'",
            "date('2024-05-15', 'weekday 0') => '2024-05-19'",
            "date(2460000.5) => '2023-02-25'",
            "date('-4713-11-25') => '-4713-11-25'",
            "date('2024-13-01') => NULL",
            "date('2024-05-15', 'tomorrow') => NULL",
            "date('10000-01-01') => NULL",
        ],
    ),
    scalar(
        "time",
        -1,
        DATE,
        time,
        &[
            "time('12:34:56.789') => '12:34:56'",
            "time('12:34:56.789', 'subsec') => '12:34:56.789'",
            "time('12:00-03:30') => '15:30:00'",
            "time('12:00', '-90 minutes') => '10:30:00'",
            "time('12:00', '+01:30:30') => '13:30:30'",
        ],
    ),
    scalar(
        "datetime",
        -1,
        DATE,
        datetime,
        &[
            "datetime('2024-05-15T10:20:30Z') => '2024-05-15 10:20:30'",
            "datetime(1092941466, 'unixepoch') => '2004-08-19 18:51:06'",
            "datetime(1092941466, 'auto') => '2004-08-19 18:51:06'",
            "datetime('2024-05-15', '+0001-02-03 04:05') => '2025-07-18 04:05:00'",
            "datetime(NULL) => NULL",
        ],
    ),
    scalar(
        "julianday",
        -1,
        DATE,
        julianday,
        &[
            "julianday('2000-01-01 12:00') => 2451545.0",
            "julianday('-4713-11-24 12:00') => 0.0",
            "julianday('x') => NULL",
        ],
    ),
    scalar(
        "unixepoch",
        -1,
        DATE,
        unixepoch,
        &["unixepoch('1970-01-02') => 86400", "unixepoch('1970-01-01 00:00:01.5', 'subsec') => 1.5"],
    ),
    scalar(
        "strftime",
        -1,
        DATE,
        strftime,
        &[
            "strftime('%Y/%m/%d %H:%M:%f', '2024-05-06 07:08:09.5') => '2024/05/06 07:08:09.500'",
            "strftime('%j %w %u %W %U', '2024-05-05') => '126 0 7 18 18'",
            "strftime('%G-W%V %g', '2021-01-03') => '2020-W53 20'",
            "strftime('%e|%k|%l|%I|%p|%P|%R|%T|%F', '2024-05-06 17:08') => ' 6|17| 5|05|PM|pm|17:08|17:08:00|2024-05-06'",
            "strftime('%s %J %%', '1970-01-01') => '0 2440587.5 %'",
            "strftime('%Q', '2024-01-01') => NULL",
        ],
    ),
    pure(
        "timediff",
        2,
        timediff,
        &[
            "timediff('2023-02-15', '2023-03-15') => '-0000-01-00 00:00:00.000'",
            "timediff('2024-03-01', '2023-02-28 12:00') => '+0001-00-01 12:00:00.000'",
            "timediff('x', '2023-03-15') => NULL",
        ],
    ),
    scalar("current_date", 0, NOW, current_date, &[]),
    scalar("current_time", 0, NOW, current_time, &[]),
    scalar("current_timestamp", 0, NOW, current_timestamp, &[]),
];
