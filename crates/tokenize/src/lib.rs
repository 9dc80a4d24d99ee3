//! What the tokenizers of the full-text modules share: characters and their categories, folding, cutting by categories, Porter's
//! stems.
//!
//! It knows neither the options of any module nor what an index is.
#![forbid(unsafe_code)]

mod chars;
mod cut;
mod stem;
mod unicode_tables;

pub use chars::{Diacritics, char_count, fold, is_mark, push, read};
pub use cut::Cut;
pub use stem::stem;
pub use unicode_tables::{CATEGORY_NAMES, UNASSIGNED};
