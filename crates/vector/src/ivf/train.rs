//! Centroids: which there are for a sample of vectors, and which is nearest to one.
//!
//! Two levels: some root of the number wanted is found first, then each of these groups is divided. A vector's list is looked for in the
//! groups that are nearest to it: of 4,096 lists some 600 are compared, and nearly always the nearest is among them.
//!
//! What always holds: the same vectors give the same centroids on every machine, since sums are taken in the same order and nothing is drawn
//! but from a fixed seed.

use crate::dot::{Work, widest};
use iolite_base::{Result, alloc};

/// So many centroids are compared at a time.
const LANES: usize = 64;
/// How often centroids move to the middle of what is nearest to them.
const ROUNDS: usize = 8;
/// How often all of them do that together, over the borders of groups.
const TOGETHER: usize = 3;
/// So many groups are looked at for a vector's list.
const GROUPS: usize = 8;
/// After so many vectors it is asked whether to go on.
const CHECKED: usize = 1024;
/// So many vectors of a sample for a centroid.
pub(crate) const SAMPLE: usize = 40;

/// Centroids, so many beside one another that a vector unit compares them at once.
#[derive(Default)]
pub(crate) struct Blocks {
    dimensions: usize,
    /// How many there are.
    pub len: usize,
    /// A block: one number of each of its centroids after another.
    numbers: Vec<[f32; LANES]>,
    /// Their squares; without end where there is none.
    squares: Vec<[f32; LANES]>,
}

impl Blocks {
    pub fn new(centroids: &[f32], dimensions: usize) -> Result<Blocks> {
        let len = centroids.len() / dimensions;
        let n = len.div_ceil(LANES);
        let mut b = Blocks { dimensions, len, numbers: Vec::new(), squares: Vec::new() };
        alloc::reserve(&mut b.numbers, n * dimensions)?;
        b.numbers.resize(n * dimensions, [0.0; LANES]);
        b.squares.resize(n, [f32::INFINITY; LANES]);
        for (k, c) in centroids.chunks_exact(dimensions).enumerate() {
            b.squares[k / LANES][k % LANES] = c.iter().map(|x| x * x).sum();
            for (i, x) in c.iter().enumerate() {
                b.numbers[k / LANES * dimensions + i][k % LANES] = *x;
            }
        }
        Ok(b)
    }

    /// For each centroid of a block the square of its distance, less that of the vector's length.
    #[inline(always)]
    fn block(&self, k: usize, x: &[f32]) -> [f32; LANES] {
        let block = &self.numbers[k * self.dimensions..][..self.dimensions];
        let mut products = [0f32; LANES];
        for i in 0..block.len().min(x.len()) {
            let (x, numbers) = (x[i], &block[i]);
            for lane in 0..LANES {
                products[lane] += x * numbers[lane];
            }
        }
        let squares = &self.squares[k];
        for lane in 0..LANES {
            products[lane] = squares[lane] - 2.0 * products[lane];
        }
        products
    }

    #[inline(always)]
    fn look(&self, x: &[f32]) -> (usize, f32) {
        let mut best = (0, f32::INFINITY);
        for k in 0..self.squares.len() {
            let d = self.block(k, x);
            let mut least = [f32::INFINITY; 16];
            for part in d.as_chunks::<16>().0 {
                for lane in 0..16 {
                    least[lane] = if part[lane] < least[lane] { part[lane] } else { least[lane] };
                }
            }
            let mut all = f32::INFINITY;
            for l in least {
                all = if l < all { l } else { all };
            }
            if all < best.1 {
                best = (k * LANES + d.iter().position(|d| *d == all).unwrap_or(0), all);
            }
        }
        best
    }

    /// The nearest, and the square of its distance less that of the vector's length.
    pub fn nearest(&self, x: &[f32]) -> (usize, f32) {
        widest(Nearest(self, x))
    }

    /// The `n` nearest.
    #[inline(always)]
    fn several(&self, x: &[f32], n: usize, out: &mut Vec<(f32, usize)>) {
        out.clear();
        for k in 0..self.squares.len() {
            let block = self.block(k, x);
            for (i, d) in block.iter().enumerate().take(self.len - k * LANES) {
                if out.len() < n || *d < out[n - 1].0 {
                    let at = out.partition_point(|o| o.0 <= *d);
                    out.insert(at, (*d, k * LANES + i));
                    out.truncate(n);
                }
            }
        }
    }
}

