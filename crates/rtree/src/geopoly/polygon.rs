//! Polygons: their two forms, blob and JSON, and what is computed from one.
//!
//! Vertexes are 32-bit reals, as they are stored; the first is not repeated at the end. What is computed is computed with the
//! precision that SQLite uses, so that answers are the same to the bit.

use crate::words::real_text;
use iolite_base::Result;
use iolite_value::{Value, num};

/// A polygon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Polygon {
    pub vertexes: Vec<(f32, f32)>,
}

/// What a value is.
pub(crate) enum Shape {
    Polygon(Polygon),
    /// A text or blob that makes no attempt at being one.
    Nothing,
    /// No polygon.
    Wrong,
}

/// Smallest and largest x, smallest and largest y.
pub(crate) type Bounds = [f32; 4];

const HEADER: usize = 4;
const LEAST_VERTEXES: usize = 3;

impl Shape {
    pub fn of(v: &Value) -> Shape {
        match v {
            Value::Blob(b, _) => from_blob(b),
            Value::Text(b, _) => Parser { text: b, at: 0 }.polygon(),
            _ => Shape::Wrong,
        }
    }
}

fn from_blob(b: &[u8]) -> Shape {
    let (Some(header), true) = (b.first_chunk::<4>(), b.len() >= HEADER + 8 * LEAST_VERTEXES) else {
        return Shape::Wrong;
    };
    let count = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
    if header[0] > 1 || HEADER + 8 * count != b.len() {
        return Shape::Nothing;
    }
    let number = |c: &[u8]| {
        let c: [u8; 4] = c.first_chunk().copied().unwrap_or_default();
        if header[0] == 1 { f32::from_le_bytes(c) } else { f32::from_be_bytes(c) }
    };
    let vertexes = b[HEADER..].chunks_exact(8).map(|v| (number(v), number(&v[4..]))).collect();
    Shape::Polygon(Polygon { vertexes })
}

/// A reader of a JSON array of vertexes.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> u8 {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.byte(self.at)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is = self.peek() == wanted;
        self.at += usize::from(is);
        is
    }

    /// A number of JSON. As SQLite has it, digits may be missing where the byte before is no sign: nothing at all is 0
    /// directly behind a bracket.
    fn number(&mut self) -> Option<f64> {
        self.peek();
        let start = self.at;
        let mut at = start + usize::from(self.byte(start) == b'-');
        if self.byte(at) == b'0' && self.byte(at + 1).is_ascii_digit() {
            return None;
        }
        let before = |at: usize| if at > 0 { self.byte(at - 1) } else { 0 };
        let (mut point, mut exponent) = (false, false);
        loop {
            match self.byte(at) {
                b'0'..=b'9' => {}
                b'.' if point || before(at) == b'-' => return None,
                b'.' => point = true,
                b'e' | b'E' => {
                    if before(at) < b'0' || exponent {
                        return None;
                    }
                    (point, exponent) = (true, true);
                    at += usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
                    if !self.byte(at + 1).is_ascii_digit() {
                        return None;
                    }
                }
                _ => break,
            }
            at += 1;
        }
        if before(at) < b'0' {
            return None;
        }
        self.at = at;
        Some(num::prefix(&self.text[start..at]).number.to_real())
    }

    /// A vertex behind its opening bracket: two numbers, and more that do not matter. False: it is none. Where a number is
    /// missing the vertex ends, and the array may end with it.
    fn vertex(&mut self, vertexes: &mut Vec<(f32, f32)>) -> bool {
        let (mut count, mut x) = (0, 0.0);
        while let Some(n) = self.number() {
            count += 1;
            match count {
                1 => x = n as f32,
                2 => vertexes.push((x, n as f32)),
                _ => {}
            }
            let next = self.peek();
            self.at += 1;
            match next {
                b',' => {}
                b']' if count >= 2 => return true,
                _ => return false,
            }
        }
        true
    }

    fn polygon(mut self) -> Shape {
        if !self.take(b'[') {
            return Shape::Nothing;
        }
        let mut vertexes = Vec::new();
        while self.take(b'[') {
            if !self.vertex(&mut vertexes) {
                return Shape::Wrong;
            }
            if !self.take(b',') {
                break;
            }
        }
        let closed = vertexes.len() > LEAST_VERTEXES && vertexes.first() == vertexes.last();
        let ends = self.take(b']') && closed && self.peek() == 0;
        if !ends {
            return Shape::Wrong;
        }
        vertexes.pop();
        Shape::Polygon(Polygon { vertexes })
    }
}

impl Polygon {
    /// The polygon that a value is.
    pub fn of(v: &Value) -> Option<Polygon> {
        match Shape::of(v) {
            Shape::Polygon(p) => Some(p),
            _ => None,
        }
    }

    /// A rectangle.
    pub fn rectangle(b: Bounds) -> Polygon {
        Polygon { vertexes: vec![(b[0], b[2]), (b[1], b[2]), (b[1], b[3]), (b[0], b[3])] }
    }

