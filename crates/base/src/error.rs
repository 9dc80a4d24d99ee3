//! Result codes (documentation page `rescode`) and the one error type.

use std::fmt;

/// What went wrong, or `Result`'s good side.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($name:ident = $n:literal, $text:literal;)*) => {
        /// A result code, primary or extended, with SQLite's number.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u32)]
        #[allow(missing_docs)]
        pub enum Code { $($name = $n),* }

        impl Code {
            /// SQLite's name for the code, such as `SQLITE_BUSY_SNAPSHOT`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => $text),* }
            }

            /// The code with the given number.
            pub fn from_number(n: u32) -> Option<Code> {
                match n { $($n => Some(Code::$name),)* _ => None }
            }
        }
    };
}

codes! {
    Ok = 0, "SQLITE_OK";
    Error = 1, "SQLITE_ERROR";
    Internal = 2, "SQLITE_INTERNAL";
    Perm = 3, "SQLITE_PERM";
    Abort = 4, "SQLITE_ABORT";
    Busy = 5, "SQLITE_BUSY";
    Locked = 6, "SQLITE_LOCKED";
    Nomem = 7, "SQLITE_NOMEM";
    Readonly = 8, "SQLITE_READONLY";
    Interrupt = 9, "SQLITE_INTERRUPT";
    Ioerr = 10, "SQLITE_IOERR";
    Corrupt = 11, "SQLITE_CORRUPT";
    Notfound = 12, "SQLITE_NOTFOUND";
    Full = 13, "SQLITE_FULL";
    Cantopen = 14, "SQLITE_CANTOPEN";
    Protocol = 15, "SQLITE_PROTOCOL";
    Empty = 16, "SQLITE_EMPTY";
    Schema = 17, "SQLITE_SCHEMA";
    Toobig = 18, "SQLITE_TOOBIG";
    Constraint = 19, "SQLITE_CONSTRAINT";
    Mismatch = 20, "SQLITE_MISMATCH";
    Misuse = 21, "SQLITE_MISUSE";
    Nolfs = 22, "SQLITE_NOLFS";
    Auth = 23, "SQLITE_AUTH";
    Format = 24, "SQLITE_FORMAT";
    Range = 25, "SQLITE_RANGE";
    Notadb = 26, "SQLITE_NOTADB";
    Notice = 27, "SQLITE_NOTICE";
    Warning = 28, "SQLITE_WARNING";
    Row = 100, "SQLITE_ROW";
    Done = 101, "SQLITE_DONE";
    OkLoadPermanently = 256, "SQLITE_OK_LOAD_PERMANENTLY";
    ErrorMissingCollseq = 257, "SQLITE_ERROR_MISSING_COLLSEQ";
    BusyRecovery = 261, "SQLITE_BUSY_RECOVERY";
    LockedSharedcache = 262, "SQLITE_LOCKED_SHAREDCACHE";
    ReadonlyRecovery = 264, "SQLITE_READONLY_RECOVERY";
    IoerrRead = 266, "SQLITE_IOERR_READ";
    CorruptVtab = 267, "SQLITE_CORRUPT_VTAB";
    CantopenNotempdir = 270, "SQLITE_CANTOPEN_NOTEMPDIR";
    ConstraintCheck = 275, "SQLITE_CONSTRAINT_CHECK";
    AuthUser = 279, "SQLITE_AUTH_USER";
    NoticeRecoverWal = 283, "SQLITE_NOTICE_RECOVER_WAL";
    WarningAutoindex = 284, "SQLITE_WARNING_AUTOINDEX";
    ErrorRetry = 513, "SQLITE_ERROR_RETRY";
    AbortRollback = 516, "SQLITE_ABORT_ROLLBACK";
    BusySnapshot = 517, "SQLITE_BUSY_SNAPSHOT";
    LockedVtab = 518, "SQLITE_LOCKED_VTAB";
    ReadonlyCantlock = 520, "SQLITE_READONLY_CANTLOCK";
    IoerrShortRead = 522, "SQLITE_IOERR_SHORT_READ";
    CorruptSequence = 523, "SQLITE_CORRUPT_SEQUENCE";
    CantopenIsdir = 526, "SQLITE_CANTOPEN_ISDIR";
    ConstraintCommithook = 531, "SQLITE_CONSTRAINT_COMMITHOOK";
    NoticeRecoverRollback = 539, "SQLITE_NOTICE_RECOVER_ROLLBACK";
    ErrorSnapshot = 769, "SQLITE_ERROR_SNAPSHOT";
    BusyTimeout = 773, "SQLITE_BUSY_TIMEOUT";
    ReadonlyRollback = 776, "SQLITE_READONLY_ROLLBACK";
    IoerrWrite = 778, "SQLITE_IOERR_WRITE";
    CorruptIndex = 779, "SQLITE_CORRUPT_INDEX";
    CantopenFullpath = 782, "SQLITE_CANTOPEN_FULLPATH";
    ConstraintForeignkey = 787, "SQLITE_CONSTRAINT_FOREIGNKEY";
    ReadonlyDbmoved = 1032, "SQLITE_READONLY_DBMOVED";
    IoerrFsync = 1034, "SQLITE_IOERR_FSYNC";
    CantopenConvpath = 1038, "SQLITE_CANTOPEN_CONVPATH";
    ConstraintFunction = 1043, "SQLITE_CONSTRAINT_FUNCTION";
    ReadonlyCantinit = 1288, "SQLITE_READONLY_CANTINIT";
    IoerrDirFsync = 1290, "SQLITE_IOERR_DIR_FSYNC";
    CantopenDirtywal = 1294, "SQLITE_CANTOPEN_DIRTYWAL";
    ConstraintNotnull = 1299, "SQLITE_CONSTRAINT_NOTNULL";
    ReadonlyDirectory = 1544, "SQLITE_READONLY_DIRECTORY";
    IoerrTruncate = 1546, "SQLITE_IOERR_TRUNCATE";
    CantopenSymlink = 1550, "SQLITE_CANTOPEN_SYMLINK";
    ConstraintPrimarykey = 1555, "SQLITE_CONSTRAINT_PRIMARYKEY";
    IoerrFstat = 1802, "SQLITE_IOERR_FSTAT";
    ConstraintTrigger = 1811, "SQLITE_CONSTRAINT_TRIGGER";
    IoerrUnlock = 2058, "SQLITE_IOERR_UNLOCK";
    ConstraintUnique = 2067, "SQLITE_CONSTRAINT_UNIQUE";
    IoerrRdlock = 2314, "SQLITE_IOERR_RDLOCK";
    ConstraintVtab = 2323, "SQLITE_CONSTRAINT_VTAB";
    IoerrDelete = 2570, "SQLITE_IOERR_DELETE";
    ConstraintRowid = 2579, "SQLITE_CONSTRAINT_ROWID";
    IoerrBlocked = 2826, "SQLITE_IOERR_BLOCKED";
    ConstraintPinned = 2835, "SQLITE_CONSTRAINT_PINNED";
    IoerrNomem = 3082, "SQLITE_IOERR_NOMEM";
    ConstraintDatatype = 3091, "SQLITE_CONSTRAINT_DATATYPE";
    IoerrAccess = 3338, "SQLITE_IOERR_ACCESS";
    IoerrCheckreservedlock = 3594, "SQLITE_IOERR_CHECKRESERVEDLOCK";
    IoerrLock = 3850, "SQLITE_IOERR_LOCK";
    IoerrClose = 4106, "SQLITE_IOERR_CLOSE";
    IoerrDirClose = 4362, "SQLITE_IOERR_DIR_CLOSE";
    IoerrShmopen = 4618, "SQLITE_IOERR_SHMOPEN";
    IoerrShmsize = 4874, "SQLITE_IOERR_SHMSIZE";
    IoerrShmlock = 5130, "SQLITE_IOERR_SHMLOCK";
    IoerrShmmap = 5386, "SQLITE_IOERR_SHMMAP";
    IoerrSeek = 5642, "SQLITE_IOERR_SEEK";
    IoerrDeleteNoent = 5898, "SQLITE_IOERR_DELETE_NOENT";
    IoerrMmap = 6154, "SQLITE_IOERR_MMAP";
    IoerrGettemppath = 6410, "SQLITE_IOERR_GETTEMPPATH";
    IoerrConvpath = 6666, "SQLITE_IOERR_CONVPATH";
    IoerrVnode = 6922, "SQLITE_IOERR_VNODE";
    IoerrAuth = 7178, "SQLITE_IOERR_AUTH";
    IoerrBeginAtomic = 7434, "SQLITE_IOERR_BEGIN_ATOMIC";
    IoerrCommitAtomic = 7690, "SQLITE_IOERR_COMMIT_ATOMIC";
    IoerrRollbackAtomic = 7946, "SQLITE_IOERR_ROLLBACK_ATOMIC";
    IoerrData = 8202, "SQLITE_IOERR_DATA";
    IoerrCorruptfs = 8458, "SQLITE_IOERR_CORRUPTFS";
}

