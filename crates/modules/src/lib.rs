//! The small virtual tables that every connection has, each by the traits of `ext` alone: what they can do, a user's own
//! module can.
#![forbid(unsafe_code)]

mod json;
mod pragma;
mod rows;
mod series;

pub use pragma::PragmaTable;

use iolite_ext::Module;
use std::rc::Rc;

/// The names of the modules.
pub const NAMES: &[&str] = &["generate_series", "json_each", "json_tree", "jsonb_each", "jsonb_tree"];

/// The module of this name, in lower case.
pub fn named(name: &str) -> Option<Rc<dyn Module>> {
    Some(match name {
        "generate_series" => Rc::new(series::Series),
        "json_each" => Rc::new(json::JsonTable { deep: false, binary: false }),
        "json_tree" => Rc::new(json::JsonTable { deep: true, binary: false }),
        "jsonb_each" => Rc::new(json::JsonTable { deep: false, binary: true }),
        "jsonb_tree" => Rc::new(json::JsonTable { deep: true, binary: true }),
        _ => return None,
    })
}
