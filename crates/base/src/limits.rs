//! Run-time limits (documentation page `limits`, `c3ref/limit`).

/// The limits that `sqlite3_limit` knows, by their numbers there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Limit {
    Length = 0,
    SqlLength = 1,
    Column = 2,
    ExprDepth = 3,
    CompoundSelect = 4,
    VdbeOp = 5,
    FunctionArg = 6,
    Attached = 7,
    LikePatternLength = 8,
    VariableNumber = 9,
    TriggerDepth = 10,
    WorkerThreads = 11,
    ParserDepth = 12,
}

const N: usize = 13;

/// The hard upper bounds: SQLite's defaults at compile time, and of parameters as many as in the builds of distributions.
pub const HARD: [i32; N] =
    [1_000_000_000, 1_000_000_000, 2000, 1000, 500, 250_000_000, 1000, 10, 50_000, 250_000, 1000, 8, 2500];

/// One connection's limits.
#[derive(Clone, Debug)]
pub struct Limits([i32; N]);

impl Default for Limits {
    fn default() -> Limits {
        let mut l = HARD;
        l[Limit::WorkerThreads as usize] = 0;
        Limits(l)
    }
}

impl Limits {
    /// The present value.
    #[inline]
    pub fn get(&self, which: Limit) -> i32 {
        self.0[which as usize]
    }

    /// Sets a limit, cut to its hard bound; a negative value only asks. Returns the former value.
    pub fn set(&mut self, which: Limit, value: i32) -> i32 {
        let i = which as usize;
        let old = self.0[i];
        if value >= 0 {
            // A value of a few bytes is needed even for messages.
            let least = if which == Limit::Length { 30 } else { 0 };
            self.0[i] = value.clamp(least, HARD[i]);
        }
        old
    }
}
