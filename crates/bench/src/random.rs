//! Random numbers from a seed, the same everywhere.

/// A linear congruential generator.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 31 bits.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// From `lo` to `hi`, both included.
    #[inline]
    pub fn range(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.next() % (hi - lo + 1) as u64) as i64
    }

    /// From 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64
    }

    /// A text of this many capital letters.
    pub fn letters(&mut self, n: usize) -> String {
        (0..n).map(|_| (b'A' + (self.next() % 26) as u8) as char).collect()
    }
}

/// 64 bits that look random, from a number: the finishing steps of a well-mixing hash.
pub fn mix(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
