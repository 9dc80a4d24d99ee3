//! Token kinds and the keyword table.
//!
//! One entry per keyword: its kind, its spelling, and what it may stand for where the grammar has no use for
//! the keyword itself. Most of SQLite's keywords are such: `SELECT key, desc FROM offset` is good SQL.
//! Nothing here knows the grammar.

/// What a keyword may stand for where its own meaning does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// Reserved: never a name.
    No,
    /// A name everywhere.
    Id,
    /// A name of tables, columns and functions, but no bare alias: the words of joins.
    Join,
    /// `INDEXED`: as [`Fallback::Join`].
    Indexed,
}

macro_rules! tokens {
    ($($kw:ident $text:literal $fb:ident;)*) => {
        /// The kind of a token.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum T {
            $($kw,)*
            /// The end of the text.
            Eof,
            /// Something that is no token.
            Illegal,
            Id,
            Str,
            Int,
            Float,
            Blob,
            Var,
            Semi, LParen, RParen, Comma, Dot, Star, Plus, Minus, Slash, Percent,
            Eq, Ne, Lt, Le, Gt, Ge, Shl, Shr, Amp, Pipe, Concat, Tilde, Arrow, Arrow2,
        }

        /// Every keyword: spelling in capitals and in small letters, kind, fallback.
        const KEYWORDS: &[(&str, T, Fallback)] = &[$(($text, T::$kw, Fallback::$fb),)*];
    };
}

tokens! {
    Abort "ABORT" Id;
    Action "ACTION" Id;
    Add "ADD" No;
    After "AFTER" Id;
    All "ALL" No;
    Alter "ALTER" No;
    Always "ALWAYS" Id;
    Analyze "ANALYZE" Id;
    And "AND" No;
    As "AS" No;
    Asc "ASC" Id;
    Attach "ATTACH" Id;
    Autoincrement "AUTOINCREMENT" No;
    Before "BEFORE" Id;
    Begin "BEGIN" Id;
    Between "BETWEEN" No;
    By "BY" Id;
    Cascade "CASCADE" Id;
    Case "CASE" No;
    Cast "CAST" Id;
    Check "CHECK" No;
    Collate "COLLATE" No;
    Column "COLUMN" Id;
    Commit "COMMIT" No;
    Conflict "CONFLICT" Id;
    Constraint "CONSTRAINT" No;
    Create "CREATE" No;
    Cross "CROSS" Join;
    Current "CURRENT" Id;
    CurrentDate "CURRENT_DATE" Id;
    CurrentTime "CURRENT_TIME" Id;
    CurrentTimestamp "CURRENT_TIMESTAMP" Id;
    Database "DATABASE" Id;
    Default "DEFAULT" No;
    Deferrable "DEFERRABLE" No;
    Deferred "DEFERRED" Id;
    Delete "DELETE" No;
    Desc "DESC" Id;
    Detach "DETACH" Id;
    Distinct "DISTINCT" No;
    Do "DO" Id;
    Drop "DROP" No;
    Each "EACH" Id;
    Else "ELSE" No;
    End "END" Id;
    Escape "ESCAPE" No;
    Except "EXCEPT" No;
    Exclude "EXCLUDE" Id;
    Exclusive "EXCLUSIVE" Id;
    Exists "EXISTS" No;
    Explain "EXPLAIN" Id;
    Fail "FAIL" Id;
    Filter "FILTER" No;
    First "FIRST" Id;
    Following "FOLLOWING" Id;
    For "FOR" Id;
    Foreign "FOREIGN" No;
    From "FROM" No;
    Full "FULL" Join;
    Generated "GENERATED" Id;
    Glob "GLOB" Id;
    Group "GROUP" No;
    Groups "GROUPS" Id;
    Having "HAVING" No;
    If "IF" Id;
    Ignore "IGNORE" Id;
    Immediate "IMMEDIATE" Id;
    In "IN" No;
    Index "INDEX" No;
    Indexed "INDEXED" Indexed;
    Initially "INITIALLY" Id;
    Inner "INNER" Join;
    Insert "INSERT" No;
    Instead "INSTEAD" Id;
    Intersect "INTERSECT" No;
    Into "INTO" No;
    Is "IS" No;
    Isnull "ISNULL" No;
    Join "JOIN" No;
    Key "KEY" Id;
    Last "LAST" Id;
    Left "LEFT" Join;
    Like "LIKE" Id;
    Limit "LIMIT" No;
    Match "MATCH" Id;
    Materialized "MATERIALIZED" Id;
    Natural "NATURAL" Join;
    No "NO" Id;
    Not "NOT" No;
    Nothing "NOTHING" No;
    Notnull "NOTNULL" No;
    Null "NULL" No;
    Nulls "NULLS" Id;
    Of "OF" Id;
    Offset "OFFSET" Id;
    On "ON" No;
    Or "OR" No;
    Order "ORDER" No;
    Others "OTHERS" Id;
    Outer "OUTER" Join;
    Over "OVER" No;
    Partition "PARTITION" Id;
    Plan "PLAN" Id;
    Pragma "PRAGMA" Id;
    Preceding "PRECEDING" Id;
    Primary "PRIMARY" No;
    Query "QUERY" Id;
    Raise "RAISE" Id;
    Range "RANGE" Id;
    Recursive "RECURSIVE" Id;
    References "REFERENCES" No;
    Regexp "REGEXP" Id;
    Reindex "REINDEX" Id;
    Release "RELEASE" Id;
    Rename "RENAME" Id;
    Replace "REPLACE" Id;
    Restrict "RESTRICT" Id;
    Returning "RETURNING" No;
    Right "RIGHT" Join;
    Rollback "ROLLBACK" Id;
    Row "ROW" Id;
    Rows "ROWS" Id;
    Savepoint "SAVEPOINT" Id;
    Select "SELECT" No;
    Set "SET" No;
    Table "TABLE" No;
    Temp "TEMP" Id;
    Temporary "TEMPORARY" Id;
    Then "THEN" No;
    Ties "TIES" Id;
    To "TO" No;
    Transaction "TRANSACTION" No;
    Trigger "TRIGGER" Id;
    Unbounded "UNBOUNDED" Id;
    Union "UNION" No;
    Unique "UNIQUE" No;
    Update "UPDATE" No;
    Using "USING" No;
    Vacuum "VACUUM" Id;
    Values "VALUES" No;
    View "VIEW" Id;
    Virtual "VIRTUAL" Id;
    When "WHEN" No;
    Where "WHERE" No;
    Window "WINDOW" No;
    With "WITH" Id;
    Without "WITHOUT" Id;
}

