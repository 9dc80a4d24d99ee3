//! The opcode table.

/// Bits of `p5`, by the opcodes that read them.
pub mod p5 {
    /// Comparisons: NULL equals NULL.
    pub const NULL_EQ: u16 = 0x80;
    /// Comparisons: jump if either side is NULL.
    pub const JUMP_IF_NULL: u16 = 0x10;
    /// Comparisons: the low bits hold the affinity's letter less `'@'`.
    pub const AFFINITY_MASK: u16 = 0x0f;
    /// `Column`: copy text and blobs out of the page (the program writes to this table).
    pub const COPY: u16 = 1;
    /// `Column`: only the value's type is looked at, and a blob's length: what lies on overflow pages need not be read for them.
    pub const SIZE: u16 = 2;
    /// `Column`: only the value's type is looked at; with `SIZE` a text's bytes are counted like those of a blob.
    pub const KIND: u16 = 4;
    /// `Column`, `Next`: the instruction that comes next (at `p2` of a `Next`) is a `Column` of the same cursor, and may
    /// be run without a look around.
    pub const THEN_COLUMN: u16 = 0x8000;
    /// `VColumn`: a pointer of the program is one, for a function or table of the user's; otherwise it is NULL.
    pub const PASSES: u16 = 1;
    /// `MakeRecord`, `PatchRecord`: the next `Insert` takes the record: the bytes of a large last value may be left to it.
    pub const FOR_INSERT: u16 = 1;
    /// `Insert`, `Delete`: count the row in `changes()`.
    pub const COUNT_CHANGE: u16 = 1;
    /// `Insert`: set `last_insert_rowid()`.
    pub const LAST_ROWID: u16 = 2;
    /// `Insert`, `IdxInsert`: beyond the last entry.
    pub const APPEND: u16 = 4;
    /// `Insert`, `IdxInsert`: the cursor was just sought for this very key.
    pub const USE_SEEK: u16 = 8;
    /// `Insert`: part of an UPDATE.
    pub const IS_UPDATE: u16 = 16;
    /// `Delete`: keep the position, the loop goes on.
    pub const SAVE_POSITION: u16 = 32;
    /// `Delete`: the next `Insert` writes over the row: who watches rows is told, and nothing else is done unless changes are
    /// announced.
    pub const WRITTEN_OVER: u16 = 64;
    /// `Halt`: rows refused only now were inserted for all that `last_insert_rowid()` knows.
    pub const WAS_INSERTED: u16 = 16;
    /// `IdxDelete`: a missing entry is corruption.
    pub const MUST_EXIST: u16 = 1;
    /// `IdxInsert`: the entry is a row of a WITHOUT ROWID table.
    pub const IS_ROW: u16 = 128;
    /// `IdxInsert`: the cursor stands at the entry that is written over, unless the tree has changed since.
    pub const AT_ENTRY: u16 = 32;
    /// `SorterInsert`, `SorterSort`: for an automatic index.
    pub const AUTO_INDEX: u16 = 64;
    /// `IdxInsert`: where there is an equal entry already, it stays.
    pub const KEEP: u16 = 2;
    /// `OpenWrite`: `p2` is a register that holds the root page.
    pub const ROOT_IN_REGISTER: u16 = 16;
    /// `ResultRow`: none. `Halt`: the kind of constraint, for the error's extended code.
    pub const NOT_NULL: u16 = 1;
    /// `Halt`: UNIQUE.
    pub const UNIQUE: u16 = 2;
    /// `Halt`: CHECK.
    pub const CHECK: u16 = 3;
    /// `Halt`: FOREIGN KEY.
    pub const FOREIGN_KEY: u16 = 4;
}

/// A line is an opcode: its name, `jump` if `p2` is an address, and what it does.
macro_rules! opcodes {
    (@is) => { false };
    (@is jump) => { true };
    ($($name:ident $($jump:ident)? $manual:literal;)*) => {
        /// An instruction's operation.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Opcode { $($name),* }

        impl Opcode {
            /// All opcodes in order.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$name),*];

            /// The name, as EXPLAIN prints it.
            pub fn name(self) -> &'static str {
                match self { $(Opcode::$name => stringify!($name)),* }
            }

            /// Whether `p2` is an address.
            pub const fn jumps(self) -> bool {
                match self { $(Opcode::$name => opcodes!(@is $($jump)?)),* }
            }

            /// What the instruction does with its operands.
            pub fn manual(self) -> &'static str {
                match self { $(Opcode::$name => $manual),* }
            }
        }
    };
}

