use crate::Host;
use iolite_base::Result;
use iolite_value::Value;
use std::rc::Rc;

/// Something that yields rows to a program: the columnar engine, a PRAGMA, a statement that is carried out by nested SQL.
pub trait RowSource {
    /// Writes the next row into `out` and answers `true`, or answers `false` at the end.
    fn next(&mut self, out: &mut [Value]) -> Result<bool>;
}

/// A row source, or `None` where the program shall go on without it.
pub type Opened = Result<Option<Box<dyn RowSource>>>;

/// Makes a row source each time the program is run, from values that the program passes.
#[derive(Clone)]
#[allow(clippy::type_complexity)]
pub struct SourceFactory(pub Rc<dyn Fn(&dyn Host, &[Value]) -> Opened>);

impl std::fmt::Debug for SourceFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("row source")
    }
}
