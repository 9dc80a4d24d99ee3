//! Window functions. The compiler gives each code of its own, so that none needs a state here.

use crate::entry::{Code, Entry};
use iolite_ext::Inline;

const fn window(name: &'static str, args: i16, what: Inline) -> Entry {
    Entry { name, args, flags: crate::WINDOW_ONLY, code: Code::Inline(what), examples: &[] }
}

/// The table.
pub(crate) const TABLE: &[Entry] = &[
    window("row_number", 0, Inline::RowNumber),
    window("rank", 0, Inline::Rank),
    window("dense_rank", 0, Inline::DenseRank),
    window("percent_rank", 0, Inline::PercentRank),
    window("cume_dist", 0, Inline::CumeDist),
    window("ntile", 1, Inline::Ntile),
    window("lag", 1, Inline::Lag),
    window("lag", 2, Inline::Lag),
    window("lag", 3, Inline::Lag),
    window("lead", 1, Inline::Lead),
    window("lead", 2, Inline::Lead),
    window("lead", 3, Inline::Lead),
    window("first_value", 1, Inline::FirstValue),
    window("last_value", 1, Inline::LastValue),
    window("nth_value", 2, Inline::NthValue),
];