struct Nearest<'a>(&'a Blocks, &'a [f32]);

impl Work for Nearest<'_> {
    type Out = (usize, f32);

    #[inline(always)]
    fn run(self) -> (usize, f32) {
        self.0.look(self.1)
    }
}

/// Centroids in groups.
pub(crate) struct Groups {
    coarse: Blocks,
    /// The first centroid of each group, and the group.
    fine: Vec<(usize, Blocks)>,
    /// All centroids, one after another.
    pub centroids: Vec<f32>,
}

impl Groups {
    /// The nearest centroid in the nearest groups.
    pub fn nearest(&self, x: &[f32], near: &mut Vec<(f32, usize)>) -> usize {
        widest(InGroups(self, x, near))
    }

    /// Moves each centroid to the middle of the vectors that are nearest to it.
    fn settle(&mut self, sample: &[f32], dimensions: usize, check: Check<'_>) -> Result<()> {
        let k = self.centroids.len() / dimensions;
        let (mut sums, mut counts, mut near) = (Vec::new(), vec![0u32; k], Vec::new());
        alloc::reserve(&mut sums, k * dimensions)?;
        sums.resize(k * dimensions, 0f32);
        for (n, x) in sample.chunks_exact(dimensions).enumerate() {
            if n % CHECKED == 0 {
                check()?;
            }
            let at = self.nearest(x, &mut near);
            counts[at] += 1;
            sums[at * dimensions..][..dimensions].iter_mut().zip(x).for_each(|(s, x)| *s += x);
        }
        for (at, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let by = 1.0 / *n as f32;
            let c = &mut self.centroids[at * dimensions..][..dimensions];
            c.iter_mut().zip(&sums[at * dimensions..]).for_each(|(c, s)| *c = s * by);
        }
        for (first, blocks) in &mut self.fine {
            let end = (*first + blocks.len) * dimensions;
            *blocks = Blocks::new(&self.centroids[*first * dimensions..end], dimensions)?;
        }
        Ok(())
    }
}

struct InGroups<'a>(&'a Groups, &'a [f32], &'a mut Vec<(f32, usize)>);

impl Work for InGroups<'_> {
    type Out = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let InGroups(groups, x, near) = self;
        let mut best = (0, f32::INFINITY);
        groups.coarse.several(x, GROUPS, near);
        for (_, group) in near.iter() {
            let (first, blocks) = &groups.fine[*group];
            let (k, d) = blocks.look(x);
            if d < best.1 {
                best = (first + k, d);
            }
        }
        best.0
    }
}

/// A number that looks drawn.
pub(crate) fn draw(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*seed >> 33) % below.max(1) as u64) as usize
}

/// Asks whether to go on: an error, if not.
type Check<'a> = &'a dyn Fn() -> Result<()>;

/// Makes `k` centroids of those of the vectors that are named.
fn cluster(
    points: &[f32],
    dimensions: usize,
    members: &[u32],
    k: usize,
    seed: &mut u64,
    check: Check<'_>,
) -> Result<Vec<f32>> {
    let point = |m: u32| &points[m as usize * dimensions..][..dimensions];
    let mut centroids: Vec<f32> = Vec::new();
    alloc::reserve(&mut centroids, k * dimensions)?;
    // One of each k-th part.
    for i in 0..k {
        let (from, to) = (members.len() * i / k, members.len() * (i + 1) / k);
        match members.get(from + draw(seed, to - from)) {
            Some(m) => centroids.extend_from_slice(point(*m)),
            None => centroids.resize(centroids.len() + dimensions, 0.0),
        }
    }
    let mut sums: Vec<f32> = Vec::new();
    alloc::reserve(&mut sums, k * dimensions)?;
    for _ in 0..ROUNDS {
        check()?;
        let blocks = Blocks::new(&centroids, dimensions)?;
        let mut counts = vec![0u32; k];
        sums.clear();
        sums.resize(k * dimensions, 0.0);
        for m in members {
            let (at, _) = blocks.nearest(point(*m));
            counts[at] += 1;
            for (s, x) in sums[at * dimensions..][..dimensions].iter_mut().zip(point(*m)) {
                *s += x;
            }
        }
        for (at, n) in counts.iter().enumerate() {
            let c = &mut centroids[at * dimensions..][..dimensions];
            if *n > 0 {
                let by = 1.0 / *n as f32;
                c.iter_mut().zip(&sums[at * dimensions..]).for_each(|(c, s)| *c = s * by);
            } else if let Some(m) = members.get(draw(seed, members.len())) {
                c.copy_from_slice(point(*m));
            }
        }
    }
    Ok(centroids)
}

