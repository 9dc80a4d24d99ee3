//! The arguments of table-valued functions: hidden columns that a query says to be equal to something.

use iolite_base::{Code, Error, Result};
use iolite_ext::{ConstraintOp, IndexInfo};

/// Has the hidden columns from `first` on passed in their order; `required` of them have to be there, `most` may. The plan's number
/// says as bits which are.
pub(crate) fn take(info: &mut IndexInfo, first: i32, required: usize, most: usize) -> Result<()> {
    let (mut passed, mut plan) = (0, 0);
    for k in 0..most {
        let column = first + k as i32;
        let says = |c: &iolite_ext::Constraint| c.column == column && c.op == ConstraintOp::Eq;
        let found = info.constraints.iter().position(|c| says(c) && c.usable);
        match found {
            Some(i) => {
                passed += 1;
                (info.usage[i].arg, info.usage[i].omit) = (passed, true);
                plan |= 1 << k;
            }
            None if k < required || info.constraints.iter().any(says) => {
                return Err(Error::from(Code::Constraint));
            }
            None => {}
        }
    }
    info.index_num = plan;
    Ok(())
}
