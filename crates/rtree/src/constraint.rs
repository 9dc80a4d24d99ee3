//! The constraints of a walk: comparisons of one coordinate, and regions.
//!
//! In a plan's text a constraint is a letter and, as a digit, the coordinate. A comparison decides of an entry whether it is a
//! row, and of a box whether such an entry can be in it.

use crate::geometry::{self, Region};
use iolite_base::Result;
use iolite_ext::ConstraintOp;
use iolite_value::{Affinity, Value};

/// How a coordinate is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    AtMost,
    Less,
    AtLeast,
    Greater,
    Always,
    Never,
}

use Comparison::*;

/// A constraint with its value.
pub(crate) enum Constraint {
    Compared { how: Comparison, coordinate: usize, value: f64 },
    Region { region: Box<dyn Region>, plain: bool },
}

/// The letter of an operator that a walk can use, and whether the engine need not look again.
pub(crate) fn letter(op: ConstraintOp) -> Option<(char, bool)> {
    Some(match op {
        ConstraintOp::Eq => ('A', false),
        ConstraintOp::Le => ('B', true),
        ConstraintOp::Lt => ('C', false),
        ConstraintOp::Ge => ('D', true),
        ConstraintOp::Gt => ('E', false),
        ConstraintOp::Match => ('F', true),
        _ => return None,
    })
}

/// From here on an integer may not be the real next to it.
const EXACT: i64 = 1 << 48;

impl Constraint {
    /// The constraint that two characters of a plan's text and a value are.
    pub fn new(letter: u8, digit: u8, value: &Value) -> Result<Constraint> {
        let how = match letter {
            b'A' => Equal,
            b'B' => AtMost,
            b'C' => Less,
            b'D' => AtLeast,
            b'E' => Greater,
            _ => {
                let (region, plain) = geometry::region(value)?;
                return Ok(Constraint::Region { region, plain });
            }
        };
        let coordinate = digit.wrapping_sub(b'0') as usize;
        let mut v = value.clone();
        if let Value::Text(..) = v {
            Affinity::Numeric.apply(&mut v)?;
        }
        let (how, value) = match (&v, how) {
            (Value::Int(n), Less) if *n >= EXACT || *n <= -EXACT => (AtMost, *n as f64),
            (Value::Int(n), Greater) if *n >= EXACT || *n <= -EXACT => (AtLeast, *n as f64),
            (Value::Int(n), how) => (how, *n as f64),
            (Value::Real(r), how) => (how, *r),
            (Value::Null, _) => (Never, 0.0),
            // A number goes before every text.
            (_, Less | AtMost) => (Always, 0.0),
            _ => (Never, 0.0),
        };
        Ok(Constraint::Compared { how, coordinate, value })
    }

    /// A comparison of a coordinate with a number.
    pub fn compared(how: Comparison, coordinate: usize, value: f64) -> Constraint {
        Constraint::Compared { how, coordinate, value }
    }
}

impl Comparison {
    /// Whether an entry with this coordinate is a row.
    pub fn holds(self, coordinate: f64, value: f64) -> bool {
        match self {
            Equal => coordinate == value,
            AtMost => coordinate <= value,
            Less => coordinate < value,
            AtLeast => coordinate >= value,
            Greater => coordinate > value,
            Always => true,
            Never => false,
        }
    }

    /// Whether such an entry can be in a box that reaches from `low` to `high` in the coordinate's dimension.
    pub fn may_hold(self, low: f64, high: f64, value: f64) -> bool {
        match self {
            Equal => low <= value && high >= value,
            AtMost | Less => low <= value,
            AtLeast | Greater => high >= value,
            Always => true,
            Never => false,
        }
    }
}
