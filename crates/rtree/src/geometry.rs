//! Regions of a program's own for `MATCH` (documentation page `rtree`, section 6).
//!
//! A region is a kind of SQL function: its value, at the right of `MATCH`, carries which function it is and with what arguments
//! it was called. A cursor finds the function by its number in a list of all that are there. What always holds: the list keeps
//! no function alive; SQL cannot make such a value but by the function.

use iolite_base::{Code, Result};
use iolite_ext::{Context, Function, FunctionFlags, Implementation, Scalar};
use iolite_value::{POINTER, Value};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, Weak};

/// How much of a box lies in a region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Within {
    /// Nothing.
    Not,
    /// Something, maybe.
    Partly,
    /// All of it.
    Fully,
}

/// A box that a query has come upon, and what the region says of it.
#[derive(Debug)]
pub struct Visit<'a> {
    /// The box: the smallest and the largest coordinate in turn.
    pub coordinates: &'a [f64],
    /// How many boxes wait, by their levels.
    pub queue: &'a [u32],
    /// The box's level; an entry has 0.
    pub level: u32,
    /// The root's level.
    pub top_level: u32,
    /// The rowid, of an entry.
    pub rowid: i64,
    /// What was said of the box around it.
    pub parent_within: Within,
    /// The score of the box around it.
    pub parent_score: f64,
    /// Answer: how much of it lies in the region. At first as of the box around it.
    pub within: Within,
    /// Answer: boxes with a smaller score are looked at first. At first as of the box around it.
    pub score: f64,
}

/// A region in one run of a query.
pub trait Region {
    /// Looks at a box.
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()>;
}

/// A kind of regions. It may be asked from another thread, as its connection may move there.
pub trait Geometry: Send + Sync {
    /// Whether it only says if anything of a box may lie in the region; boxes are looked at in depth first then.
    fn is_plain(&self) -> bool {
        false
    }
    /// The region for these arguments.
    fn region(&self, args: &[Value]) -> Result<Box<dyn Region>>;
}

/// What a value of a region begins with, behind the number. To C such values are pointers under this name.
const NAME: &[u8] = b"RtreeMatchArg";

/// The kinds that are there, by their numbers.
struct List {
    next: u64,
    kinds: BTreeMap<u64, Weak<dyn Geometry>>,
}

static LIST: Mutex<List> = Mutex::new(List { next: 1, kinds: BTreeMap::new() });

/// What the function is: it makes values of the region.
struct Maker {
    number: u64,
    _kind: Arc<dyn Geometry>,
}

impl Drop for Maker {
    fn drop(&mut self) {
        if let Ok(mut list) = LIST.lock() {
            list.kinds.remove(&self.number);
        }
    }
}

impl Scalar for Maker {
    fn call(&self, _: &mut Context<'_>, args: &[Value]) -> Result<Value> {
        let mut out = self.number.to_ne_bytes().to_vec();
        out.extend(NAME);
        for a in args {
            write(&mut out, a);
        }
        Ok(Value::blob(&out)?.with_subtype(POINTER))
    }
}

/// The SQL function that makes regions of a kind.
pub fn function(name: &str, kind: Arc<dyn Geometry>) -> Result<Function> {
    let mut list = LIST.lock().map_err(|_| Code::Internal)?;
    let number = list.next;
    list.next += 1;
    list.kinds.insert(number, Arc::downgrade(&kind));
    let imp = Implementation::User(Rc::new(Maker { number, _kind: kind }));
    Ok(Function { name: name.into(), args: -1, flags: FunctionFlags::default(), imp })
}

/// The region that a value stands for, and whether its kind is a plain one.
pub(crate) fn region(v: &Value) -> Result<(Box<dyn Region>, bool)> {
    let Value::Blob(b, POINTER) = v else { return Err(Code::Error.into()) };
    let found = b.split_first_chunk::<8>().and_then(|(n, rest)| Some((*n, rest.strip_prefix(NAME)?)));
    let Some((number, mut rest)) = found else { return Err(Code::Error.into()) };
    let kind = {
        let list = LIST.lock().map_err(|_| Code::Internal)?;
        list.kinds.get(&u64::from_ne_bytes(number)).and_then(Weak::upgrade)
    };
    let kind = kind.ok_or(Code::Error)?;
    let mut args = Vec::new();
    while let Some(v) = read(&mut rest)? {
        args.push(v);
    }
    Ok((kind.region(&args)?, kind.is_plain()))
}

/// Writes an argument: its class, its subtype, its length and bytes.
fn write(out: &mut Vec<u8>, v: &Value) {
    let (class, bytes) = match v {
        Value::Null => (0, Vec::new()),
        Value::Int(n) => (1, n.to_ne_bytes().to_vec()),
        Value::Real(r) => (2, r.to_ne_bytes().to_vec()),
        Value::Text(b, _) => (3, b.to_vec()),
        Value::Blob(b, _) => (4, b.to_vec()),
    };
    out.extend([class, v.subtype()]);
    out.extend(bytes.len().to_ne_bytes());
    out.extend(bytes);
}

/// Reads an argument; `None` at the end.
fn read(rest: &mut &[u8]) -> Result<Option<Value>> {
    let Some((&[class, subtype], after)) = rest.split_first_chunk::<2>() else { return Ok(None) };
    let Some((n, after)) = after.split_first_chunk::<{ size_of::<usize>() }>() else { return Ok(None) };
    let Some((bytes, after)) = after.split_at_checked(usize::from_ne_bytes(*n)) else { return Ok(None) };
    *rest = after;
    let eight = || bytes.first_chunk::<8>().copied().unwrap_or_default();
    let v = match class {
        1 => Value::Int(i64::from_ne_bytes(eight())),
        2 => Value::real(f64::from_ne_bytes(eight())),
        3 => Value::text(bytes)?,
        4 => Value::blob(bytes)?,
        _ => Value::Null,
    };
    Ok(Some(v.with_subtype(subtype)))
}
