//! SQL text to tokens to AST and back to text.
//!
//! The whole grammar of SQLite 3.53 is accepted (documentation pages `lang_*` and `syntax`). Nothing here
//! knows which tables exist or what a name means; that is `plan::bind`.
#![forbid(unsafe_code)]

pub mod ast;
mod complete;
pub mod lexer;
mod lifted;
mod normalize;
mod parser;
pub mod print;
pub mod token;
pub mod walk;

pub use complete::{complete, first_end};
pub use lexer::{first_comment, semicolon};
pub use lifted::{Lifted, lifted};
pub use normalize::normalized;
pub use parser::{parse_expr, parse_next, parse_stmt, watch_stack};
pub use token::{is_keyword, is_reserved, keyword_count, keyword_name};
