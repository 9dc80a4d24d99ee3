//! Chunks and dictionaries as bytes, and back.
//!
//! All numbers are little-endian; lengths come before what they measure. Reading believes nothing: whatever bytes come
//! in, the chunk that comes out is one that building could have made of some table, or there is none. What other code
//! relies on is made sure of here: codes lie in their dictionary, bounds bound the values, no sum of base and code
//! overflows, no entry reaches out of its bytes, no dictionary has an entry twice.

use super::*;
use crate::kernel::of_three;
use crate::memory::room;

/// Reads numbers off the front of some bytes.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (a, b) = self.0.split_at_checked(n)?;
        self.0 = b;
        Some(a)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// A byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[b]: [u8; 1]| b)
    }

    /// 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A count of things that take at least `each` bytes.
    pub fn count(&mut self, each: usize) -> Option<usize> {
        let n = self.u32()? as usize;
        (n.checked_mul(each)? <= self.0.len()).then_some(n)
    }

    /// So many numbers of 32 bits.
    pub fn u32s(&mut self, n: usize) -> Option<Vec<u32>> {
        let (list, rest) = self.bytes(n.checked_mul(4)?)?.as_chunks::<4>();
        debug_assert!(rest.is_empty());
        let mut out = room(n).ok()?;
        out.extend(list.iter().map(|b| u32::from_le_bytes(*b)));
        Some(out)
    }

    /// So many numbers of 64 bits.
    pub fn u64s(&mut self, n: usize) -> Option<Vec<u64>> {
        let (list, _) = self.bytes(n.checked_mul(8)?)?.as_chunks::<8>();
        let mut out = room(n).ok()?;
        out.extend(list.iter().map(|b| u64::from_le_bytes(*b)));
        Some(out)
    }
}

/// Appends numbers.
pub(crate) trait Put {
    fn u8(&mut self, v: u8);
    fn u32(&mut self, v: u32);
    fn u64(&mut self, v: u64);
}

impl Put for Vec<u8> {
    fn u8(&mut self, v: u8) {
        self.push(v);
    }

    fn u32(&mut self, v: u32) {
        self.extend_from_slice(&v.to_le_bytes());
    }

    fn u64(&mut self, v: u64) {
        self.extend_from_slice(&v.to_le_bytes());
    }
}

impl Codes {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Codes::U4(c) => {
                out.u8(0);
                out.extend_from_slice(c);
            }
            Codes::U8(c) => {
                out.u8(1);
                out.extend_from_slice(c);
            }
            Codes::U16(c) => {
                out.u8(2);
                out.extend(c.iter().flat_map(|v| v.to_le_bytes()));
            }
            Codes::U24(c) => {
                out.u8(3);
                out.extend_from_slice(c.as_flattened());
            }
            Codes::U32(c) => {
                out.u8(4);
                out.extend(c.iter().flat_map(|v| v.to_le_bytes()));
            }
        }
    }

    fn read(r: &mut Reader<'_>, len: usize) -> Option<Codes> {
        let copy = |b: &[u8]| -> Option<Vec<u8>> {
            let mut v = room(b.len()).ok()?;
            v.extend_from_slice(b);
            Some(v)
        };
        Some(match r.u8()? {
            0 => {
                let c = copy(r.bytes(len.div_ceil(2))?)?;
                // Behind an odd end there is nothing.
                if len % 2 == 1 && c.last().is_some_and(|b| b >> 4 != 0) {
                    return None;
                }
                Codes::U4(c)
            }
            1 => Codes::U8(copy(r.bytes(len)?)?),
            2 => {
                let (list, _) = r.bytes(len.checked_mul(2)?)?.as_chunks::<2>();
                let mut v = room(len).ok()?;
                v.extend(list.iter().map(|b| u16::from_le_bytes(*b)));
                Codes::U16(v)
            }
            3 => {
                let (list, _) = r.bytes(len.checked_mul(3)?)?.as_chunks::<3>();
                let mut v = room(len).ok()?;
                v.extend_from_slice(list);
                Codes::U24(v)
            }
            4 => Codes::U32(r.u32s(len)?),
            _ => return None,
        })
    }

    /// The greatest code; `None`: there is none.
    fn max(&self) -> Option<u32> {
        match self {
            Codes::U4(c) => c.iter().map(|b| (b & 15).max(b >> 4) as u32).max(),
            Codes::U8(c) => c.iter().copied().max().map(u32::from),
            Codes::U16(c) => c.iter().copied().max().map(u32::from),
            Codes::U24(c) => c.iter().map(|v| of_three(*v)).max(),
            Codes::U32(c) => c.iter().copied().max(),
        }
    }

    /// Whether some code is not 0.
    fn any(&self) -> bool {
        self.max().is_some_and(|m| m > 0)
    }
}

fn write_nulls(nulls: Option<&Nulls>, out: &mut Vec<u8>) {
    out.u8(nulls.is_some() as u8);
    for w in nulls.iter().flat_map(|n| &n.0) {
        out.u64(*w);
    }
}

