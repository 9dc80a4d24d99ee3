//! Records of a delimited file, and batches of them read ahead in a thread of their own.
//!
//! Fields may be quoted as RFC 4180 says; a quoted field may hold separators and line ends. A record lies in the
//! reader's buffer in one piece, and its fields are slices of it (of a second buffer, if quotes had to be taken away).
//!
//! Knows nothing of tables: what a field means is the importer's affair, but for whole numbers, which are cheapest read
//! where the bytes are at hand.

use std::io::Read;
use std::sync::mpsc::{Receiver, sync_channel};

/// How records and fields are told apart.
#[derive(Clone, Copy)]
pub struct Format {
    /// Ends a field.
    pub column: u8,
    /// Ends a record.
    pub row: u8,
    /// Whether `"` begins a quoted field.
    pub quotes: bool,
}

/// A file or pipe to read.
pub type Input = Box<dyn Read + Send>;

/// Where a field lies.
struct Span {
    /// In `text`: it was quoted, and is put together there; otherwise in the record.
    copied: bool,
    from: usize,
    to: usize,
}

/// The records of a file, one at a time.
pub struct Reader {
    input: Input,
    format: Format,
    /// The present record is `buf[start..at]`, what was read behind it `buf[at..end]`; the rest is room.
    buf: Vec<u8>,
    start: usize,
    at: usize,
    end: usize,
    ended: bool,
    /// The fields of a record in which any is quoted, one behind the other.
    text: Vec<u8>,
    spans: Vec<Span>,
    /// Lines before the present record's end.
    line: u64,
    /// Bytes before the present record's end.
    read: u64,
}

impl Reader {
    /// Nothing is read yet.
    pub fn new(input: Input, format: Format) -> Reader {
        Reader {
            input,
            format,
            buf: vec![0; 1 << 18],
            start: 0,
            at: 0,
            end: 0,
            ended: false,
            text: Vec::new(),
            spans: Vec::new(),
            line: 0,
            read: 0,
        }
    }

    /// Goes to the next record; `false` at the end.
    pub fn next(&mut self) -> std::io::Result<bool> {
        if !self.line()? {
            return Ok(false);
        }
        match self.quoted() {
            true => self.unquote()?,
            false => self.split(),
        }
        self.read += (self.at - self.start) as u64;
        Ok(true)
    }

    /// Goes to the next record's first line; `false` at the end.
    fn line(&mut self) -> std::io::Result<bool> {
        self.text.clear();
        self.spans.clear();
        self.start = self.at;
        let more = self.more()?;
        // A byte order mark is no data.
        if self.read == 0 && self.raw().starts_with(b"\xef\xbb\xbf") {
            self.start += 3;
        }
        Ok(more)
    }

    fn quoted(&self) -> bool {
        self.format.quotes && memchr::memchr(b'"', self.raw()).is_some()
    }

