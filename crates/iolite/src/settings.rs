//! The settings of a connection: one table of all of them.
//!
//! A line of the table is a setting: its name, what it means, its type and default, and who sets it: a pragma of the same or
//! another name, a switch of the C library, or the engine alone. Fields, defaults, readers, entries of pragmas and
//! switches follow from it. Read a setting by its method: one that nobody reads does not compile without a warning. Those that are
//! `remembered` are answered, change nothing, and have no reader.
//!
//! Pragmas that do more than set a flag are functions of `pragma/`, those of the kind `pragma` here set one and
//! prepare all statements anew where it changes. Settings of a file's pages (cache size, journal mode) belong to `Btree`.

use iolite_btree::{LeaseTerms, LockingMode};
use std::cell::Cell;
use std::sync::OnceLock;

/// `PRAGMA threads` asks for no more.
pub(crate) const MOST_THREADS: usize = 64;

/// As many threads as the machine runs at once. Asked once in a process: the answer is found in several files, and
/// programs that open a connection for each request would read them each time.
pub(crate) fn cores() -> i64 {
    static CORES: OnceLock<i64> = OnceLock::new();
    *CORES
        .get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS) as i64))
}

/// A pragma that sets a flag.
pub(crate) struct Flag {
    pub pragma: &'static str,
    /// One of SQLite's, which answers nothing when it is given a value.
    pub of_sqlite: bool,
    pub cell: fn(&Settings) -> &Cell<bool>,
}

/// `PRAGMA analytics`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Analytics {
    /// Never in columns.
    #[cfg_attr(not(feature = "columnar"), default)]
    Off,
    /// Where it is likely to pay.
    #[cfg_attr(feature = "columnar", default)]
    Auto,
    /// Wherever it is possible; reasons where it is not.
    Force,
}

impl Analytics {
    /// The word of the pragma.
    pub fn name(self) -> &'static str {
        match self {
            Analytics::Off => "off",
            Analytics::Auto => "auto",
            Analytics::Force => "force",
        }
    }
}