impl Code {
    /// The number, as `sqlite3_extended_errcode` gives it.
    #[inline]
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The primary code: the low eight bits.
    pub fn primary(self) -> Code {
        Code::from_number(self as u32 & 0xff).unwrap_or(Code::Error)
    }

    /// The text of `sqlite3_errstr`.
    pub fn text(self) -> &'static str {
        match self {
            Code::AbortRollback => "abort due to ROLLBACK",
            Code::Row => "another row available",
            Code::Done => "no more rows available",
            _ => text_of(self as u32),
        }
    }
}

/// The text of a number by its low byte.
fn text_of(number: u32) -> &'static str {
    match number & 0xff {
        0 => "not an error",
        1 => "SQL logic error",
        3 => "access permission denied",
        4 => "query aborted",
        5 => "database is locked",
        6 => "database table is locked",
        7 => "out of memory",
        8 => "attempt to write a readonly database",
        9 => "interrupted",
        10 => "disk I/O error",
        11 => "database disk image is malformed",
        12 => "unknown operation",
        13 => "database or disk is full",
        14 => "unable to open database file",
        15 => "locking protocol",
        17 => "database schema has changed",
        18 => "string or blob too big",
        19 => "constraint failed",
        20 => "datatype mismatch",
        21 => "bad parameter or other API misuse",
        22 => "large file support is disabled",
        23 => "authorization denied",
        25 => "column index out of range",
        26 => "file is not a database",
        27 => "notification message",
        28 => "warning message",
        _ => "unknown error",
    }
}

