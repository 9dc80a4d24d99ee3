//! Codes of 4 bits for nodes of a graph.
//!
//! ```text
//! x' = scale * code       codes from -7 to 7; the scale is such that x . x' = x . x
//! (q - x)^2 = q^2 + x^2 - 2 q . x' + 2 (q - x) . (x' - x)
//! ```
//!
//! All but the last term is known. As what a code leaves over is at a right angle to the vector, it is no larger than for a code of the
//! difference `q - x`: the nearer a node, the better its estimate.
//!
//! What always holds: sums are taken in the same order on every machine.

use crate::config::MOST_DIMENSIONS;
use crate::dot::{RUN, Work, pack, widest};

/// Bytes of a node beside its code: scale and square.
pub(crate) const BESIDE: usize = 8;
const MOST_RUNS: usize = MOST_DIMENSIONS / RUN;

/// What is made of a vector.
#[derive(Default)]
pub(crate) struct Coded {
    pub code: Vec<u8>,
    /// No number: codes say nothing of it.
    pub scale: f32,
    /// The square of its length.
    pub square: f32,
}

impl Coded {
    /// Makes it of a vector; `usual`: its length is one that codes are made for.
    pub fn make(&mut self, x: &[f32], usual: bool) {
        widest(Encode { x, to: self });
        if !usual {
            self.code.iter_mut().for_each(|c| *c = 0);
            (self.scale, self.square) = (f32::NAN, 0.0);
        }
    }

    /// Scale and square as they stand behind the code.
    pub fn beside(&self) -> [u8; BESIDE] {
        let (a, b) = (self.scale.to_le_bytes(), self.square.to_le_bytes());
        [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
    }

    /// A node's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        [&self.code[..], &self.beside()].concat()
    }

    /// Scale and square from where they stand.
    #[inline(always)]
    pub fn read_beside(b: &[u8]) -> (f32, f32) {
        (f32::from_le_bytes([b[0], b[1], b[2], b[3]]), f32::from_le_bytes([b[4], b[5], b[6], b[7]]))
    }
}

struct Encode<'a> {
    x: &'a [f32],
    to: &'a mut Coded,
}

impl Work for Encode<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Encode { x, to } = self;
        let runs = x.len().div_ceil(RUN);
        let most = x.iter().fold(0f32, |m, x| if x.abs() > m { x.abs() } else { m });
        let inverse = if most > 0.0 { 7.0 / most } else { 0.0 };
        let mut all = [[0u8; RUN]; MOST_RUNS];
        let (mut square, mut product) = ([0f32; 16], [0f32; 16]);
        for (numbers, run) in x.chunks(RUN).zip(&mut all) {
            let mut xs = [0f32; RUN];
            xs[..numbers.len()].copy_from_slice(numbers);
            let mut codes = [0f32; RUN];
            for i in 0..RUN {
                // The nearest integer, by adding a number whose last bit is 1.
                codes[i] = (xs[i] * inverse).clamp(-7.0, 7.0) + 12_582_912.0 - 12_582_912.0;
            }
            for i in 0..RUN {
                square[i % 16] += xs[i] * xs[i];
                product[i % 16] += xs[i] * codes[i];
            }
            for i in 0..RUN {
                run[i] = (codes[i] as i32 + 8) as u8;
            }
        }
        to.code.clear();
        pack(&all[..runs], &mut to.code);
        to.square = square.iter().sum::<f32>();
        let product = product.iter().sum::<f32>();
        to.scale = if product > 0.0 { to.square / product } else { 0.0 };
    }
}