/// Two centroids for a list that is divided.
pub(crate) fn halves(points: &[f32], dimensions: usize) -> Result<Vec<f32>> {
    let members: Vec<u32> = (0..(points.len() / dimensions) as u32).collect();
    cluster(points, dimensions, &members, 2, &mut 1, &|| Ok(()))
}

/// `k` centroids for a sample.
pub(crate) fn train(sample: &[f32], dimensions: usize, k: usize, check: Check<'_>) -> Result<Groups> {
    let n = sample.len() / dimensions;
    if n == 0 {
        let centroids = vec![0.0; dimensions];
        let one = || Blocks::new(&centroids, dimensions);
        return Ok(Groups { coarse: one()?, fine: vec![(0, one()?)], centroids });
    }
    let mut seed = 1;
    let all: Vec<u32> = (0..n as u32).collect();
    let coarse_len = if k < 32 { 1 } else { (k as f64).sqrt().ceil() as usize };
    // A part of the sample is enough for the first level.
    let part: Vec<u32> = all.iter().copied().step_by((n / (coarse_len * 4 * SAMPLE)).max(1)).collect();
    let coarse = Blocks::new(&cluster(sample, dimensions, &part, coarse_len, &mut seed, check)?, dimensions)?;
    let mut groups: Vec<Vec<u32>> = vec![Vec::new(); coarse_len];
    for (m, x) in sample.chunks_exact(dimensions).enumerate() {
        groups[coarse.nearest(x).0].push(m as u32);
    }
    let mut made = Groups { coarse, fine: Vec::new(), centroids: Vec::new() };
    alloc::reserve(&mut made.centroids, k * dimensions)?;
    // Each group gets its share, as far as it has been seen.
    let (mut seen, mut given) = (0, 0);
    for members in &groups {
        seen += members.len();
        let until = (k * seen).div_ceil(n).clamp(given, k);
        let own = if members.is_empty() { 0 } else { (until - given).max(1) };
        let centroids = cluster(sample, dimensions, members, own, &mut seed, check)?;
        made.fine.push((given, Blocks::new(&centroids, dimensions)?));
        made.centroids.extend_from_slice(&centroids);
        given += own;
    }
    for _ in 0..TOGETHER {
        made.settle(sample, dimensions, check)?;
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_found() {
        let mut seed = 5;
        let mut points = Vec::new();
        for i in 0..4000 {
            let k = i % 40;
            let jitter = |seed: &mut u64| draw(seed, 100) as f32 / 1000.0;
            points.extend([
                k as f32 * 10.0 + jitter(&mut seed),
                (k * 7 % 40) as f32 * 10.0 + jitter(&mut seed),
            ]);
        }
        let g = train(&points, 2, 80, &|| Ok(())).unwrap();
        let mut near = Vec::new();
        let of: Vec<usize> = points.chunks_exact(2).map(|x| g.nearest(x, &mut near)).collect();
        for (i, list) in of.iter().enumerate() {
            let d = |c: &[f32]| (c[0] - points[2 * i]).powi(2) + (c[1] - points[2 * i + 1]).powi(2);
            let nearest = g.centroids.chunks_exact(2).map(d).fold(f32::INFINITY, f32::min);
            assert!(d(&g.centroids[2 * list..]) <= nearest + 0.1, "{i}");
        }
        assert_eq!(train(&points, 2, 80, &|| Ok(())).unwrap().centroids, g.centroids);
        // More centroids than vectors, and none at all.
        assert!(train(&points[..6], 2, 64, &|| Ok(())).unwrap().centroids.len() >= 6);
        assert_eq!(train(&[], 2, 4, &|| Ok(())).unwrap().nearest(&[1.0, 1.0], &mut near), 0);
    }
}