/// An error: a result code, and where the code alone does not say enough, a message and the byte offset
/// into the SQL text where it was found.
///
/// Errors without detail cost no allocation: out-of-memory and busy are among them.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    code: Code,
    detail: Option<Box<Detail>>,
}

#[derive(Clone, PartialEq, Eq)]
struct Detail {
    message: String,
    offset: Option<u32>,
    /// A program's own number, which is no code.
    number: Option<u32>,
}

/// An offset that stands for none.
const NOWHERE: u32 = u32::MAX;

impl Error {
    /// An error with its own message.
    #[cold]
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, detail: Some(Box::new(Detail { message: message.into(), offset: None, number: None })) }
    }

    /// The error that a program names by a number, which need not be a code: then [`Error::number`] is that number, and the code what its
    /// low byte says, if that is an error.
    #[cold]
    pub fn numbered(number: u32, message: Option<String>) -> Error {
        if let Some(code) = Code::from_number(number) {
            return match message {
                Some(m) => Error::new(code, m),
                None => code.into(),
            };
        }
        let code = Code::from_number(number & 0xff).filter(|c| *c != Code::Ok).unwrap_or(Code::Error);
        let message = message.unwrap_or_else(|| text_of(number).into());
        Error { code, detail: Some(Box::new(Detail { message, offset: None, number: Some(number) })) }
    }

    /// An `SQLITE_ERROR` with this message: what every mistake in SQL becomes.
    #[cold]
    pub fn sql(message: impl Into<String>) -> Error {
        Error::new(Code::Error, message)
    }

    /// The same error with the byte offset of the offending token in the statement's text.
    pub fn at(mut self, offset: u32) -> Error {
        if let Some(d) = &mut self.detail {
            d.offset.get_or_insert(offset);
        }
        self
    }

    /// As [`Error::at`]; `None`: the error has no place in the text.
    pub fn at_place(self, offset: Option<u32>) -> Error {
        self.at(offset.unwrap_or(NOWHERE))
    }

    /// The same error, which has no place in the text, whoever would add one: SQLite tells none for it.
    pub fn nowhere(self) -> Error {
        self.at(NOWHERE)
    }

    /// The same error, of a text of which a part stands so many bytes further on in the statement's.
    pub fn moved_by(mut self, bytes: i64) -> Error {
        if let Some(offset) = self.detail.as_mut().and_then(|d| d.offset.as_mut())
            && *offset != NOWHERE
        {
            *offset = u32::try_from(i64::from(*offset) + bytes).unwrap_or(NOWHERE);
        }
        self
    }

    /// The same error without an offset: for text the user did not write in this statement.
    pub fn without_offset(mut self) -> Error {
        if let Some(d) = &mut self.detail {
            d.offset = None;
        }
        self
    }

    /// The extended result code.
    #[inline]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The number that a program is told: the code's, or its own ([`Error::numbered`]).
    pub fn number(&self) -> u32 {
        self.detail.as_ref().and_then(|d| d.number).unwrap_or(self.code.number())
    }

    /// The byte offset into the SQL text, if one is known (`sqlite3_error_offset`).
    pub fn offset(&self) -> Option<u32> {
        self.detail.as_ref().and_then(|d| d.offset).filter(|o| *o != NOWHERE)
    }

    /// The message: the error's own, or the text of its code.
    pub fn message(&self) -> &str {
        match &self.detail {
            Some(d) => &d.message,
            None => self.code.text(),
        }
    }

    /// Whether the message is the error's own.
    pub fn has_message(&self) -> bool {
        self.detail.is_some()
    }
}

impl From<Code> for Error {
    #[inline]
    fn from(code: Code) -> Error {
        Error { code, detail: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message())
    }
}

impl std::error::Error for Error {}
