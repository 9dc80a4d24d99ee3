//! Goes through a changeset, change by change.

use crate::change::{Change, Op, Table};
use crate::corrupt;
use crate::input::Input;
use crate::record::{self, UNDEFINED, field_len};
use iolite_base::{Error, Result, raw_text, varint};
use std::rc::Rc;

/// The most columns that a table of a changeset may have.
const MAX_COLUMNS: u64 = 65536;

/// A place in a changeset.
pub struct Reader<'a> {
    input: Input<'a>,
    invert: bool,
    /// UPDATEs that give no column a value are passed over.
    pub(crate) skips_empty: bool,
    table: Option<Rc<Table>>,
    now: Option<Rc<Change>>,
    failed: Option<Error>,
}

impl<'a> Reader<'a> {
    /// Before the first change; with `invert`, of the inverse.
    pub fn new(input: Input<'a>, invert: bool) -> Reader<'a> {
        Reader { input, invert, skips_empty: false, table: None, now: None, failed: None }
    }

    /// The change that was read last, if there is one.
    pub fn now(&self) -> Option<&Rc<Change>> {
        self.now.as_ref()
    }

    /// Whether what it reads is inverted.
    pub fn inverts(&self) -> bool {
        self.invert
    }

    /// What went wrong.
    pub fn failed(&self) -> Option<&Error> {
        self.failed.as_ref()
    }

    /// Reads the next change; `None` at the end. What fails once, fails from then on.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Rc<Change>>> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        self.now = None;
        loop {
            match self.read() {
                Ok(Some(c)) if self.skips_empty && c.is_empty() => {}
                Ok(c) => {
                    self.now = c.map(Rc::new);
                    return Ok(self.now.clone());
                }
                Err(e) => {
                    self.failed = Some(e.clone());
                    return Err(e);
                }
            }
        }
    }

    fn read(&mut self) -> Result<Option<Change>> {
        let Some(mut op) = self.input.byte()? else { return Ok(None) };
        while matches!(op, b'T' | b'P') {
            self.table = Some(Rc::new(self.head(op == b'P')?));
            op = match self.input.byte()? {
                Some(op) => op,
                None => return Ok(None),
            };
        }
        let table = self.table.clone().filter(|t| !(t.patchset && self.invert)).ok_or_else(corrupt)?;
        let op = Op::from_number(op).ok_or_else(corrupt)?;
        let indirect = self.input.byte()?.ok_or_else(corrupt)?;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        if op != Op::Insert && !(table.patchset && op == Op::Update) {
            self.record(&table, table.patchset, &mut old)?;
        }
        if op != Op::Delete {
            self.record(&table, false, &mut new)?;
        }
        if table.patchset && op == Op::Update {
            (old, new) = key_apart(&table, &[], &new)?;
        }
        let mut c = Change { table, op, indirect, old, new };
        if self.invert {
            c = inverse(c)?;
        }
        Ok(Some(c))
    }

    /// Reads what stands before the changes of a table.
    fn head(&mut self, patchset: bool) -> Result<Table> {
        let (n, used) = varint::get(self.input.ahead(varint::MAX_LEN)?).ok_or_else(corrupt)?;
        if n > MAX_COLUMNS {
            return Err(corrupt());
        }
        self.input.skip(used);
        let mut keys = Vec::new();
        self.input.take(n as usize, &mut keys)?;
        let mut looked = 0;
        let len = loop {
            let b = self.input.ahead(looked + 100)?;
            match b[looked..].iter().position(|c| *c == 0) {
                Some(at) => break looked + at,
                None if b.len() < looked + 100 => return Err(corrupt()),
                None => looked = b.len(),
            }
        };
        let name = raw_text::encode(&self.input.ahead(len)?[..len]).into_owned();
        self.input.skip(len + 1);
        Ok(Table { name, keys, patchset })
    }

    /// Reads a record; of one that has fields for the key alone, the others have no value.
    fn record(&mut self, table: &Table, only_key: bool, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..table.columns() {
            if only_key && !table.is_key(i) {
                out.extend_from_slice(UNDEFINED);
                continue;
            }
            let n = field_len(self.input.ahead(1 + varint::MAX_LEN)?).ok_or_else(corrupt)?;
            self.input.take(n, out)?;
        }
        Ok(())
    }
}

/// Moves the key of an UPDATE from the new values to the old ones.
fn key_apart(table: &Table, old: &[u8], new: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (i, field) in record::fields(new).enumerate() {
        if !table.is_key(i) {
            left.extend_from_slice(record::field(old, i));
            right.extend_from_slice(field);
        } else if record::is_defined(field) {
            left.extend_from_slice(field);
            right.extend_from_slice(UNDEFINED);
        } else {
            return Err(corrupt());
        }
    }
    Ok((left, right))
}

/// The change that takes `c` back.
fn inverse(c: Change) -> Result<Change> {
    let Change { table, op, indirect, old, new } = c;
    let (op, (old, new)) = match op {
        Op::Insert => (Op::Delete, (new, old)),
        Op::Delete => (Op::Insert, (new, old)),
        Op::Update => (Op::Update, key_apart(&table, &new, &old)?),
    };
    Ok(Change { table, op, indirect, old, new })
}
