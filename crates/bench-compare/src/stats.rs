//! Medians, quartiles, percentiles, intervals, ratios of paired samples. Pure functions of numbers.

use serde::{Deserialize, Serialize};

/// What is said about a list of samples.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Default)]
pub struct Summary {
    /// How many there are.
    pub n: usize,
    /// The least.
    pub min: f64,
    /// The first quartile.
    pub q1: f64,
    /// The middle.
    pub median: f64,
    /// The third quartile.
    pub q3: f64,
    /// The greatest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval (Student's t).
    pub ci95: f64,
}

/// The value at a share of the sorted list, between its neighbours by distance.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let at = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

/// Student's t for 95 %, by degrees of freedom.
fn student(freedom: usize) -> f64 {
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match freedom {
        0 => 0.0,
        n => T.get(n - 1).copied().unwrap_or(1.96),
    }
}

/// Sums samples up.
pub fn summary(samples: &[f64]) -> Summary {
    let mut s = samples.to_vec();
    s.sort_by(f64::total_cmp);
    let n = s.len();
    if n == 0 {
        return Summary::default();
    }
    let mean = s.iter().sum::<f64>() / n as f64;
    let variance = s.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n.max(2) - 1) as f64;
    Summary {
        n,
        min: s[0],
        q1: quantile(&s, 0.25),
        median: quantile(&s, 0.5),
        q3: quantile(&s, 0.75),
        max: s[n - 1],
        mean,
        ci95: student(n - 1) * (variance / n as f64).sqrt(),
    }
}

/// A ratio: of the medians, and the quartiles of the ratios of samples taken in the same turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Of the medians.
    pub value: f64,
    /// First quartile of the paired ratios.
    pub low: f64,
    /// Third quartile.
    pub high: f64,
}

/// `a / b`.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<Ratio> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let (x, y) = (summary(a).median, summary(b).median);
    if y == 0.0 {
        return None;
    }
    let pairs: Vec<f64> = a.iter().zip(b).filter(|(_, b)| **b != 0.0).map(|(a, b)| a / b).collect();
    let s = summary(&pairs);
    Some(Ratio { value: x / y, low: s.q1, high: s.q3 })
}

/// The geometric mean.
pub fn geometric(values: &[f64]) -> f64 {
    let logs: f64 = values.iter().map(|v| v.max(1e-12).ln()).sum();
    (logs / values.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_odd_and_even_counts() {
        let s = summary(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((s.min, s.q1, s.median, s.q3, s.max, s.mean), (1.0, 2.0, 3.0, 4.0, 5.0, 3.0));
        let s = summary(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!((s.q1, s.median, s.q3), (1.75, 2.5, 3.25));
        assert_eq!(summary(&[]), Summary::default());
        assert_eq!(summary(&[7.0]).ci95, 0.0);
    }

    #[test]
    fn interval_of_known_samples() {
        // Deviation 1.5811, t(4) 2.776: 2.776 * 1.5811 / sqrt(5).
        assert!((summary(&[1.0, 2.0, 3.0, 4.0, 5.0]).ci95 - 1.9629).abs() < 1e-3);
    }

    #[test]
    fn percentiles_at_the_ends() {
        let v: Vec<f64> = (0..=1000).map(f64::from).collect();
        assert_eq!(quantile(&v, 0.99), 990.0);
        assert_eq!(quantile(&v, 0.999), 999.0);
        assert_eq!(quantile(&v, 1.0), 1000.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn ratios_pair_samples_of_the_same_turn() {
        // A machine that slows down in the second half changes both, and the paired ratios not at all.
        let r = ratio(&[2.0, 2.0, 4.0, 4.0], &[1.0, 1.0, 2.0, 2.0]).unwrap();
        assert_eq!((r.value, r.low, r.high), (2.0, 2.0, 2.0));
        assert!(ratio(&[], &[1.0]).is_none());
        assert!((geometric(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
    }
}
