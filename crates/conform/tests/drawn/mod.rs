//! What drawn histories have in common: numbers that look random, and how many are drawn.

/// Numbers that look random; the same for the same seed.
pub(crate) struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// The seeds to draw from: `few`, or as many as `IOLITE_<what>_ROUNDS` says, from `IOLITE_<what>_SEED` on.
pub(crate) fn rounds(what: &str, few: u64) -> std::ops::Range<u64> {
    let number =
        |name: &str| std::env::var(format!("IOLITE_{what}_{name}")).ok().and_then(|n| n.parse().ok());
    let first = number("SEED").unwrap_or(1);
    first..first + number("ROUNDS").unwrap_or(few)
}
