//! SQL text to tokens to AST and back to text.
//!
//! The whole grammar of SQLite 3.53 is accepted (documentation pages `lang_*` and `syntax`). Nothing here
//! knows which tables exist or what a name means; that is `plan::bind`.
#![forbid(unsafe_code)]

pub mod ast;
