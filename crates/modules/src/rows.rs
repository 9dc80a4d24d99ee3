//! What table-valued functions share: which of their arguments are there, and rows that are all known at once.

use iolite_base::{Code, Error, Result};
use iolite_ext::{ConstraintOp, FilterArgs, IndexInfo, VirtualCursor};
use iolite_value::Value;

/// Takes the arguments of a function, which are equalities on the hidden columns from `first` on, `count` of them: those that
/// are there are passed in their order, and bit `k` of the answer says that argument `k` is. An argument whose value is not
/// known yet makes the plan one that cannot be: `SQLITE_CONSTRAINT`.
pub(crate) fn take_arguments(info: &mut IndexInfo, first: usize, count: usize) -> Result<i32> {
    let mut given = 0;
    let mut passed = 0;
    for k in 0..count {
        let is = |c: &iolite_ext::Constraint| c.column == (first + k) as i32 && c.op == ConstraintOp::Eq;
        let Some(any) = info.constraints.iter().position(is) else { continue };
        let Some(at) = info.constraints.iter().position(|c| is(c) && c.usable) else {
            return Err(Error::new(
                Code::Constraint,
                format!("the value of argument {} is not known", any + 1),
            ));
        };
        passed += 1;
        info.usage[at].arg = passed;
        info.usage[at].omit = true;
        given |= 1 << k;
    }
    Ok(given)
}

/// The arguments by their places.
pub(crate) fn arguments<const N: usize>(given: i32, args: &[Value]) -> [Option<&Value>; N] {
    let mut list = args.iter();
    std::array::from_fn(|k| if given & 1 << k != 0 { list.next() } else { None })
}

/// A cursor over rows that are all there when the scan starts; columns that a row has not are NULL.
pub(crate) struct Listed<F> {
    fetch: F,
    rows: Vec<Vec<Value>>,
    at: usize,
}

impl<F: Fn(i32, &[Value]) -> Result<Vec<Vec<Value>>>> Listed<F> {
    /// A cursor whose rows `fetch` answers, given the plan's number and its arguments.
    pub fn new(fetch: F) -> Listed<F> {
        Listed { fetch, rows: Vec::new(), at: 0 }
    }
}

impl<F: Fn(i32, &[Value]) -> Result<Vec<Vec<Value>>>> VirtualCursor for Listed<F> {
    fn filter(&mut self, index_num: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        self.rows = (self.fetch)(index_num, args)?;
        self.at = 0;
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.rows.len()
    }

    fn column(&self, n: usize) -> Result<Value> {
        Ok(self.rows.get(self.at).and_then(|r| r.get(n)).cloned().unwrap_or(Value::Null))
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.at as i64 + 1)
    }
}