/// Name classes of every token kind, as bits.
const IDS: u8 = 1;
const NM: u8 = 2;
const IDJ: u8 = 4;

const KINDS: usize = T::Arrow2 as usize + 1;

static CLASS: [u8; KINDS] = {
    let mut c = [0u8; KINDS];
    let mut i = 0;
    while i < KEYWORDS.len() {
        c[KEYWORDS[i].1 as usize] = match KEYWORDS[i].2 {
            Fallback::No => 0,
            Fallback::Id => IDS | NM | IDJ,
            Fallback::Join | Fallback::Indexed => NM | IDJ,
        };
        i += 1;
    }
    c[T::Id as usize] = IDS | NM | IDJ;
    c[T::Str as usize] = IDS | NM;
    c
};

impl T {
    /// A name or a string: what may be a bare alias or part of a type.
    #[inline(always)]
    pub fn is_ids(self) -> bool {
        CLASS[self as usize] & IDS != 0
    }

    /// What may name an object: identifiers, strings, words of joins, `INDEXED`.
    #[inline(always)]
    pub fn is_nm(self) -> bool {
        CLASS[self as usize] & NM != 0
    }

    /// As [`T::is_nm`] without strings: what may start a column reference or a function call.
    #[inline(always)]
    pub fn is_idj(self) -> bool {
        CLASS[self as usize] & IDJ != 0
    }
}

const SLOTS: usize = 512;

/// Letters to small letters; what else an identifier holds stays distinct from them.
#[inline(always)]
pub(crate) const fn fold(b: u8) -> u8 {
    b | 0x20
}

/// The packed form of a word: its last eight bytes, folded.
pub(crate) const fn pack_word(word: &[u8]) -> u64 {
    let mut packed = 0;
    let mut i = 0;
    while i < word.len() {
        packed = packed << 8 | fold(word[i]) as u64;
        i += 1;
    }
    packed
}

