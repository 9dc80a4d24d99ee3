//! Aggregate and window functions of a program.

use super::connection::Connection;
use super::function::{FunctionContext, result};
use super::value_to::ToSql;
use iolite_base::Result;
use iolite_ext::{Context, FunctionFlags, Implementation};
use iolite_value::Value as Engine;
use std::marker::PhantomData;
use std::rc::Rc;

/// An aggregate function: `A` is the state of a group, `T` what it answers.
///
/// ```
/// use iolite::{Aggregate, Connection, FunctionContext, FunctionFlags, Result};
///
/// struct Product;
///
/// impl Aggregate<i64, Option<i64>> for Product {
///     fn init(&self) -> Result<i64> {
///         Ok(1)
///     }
///
///     fn step(&self, ctx: &mut FunctionContext<'_, '_>, acc: &mut i64) -> Result<()> {
///         *acc *= ctx.get::<i64>(0)?;
///         Ok(())
///     }
///
///     fn finalize(&self, acc: Option<i64>) -> Result<Option<i64>> {
///         Ok(acc)
///     }
/// }
///
/// let db = Connection::open_in_memory()?;
/// db.create_aggregate_function("product", 1, FunctionFlags::DETERMINISTIC, Product)?;
/// let p: i64 = db.query_row("SELECT product(column1) FROM (VALUES (2), (3), (7))", [], |row| row.get(0))?;
/// assert_eq!(p, 42);
/// let none: Option<i64> = db.query_row("SELECT product(1) WHERE 0", [], |row| row.get(0))?;
/// assert_eq!(none, None);
/// # Ok::<(), iolite::Error>(())
/// ```
pub trait Aggregate<A, T: ToSql> {
    /// The state of a group that has no row yet. Called with its first row.
    fn init(&self) -> Result<A>;
    /// Takes in one row.
    fn step(&self, ctx: &mut FunctionContext<'_, '_>, acc: &mut A) -> Result<()>;
    /// What the group comes to; `None` if it had no row.
    fn finalize(&self, acc: Option<A>) -> Result<T>;
}

/// An aggregate function that can be used with `OVER`.
///
/// ```
/// use iolite::{Aggregate, Connection, FunctionContext, FunctionFlags, Result, WindowAggregate};
///
/// struct Total;
///
/// impl Aggregate<i64, i64> for Total {
///     fn init(&self) -> Result<i64> {
///         Ok(0)
///     }
///
///     fn step(&self, ctx: &mut FunctionContext<'_, '_>, acc: &mut i64) -> Result<()> {
///         *acc += ctx.get::<i64>(0)?;
///         Ok(())
///     }
///
///     fn finalize(&self, acc: Option<i64>) -> Result<i64> {
///         Ok(acc.unwrap_or(0))
///     }
/// }
///
/// impl WindowAggregate<i64, i64> for Total {
///     fn value(&self, acc: Option<&mut i64>) -> Result<i64> {
///         Ok(acc.map_or(0, |n| *n))
///     }
///
///     fn inverse(&self, ctx: &mut FunctionContext<'_, '_>, acc: &mut i64) -> Result<()> {
///         *acc -= ctx.get::<i64>(0)?;
///         Ok(())
///     }
/// }
///
/// let db = Connection::open_in_memory()?;
/// db.create_window_function("total_of", 1, FunctionFlags::DETERMINISTIC, Total)?;
/// let mut s = db.prepare(
///     "SELECT total_of(column1) OVER (ORDER BY column1 ROWS 1 PRECEDING) FROM (VALUES (1), (2), (3))",
/// )?;
/// let sums: Vec<i64> = s.query_map([], |row| row.get(0))?.collect::<Result<_>>()?;
/// assert_eq!(sums, [1, 3, 5]);
/// # Ok::<(), iolite::Error>(())
/// ```
pub trait WindowAggregate<A, T: ToSql>: Aggregate<A, T> {
    /// What the rows of the frame come to; `None` if there was none.
    fn value(&self, acc: Option<&mut A>) -> Result<T>;
    /// Takes out the oldest row of the frame.
    fn inverse(&self, ctx: &mut FunctionContext<'_, '_>, acc: &mut A) -> Result<()>;
}

/// One group of an aggregate.
struct Group<D, A, T> {
    function: Rc<D>,
    acc: Option<A>,
    answer: PhantomData<T>,
}

impl<D, A, T> Group<D, A, T> {
    fn make(function: D) -> impl Fn() -> Group<D, A, T> {
        let function = Rc::new(function);
        move || Group { function: function.clone(), acc: None, answer: PhantomData }
    }
}

impl<A, T: ToSql, D: Aggregate<A, T>> Group<D, A, T> {
    fn take_in(&mut self, ctx: &mut Context<'_>, args: &[Engine]) -> Result<()> {
        let acc = match &mut self.acc {
            Some(acc) => acc,
            none => none.insert(self.function.init()?),
        };
        self.function.step(&mut FunctionContext::new(ctx, args), acc)
    }

    fn end(&mut self) -> Result<Engine> {
        result(&self.function.finalize(self.acc.take())?)
    }
}

