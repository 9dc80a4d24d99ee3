//! Who is asked, while a statement is compiled, for each thing that it will do.

/// What is asked for: the numbers of `sqlite3_set_authorizer`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum Action {
    CreateIndex = 1,
    CreateTable = 2,
    CreateTempIndex = 3,
    CreateTempTable = 4,
    CreateTempTrigger = 5,
    CreateTempView = 6,
    CreateTrigger = 7,
    CreateView = 8,
    Delete = 9,
    DropIndex = 10,
    DropTable = 11,
    DropTempIndex = 12,
    DropTempTable = 13,
    DropTempTrigger = 14,
    DropTempView = 15,
    DropTrigger = 16,
    DropView = 17,
    Insert = 18,
    Pragma = 19,
    Read = 20,
    Select = 21,
    Transaction = 22,
    Update = 23,
    Attach = 24,
    Detach = 25,
    AlterTable = 26,
    Reindex = 27,
    Analyze = 28,
    CreateVtable = 29,
    DropVtable = 30,
    Function = 31,
    Savepoint = 32,
    Recursive = 33,
}

/// One question.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What is to be done.
    pub action: Action,
    /// What it is about; the page c3ref/c_alter_table says what stands where.
    pub one: Option<&'a str>,
    /// As above.
    pub two: Option<&'a str>,
    /// The database.
    pub database: Option<&'a str>,
    /// The innermost trigger or view that wants it.
    pub inner: Option<&'a str>,
}

/// The authorizer. It may use the connection otherwise, but not change it.
pub trait Authorizer {
    /// 0: granted; 1: the statement is refused; 2: this part of it is left out; anything else is a mistake of the authorizer's.
    fn ask(&self, q: Question<'_>) -> i32;
}