/// As [`pack_word`], for a word of `n` bytes, eight at the most, that `first` begins with.
#[inline(always)]
pub(crate) const fn pack_first(first: [u8; 8], n: usize) -> u64 {
    (u64::from_be_bytes(first) | u64::from_be_bytes([fold(0); 8])) >> (64 - 8 * n)
}

/// As [`pack_word`], for a word of `n` bytes, one at least, that `last` ends with.
#[inline(always)]
pub(crate) const fn pack_last(last: [u8; 8], n: usize) -> u64 {
    let folded = u64::from_be_bytes(last) | u64::from_be_bytes([fold(0); 8]);
    if n < 8 { folded & ((1 << (8 * n)) - 1) } else { folded }
}

#[inline(always)]
const fn hash(packed: u64) -> usize {
    (packed.wrapping_mul(MULTIPLIER) >> 55) as usize
}

/// Chosen by trial: 147 keywords then collide least (see the test below).
const MULTIPLIER: u64 = 0x02a1_834e_a214_64f5;

/// Index into `KEYWORDS` plus one, by hash; collisions go to the next slot.
static TABLE: [u8; SLOTS] = {
    let mut t = [0u8; SLOTS];
    let mut i = 0;
    while i < KEYWORDS.len() {
        let mut h = hash(pack_word(KEYWORDS[i].0.as_bytes()));
        while t[h] != 0 {
            h = (h + 1) % SLOTS;
        }
        t[h] = i as u8 + 1;
        i += 1;
    }
    t
};

/// Each keyword packed, with its length.
static PACKED: [(u64, u8, T); KEYWORDS.len()] = {
    let mut t = [(0, 0, T::Id); KEYWORDS.len()];
    let mut i = 0;
    while i < KEYWORDS.len() {
        let word = KEYWORDS[i].0.as_bytes();
        t[i] = (pack_word(word), word.len() as u8, KEYWORDS[i].1);
        i += 1;
    }
    t
};

/// The kind of `word`, whose packed form is known: a keyword's, or [`T::Id`].
#[inline(always)]
pub(crate) fn find(word: &[u8], packed: u64) -> T {
    let mut h = hash(packed);
    loop {
        let k = TABLE[h];
        if k == 0 {
            return T::Id;
        }
        let (known, len, kind) = PACKED[k as usize - 1];
        if known == packed && len as usize == word.len() && (len <= 8 || same(word, k as usize - 1)) {
            return kind;
        }
        h = (h + 1) % SLOTS;
    }
}

/// Compares a word of more than eight letters with keyword `i`.
#[inline(never)]
fn same(word: &[u8], i: usize) -> bool {
    word.eq_ignore_ascii_case(KEYWORDS[i].0.as_bytes())
}

/// The kind of the word: a keyword's, or [`T::Id`].
pub fn keyword(word: &[u8]) -> T {
    find(word, pack_word(word))
}

/// The number of keywords (`sqlite3_keyword_count`).
pub fn keyword_count() -> usize {
    KEYWORDS.len()
}

/// The keyword with the given number (`sqlite3_keyword_name`), in capitals.
pub fn keyword_name(i: usize) -> Option<&'static str> {
    KEYWORDS.get(i).map(|k| k.0)
}

/// Whether the word is a keyword (`sqlite3_keyword_check`).
pub fn is_keyword(word: &str) -> bool {
    keyword(word.as_bytes()) != T::Id
}

/// Whether the word must be quoted to be a name anywhere.
pub fn is_reserved(word: &str) -> bool {
    !matches!(keyword(word.as_bytes()), T::Window | T::Over | T::Filter)
        && CLASS[keyword(word.as_bytes()) as usize] & IDS == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_any_case_and_nothing_else_is() {
        for (text, kind, _) in KEYWORDS {
            assert_eq!(keyword(text.as_bytes()), *kind);
            assert_eq!(keyword(text.to_lowercase().as_bytes()), *kind);
            assert_eq!(keyword(format!("{text}x").as_bytes()), T::Id);
        }
        assert_eq!(keyword_count(), 147);
    }

    #[test]
    fn keywords_cost_few_probes() {
        let mut probes = 0;
        for (text, kind, _) in KEYWORDS {
            let mut h = hash(pack_word(text.as_bytes()));
            while KEYWORDS[TABLE[h] as usize - 1].1 != *kind {
                h = (h + 1) % SLOTS;
                probes += 1;
            }
        }
        assert!(probes < 10, "{probes} extra probes for all keywords");
    }
}
