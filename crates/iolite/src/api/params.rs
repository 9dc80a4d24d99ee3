//! Values for the parameters of a statement, by number or by name.

use super::statement::Statement;
use super::value_to::ToSql;
use iolite_base::{Code, Error, Result};

/// A list of parameters: none (`[]` or `()`), values by number (an array, a tuple, `&[&dyn ToSql]`, [`params!`](crate::params)), or
/// values by name (`&[(&str, T)]`, [`named_params!`](crate::named_params)).
///
/// By number, there must be as many as the statement has; by name, those that are not named stay as they are.
///
/// ```
/// use iolite::{Connection, named_params, params};
///
/// let db = Connection::open_in_memory()?;
/// let sum = |row: &iolite::Row<'_>| row.get::<_, i64>(0);
/// assert_eq!(db.query_row("SELECT 1", [], sum)?, 1);
/// assert_eq!(db.query_row("SELECT ?1 + ?2", [1, 2], sum)?, 3);
/// assert_eq!(db.query_row("SELECT ?1 + length(?2)", (1, "two"), sum)?, 4);
/// assert_eq!(db.query_row("SELECT ?1 + length(?2)", params![1, "two"], sum)?, 4);
/// assert_eq!(db.query_row("SELECT :a + $b", &[(":a", 1), ("$b", 2)], sum)?, 3);
/// assert_eq!(db.query_row("SELECT @a + length(:b)", named_params! {"@a": 1, ":b": "two"}, sum)?, 4);
///
/// assert!(db.query_row("SELECT ?1 + ?2", [1], sum).is_err());
/// assert!(db.query_row("SELECT ?1", named_params! {":missing": 1}, sum).is_err());
/// # Ok::<(), iolite::Error>(())
/// ```
pub trait Params: sealed::Sealed {
    /// Sets the parameters of a statement.
    #[doc(hidden)]
    fn bind_in(self, s: &mut Statement<'_>) -> Result<()>;
}

mod sealed {
    pub trait Sealed {}
}

fn by_number<T: ToSql>(s: &mut Statement<'_>, values: impl IntoIterator<Item = T>) -> Result<()> {
    let wanted = s.parameter_count();
    let mut given = 0;
    for v in values {
        given += 1;
        if given <= wanted {
            s.raw_bind_parameter(given, v)?;
        }
    }
    if given == wanted {
        return Ok(());
    }
    Err(Error::new(Code::Range, format!("the statement has {wanted} parameters, {given} were given")))
}

fn by_name<T: ToSql>(s: &mut Statement<'_>, values: &[(&str, T)]) -> Result<()> {
    for (name, v) in values {
        let at = s.parameter_index(name)?;
        let at =
            at.ok_or_else(|| Error::new(Code::Range, format!("the statement has no parameter {name}")))?;
        s.raw_bind_parameter(at, v)?;
    }
    Ok(())
}

macro_rules! params {
    ($([$($generic:tt)*] $t:ty => |$s:ident, $p:ident| $e:expr;)*) => {
        $(
            impl<$($generic)*> sealed::Sealed for $t {}
            impl<$($generic)*> Params for $t {
                fn bind_in(self, $s: &mut Statement<'_>) -> Result<()> {
                    let $p = self;
                    $e
                }
            }
        )*
    };
}

params! {
    [] () => |s, _p| by_number(s, [0i64; 0]);
    // The type of the elements of `[]` is not known otherwise.
    [] [&(dyn ToSql + Send + Sync); 0] => |s, _p| by_number(s, [0i64; 0]);
    [] &[&dyn ToSql] => |s, p| by_number(s, p);
    [T: ToSql] &[(&str, T)] => |s, p| by_name(s, p);
    [T: ToSql, const N: usize] &[(&str, T); N] => |s, p| by_name(s, p);
    [I: IntoIterator<Item: ToSql>] ParamsFromIter<I> => |s, p| by_number(s, p.0);
}

macro_rules! arrays {
    ($($n:literal)*) => {
        params! {$(
            [T: ToSql] [T; $n] => |s, p| by_number(s, p);
            [T: ToSql + ?Sized] &[&T; $n] => |s, p| by_number(s, p);
        )*}
    };
}

arrays!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);

macro_rules! tuples {
    ($($t:ident $v:ident),*) => {
        params! { [$($t: ToSql),*] ($($t,)*) => |s, p| {
            let ($($v,)*) = p;
            by_number::<&dyn ToSql>(s, [$(&$v as &dyn ToSql),*])
        }; }
    };
}

tuples!(A a);
tuples!(A a, B b);
tuples!(A a, B b, C c);
tuples!(A a, B b, C c, D d);
tuples!(A a, B b, C c, D d, E e);
tuples!(A a, B b, C c, D d, E e, F f);
tuples!(A a, B b, C c, D d, E e, F f, G g);
tuples!(A a, B b, C c, D d, E e, F f, G g, H h);

/// Parameters from an iterator: see [`params_from_iter`].
///
/// ```
/// let p: iolite::ParamsFromIter<Vec<i64>> = iolite::params_from_iter(vec![1]);
/// # let _ = p;
/// ```
#[derive(Clone, Debug)]
pub struct ParamsFromIter<I>(I);

/// Parameters by number, as many as an iterator gives.
///
/// ```
/// use iolite::{Connection, params_from_iter};
///
/// let db = Connection::open_in_memory()?;
/// let ids = vec![1, 2, 3];
/// let places = vec!["?"; ids.len()].join(",");
/// let found: i64 = db.query_row(&format!("SELECT 2 IN ({places})"), params_from_iter(ids), |row| row.get(0))?;
/// assert_eq!(found, 1);
/// # Ok::<(), iolite::Error>(())
/// ```
pub fn params_from_iter<I: IntoIterator<Item: ToSql>>(values: I) -> ParamsFromIter<I> {
    ParamsFromIter(values)
}

/// A list of values of different types, for parameters by number.
///
/// ```
/// # use iolite::{Connection, params};
/// let db = Connection::open_in_memory()?;
/// db.execute("CREATE TABLE t(a, b)", params![])?;
/// db.execute("INSERT INTO t VALUES (?1, ?2)", params![1, "one"])?;
/// # Ok::<(), iolite::Error>(())
/// ```
#[macro_export]
macro_rules! params {
    () => {
        &[] as &[&dyn $crate::ToSql]
    };
    ($($value:expr),+ $(,)?) => {
        &[$(&$value as &dyn $crate::ToSql),+] as &[&dyn $crate::ToSql]
    };
}

/// A list of values of different types, for parameters by name.
///
/// ```
/// # use iolite::{Connection, named_params};
/// let db = Connection::open_in_memory()?;
/// db.execute("CREATE TABLE t(a, b)", [])?;
/// db.execute("INSERT INTO t VALUES (:a, :b)", named_params! {":a": 1, ":b": "one"})?;
/// # Ok::<(), iolite::Error>(())
/// ```
#[macro_export]
macro_rules! named_params {
    () => {
        &[] as &[(&str, &dyn $crate::ToSql)]
    };
    ($($name:literal : $value:expr),+ $(,)?) => {
        &[$(($name, &$value as &dyn $crate::ToSql)),+] as &[(&str, &dyn $crate::ToSql)]
    };
}
