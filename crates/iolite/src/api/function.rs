//! Functions and collating sequences of a program.
//!
//! What always holds: a function sees its arguments where they are ([`ValueRef`]) and answers a copy, so no count of the engine's leaves the call;
//! what it keeps for later calls is its own.

use super::connection::Connection;
use super::value::ValueRef;
use super::value_from::FromSql;
use super::value_to::ToSql;
use iolite_base::{Code, Error, Result};
use iolite_ext::{Context, Function, FunctionFlags, Implementation, Scalar};
use iolite_value::{Collate, Value as Engine};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

/// What a function is called with.
///
/// ```
/// # use iolite::{Connection, FunctionFlags};
/// let db = Connection::open_in_memory()?;
/// db.create_scalar_function("describe", -1, FunctionFlags::DETERMINISTIC, |ctx| {
///     let first: Option<String> = ctx.get(0)?;
///     Ok(format!("{} arguments, the first is {first:?}", ctx.len()))
/// })?;
/// let text: String = db.query_row("SELECT describe('a', 2)", [], |row| row.get(0))?;
/// assert_eq!(text, "2 arguments, the first is Some(\"a\")");
/// # Ok::<(), iolite::Error>(())
/// ```
pub struct FunctionContext<'call, 'engine> {
    args: &'call [Engine],
    context: &'call mut Context<'engine>,
}

impl<'call, 'engine> FunctionContext<'call, 'engine> {
    pub(super) fn new(context: &'call mut Context<'engine>, args: &'call [Engine]) -> Self {
        FunctionContext { args, context }
    }

    /// How many arguments there are.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # use iolite::{FunctionFlags, ValueRef};
    /// db.create_scalar_function("f", -1, FunctionFlags::default(), |ctx| Ok(ctx.len() as i64))?;
    /// assert_eq!(db.query_row("SELECT f(5, 6)", [], |row| row.get::<_, i64>(0))?, 2);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// Whether there are none.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # use iolite::{FunctionFlags, ValueRef};
    /// db.create_scalar_function("f", -1, FunctionFlags::default(), |ctx| Ok(ctx.is_empty()))?;
    /// assert_eq!(db.query_row("SELECT f()", [], |row| row.get::<_, i64>(0))?, 1);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.args.is_empty()
    }

    /// An argument, counted from 0.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # use iolite::{FunctionFlags, ValueRef};
    /// db.create_scalar_function("f", -1, FunctionFlags::default(), |ctx| Ok(ctx.get::<i64>(0)? + ctx.get::<Option<i64>>(1)?.unwrap_or(0)))?;
    /// assert_eq!(db.query_row("SELECT f(5, NULL)", [], |row| row.get::<_, i64>(0))?, 5);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn get<T: FromSql>(&self, argument: usize) -> Result<T> {
        let v = self.args.get(argument).map(ValueRef::of);
        let v = v.ok_or_else(|| Error::new(Code::Range, format!("there is no argument {argument}")))?;
        T::column_result(v).map_err(|e| Error::new(Code::Mismatch, format!("argument {argument}: {e}")))
    }

    /// An argument where it is. Panics if it is not there.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # use iolite::{FunctionFlags, ValueRef};
    /// db.create_scalar_function("f", -1, FunctionFlags::default(), |ctx| Ok(ctx.get_raw(0) == ValueRef::Text(b"x")))?;
    /// assert_eq!(db.query_row("SELECT f('x')", [], |row| row.get::<_, i64>(0))?, 1);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn get_raw(&self, argument: usize) -> ValueRef<'_> {
        ValueRef::of(&self.args[argument])
    }

    /// What was made of an argument that stays the same for all rows, made anew where it may have changed.
    ///
    /// ```
    /// # use iolite::{Connection, FunctionFlags};
    /// let db = Connection::open_in_memory()?;
    /// db.create_scalar_function("count_of", 2, FunctionFlags::DETERMINISTIC, |ctx| {
    ///     let word = ctx.get_or_create_aux(0, |v| -> iolite::Result<_> { Ok(v.as_str().unwrap().to_uppercase()) })?;
    ///     Ok(ctx.get::<String>(1)?.matches(word.as_str()).count() as i64)
    /// })?;
    /// let n: i64 = db.query_row("SELECT sum(count_of('a', column1)) FROM (VALUES ('ABA'), ('A'))", [], |row| row.get(0))?;
    /// assert_eq!(n, 3);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn get_or_create_aux<T, E, F>(&mut self, argument: usize, make: F) -> Result<Arc<T>, E>
    where
        T: Send + Sync + 'static,
        F: FnOnce(ValueRef<'_>) -> Result<T, E>,
        E: From<Error>,
    {
        if let Some(kept) = self.context.aux.get::<Arc<T>>(argument as i32) {
            return Ok(Arc::clone(&kept));
        }
        let v = self.args.get(argument).map(ValueRef::of);
        let v = v.ok_or_else(|| Error::new(Code::Range, format!("there is no argument {argument}")))?;
        let made = Arc::new(make(v)?);
        self.context.aux.set(argument as i32, Rc::new(made.clone()));
        Ok(made)
    }
}