fn read_nulls(r: &mut Reader<'_>, len: usize) -> Option<Option<Nulls>> {
    match r.u8()? {
        0 => Some(None),
        1 => r.u64s(len.div_ceil(64)).map(|w| Some(Nulls(w))),
        _ => None,
    }
}

fn write_entries(entries: &[Entry], bytes: &[u8], out: &mut Vec<u8>) {
    out.u64(bytes.len() as u64);
    out.extend_from_slice(bytes);
    for e in entries {
        out.u8(e.kind as u8);
        out.u32(e.len);
        out.u64(e.data);
    }
}

fn read_entries(r: &mut Reader<'_>, n: usize) -> Option<(Vec<Entry>, Vec<u8>)> {
    let size = usize::try_from(r.u64()?).ok()?;
    let from = r.bytes(size)?;
    let mut bytes = room(size).ok()?;
    bytes.extend_from_slice(from);
    if n.checked_mul(13)? > r.0.len() {
        return None;
    }
    let mut entries = room(n).ok()?;
    for _ in 0..n {
        let (kind, len, data) = (r.u8()?, r.u32()?, r.u64()?);
        let kind = match kind {
            0 => Kind::Null,
            1 => Kind::Int,
            2 if !f64::from_bits(data).is_nan() => Kind::Real,
            3 => Kind::Text,
            4 => Kind::Blob,
            _ => return None,
        };
        let fits = match kind {
            Kind::Text | Kind::Blob => data.checked_add(len as u64)? <= size as u64,
            Kind::Null => len == 0 && data == 0,
            _ => len == 0,
        };
        if !fits {
            return None;
        }
        entries.push(Entry { kind, len, data });
    }
    Some((entries, bytes))
}

impl Chunk {
    /// The chunk as bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.len as u32);
        match &self.data {
            Data::Sequence { base } => {
                out.u8(0);
                out.u64(*base as u64);
            }
            Data::Int { base, nulls, codes } => {
                out.u8(1);
                out.u64(*base as u64);
                out.u8(*nulls as u8);
                codes.write(out);
            }
            Data::Wide { values, nulls } => {
                out.u8(2);
                write_nulls(nulls.as_ref(), out);
                out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
            }
            Data::Real { values, nulls } => {
                out.u8(3);
                write_nulls(nulls.as_ref(), out);
                out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
            }
            Data::Dict { codes } => {
                out.u8(4);
                codes.write(out);
            }
            Data::Plain(p) => {
                out.u8(5);
                write_entries(&p.entries, &p.bytes, out);
            }
            // Never kept, and so never written; nobody reads such a kind.
            Data::Away(_) => out.u8(u8::MAX),
        }
    }

    /// The chunk of `rows` rows that bytes stand for; `dict`: how many entries the column's dictionary has.
    pub fn read(bytes: &[u8], rows: usize, dict: usize) -> Option<Chunk> {
        let mut r = Reader(bytes);
        let len = r.u32()? as usize;
        if len != rows {
            return None;
        }
        let made = match r.u8()? {
            0 => {
                let base = r.u64()? as i64;
                base.checked_add(i64::try_from(len).ok()?)?;
                Chunk::of_sequence(base, len)
            }
            1 => {
                let base = r.u64()? as i64;
                let nulls = match r.u8()? {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                let codes = Codes::read(&mut r, len)?;
                // As building has it: room below the least and above the greatest.
                let max = base.checked_add(codes.max().unwrap_or(0) as i64)?;
                let least = base.checked_add(nulls as i64)?;
                if nulls && !codes.any() {
                    Chunk::of_int_codes(0, true, codes, len, 1, 0)
                } else if len == 0 {
                    return None;
                } else {
                    Chunk::of_int_codes(base, nulls, codes, len, least, max)
                }
            }
            2 => {
                let nulls = read_nulls(&mut r, len)?;
                let values: Vec<i64> = r.u64s(len)?.into_iter().map(|v| v as i64).collect();
                let (mut min, mut max) = (i64::MAX, i64::MIN);
                for (i, v) in values.iter().enumerate() {
                    if nulls.as_ref().is_none_or(|n| !n.has(i)) {
                        (min, max) = (min.min(*v), max.max(*v));
                    }
                }
                if min > max {
                    return None;
                }
                Chunk::new(Data::Wide { values, nulls }, len, min, max)
            }
            3 => {
                let nulls = read_nulls(&mut r, len)?;
                let values: Vec<f64> = r.u64s(len)?.into_iter().map(f64::from_bits).collect();
                if values.iter().any(|v| v.is_nan()) {
                    return None;
                }
                Chunk::new(Data::Real { values, nulls }, len, 1, 0)
            }
            4 => {
                let codes = Codes::read(&mut r, len)?;
                if codes.max().is_some_and(|m| m as usize >= dict) {
                    return None;
                }
                Chunk::of_dict_codes(codes, len)
            }
            5 => {
                let (entries, bytes) = read_entries(&mut r, len)?;
                Chunk::of_plain(Plain { entries, bytes })
            }
            _ => return None,
        };
        made.ok().filter(|_| r.0.is_empty())
    }
}