    /// The record's number of fields.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The record's fields.
    pub fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|s| &(if s.copied { &self.text } else { self.raw() })[s.from..s.to])
    }

    fn raw(&self) -> &[u8] {
        &self.buf[self.start..self.at]
    }

    /// Divides a record without quotes.
    fn split(&mut self) {
        let line = body(&self.buf[self.start..self.at], self.format.row);
        let mut from = 0;
        for to in memchr::memchr_iter(self.format.column, line) {
            self.spans.push(Span { copied: false, from, to });
            from = to + 1;
        }
        self.spans.push(Span { copied: false, from, to: line.len() });
    }

    /// Divides a record with quotes, which may take more than one line.
    fn unquote(&mut self) -> std::io::Result<()> {
        let Format { column, row, .. } = self.format;
        let mut at = 0;
        loop {
            // At the beginning of a field.
            if self.raw().get(at) == Some(&b'"') {
                at += 1;
                loop {
                    if at >= self.raw().len() && !self.more()? {
                        break;
                    }
                    let rest = &self.buf[self.start + at..self.at];
                    let plain = memchr::memchr(b'"', rest).unwrap_or(rest.len());
                    self.text.extend_from_slice(&rest[..plain]);
                    at += plain;
                    match rest.get(plain + 1) {
                        _ if plain == rest.len() => {}
                        Some(b'"') => {
                            self.text.push(b'"');
                            at += 2;
                        }
                        _ => {
                            at += 1;
                            break;
                        }
                    }
                }
            }
            let rest = &self.buf[(self.start + at).min(self.at)..self.at];
            let end = memchr::memchr2(column, row, rest).unwrap_or(rest.len());
            let last = rest.get(end) != Some(&column);
            let field = if last { body(&rest[..end], row) } else { &rest[..end] };
            self.text.extend_from_slice(field);
            let from = self.spans.last().map_or(0, |s| s.to);
            self.spans.push(Span { copied: true, from, to: self.text.len() });
            if last {
                return Ok(());
            }
            at += end + 1;
        }
    }

    /// Adds one more line to the present record; `false` at the end of the input.
    fn more(&mut self) -> std::io::Result<bool> {
        let mut seen = self.at;
        loop {
            if let Some(i) = memchr::memchr(self.format.row, &self.buf[seen..self.end]) {
                self.at = seen + i + 1;
                self.line += 1;
                return Ok(true);
            }
            seen = self.end;
            if self.ended {
                let some = self.at < self.end;
                self.at = self.end;
                self.line += some as u64;
                return Ok(some);
            }
            seen -= self.fill()?;
        }
    }

    /// Reads on behind `end`; gives by how much all moved to the front.
    fn fill(&mut self) -> std::io::Result<usize> {
        let moved = self.start;
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.at, self.end) = (0, self.at - moved, self.end - moved);
        if self.end == self.buf.len() {
            self.buf.resize(self.end * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buf[self.end..]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(n) => {
                    self.end += n;
                    self.ended = n == 0;
                    return Ok(moved);
                }
            }
        }
    }

    /// Reads on in a thread. `whole` tells of a column whether its whole numbers are wanted as such; fields behind
    /// `width` are counted only.
    pub fn batches(mut self, width: usize, whole: Vec<bool>) -> Receiver<std::io::Result<Batch>> {
        let (send, receive) = sync_channel(4);
        // Not waited for: if the importer gives up, the thread ends with its next batch, or with the program.
        std::thread::spawn(move || {
            loop {
                let mut batch = Batch::default();
                let more = self.fill_batch(&mut batch, width, &whole);
                let sent = batch.records.is_empty() || send.send(Ok(batch)).is_ok();
                match more {
                    Ok(true) if sent => continue,
                    Err(e) if sent => drop(send.send(Err(e))),
                    _ => {}
                }
                return;
            }
        });
        receive
    }

    /// `false` at the end.
    fn fill_batch(&mut self, batch: &mut Batch, width: usize, whole: &[bool]) -> std::io::Result<bool> {
        batch.fields.reserve((BATCH_RECORDS * width).min(MOST_FIELDS));
        while batch.bytes.len() < BATCH_BYTES && batch.records.len() < BATCH_RECORDS {
            let line = self.line + 1;
            if !self.line()? {
                return Ok(false);
            }
            if self.quoted() {
                self.unquote()?;
                for (i, bytes) in self.fields().take(width).enumerate() {
                    let number = if whole.get(i) == Some(&true) { integer(bytes) } else { None };
                    batch.fields.push(number.map_or_else(|| batch.bytes.place(bytes), Place::Whole));
                }
                batch.records.push(Record { line, fields: self.len() });
            } else {
                let fields = batch.plain(body(self.raw(), self.format.row), self.format.column, width, whole);
                batch.records.push(Record { line, fields });
            }
            self.read += (self.at - self.start) as u64;
        }
        batch.read = self.read;
        Ok(true)
    }
}

/// A batch ends with the record that reaches either.
const BATCH_BYTES: usize = 1 << 16;
const BATCH_RECORDS: usize = 128;

/// How many fields a batch has room for from the beginning.
const MOST_FIELDS: usize = 4096;

/// Some records, one behind the other.
#[derive(Default)]
pub struct Batch {
    /// The records.
    pub records: Vec<Record>,
    /// Bytes of the input up to here.
    pub read: u64,
    fields: Vec<Place>,
    bytes: Texts,
}

/// The texts of a batch, one behind the other.
#[derive(Default)]
struct Texts(Vec<u8>);

/// One record of a batch.
pub struct Record {
    /// The number of its first line, counted from 1.
    pub line: u64,
    /// How many fields it had.
    pub fields: usize,
}

enum Place {
    Whole(i64),
    Text(usize, usize),
}

/// A field of a batch.
pub enum Field<'a> {
    /// A whole number in a column where it is wanted as such.
    Whole(i64),
    /// Anything else.
    Text(&'a [u8]),
}

impl Texts {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn place(&mut self, text: &[u8]) -> Place {
        let from = self.0.len();
        self.0.extend_from_slice(text);
        Place::Text(from, self.0.len())
    }
}

