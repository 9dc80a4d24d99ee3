//! Numbers that look drawn, and are the same in every run.

/// The next number follows from this one.
pub struct Draw(pub u64);

impl Draw {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// The text of a vector of whole numbers from `-most` to `most`.
    pub fn vector(&mut self, dimensions: usize, most: u64) -> String {
        let all: Vec<String> =
            (0..dimensions).map(|_| (self.below(2 * most + 1) as i64 - most as i64).to_string()).collect();
        format!("[{}]", all.join(","))
    }

    /// A number from -1 to 1.
    pub fn unit(&mut self) -> f32 {
        self.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0
    }
}
