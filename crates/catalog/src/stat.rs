//! Statistics (documentation page `fileformat2`, section 2.6).

/// Rows assumed in a table that was never analysed.
pub const DEFAULT_ROWS: f64 = 1_048_576.0;

/// How many rows share a prefix of an index's key.
#[derive(Clone, Debug, Default)]
pub struct IndexStat {
    /// `rows[0]`: entries; `rows[i]`: average number of entries equal in the first `i` fields.
    pub rows: Vec<f64>,
    /// From `sqlite_stat1`, not assumed.
    pub measured: bool,
    /// `unordered` was said in `sqlite_stat1`.
    pub unordered: bool,
    /// `noskipscan` was said.
    pub no_skip_scan: bool,
}

impl IndexStat {
    /// What is assumed without ANALYZE: an equality on the first field leaves 10 rows, each further field one
    /// less down to 5; all fields of a unique index, one row.
    pub fn assumed(fields: usize, unique: bool, partial: bool, table_rows: f64) -> IndexStat {
        let mut rows = vec![if partial { table_rows / 2.0 } else { table_rows }];
        for i in 0..fields {
            rows.push((10.0 - i as f64).max(5.0));
        }
        if unique && fields > 0 {
            rows[fields] = 1.0;
        }
        IndexStat { rows, ..IndexStat::default() }
    }

    /// From the text of `sqlite_stat1.stat`.
    pub fn parse(text: &str, fields: usize) -> Option<IndexStat> {
        let mut stat = IndexStat { measured: true, ..IndexStat::default() };
        for word in text.split(' ').filter(|w| !w.is_empty()) {
            if let Ok(n) = word.parse::<u64>() {
                stat.rows.push(n as f64);
            } else if word.starts_with("unordered") {
                stat.unordered = true;
            } else if word.starts_with("noskipscan") {
                stat.no_skip_scan = true;
            }
        }
        let last = *stat.rows.last()?;
        while stat.rows.len() < fields + 1 {
            stat.rows.push(last);
        }
        Some(stat)
    }
}
