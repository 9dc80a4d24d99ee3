use iolite_base::Result;
use iolite_value::Value;
use std::rc::Rc;

/// Something that yields rows to a program: the columnar engine, a PRAGMA, a statement that is carried out by nested SQL.
pub trait RowSource {
    /// Writes the next row into `out` and answers `true`, or answers `false` at the end.
    fn next(&mut self, out: &mut [Value]) -> Result<bool>;
}

/// Makes a row source each time the program is run.
#[derive(Clone)]
pub struct SourceFactory(pub Rc<dyn Fn() -> Result<Box<dyn RowSource>>>);
