//! The authorizer of a program: asked for each thing that a statement will do, when it is prepared.

use super::connection::Connection;
use super::statement::Statement;
use iolite_base::Result;
use std::cell::RefCell;
use std::rc::Rc;

/// What is to be allowed or refused.
///
/// ```
/// # use iolite::{AuthAction, AuthContext};
/// let c = AuthContext { action: AuthAction::Select, database_name: None, accessor: None };
/// assert_eq!(c.action, AuthAction::Select);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuthContext<'a> {
    /// What a statement would do.
    pub action: AuthAction<'a>,
    /// The database where it would do that, if that matters.
    pub database_name: Option<&'a str>,
    /// The innermost trigger or view that would do it.
    pub accessor: Option<&'a str>,
}

/// What the authorizer answers.
///
/// ```
/// # use iolite::Authorization;
/// assert_ne!(Authorization::Allow, Authorization::Deny);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Authorization {
    /// The statement may do so.
    Allow,
    /// The statement is refused (`SQLITE_AUTH`).
    Deny,
    /// The part in question is left out: a column read is NULL, one changed stays, a query has no rows, anything else is not done.
    Ignore,
}

/// What a statement would do.
///
/// ```
/// # use iolite::AuthAction;
/// let read = AuthAction::Read { table_name: "t", column_name: "a" };
/// assert!(matches!(read, AuthAction::Read { table_name: "t", .. }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum AuthAction<'a> {
    AlterTable {
        database_name: &'a str,
        table_name: &'a str,
    },
    Analyze {
        table_name: &'a str,
    },
    Attach {
        filename: &'a str,
    },
    CreateIndex {
        index_name: &'a str,
        table_name: &'a str,
    },
    CreateTable {
        table_name: &'a str,
    },
    CreateTempTable {
        table_name: &'a str,
    },
    CreateTempTrigger {
        trigger_name: &'a str,
        table_name: &'a str,
    },
    CreateTempView {
        view_name: &'a str,
    },
    CreateTrigger {
        trigger_name: &'a str,
        table_name: &'a str,
    },
    CreateView {
        view_name: &'a str,
    },
    CreateVtable {
        table_name: &'a str,
        module_name: &'a str,
    },
    Delete {
        table_name: &'a str,
    },
    Detach {
        database_name: &'a str,
    },
    DropIndex {
        index_name: &'a str,
    },
    DropTable {
        table_name: &'a str,
    },
    DropTrigger {
        trigger_name: &'a str,
    },
    DropView {
        view_name: &'a str,
    },
    Function {
        function_name: &'a str,
    },
    Insert {
        table_name: &'a str,
    },
    Pragma {
        pragma_name: &'a str,
        pragma_value: Option<&'a str>,
    },
    Read {
        table_name: &'a str,
        column_name: &'a str,
    },
    Reindex {
        index_name: &'a str,
    },
    /// `operation`: BEGIN, RELEASE or ROLLBACK.
    Savepoint {
        operation: &'a str,
        savepoint_name: &'a str,
    },
    Select,
    /// `operation`: BEGIN, COMMIT or ROLLBACK.
    Transaction {
        operation: &'a str,
    },
    Update {
        table_name: &'a str,
        column_name: &'a str,
    },
    /// One that has no name here, with SQLite's code for it.
    Unknown {
        code: i32,
        arg1: Option<&'a str>,
        arg2: Option<&'a str>,
    },
}

impl<'a> AuthAction<'a> {
    /// Reads SQLite's code and what goes with it (documentation page `c3ref/c_alter_table`).
    fn new(code: i32, arg1: Option<&'a str>, arg2: Option<&'a str>) -> AuthAction<'a> {
        use AuthAction::*;
        let (one, two) = (arg1.unwrap_or_default(), arg2.unwrap_or_default());
        match code {
            1 => CreateIndex { index_name: one, table_name: two },
            2 => CreateTable { table_name: one },
            4 => CreateTempTable { table_name: one },
            5 => CreateTempTrigger { trigger_name: one, table_name: two },
            6 => CreateTempView { view_name: one },
            7 => CreateTrigger { trigger_name: one, table_name: two },
            8 => CreateView { view_name: one },
            9 => Delete { table_name: one },
            10 => DropIndex { index_name: one },
            11 => DropTable { table_name: one },
            16 => DropTrigger { trigger_name: one },
            17 => DropView { view_name: one },
            18 => Insert { table_name: one },
            19 => Pragma { pragma_name: one, pragma_value: arg2 },
            20 => Read { table_name: one, column_name: two },
            21 => Select,
            22 => Transaction { operation: one },
            23 => Update { table_name: one, column_name: two },
            24 => Attach { filename: one },
            25 => Detach { database_name: one },
            26 => AlterTable { database_name: one, table_name: two },
            27 => Reindex { index_name: one },
            28 => Analyze { table_name: one },
            29 => CreateVtable { table_name: one, module_name: two },
            31 => Function { function_name: two },
            32 => Savepoint { operation: one, savepoint_name: two },
            _ => Unknown { code, arg1, arg2 },
        }
    }
}

/// A closure, as the engine asks it.
struct Closure<F>(RefCell<F>);

impl<F: FnMut(AuthContext<'_>) -> Authorization> iolite_ext::Authorizer for Closure<F> {
    fn ask(&self, q: iolite_ext::Question<'_>) -> i32 {
        let action = AuthAction::new(q.action as i32, q.one, q.two);
        // Asked while it runs, it cannot allow anything.
        let Ok(mut hook) = self.0.try_borrow_mut() else { return 1 };
        match hook(AuthContext { action, database_name: q.database, accessor: q.inner }) {
            Authorization::Allow => 0,
            Authorization::Deny => 1,
            Authorization::Ignore => 2,
        }
    }
}

impl Connection {
    /// Asks `hook` for each thing that a statement would do, when it is prepared or compiled anew, in the order and with the
    /// words of SQLite's `sqlite3_set_authorizer`.
    ///
    /// ```
    /// # use iolite::{AuthAction, AuthContext, Authorization, Code};
    /// let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE public(a); CREATE TABLE secret(a)")?;
    /// db.authorizer(Some(|c: AuthContext<'_>| match c.action {
    ///     AuthAction::Read { table_name: "secret", .. } | AuthAction::DropTable { .. } => Authorization::Deny,
    ///     _ => Authorization::Allow,
    /// }));
    /// db.prepare("SELECT a FROM public")?;
    /// let e = db.prepare("SELECT a FROM secret").err().unwrap();
    /// assert_eq!((e.code(), e.message()), (Code::Auth, "access to secret.a is prohibited"));
    /// assert!(db.execute_batch("DROP TABLE public").is_err());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn authorizer<F>(&self, hook: Option<F>)
    where
        F: FnMut(AuthContext<'_>) -> Authorization + Send + 'static,
    {
        self.engine.set_authorizer(
            hook.map(|f| Rc::new(Closure(RefCell::new(f))) as Rc<dyn iolite_ext::Authorizer>),
        );
    }

    /// Hands a prepared statement out.
    pub(super) fn allowed(&self, s: crate::engine::Statement) -> Result<Statement<'_>> {
        Ok(Statement::new(self, s))
    }
}