impl Batch {
    /// Takes the fields of a record without quotes; answers how many it has. A whole number's end is found by reading it.
    fn plain(&mut self, line: &[u8], column: u8, width: usize, whole: &[bool]) -> usize {
        // What separates may be a part of numbers elsewhere.
        let whole = if column.is_ascii_digit() || column == b'-' { &[] } else { whole };
        let (mut at, mut n) = (0, 0);
        loop {
            let rest = &line[at..];
            let number = if whole.get(n) == Some(&true) { number(rest, column) } else { None };
            let len = match number {
                Some((i, len)) => {
                    if n < width {
                        self.fields.push(Place::Whole(i));
                    }
                    len
                }
                None => {
                    let len = rest.iter().position(|b| *b == column).unwrap_or(rest.len());
                    if n < width {
                        let place = self.bytes.place(&rest[..len]);
                        self.fields.push(place);
                    }
                    len
                }
            };
            n += 1;
            at += len + 1;
            if at > line.len() {
                return n;
            }
        }
    }

    /// The fields of all records, those behind the batch's width left out.
    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(|f| match f {
            Place::Whole(i) => Field::Whole(*i),
            Place::Text(from, to) => Field::Text(&self.bytes.0[*from..*to]),
        })
    }
}

/// A line without its end; a carriage return before a line feed belongs to it.
fn body(line: &[u8], row: u8) -> &[u8] {
    let line = line.strip_suffix(&[row]).unwrap_or(line);
    if row == b'\n' { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
}

/// The value of a text that is an integer of up to 18 digits and nothing else.
fn integer(text: &[u8]) -> Option<i64> {
    let (n, len) = number(text, 0)?;
    (len == text.len()).then_some(n)
}

/// The number that eight digits make, the first in the lowest byte.
#[inline]
fn eight_digits(x: u64) -> i64 {
    let pairs = (x.wrapping_mul(2561) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(6_553_601) >> 16) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(42_949_672_960_001) >> 32) as i64
}

