//! Two changes of one row as one.

use crate::change::{Change, Op};
use crate::record::{self, UNDEFINED, is_defined};

/// What `first` and `then` come to, if anything. Both are of the same row of the same table.
pub(crate) fn merge(first: Change, then: &Change) -> Option<Change> {
    use Op::{Delete, Insert, Update};
    let indirect = if first.indirect != 0 && then.indirect != 0 { first.indirect } else { 0 };
    let as_one = |op, old, new| Some(Change { table: first.table.clone(), op, indirect, old, new });
    match (first.op, then.op) {
        // These do not follow each other: the first one stands.
        (Insert | Update, Insert) | (Delete, Update | Delete) => Some(first),
        (Insert, Delete) => None,
        (Insert, Update) => as_one(Insert, Vec::new(), over(&then.new, &first.new)),
        (Update, Delete) => as_one(Delete, over(&first.old, &then.old), Vec::new()),
        (Update, Update) => {
            let (old, new) = update(&first, over(&first.old, &then.old), over(&then.new, &first.new))?;
            as_one(Update, old, new)
        }
        (Delete, Insert) => {
            let (old, new) = update(&first, first.old.clone(), then.new.clone())?;
            as_one(Update, old, new)
        }
    }
}

/// The fields of `top` where it has values, and otherwise those of `base`.
pub(crate) fn over(top: &[u8], base: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (a, b) in record::fields(top).zip(record::fields(base)) {
        out.extend_from_slice(if is_defined(a) { a } else { b });
    }
    out
}

/// The records of an UPDATE without the fields that stay as they are; `None` if all do. A patchset does not know.
fn update(of: &Change, old: Vec<u8>, new: Vec<u8>) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut changes = of.table.patchset;
    for (i, (a, b)) in record::fields(&old).zip(record::fields(&new)).enumerate() {
        let key = of.table.is_key(i);
        let changed = !key && (of.table.patchset || a != b);
        changes |= changed;
        left.extend_from_slice(if key || changed { a } else { UNDEFINED });
        right.extend_from_slice(if changed { b } else { UNDEFINED });
    }
    changes.then_some((left, right))
}