/// The result of a function as the engine has it.
pub(super) fn result<T: ToSql>(v: &T) -> Result<Engine> {
    let v = v.to_sql()?;
    let mut out = Engine::Null;
    v.get().store(&mut out)?;
    Ok(out)
}

/// A closure as a scalar function.
struct ScalarClosure<F>(F);

impl<T, F> Scalar for ScalarClosure<F>
where
    T: ToSql,
    F: Fn(&mut FunctionContext<'_, '_>) -> Result<T>,
{
    fn call(&self, ctx: &mut Context<'_>, args: &[Engine]) -> Result<Engine> {
        let answer = (self.0)(&mut FunctionContext::new(ctx, args))?;
        result(&answer)
    }
}

/// A closure as a collating sequence.
struct CollateClosure<F>(F);

impl<F: Fn(&[u8], &[u8]) -> Ordering> Collate for CollateClosure<F> {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.0)(a, b)
    }
}

impl Connection {
    /// Makes a closure a scalar function. `args`: how many arguments it takes; -1: any number.
    ///
    /// ```
    /// # use iolite::{Connection, FunctionFlags};
    /// let db = Connection::open_in_memory()?;
    /// db.create_scalar_function("halve", 1, FunctionFlags::DETERMINISTIC, |ctx| Ok(ctx.get::<f64>(0)? / 2.0))?;
    /// let half: f64 = db.query_row("SELECT halve(5)", [], |row| row.get(0))?;
    /// assert_eq!(half, 2.5);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    ///
    /// It moves with the connection, so it holds nothing that must stay on a thread:
    ///
    /// ```compile_fail,E0277
    /// let db = iolite::Connection::open_in_memory().unwrap();
    /// let count = std::rc::Rc::new(std::cell::Cell::new(0));
    /// db.create_scalar_function("next", 0, Default::default(), move |_| Ok(count.replace(count.get() + 1))).unwrap();
    /// ```
    pub fn create_scalar_function<T, F>(
        &self,
        name: &str,
        args: i32,
        flags: FunctionFlags,
        f: F,
    ) -> Result<()>
    where
        T: ToSql + 'static,
        F: Fn(&mut FunctionContext<'_, '_>) -> Result<T> + Send + 'static,
    {
        self.register(name, args, flags, Implementation::User(Rc::new(ScalarClosure(f))))
    }

    pub(super) fn register(
        &self,
        name: &str,
        args: i32,
        flags: FunctionFlags,
        imp: Implementation,
    ) -> Result<()> {
        // The longest name and the most arguments that SQL can call.
        if name.is_empty()
            || name.len() > 255
            || !(-1..=self.limit(crate::Limit::FunctionArg)).contains(&args)
        {
            return Err(Error::new(Code::Misuse, format!("no function can be {name}({args})")));
        }
        self.engine.create_function(Function { name: name.into(), args: args as i16, flags, imp });
        Ok(())
    }

    /// Removes a function.
    ///
    /// ```
    /// # use iolite::{Connection, FunctionFlags};
    /// let db = Connection::open_in_memory()?;
    /// db.create_scalar_function("one", 0, FunctionFlags::default(), |_| Ok(1))?;
    /// db.remove_function("one", 0)?;
    /// assert!(db.prepare("SELECT one()").is_err());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn remove_function(&self, name: &str, args: i32) -> Result<()> {
        self.engine.remove_function(name, args as i16);
        Ok(())
    }

    /// Makes a closure a collating sequence. It must be a total order.
    ///
    /// ```
    /// # use iolite::Connection;
    /// let db = Connection::open_in_memory()?;
    /// db.create_collation("by_length", |a, b| a.len().cmp(&b.len()))?;
    /// let first: String = db.query_row(
    ///     "SELECT column1 AS w FROM (VALUES ('aaa'), ('b')) ORDER BY w COLLATE by_length",
    ///     [],
    ///     |row| row.get(0),
    /// )?;
    /// assert_eq!(first, "b");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn create_collation<F>(&self, name: &str, compare: F) -> Result<()>
    where
        F: Fn(&str, &str) -> Ordering + Send + 'static,
    {
        let lossy = move |a: &[u8], b: &[u8]| match (std::str::from_utf8(a), std::str::from_utf8(b)) {
            (Ok(a), Ok(b)) => compare(a, b),
            _ => compare(&String::from_utf8_lossy(a), &String::from_utf8_lossy(b)),
        };
        self.engine.create_collation(name, Some(Rc::new(CollateClosure(lossy))));
        Ok(())
    }

    /// Removes a collating sequence.
    ///
    /// ```
    /// # use iolite::Connection;
    /// let db = Connection::open_in_memory()?;
    /// db.create_collation("none", |_, _| std::cmp::Ordering::Equal)?;
    /// db.remove_collation("none")?;
    /// assert!(db.prepare("SELECT 'a' = 'b' COLLATE none").is_err());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn remove_collation(&self, name: &str) -> Result<()> {
        self.engine.create_collation(name, None);
        Ok(())
    }
}