impl Dict {
    /// The dictionary as bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.entries.len() as u32);
        out.u8(self.has_null as u8);
        out.u32(self.null.map_or(0, |n| n + 1));
        write_entries(&self.entries, &self.bytes, out);
    }

    /// The dictionary that bytes stand for.
    pub fn read(bytes: &[u8]) -> Option<Dict> {
        let mut r = Reader(bytes);
        let n = r.u32()? as usize;
        let has_null = match r.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let null = r.u32()?.checked_sub(1);
        let (entries, bytes) = read_entries(&mut r, n)?;
        let mut d = Dict::default();
        for (i, e) in entries.iter().enumerate() {
            if d.code_of(field_of(e, &bytes)).ok()?? != i as u32 {
                return None;
            }
        }
        let is_null = |i: u32| d.entries.get(i as usize).is_some_and(|e| e.kind == Kind::Null);
        let nulls = d.entries.iter().any(|e| e.kind == Kind::Null);
        // The only entry of NULL is one that rows use, or one that was added.
        if null.is_some_and(|i| !is_null(i)) || nulls != (has_null || null.is_some()) {
            return None;
        }
        (d.has_null, d.null) = (has_null, null);
        r.0.is_empty().then_some(d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks() -> (Vec<Chunk>, Dict) {
        let mut d = Dict::default();
        let mut p = Plain::default();
        for f in [Field::Text(b"abc"), Field::Int(-5), Field::Real(1.0), Field::Blob(b""), Field::Null] {
            d.code(f).unwrap();
            p.push(f).unwrap();
        }
        let ints = |v: &[i64], n: &[u32]| Chunk::of_ints(&mut v.to_vec(), n).unwrap();
        let all = vec![
            Chunk::of_sequence(-3, 5).unwrap(),
            ints(&[1, 2, 3, 4, 5], &[]),
            ints(&[1, 0, 3, 400, 5], &[1]),
            ints(&[0, 0, 0, 0, 0], &[0, 1, 2, 3, 4]),
            ints(&[70_000, 2, 3, 4, 5], &[]),
            ints(&[i64::MAX, 0, i64::MIN, 4, 5], &[1]),
            Chunk::of_reals(vec![0.0, -1.5, f64::INFINITY, 2.0, 3.0], &[0]).unwrap(),
            Chunk::of_codes(&[0, 1, 2, 3, 4]).unwrap(),
            Chunk::of_plain(p).unwrap(),
        ];
        (all, d)
    }

    fn shown(c: &Chunk, d: &Dict) -> String {
        (0..c.len).map(|i| format!("{:?};", c.field(i, d))).collect::<String>() + &format!("{:?}", c.is_int())
    }

    #[test]
    fn chunks_come_back_as_they_were() {
        let (all, d) = chunks();
        let mut image = Vec::new();
        d.write(&mut image);
        let d = Dict::read(&image).unwrap();
        for c in all {
            let mut b = Vec::new();
            c.write(&mut b);
            let back = Chunk::read(&b, 5, d.len()).unwrap();
            assert_eq!(shown(&c, &d), shown(&back, &d));
            assert!(back.min > back.max || back.min <= c.min && back.max >= c.max || !c.is_int());
            assert!(Chunk::read(&b, 4, d.len()).is_none() && Chunk::read(&b[..b.len() - 1], 5, 5).is_none());
        }
    }

    #[test]
    fn whatever_bytes_come_in_what_comes_out_is_sound() {
        let (all, d) = chunks();
        let mut x = 1u64;
        let mut next = |n: usize| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) as usize % n.max(1)
        };
        let mut images: Vec<Vec<u8>> = Vec::new();
        for c in &all {
            let mut b = Vec::new();
            c.write(&mut b);
            images.push(b);
        }
        let mut dict = Vec::new();
        d.write(&mut dict);
        for _ in 0..20_000 {
            let mut b = if next(5) == 0 { dict.clone() } else { images[next(images.len())].clone() };
            for _ in 0..1 + next(4) {
                let at = next(b.len());
                b[at] = [0, 1, 0xff, 0x80, next(256) as u8][next(5)];
            }
            b.truncate(b.len() - next(2) * next(b.len()));
            if let Some(d) = Dict::read(&b) {
                (0..d.len() as u32).for_each(|i| drop(d.get(i).value()));
            }
            if let Some(c) = Chunk::read(&b, 5, d.len()) {
                for i in 0..5 {
                    let _ = c.field(i, &d).value();
                    if let (true, Some(v)) = (c.is_int(), c.int(i)) {
                        assert!(c.min <= v && v <= c.max);
                    }
                }
            }
        }
    }
}