impl<A, T: ToSql, D: Aggregate<A, T>> iolite_ext::Aggregate for Group<D, A, T> {
    fn step(&mut self, ctx: &mut Context<'_>, args: &[Engine]) -> Result<()> {
        self.take_in(ctx, args)
    }

    fn value(&mut self, _: &mut Context<'_>) -> Result<Engine> {
        self.end()
    }
}

/// One group, or frame, of a window function.
struct Frame<D, A, T>(Group<D, A, T>);

impl<A, T: ToSql, D: WindowAggregate<A, T>> iolite_ext::Aggregate for Frame<D, A, T> {
    fn step(&mut self, ctx: &mut Context<'_>, args: &[Engine]) -> Result<()> {
        self.0.take_in(ctx, args)
    }

    fn inverse(&mut self, ctx: &mut Context<'_>, args: &[Engine]) -> Result<()> {
        let Some(acc) = &mut self.0.acc else { return Ok(()) };
        self.0.function.inverse(&mut FunctionContext::new(ctx, args), acc)
    }

    fn value(&mut self, _: &mut Context<'_>) -> Result<Engine> {
        result(&self.0.function.value(self.0.acc.as_mut())?)
    }

    fn finish(&mut self, _: &mut Context<'_>) -> Result<Engine> {
        self.0.end()
    }
}

impl Connection {
    /// Makes an [`Aggregate`] a function. `args`: how many arguments it takes; -1: any number.
    ///
    /// ```
    /// # use iolite::{Aggregate, Connection, FunctionContext, FunctionFlags, Result};
    /// struct Longest;
    ///
    /// impl Aggregate<usize, i64> for Longest {
    ///     fn init(&self) -> Result<usize> {
    ///         Ok(0)
    ///     }
    ///
    ///     fn step(&self, ctx: &mut FunctionContext<'_, '_>, acc: &mut usize) -> Result<()> {
    ///         *acc = ctx.get::<String>(0)?.len().max(*acc);
    ///         Ok(())
    ///     }
    ///
    ///     fn finalize(&self, acc: Option<usize>) -> Result<i64> {
    ///         Ok(acc.unwrap_or(0) as i64)
    ///     }
    /// }
    ///
    /// let db = Connection::open_in_memory()?;
    /// db.create_aggregate_function("longest", 1, FunctionFlags::DETERMINISTIC, Longest)?;
    /// let n: i64 = db.query_row("SELECT longest(column1) FROM (VALUES ('a'), ('abc'))", [], |row| row.get(0))?;
    /// assert_eq!(n, 3);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn create_aggregate_function<A, T, D>(
        &self,
        name: &str,
        args: i32,
        flags: FunctionFlags,
        function: D,
    ) -> Result<()>
    where
        A: Send + 'static,
        T: ToSql + 'static,
        D: Aggregate<A, T> + Send + 'static,
    {
        let make = Group::make(function);
        self.register(name, args, flags, Implementation::Aggregate(Rc::new(move || Box::new(make()))))
    }

    /// Makes a [`WindowAggregate`] a function, which works without `OVER`, too.
    ///
    /// ```
    /// # use iolite::{Aggregate, Connection, FunctionContext, FunctionFlags, Result, WindowAggregate};
    /// struct Rows;
    ///
    /// impl Aggregate<i64, i64> for Rows {
    ///     fn init(&self) -> Result<i64> {
    ///         Ok(0)
    ///     }
    ///
    ///     fn step(&self, _: &mut FunctionContext<'_, '_>, acc: &mut i64) -> Result<()> {
    ///         *acc += 1;
    ///         Ok(())
    ///     }
    ///
    ///     fn finalize(&self, acc: Option<i64>) -> Result<i64> {
    ///         Ok(acc.unwrap_or(0))
    ///     }
    /// }
    ///
    /// impl WindowAggregate<i64, i64> for Rows {
    ///     fn value(&self, acc: Option<&mut i64>) -> Result<i64> {
    ///         Ok(acc.map(|n| *n).unwrap_or(0))
    ///     }
    ///
    ///     fn inverse(&self, _: &mut FunctionContext<'_, '_>, acc: &mut i64) -> Result<()> {
    ///         *acc -= 1;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let db = Connection::open_in_memory()?;
    /// db.create_window_function("rows", 0, FunctionFlags::DETERMINISTIC, Rows)?;
    /// let sql = "SELECT group_concat(n, '') FROM (SELECT rows() OVER (ROWS 1 PRECEDING) AS n FROM (VALUES (7), (8), (9)))";
    /// assert_eq!(db.query_row(sql, [], |row| row.get::<_, String>(0))?, "122");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn create_window_function<A, T, W>(
        &self,
        name: &str,
        args: i32,
        flags: FunctionFlags,
        function: W,
    ) -> Result<()>
    where
        A: Send + 'static,
        T: ToSql + 'static,
        W: WindowAggregate<A, T> + Send + 'static,
    {
        let make = Group::make(function);
        let imp = Implementation::Aggregate(Rc::new(move || Box::new(Frame(make()))));
        self.register(name, args, flags.and(FunctionFlags::WINDOW), imp)
    }
}