macro_rules! settings {
    (read { $($read:tt)* } remembered { $($remembered:tt)* }) => {
        settings! { @all $($read)* $($remembered)* }
        settings! { @readers $($read)* }
    };
    (@readers $(
        $(#[$attribute:meta])? $field:ident: $type:ty = $default:expr, $doc:literal
        $(, pragma $pragma:literal)? $(, own pragma $own:literal)? $(, switch $switch:ident)?;
    )*) => {
        impl Settings {
            $($(#[$attribute])? #[doc = $doc] #[inline] pub fn $field(&self) -> $type { self.$field.get() })*
        }
    };
    (@all $(
        $(#[$attribute:meta])? $field:ident: $type:ty = $default:expr, $doc:literal
        $(, pragma $pragma:literal)? $(, own pragma $own:literal)? $(, switch $switch:ident)?;
    )*) => {
        /// The settings of a connection.
        pub(crate) struct Settings {
            $(#[doc = $doc] pub $field: Cell<$type>,)*
        }

        impl Default for Settings {
            fn default() -> Settings {
                Settings { $($field: Cell::new($default),)* }
            }
        }

        /// The pragmas that set a flag and do no more.
        pub(crate) static FLAGS: &[Flag] = &[
            $($(Flag { pragma: $pragma, of_sqlite: true, cell: |s| &s.$field },)?)*
            $($(Flag { pragma: $own, of_sqlite: false, cell: |s| &s.$field },)?)*
        ];

        /// A switch of a connection, as the C library sets them.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Switch {
            $($(#[doc = $doc] $switch,)?)*
        }

        impl Settings {
            /// Where a switch is kept.
            pub fn switch(&self, which: Switch) -> &Cell<bool> {
                match which {
                    $($(Switch::$switch => &self.$field,)?)*
                }
            }
        }
    };
}

settings! {
    read {
        analysis_limit: i64 = 0, "The rows of an index that ANALYZE looks at; 0: all.";
        #[cfg_attr(not(feature = "columnar"), allow(dead_code))]
        analytics: Analytics = Analytics::Auto, "Which queries run in columns.";
        attach_create: bool = true, "ATTACH may make a file.", switch AttachCreate;
        attach_write: bool = true, "What ATTACH opens may be written to.", switch AttachWrite;
        autocheckpoint: u32 = 1000, "Frames of a log from which on a commit has it copied back; 0: never.";
        automatic_index: bool = true, "Joins may make an index for themselves.", pragma "automatic_index";
        busy_timeout: u32 = 0, "For how many milliseconds locks are waited for.";
        cache_spill: i64 = 1, "The pages from which on changed ones are written before the commit; 0: never.";
        checkpoint_thread: bool = true, "Checkpoints after a commit may be left to a thread.";
        #[cfg_attr(not(feature = "columnar"), allow(dead_code))]
        column_derivation: bool = true, "Columns of inner tables may be laid beside outer ones.", own pragma "column_derivation";
        comments: bool = true, "Texts that are prepared may have comments.", switch Comments;
        count_changes: bool = false, "INSERT, UPDATE and DELETE answer the number of rows.", pragma "count_changes";
        defensive: bool = false, "What SQL alone could spoil the file with is ignored: a writable schema, no journal, another schema version.", switch Defensive;
        double_quoted_definitions: bool = true, "Words in double quotes that name nothing are strings also where a schema is defined.", switch DoubleQuotedDefinitions;
        double_quoted_strings: bool = true, "Words in double quotes that name nothing are strings.", switch DoubleQuotedStrings;
        foreign_keys: bool = false, "Foreign keys are enforced.", switch ForeignKeys;
        full_column_names: bool = false, "Columns of results are named with their table.", pragma "full_column_names";
        ignore_checks: bool = false, "CHECK is not enforced.", pragma "ignore_check_constraints";
        key_actions: bool = true, "Foreign keys have their actions. Off while the engine rewrites a table.";
        large_value_direct: bool = false, "Large values may go to the file at once, in WAL mode.";
        legacy_alter_table: bool = false, "ALTER TABLE RENAME leaves what refers to the table as it is.", pragma "legacy_alter_table", switch LegacyAlterTable;
        legacy_format: bool = false, "New databases have the oldest schema format.", switch LegacyFormat;
        lock_lease: LeaseTerms = LeaseTerms::USUAL, "When read locks on a log are kept unused.";
        locking_mode: Option<LockingMode> = None, "The locking mode without the name of a database, if it was set.";
        lookahead_filters: bool = true, "Joins ask Bloom filters first.", own pragma "lookahead_filters";
        no_checkpoint_on_close: bool = false, "Closing the last connection leaves the log as it is.", switch NoCheckpointOnClose;
        query_only: bool = false, "Databases are not written to.", pragma "query_only";
        read_uncommitted: bool = false, "Reads take no table locks in a shared cache.", pragma "read_uncommitted";
        #[cfg_attr(not(feature = "columnar"), allow(dead_code))]
        real_digits: i32 = iolite_value::num::USUAL_DIGITS, "Significant digits of reals as texts. Who steps a statement sets them for its thread.";
        recursive_triggers: bool = false, "Triggers may fire themselves.", pragma "recursive_triggers";
        reset_database: bool = false, "VACUUM leaves an empty database.", switch ResetDatabase;
        reverse_unordered: bool = false, "SELECT without ORDER BY goes backward.", pragma "reverse_unordered_selects", switch ReverseUnordered;
        short_column_names: bool = true, "Columns of results are named without their table.", pragma "short_column_names";
        sort_memory: i64 = 64 << 20, "Bytes that a sorter holds before it writes to a temporary file.";
        temp_store: i64 = 0, "Where temporary tables lie: 1 in files, 2 in memory, 0 in files as compiled.";
        #[cfg_attr(not(feature = "columnar"), allow(dead_code))]
        threads: i64 = 0, "Threads of a query in columns beside its own.";
        trigger_plans: bool = false, "EXPLAIN QUERY PLAN tells what triggers do.", switch TriggerPlans;
        triggers: bool = true, "Triggers fire, those of the temp database in any case.", switch Triggers;
        trusted_schema: bool = true, "Schemas may call functions that are not innocuous.", pragma "trusted_schema", switch TrustedSchema;
        views: bool = true, "Views may be read, those of the temp database in any case.", switch Views;
        writable_schema: bool = false, "Schema tables may be written to.", switch WritableSchema;
    }
    remembered {
        cell_size_check: bool = false, "Cells of pages are always checked.", pragma "cell_size_check";
        checkpoint_fullfsync: bool = false, "Syncs of checkpoints, on macOS.", pragma "checkpoint_fullfsync";
        empty_result_callbacks: bool = false, "Callbacks without rows.", pragma "empty_result_callbacks";
        fts3_tokenizer: bool = false, "Pointers as values of `fts3_tokenizer()`.", switch Fts3Tokenizer;
        fullfsync: bool = false, "Syncs, on macOS.", pragma "fullfsync";
        scan_status: bool = true, "Counters of loops.", switch ScanStatus;
        stable_plans: bool = false, "The values of parameters do not change plans. They never do here.", switch StablePlans;
    }
}