/// The integer of up to 18 digits that fills the field at the start of `text`, and its length. `column`, which is no digit,
/// ends the field.
#[inline(always)]
fn number(text: &[u8], column: u8) -> Option<(i64, usize)> {
    let sign = (text.first() == Some(&b'-')) as usize;
    let mut n = 0i64;
    let mut len = sign;
    // Eight digits at once: how many there are in no order, and a loop's end would be guessed wrong for each number.
    if let Some(eight) = text[sign..].first_chunk::<8>() {
        let x = u64::from_le_bytes(*eight) ^ 0x3030_3030_3030_3030;
        // The high bit of each byte that is no digit; above the first of them carries may make others.
        let others = (x.wrapping_add(0x7676_7676_7676_7676) | x) & 0x8080_8080_8080_8080;
        let digits = (others.trailing_zeros() / 8) as usize;
        if digits == 0 {
            return None;
        }
        n = eight_digits(x << (64 - 8 * digits));
        len += digits;
        if let Some(b) = eight.get(digits) {
            return (*b == column).then_some((if sign == 1 { -n } else { n }, len));
        }
    }
    // One digit more than is allowed shows that there are too many.
    for b in text[len..].iter().take(19 - (len - sign)) {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            if *b != column {
                return None;
            }
            break;
        }
        n = n.wrapping_mul(10).wrapping_add(d as i64);
        len += 1;
    }
    if !(1..=18).contains(&(len - sign)) {
        return None;
    }
    Some((if sign == 1 { -n } else { n }, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes a few at a time.
    struct Drops(Vec<u8>, usize);

    impl Read for Drops {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(self.0.len()).min(out.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0.drain(..n);
            Ok(n)
        }
    }

    const CSV: Format = Format { column: b',', row: b'\n', quotes: true };

    fn records(text: &str, format: Format, step: usize) -> Vec<Vec<String>> {
        let mut r = Reader::new(Box::new(Drops(text.as_bytes().to_vec(), step)), format);
        let mut out = Vec::new();
        while r.next().unwrap() {
            out.push(r.fields().map(|f| String::from_utf8_lossy(f).into_owned()).collect());
        }
        out
    }

    #[test]
    fn records_are_the_same_however_the_bytes_come() {
        let long = "x".repeat(300_000);
        let text = format!(
            "\u{feff}a,b\r\n1,\"two\nlines, \"\"q\"\"\"\n,\n\n\"open {long},\n\"tail,{long}\n\"a\"b,c\"d\r\nlast"
        );
        let want: Vec<Vec<String>> = vec![
            vec!["a".into(), "b".into()],
            vec!["1".into(), "two\nlines, \"q\"".into()],
            vec!["".into(), "".into()],
            vec!["".into()],
            vec![format!("open {long},\ntail"), long.clone()],
            vec!["ab".into(), "c\"d".into()],
            vec!["last".into()],
        ];
        for step in [1, 7, 4096, 1 << 20] {
            assert!(records(&text, CSV, step) == want, "step {step}");
        }
        assert_eq!(records("\"never closed", CSV, 3), [["never closed"]]);
        let ascii = Format { column: 0x1f, row: 0x1e, quotes: false };
        assert_eq!(records("a\x1f\"b\r\x1ec", ascii, 2), [vec!["a", "\"b\r"], vec!["c"]]);
        assert!(records("", CSV, 1).is_empty());
    }

    /// Whatever the separator and the place of numbers, a batch holds what single records hold.
    #[test]
    fn batches_agree_with_single_records() {
        let lines = [
            "1,2,3,4",
            "-1,-,--1,- 1",
            ",,,",
            "",
            "1",
            ",",
            "1,",
            "x,y",
            "12a,1",
            "1\0,2",
            "999999999999999999,1",
            "1000000000000000000,-999999999999999999",
            "1234567890123456789012,5,6",
            "a,1,b,2,c,3,d,4",
            "1\r,2\r",
            "00,-0",
            "\"1\",\"2,3\",4",
            "5a6-7,8",
        ];
        for column in *b",5-a" {
            let format = Format { column, row: b'\n', quotes: true };
            for ending in ["\n", "\r\n"] {
                let text = lines.join(ending);
                for width in [0, 1, 3, 9] {
                    for whole in [vec![], vec![true; 9], vec![false, true, true]] {
                        let r = Reader::new(Box::new(Drops(text.clone().into_bytes(), 1000)), format);
                        let mut seen = Vec::new();
                        for batch in r.batches(width, whole.clone()) {
                            let batch = batch.unwrap();
                            let mut fields = batch.fields();
                            for record in &batch.records {
                                let own: Vec<String> = fields
                                    .by_ref()
                                    .take(record.fields.min(width))
                                    .enumerate()
                                    .map(|(i, f)| match f {
                                        Field::Whole(n) if whole.get(i) == Some(&true) => {
                                            format!("whole {n}")
                                        }
                                        Field::Whole(_) => "not wanted".into(),
                                        Field::Text(t) => String::from_utf8_lossy(t).into_owned(),
                                    })
                                    .collect();
                                seen.push((record.fields, own));
                            }
                        }
                        let want: Vec<_> = records(&text, format, 1000)
                            .into_iter()
                            .map(|r| {
                                let field = |(i, t): (usize, &String)| match t.parse::<i64>() {
                                    Ok(n)
                                        if whole.get(i) == Some(&true)
                                            && t.trim_start_matches('-').len() <= 18
                                            && !t.starts_with('+') =>
                                    {
                                        format!("whole {n}")
                                    }
                                    _ => t.clone(),
                                };
                                (r.len(), r.iter().enumerate().take(width).map(field).collect::<Vec<_>>())
                            })
                            .collect();
                        // With such separators numbers are left as texts, unless quotes were taken away.
                        if column == b'5' || column == b'-' {
                            let plain = |s: &[(usize, Vec<String>)]| {
                                let text = |f: &String| f.replace("whole ", "");
                                s.iter().map(|(n, r)| (*n, r.iter().map(text).collect())).collect::<Vec<(
                                    usize,
                                    Vec<String>,
                                )>>(
                                )
                            };
                            // Leading zeros of a number are lost by design; there is one such line.
                            let zeros = |s: Vec<(usize, Vec<String>)>| -> Vec<_> {
                                s.into_iter().filter(|(_, r)| !r.iter().any(|f| f.contains('0'))).collect()
                            };
                            assert_eq!(zeros(plain(&seen)), zeros(plain(&want)));
                        } else {
                            assert_eq!(seen, want, "{} {width} {whole:?}", column as char);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn batches_hold_numbers_where_they_are_wanted() {
        let text: String = (0..2000).map(|i| format!("{i},{i},-0{i},+{i},x\n")).collect();
        let r = Reader::new(Box::new(Drops(text.into_bytes(), 1000)), CSV);
        let mut n = 0;
        for batch in r.batches(4, vec![true, false, true, true]) {
            let batch = batch.unwrap();
            let fields: Vec<Field> = batch.fields().collect();
            for (k, f) in batch.records.iter().zip(fields.chunks(4)) {
                assert_eq!((k.line, k.fields), (n as u64 + 1, 5));
                let text = n.to_string();
                assert!(matches!(f[0], Field::Whole(i) if i == n));
                assert!(matches!(f[1], Field::Text(t) if t == text.as_bytes()));
                assert!(matches!(f[2], Field::Whole(i) if i == -n));
                assert!(matches!(f[3], Field::Text(t) if &t[1..] == text.as_bytes()));
                n += 1;
            }
        }
        assert_eq!(n, 2000);
    }
}