opcodes! {
    Init jump "Jumps to p2, where a program's prologue (transactions, constants) stands.";
    Goto jump "Jumps to p2.";
    Gosub jump "Stores this address in r[p1] and jumps to p2.";
    Return "Jumps behind the Gosub whose address is in r[p1]. With p3 = 1, falls through if r[p1] is no address.";
    InitCoroutine jump "Stores p3 - 1 in r[p1] as the entry of a co-routine; jumps to p2 unless that is 0.";
    EndCoroutine "Jumps to the p2 of the Yield that called, and marks the co-routine in r[p1] as ended.";
    Yield jump "Swaps the program counter with r[p1]. A Yield that meets an ended co-routine jumps to p2.";
    Halt "Ends the program with result code p1, conflict action p2, message p4, constraint kind p5; p3 is a register with the message.";
    HaltIfNull "As Halt, if r[p3] is NULL.";
    Once jump "Falls through the first time in each run, jumps to p2 afterwards.";
    If jump "Jumps to p2 if r[p1] is true; if it is NULL, jumps if p3 is not 0.";
    IfNot jump "Jumps to p2 if r[p1] is false; if it is NULL, jumps if p3 is not 0.";
    IfPos jump "If the integer r[p1] is positive, subtracts p3 and jumps to p2.";
    PassRows jump "If the integer r[p3] is positive, passes over as many rows of cursor p1, of its present leaf at most, subtracts them and jumps to p2, where the next row is; with p5 backwards.";
    DecrJumpZero jump "Subtracts 1 from the integer r[p1] and jumps to p2 if the result is 0.";
    IsNull jump "Jumps to p2 if r[p1] is NULL.";
    NotNull jump "Jumps to p2 if r[p1] is not NULL.";
    IsTrue "r[p2] = truth of r[p1]; NULL counts as p3; the result is inverted if p4 is 1.";
    ZeroOrNull "r[p2] = NULL if r[p1] or r[p3] is NULL, else 0.";
    ClrSubtype "r[p1] loses its subtype.";
    ClrSubtypes jump "The p3 registers from p1 on lose their subtypes; jumps to p2 if none of them has one.";
    Jump jump "Jumps to p1, p2 or p3 after a Compare that found less, equal or greater.";
    Compare "Compares r[p1..] with r[p2..] over p3 registers by the key description p4, for the Jump that follows.";
    Explain "What follows works for line p1 of EXPLAIN QUERY PLAN, or a row of it begins, by p3. Does nothing.";
    Probe "Writes down for EXPLAIN ANALYZE that place p1, the next instruction, is reached.";
    Integer "r[p2] = p1.";
    Int64 "r[p2] = p4.";
    Real "r[p2] = p4.";
    String8 "r[p2] = text p4.";
    Blob "r[p2] = blob p4.";
    Null "r[p2..=p3] = NULL (only r[p2] if p3 is less).";
    GivenRow jump "Puts row number r[p1] of the rows p4, counted from 0, into the registers from p3 on, and counts r[p1] up; jumps to p2 behind the last.";
    Variable "r[p2] = parameter p1; a pointer of the program is NULL unless p3.";
    Copy "Copies p3 + 1 registers from p1 on to p2 on.";
    SCopy "r[p2] = r[p1].";
    Add "r[p3] = r[p2] + r[p1].";
    Subtract "r[p3] = r[p2] - r[p1].";
    Multiply "r[p3] = r[p2] * r[p1].";
    Divide "r[p3] = r[p2] / r[p1].";
    Remainder "r[p3] = r[p2] % r[p1].";
    Concat "r[p3] = r[p2] || r[p1].";
    BitAnd "r[p3] = r[p2] & r[p1].";
    BitOr "r[p3] = r[p2] | r[p1].";
    ShiftLeft "r[p3] = r[p2] << r[p1].";
    ShiftRight "r[p3] = r[p2] >> r[p1].";
    BitNot "r[p2] = ~ r[p1].";
    Not "r[p2] = NOT r[p1].";
    And "r[p3] = r[p1] AND r[p2].";
    Or "r[p3] = r[p1] OR r[p2].";
    MustBeInt jump "Makes r[p1] an integer; if that loses anything, jumps to p2, or fails if p2 is 0.";
    RealAffinity "Makes an integer r[p1] a real.";
    Cast "Casts r[p1] to the affinity with letter p2.";
    Affinity "Applies the affinities p4 to p2 registers from p1 on.";
    TypeCheck "Checks p2 registers from p1 on against the STRICT columns p4, converting where that is lossless.";
    Eq jump "Jumps to p2 if r[p3] = r[p1]; p4 is the collating sequence, p5 affinity and treatment of NULLs.";
    Ne jump "Jumps to p2 if r[p3] <> r[p1]; operands as Eq.";
    Lt jump "Jumps to p2 if r[p3] < r[p1]; operands as Eq.";
    Le jump "Jumps to p2 if r[p3] <= r[p1]; operands as Eq.";
    Gt jump "Jumps to p2 if r[p3] > r[p1]; operands as Eq.";
    Ge jump "Jumps to p2 if r[p3] >= r[p1]; operands as Eq.";
    Function "r[p3] = function p4 of the registers from p2 on; bits of p1 mark constant arguments.";
    AggStep "Feeds the registers from p2 on to the aggregate p4 with state r[p3]; sets r[p1] to whether that changed the result of a min or max, if p1 is not 0.";
    AggFinal "r[p1] = final value of the aggregate p4 with state r[p1].";
    OpenRead "Opens cursor p1 on root page p2 of database p3; p4 is the key description of an index, or a count of columns.";
    OpenWrite "As OpenRead, for writing.";
    ReopenIdx "As OpenRead, unless cursor p1 is already open on that root page.";
    OpenEphemeral "Opens cursor p1 on a new transient table with p2 columns, an index if p4 is a key description.";
    OpenAutoindex "As OpenEphemeral, for an automatic index.";
    OpenDup "Opens cursor p1 on the transient table of cursor p2.";
    OpenPseudo "Opens cursor p1 on one row: the record in r[p2] with p3 fields.";
    SorterOpen "Opens sorter p1 with the key description p4 and p2 columns; if r[p3] is a positive number, only that many smallest records are kept.";
    Close "Closes cursor p1.";
    NullRow "Makes cursor p1 stand on a row of NULLs.";
    DeferredSeek "Table cursor p3 will move to the row of index cursor p1's entry when a column not in the index is read: to the rowid at the entry's end; of a table without rowids, to the key in the fields that p4 lists.";
    FinishSeek "Does a seek that DeferredSeek on cursor p1 left undone.";
    SeekRowid jump "Moves cursor p1 to rowid r[p3]; jumps to p2 if there is none. r[p3] may be any value.";
    NotExists jump "Moves cursor p1 to the integer rowid r[p3]; jumps to p2 if there is none.";
    SeekGE jump "Moves cursor p1 to the first entry >= key (p4 fields from r[p3], a rowid for tables); jumps to p2 if there is none.";
    SeekGT jump "Moves cursor p1 to the first entry > key; operands as SeekGE.";
    SeekLE jump "Moves cursor p1 to the last entry <= key; operands as SeekGE.";
    SeekLT jump "Moves cursor p1 to the last entry < key; operands as SeekGE.";
    Found jump "Jumps to p2 if index p1 has an entry that begins with the p4 fields from r[p3] (one record in r[p3] if p4 is 0).";
    NotFound jump "Jumps to p2 if index p1 has no such entry; operands as Found.";
    NoConflict jump "As NotFound, and jumps if any of the fields is NULL.";
    Rewind jump "Moves cursor p1 to its first entry; jumps to p2 if there is none.";
    Last jump "Moves cursor p1 to its last entry; jumps to p2 if there is none.";
    Next jump "Moves cursor p1 on and jumps to p2; falls through at the end.";
    Prev jump "Moves cursor p1 back and jumps to p2; falls through at the start.";
    IdxGE jump "Jumps to p2 if index cursor p1's entry is >= the p4 fields from r[p3].";
    IdxGT jump "Jumps to p2 if index cursor p1's entry is > the p4 fields from r[p3].";
    IdxLE jump "Jumps to p2 if index cursor p1's entry is <= the p4 fields from r[p3].";
    IdxLT jump "Jumps to p2 if index cursor p1's entry is < the p4 fields from r[p3].";
    IdxRowid "r[p2] = the rowid at the end of index cursor p1's entry.";
    IdxInsert "Inserts the record r[p2] into index p1; its p4 fields also stand in the registers from p3 on.";
    IdxDelete "Deletes the entry with the p3 fields from r[p2] on from index p1.";
    Rowid "r[p2] = rowid of cursor p1.";
    Column "r[p3] = field p2 of cursor p1's row; p4 is the default where the record is shorter.";
    RowData "r[p2] = the whole record of cursor p1.";
    MakeRecord "r[p3] = record of p2 registers from p1 on, with affinities p4.";
    PatchRecord "r[p3] = the record of cursor p1 with the fields that p4 lists taken from registers from p2 on.";
    NewRowid "r[p2] = a rowid not in use in table p1, larger than all of sequence p3 if that is not 0.";
    AutoincMax "Raise sequence p1 to r[p2].";
    AutoincRead "r[p2] = the largest rowid of sequence p1.";
    Insert "Inserts the record r[p2] with rowid r[p3] into table p1; p4 names the table for hooks.";
    Delete "Deletes the row of cursor p1; p4 names the table for hooks, p3 is a register with the rowid.";
    FkCount "Adds r[p2] times p3 to the violations of foreign keys: the transaction's if p1 is 1, else the statement's.";
    FkIfZero jump "Jumps to p2 if there are no violations of foreign keys: of the transaction if p1 is 1; of the statement, or of the transaction where all are deferred, if it is 0; of the statement if it is 2.";
    FkIfDeferred jump "Jumps to p2 where PRAGMA defer_foreign_keys has all foreign keys deferred.";
    Trace "Tells who traces statements that one of a trigger begins, whose text is the comment p4.";
    ChangeCount "r[p2] = how many rows the program has changed.";
    ResetCount "Moves the count of changed rows into the statement's and starts anew.";
    Count "r[p2] = number of entries of cursor p1.";
    CountRun "Adds to r[p2] how many entries cursor p1 has from its own to the last one on its page that is <= the p4 fields from r[p3] (< if p5 is 1; none: all), and goes to that one. Of a table, r[p3] bounds the rowid.";
    Sequence "r[p2] = how many times this was run for cursor p1 before.";
    SorterSkip jump "Jumps to p2 unless a record whose p4 key fields are in the registers from p3 on would be among those that sorter p1 keeps.";
    SorterInsert "Adds the record r[p2] to sorter p1.";
    SorterSort jump "Sorts sorter p1 and stands on its first record; jumps to p2 if it is empty.";
    SorterNext jump "Moves sorter p1 on and jumps to p2; falls through at the end.";
    ResetSorter "Empties sorter p1.";
    SorterFill jump "Appends the records of sorter p1, from the present one on, to index p3 and jumps to p2; falls through at one whose first p4 fields are those of the record before, none of them NULL.";
    SorterData "r[p2] = record of sorter p1; pseudo cursor p3 then reads it.";
    CursorLock "Sub-programs may not write to the tree of cursor p1 until CursorUnlock.";
    CursorUnlock "Undoes the last CursorLock.";
    ResultRow "Yields p2 registers from p1 on as a result row.";
    HashOpen "Opens hash aggregation p1: p2 key registers by the key description p4, p3 slots of aggregate state per group; p5: a register that says how many of the first groups are wanted, if it is positive.";
    HashBeyond jump "Jumps to p2 if the key registers from p3 on come behind all groups of hash p1 that are wanted.";
    HashFind jump "Finds the group of the key registers from p3 on in hash p1, making it if it is new; jumps to p2 if it was there.";
    HashStep "Feeds the registers from p2 on to aggregate p4, state slot p3 of the present group of hash p1; p5: a register as p1 of AggStep.";
    HashStore "Stores r[p2] in slot p3 of the present group of hash p1.";
    HashSort jump "Orders the groups of hash p1 by key and stands on the first; jumps to p2 if there is none.";
    HashFirst jump "Stands on the first group of hash p1, in order of first appearance; jumps to p2 if there is none.";
    HashNext jump "Moves hash p1 to the next group and jumps to p2; falls through at the end.";
    HashKey "Copies the key of hash p1's present group to the registers from p2 on.";
    HashGroup "r[p2] = number of hash p1's present group, in order of first appearance.";
    HashSlot "r[p2] = slot p3 of hash p1's present group: the final value of aggregate p4, or the stored value.";
    FilterBegin "Makes an empty Bloom filter in r[p1] for p2 keys, as far as is known.";
    FilterAdd "Adds p4 registers from p3 on to the Bloom filter in r[p1].";
    WindowOpen "Opens cursor p1 on an empty list of rows for the windows p4. p2 > 0: one order serves all, and the rows are added in that of its p2 - 1 leading terms.";
    WindowOffsets "Takes the offsets of the frames of the list p1 from their registers.";
    WindowRow "Adds the p3 registers from p2 on as a row to the list p1.";
    WindowRun jump "Rows of the list p1 come out next: all of them (p3 = 1), or those added so far; jumps to p2 if these are too few yet.";
    WindowNext jump "Fetches the next row of the list p1, the functions' values behind it, into the registers from p3 on; jumps to p2 if there is none, or none yet.";
    QueueOpen "Opens cursor p1 on an empty queue of rows; with p4, one in the order of their first fields.";
    QueueAdd "Puts the record in r[p2] at the end of queue p1, or where it belongs, and takes it out of the register.";
    QueueTake jump "r[p3] = the first record of queue p1, which leaves it; jumps to p2 if there is none.";
    SetOpen "Opens cursor p1 on an empty set of rows by the key description p4; without it, empties the set.";
    SetAdd jump "Adds the registers from p3 on as a row to set p1; jumps to p2 if it was there.";
    SetMissing jump "Jumps to p2 if set p1 has no row of the registers from p3 on.";
    SetEmpty jump "Jumps to p2 if set p1 has no row.";
    FilterOpen "Opens cursor p1 on p2 empty sets of keys.";
    FilterRowid "Adds the rowid of cursor p3 to set p2 of cursor p1; p4 at most, as far as is known.";
    FilterRow jump "Jumps to p2 if a column of cursor p3's row is surely not in its set of cursor p1; p4: of each set the field, or -1 for the rowid.";
    Filter jump "Jumps to p2 if p4 registers from p3 on are surely not in the Bloom filter in r[p1]; not before there is one.";
    RowSetTest jump "Jumps to p2 if r[p3] is in the set in r[p1] from an earlier batch than p4; adds it otherwise.";
    OffsetLimit "r[p2] = r[p1] + r[p3], or -1 where r[p1] says there is no limit.";
    Fire jump "A call of the sub-program number p3 may follow: tells who traces statements of the trigger p4; jumps to p2 if it is running already and p5 is set; an error if programs are too deep in each other.";
    Program jump "Runs the sub-program number p3 with parameters in the registers from p1 on; p2: where RAISE(IGNORE) goes; p5: not if it is running already.";
    Param "r[p2] = register p1 of the calling program, counted from the first one it passed.";
    Transaction "Begins a read (p2 = 0) or write (1, 2: exclusive) transaction on database p1; checks that the schema is still p3 and generation p4.";
    ReadCookie "r[p2] = meta value p3 of database p1.";
    SetCookie "Meta value p2 of database p1 = p3.";
    CreateBtree "r[p2] = root page of a new tree in database p1: a table if p3 is 1, an index if 2.";
    Destroy "Drops the tree with root page p1 of database p3; r[p2] = the root page that moved into its place, or 0.";
    Clear "Empties the tree with root page p1 of database p2; adds the number of its entries to the count of changes if p3 is not 0; p4 is the table whose rows these are.";
    ParseSchema "Reads rows of the schema table of database p1 that satisfy p4 into the catalog; all of them if p4 is none.";
    DropTable "Removes table p4 of database p1 from the catalog.";
    DropIndex "Removes index p4 of database p1 from the catalog.";
    DropTrigger "Removes trigger p4 of database p1 from the catalog.";
    MoveRoot "In the catalog of database p1, root page r[p2] is now p3.";
    SqlExec "Runs the SQL text p4.";
    VBegin "The virtual table p4 joins the transaction: it is about to be written to.";
    VUpdate "Tells the virtual table p4 of a change by p2 registers from p3 on: the old key, the new key, the columns. p1 = 1: a row is inserted, whose rowid becomes last_insert_rowid(); 2: one is updated, and a register behind them has bits of the columns that stay; 0: deleted. p5: the number of the conflict policy, with 16 if the table heeds it.";
    VCreate "Has the module of the virtual table p4 of database p1 make it.";
    VDestroy "Has the module of the virtual table p4 of database p1 take away what it keeps.";
    VOpen "Opens cursor p1 on the virtual table p4.";
    VFilter jump "Starts cursor p1 with plan number and argument count in r[p3], r[p3 + 1], arguments behind, each bit of p5 an argument that is a VList; p4 is what its plan says beside the number; jumps to p2 if empty.";
    VList "Adds r[p1] to the list that r[p3] stands for in a VFilter; with p1 = 0, begins an empty one.";
    VColumn "r[p3] = column p2 of virtual cursor p1. If p4 is a register: for an UPDATE that does not assign it; where it need not be known, r[p3] is NULL and bit p2 of that register is set.";
    VNext jump "Moves virtual cursor p1 on and jumps to p2; falls through at the end.";
    VRowid "r[p2] = rowid of virtual cursor p1.";
    SourceOpen jump "Opens cursor p1 on the row source p4, which is given p5 registers from p3 on; jumps to p2 if it declines.";
    SourceNext jump "Fetches a row of source p1 into the registers from p3 on (p5 of them); jumps to p2 at the end.";
    IfNullRow jump "If cursor p1 stands on a row of NULLs, sets r[p3] to NULL and jumps to p2.";
}