    /// The edges as pairs of vertexes; the last one leads back to the first vertex.
    pub fn edges(&self) -> impl Iterator<Item = ((f32, f32), (f32, f32))> + '_ {
        let v = &self.vertexes;
        (0..v.len()).map(move |n| (v[n], v[(n + 1) % v.len()]))
    }

    /// The blob.
    pub fn blob(&self) -> Result<Value> {
        let mut out = vec![1];
        out.extend(&(self.vertexes.len() as u32).to_be_bytes()[1..]);
        for (x, y) in &self.vertexes {
            out.extend(x.to_le_bytes());
            out.extend(y.to_le_bytes());
        }
        Value::blob(&out)
    }

    /// The JSON array, with the first vertex once more at the end.
    pub fn json(&self) -> Result<String> {
        let mut all = Vec::new();
        for (x, y) in self.vertexes.iter().chain(self.vertexes.first()) {
            all.push(format!("[{},{}]", real_text("%!g", *x as f64)?, real_text("%!g", *y as f64)?));
        }
        Ok(format!("[{}]", all.join(",")))
    }

    /// A line of SVG with these attributes.
    pub fn svg(&self, attributes: &[String]) -> Result<String> {
        let mut points = Vec::new();
        for (x, y) in self.vertexes.iter().chain(self.vertexes.first()) {
            points.push(format!("{},{}", real_text("%g", *x as f64)?, real_text("%g", *y as f64)?));
        }
        let more: String = attributes.iter().filter(|a| !a.is_empty()).map(|a| format!(" {a}")).collect();
        Ok(format!("<polyline points='{}'{more}></polyline>", points.join(" ")))
    }

    /// The area; negative where vertexes go round clockwise.
    pub fn area(&self) -> f64 {
        self.edges().fold(0.0, |sum, (a, b)| sum + ((a.0 - b.0) * (a.1 + b.1)) as f64 * 0.5)
    }

    /// The same polygon with its vertexes the other way round, from the same first one.
    pub fn reversed(mut self) -> Polygon {
        self.vertexes[1..].reverse();
        self
    }

    /// The smallest rectangle around it.
    pub fn bounds(&self) -> Bounds {
        let (x, y) = self.vertexes.first().copied().unwrap_or_default();
        let mut b = [x, x, y, y];
        for (x, y) in &self.vertexes {
            extend(&mut b, [*x, *x, *y, *y]);
        }
        b
    }

    /// Each vertex moved: `x1 = a*x + b*y + e`, `y1 = c*x + d*y + f`.
    pub fn transformed(mut self, by: &[f64; 6]) -> Polygon {
        for v in &mut self.vertexes {
            let (x, y) = (v.0 as f64, v.1 as f64);
            *v = ((by[0] * x + by[1] * y + by[4]) as f32, (by[2] * x + by[3] * y + by[5]) as f32);
        }
        self
    }

    /// A regular polygon around a point.
    pub fn regular(x: f64, y: f64, radius: f64, sides: usize) -> Polygon {
        use std::f64::consts::PI;
        let vertex = |n: usize| {
            let angle = 2.0 * PI * n as f64 / sides as f64;
            ((x - radius * sine(angle - 0.5 * PI)) as f32, (y + radius * sine(angle)) as f32)
        };
        Polygon { vertexes: (0..sides).map(vertex).collect() }
    }

    /// 2: the point is inside; 1: it is on an edge; 0: outside.
    pub fn position(&self, x: f64, y: f64) -> i64 {
        let mut beneath = 0;
        for (a, b) in self.edges() {
            match place((x, y), (a.0 as f64, a.1 as f64), (b.0 as f64, b.1 as f64)) {
                Place::On => return 1,
                Place::Beneath => beneath += 1,
                Place::Elsewhere => {}
            }
        }
        if beneath % 2 == 0 { 0 } else { 2 }
    }
}

/// Makes bounds so large that they have others in them.
pub(crate) fn extend(b: &mut Bounds, other: Bounds) {
    for k in 0..4 {
        let wider = if k % 2 == 0 { other[k] < b[k] } else { other[k] > b[k] };
        if wider {
            b[k] = other[k];
        }
    }
}

/// The sine of an angle between -π/2 and 2π, to about four digits: regular polygons have these vertexes and no better ones.
fn sine(mut r: f64) -> f64 {
    use std::f64::consts::PI;
    if r >= 1.5 * PI {
        r -= 2.0 * PI;
    }
    if r >= 0.5 * PI {
        return -sine(r - PI);
    }
    let square = r * r;
    let cube = square * r;
    0.9996949 * r - 0.1656700 * cube + 0.0075134 * (cube * square)
}

enum Place {
    Beneath,
    On,
    Elsewhere,
}

/// Where a point is, as seen from a line: beneath it, on it, or neither. Of a line's ends the right one belongs to it.
fn place(p: (f64, f64), a: (f64, f64), b: (f64, f64)) -> Place {
    if p == a {
        return Place::On;
    }
    if a.0 == b.0 {
        let off = p.0 != a.0 || p.1 < a.1 && p.1 < b.1 || p.1 > a.1 && p.1 > b.1;
        return if off { Place::Elsewhere } else { Place::On };
    }
    let (left, right) = if a.0 < b.0 { (a.0, b.0) } else { (b.0, a.0) };
    if p.0 <= left || p.0 > right {
        return Place::Elsewhere;
    }
    let y = a.1 + (b.1 - a.1) * (p.0 - a.0) / (b.0 - a.0);
    if p.1 == y {
        Place::On
    } else if p.1 < y {
        Place::Beneath
    } else {
        Place::Elsewhere
    }
}
