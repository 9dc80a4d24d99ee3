//! Where JSON is written, as text and as JSONB: the end of a list of bytes, with room behind it.
//!
//! Most of what is written is a few bytes long: such pieces are copied as sixteen, and what is too much is overwritten by
//! the next piece. (Calls of `memcpy` for a name or a number each were a fifth of `json_set`.)
//!
//! What always holds: what was written is the bytes before `at`; behind it there is room for sixteen bytes that mean nothing.

use super::blob;

pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
}

/// What is copied at once.
const PIECE: usize = 16;

impl<'a> Writer<'a> {
    /// At the end of `out`, with room for about so many bytes.
    pub fn new(out: &'a mut Vec<u8>, room: usize) -> Writer<'a> {
        let at = out.len();
        out.resize(at + room + PIECE, 0);
        Writer { out, at }
    }

    /// Room for `n` bytes and a piece.
    #[inline(always)]
    fn room(&mut self, n: usize) {
        if self.out.len() - self.at < n + PIECE {
            self.grow(n);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, n: usize) {
        let size = self.out.len().saturating_mul(2).max(self.at + n + PIECE);
        self.out.resize(size, 0);
    }

    #[inline(always)]
    pub fn byte(&mut self, b: u8) {
        self.room(1);
        self.out[self.at] = b;
        self.at += 1;
    }

    /// Appends `source[from..to]`.
    #[inline(always)]
    pub fn part(&mut self, source: &[u8], from: usize, to: usize) {
        let n = to - from;
        self.room(n);
        if n <= PIECE
            && let Some(piece) = source.get(from..).and_then(|s| s.first_chunk::<PIECE>())
            && let Some(place) = self.out[self.at..].first_chunk_mut::<PIECE>()
        {
            *place = *piece;
        } else {
            self.out[self.at..self.at + n].copy_from_slice(&source[from..to]);
        }
        self.at += n;
    }

    /// Appends `source[from..to]` between quotes.
    #[inline(always)]
    pub fn quoted(&mut self, source: &[u8], from: usize, to: usize) {
        let n = to - from;
        self.room(n + 2);
        let place = &mut self.out[self.at..];
        place[0] = b'"';
        if n <= PIECE
            && let Some(piece) = source.get(from..).and_then(|s| s.first_chunk::<PIECE>())
            && let Some(place) = place[1..].first_chunk_mut::<PIECE>()
        {
            *place = *piece;
        } else {
            place[1..1 + n].copy_from_slice(&source[from..to]);
        }
        place[1 + n] = b'"';
        self.at += n + 2;
    }

    #[inline]
    pub fn bytes(&mut self, b: &[u8]) {
        self.part(b, 0, b.len());
    }

    /// Appends an element of JSONB whose payload is `source[from..to]`.
    #[inline(always)]
    pub fn element(&mut self, kind: u8, source: &[u8], from: usize, to: usize) {
        let n = to - from;
        if n >= 12 {
            return self.long_element(kind, source, from, to);
        }
        self.room(1 + PIECE);
        if let Some(place) = self.out[self.at..].first_chunk_mut::<{ 1 + PIECE }>() {
            place[0] = (n as u8) << 4 | kind;
            match source.get(from..).and_then(|s| s.first_chunk::<PIECE>()) {
                Some(piece) => place[1..].copy_from_slice(piece),
                None => place[1..1 + n].copy_from_slice(&source[from..to]),
            }
        }
        self.at += 1 + n;
    }

    #[inline(never)]
    fn long_element(&mut self, kind: u8, source: &[u8], from: usize, to: usize) {
        let (header, len) = blob::header(kind, to - from);
        self.bytes(&header[..len]);
        self.part(source, from, to);
    }

    /// Starts a container of JSONB: one byte for its header. Answers where.
    #[inline]
    pub fn open(&mut self, kind: u8) -> usize {
        self.byte(kind);
        self.at - 1
    }

    /// Ends the container that [`Writer::open`] started: the header grows to what the size needs.
    #[inline(always)]
    pub fn close(&mut self, start: usize) {
        match self.at - start - 1 {
            n @ 0..12 => self.out[start] |= (n as u8) << 4,
            n => self.close_long(start, n),
        }
    }

    #[inline(never)]
    fn close_long(&mut self, start: usize, len: usize) {
        let (header, n) = blob::header(self.kind_at(start), len);
        self.room(n);
        self.out.copy_within(start + 1..self.at, start + n);
        self.at += n - 1;
        self.out[start..start + n].copy_from_slice(&header[..n]);
    }

    /// The kind of the container that begins there and is not closed.
    #[inline]
    pub fn kind_at(&self, start: usize) -> u8 {
        self.out[start] & 15
    }

    /// Has `f` append by the list's own means.
    pub fn with(&mut self, f: impl FnOnce(&mut Vec<u8>)) {
        self.out.truncate(self.at);
        f(self.out);
        self.at = self.out.len();
    }

    /// Takes away what means nothing.
    pub fn end(self) {
        self.out.truncate(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_follow_each_other() {
        let source: Vec<u8> = (0..=255).collect();
        let (mut out, mut expected) = (b"before".to_vec(), b"before".to_vec());
        let mut w = Writer::new(&mut out, 0);
        for n in 0..60 {
            for from in [0, 7, 256 - n] {
                w.part(&source, from, from + n);
                expected.extend_from_slice(&source[from..from + n]);
            }
            w.byte(b',');
            expected.push(b',');
            w.with(|out| out.push(b'!'));
            expected.push(b'!');
        }
        w.end();
        assert_eq!(out, expected);
    }

    #[test]
    fn containers_of_any_size_are_closed() {
        for n in [0, 3, 11, 12, 255, 256, 70_000] {
            let mut out = Vec::new();
            let mut w = Writer::new(&mut out, 4);
            let start = w.open(blob::kind::ARRAY);
            (0..n).for_each(|_| w.byte(blob::kind::NULL));
            w.close(start);
            w.end();
            let e = blob::Element::read(&out, 0, out.len()).unwrap();
            assert_eq!((e.kind, e.end - e.body, e.end), (blob::kind::ARRAY, n, out.len()));
        }
    }
}
