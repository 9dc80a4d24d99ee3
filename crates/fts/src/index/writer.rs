//! Writes a segment: terms in order, each with its doclist.
//!
//! Leaves are filled up to the page size; a list of places is cut between two numbers where a leaf is full. For each leaf with
//! a term, `%_idx` gets the shortest text that is greater than all terms before it. A doclist over more than a few leaves gets
//! an index of its leaves' first rows.

use super::leaf::{leaf_id, skip_id};
use super::position::{push, varint};
use crate::store::{Sql, Store};
use iolite_base::Result;
use iolite_value::Value;
use std::rc::Rc;

/// Doclists over fewer leaves behind their term's have no index.
const LEAST_INDEXED: usize = 4;

/// A page of the index of a doclist's leaves, one for each height.
#[derive(Default)]
struct SkipPage {
    page: u32,
    out: Vec<u8>,
    last: Option<i64>,
}

/// Writes a segment. See the module's head.
pub(crate) struct SegmentWriter {
    store: Rc<Store>,
    page_size: usize,
    id: u32,
    page: u32,
    out: Vec<u8>,
    /// Offsets of the terms in this leaf.
    footer: Vec<u8>,
    last_term_at: usize,
    /// The term that was written last.
    term: Vec<u8>,
    first_term_in_page: bool,
    first_row_in_page: bool,
    first_row_in_doclist: bool,
    last_rowid: i64,
    /// Leaves in a row that have no term.
    termless: usize,
    skips: Vec<SkipPage>,
    /// What `%_idx` is to say next: the page, or 0, and the text.
    separator: (u32, Vec<u8>),
    /// How many leaves were written.
    pub written: i64,
}

impl SegmentWriter {
    /// A writer of a segment from a leaf on.
    pub fn new(store: &Rc<Store>, id: u32, page: u32) -> SegmentWriter {
        SegmentWriter {
            store: store.clone(),
            page_size: store.config.settings.page_size.get(),
            id,
            page,
            out: vec![0; 4],
            footer: Vec::new(),
            last_term_at: 0,
            term: Vec::new(),
            first_term_in_page: true,
            first_row_in_page: true,
            first_row_in_doclist: true,
            last_rowid: 0,
            termless: 0,
            skips: vec![SkipPage { page, ..SkipPage::default() }],
            separator: (if page == 1 { 1 } else { 0 }, Vec::new()),
            written: 0,
        }
    }

    fn used(&self) -> usize {
        self.out.len() + self.footer.len()
    }

    /// Begins a term.
    pub fn term(&mut self, term: &[u8]) -> Result<()> {
        if self.used() + term.len() + 2 >= self.page_size && self.out.len() > 4 {
            self.flush_leaf()?;
        }
        push(&mut self.footer, (self.out.len() - self.last_term_at) as u64);
        self.last_term_at = self.out.len();
        let shared = self.term.iter().zip(term).take_while(|(a, b)| a == b).count();
        let mut keep = 0;
        if self.first_term_in_page {
            if self.page != 1 {
                let n = if self.term.is_empty() { term.len() } else { shared + 1 };
                self.flush_separator()?;
                self.separator = (self.page, term[..n.min(term.len())].to_vec());
            }
        } else {
            keep = shared;
            push(&mut self.out, keep as u64);
        }
        push(&mut self.out, (term.len() - keep) as u64);
        self.out.extend_from_slice(&term[keep..]);
        self.term.clear();
        self.term.extend_from_slice(term);
        self.first_term_in_page = false;
        self.first_row_in_page = false;
        self.first_row_in_doclist = true;
        self.skips[0].page = self.page;
        Ok(())
    }

    /// Writes a doclist that fits as a whole; false: it does not.
    pub fn whole_doclist(&mut self, list: &[u8]) -> bool {
        let fits = self.page_size > self.used() + list.len();
        if fits {
            self.out.extend_from_slice(list);
        }
        fits
    }

    /// Begins a row.
    pub fn row(&mut self, rowid: i64) -> Result<()> {
        if self.used() >= self.page_size {
            self.flush_leaf()?;
        }
        self.row_here(rowid)
    }

    /// Begins a row without looking whether the leaf is full.
    pub fn row_here(&mut self, rowid: i64) -> Result<()> {
        if self.first_row_in_page {
            let at = self.out.len() as u16;
            self.out[..2].copy_from_slice(&at.to_be_bytes());
            self.skip(rowid)?;
        }
        let n = match self.first_row_in_doclist || self.first_row_in_page {
            true => rowid as u64,
            false => rowid.wrapping_sub(self.last_rowid) as u64,
        };
        push(&mut self.out, n);
        self.last_rowid = rowid;
        self.first_row_in_doclist = false;
        self.first_row_in_page = false;
        Ok(())
    }

    /// Writes a number that belongs to the row.
    pub fn number(&mut self, n: u64) {
        push(&mut self.out, n);
    }

    /// Writes the places of the row, where a merge does.
    pub fn places(&mut self, mut list: &[u8]) -> Result<()> {
        while self.used() + list.len() >= self.page_size {
            let room = self.page_size.saturating_sub(self.used());
            let mut n = 0;
            while n < room && varint(list, &mut n).is_some() {}
            self.out.extend_from_slice(&list[..n]);
            list = &list[n..];
            self.flush_leaf()?;
            if list.is_empty() {
                return Ok(());
            }
        }
        self.out.extend_from_slice(list);
        Ok(())
    }

    /// Writes the places of the row with their length, where pending rows are written.
    pub fn pending_places(&mut self, list: &[u8]) -> Result<()> {
        if self.used() + list.len() <= self.page_size {
            self.out.extend_from_slice(list);
            return Ok(());
        }
        let mut at = 0;
        loop {
            let room = self.page_size.saturating_sub(self.used());
            let mut n = list.len() - at;
            if n > room {
                // At least one number, and as many as there is room for.
                n = 0;
                loop {
                    let mut next = at + n;
                    if varint(list, &mut next).is_none() || n > 0 && next - at > room {
                        break;
                    }
                    n = next - at;
                    if n >= room {
                        break;
                    }
                }
            }
            self.out.extend_from_slice(&list[at..at + n]);
            at += n;
            if self.used() >= self.page_size {
                self.flush_leaf()?;
            }
            if at >= list.len() || n == 0 {
                return Ok(());
            }
        }
    }

    /// Whether the leaf is full.
    pub fn is_full(&self) -> bool {
        self.used() >= self.page_size
    }

    /// Writes a leaf that is full.
    pub fn flush_leaf(&mut self) -> Result<()> {
        let size = self.out.len() as u16;
        self.out[2..4].copy_from_slice(&size.to_be_bytes());
        if self.first_term_in_page {
            // A leaf without a row is marked in the doclist's index.
            if self.first_row_in_page && !self.skips[0].out.is_empty() {
                self.skips[0].out.push(0);
            }
            self.termless += 1;
        } else {
            self.out.extend_from_slice(&self.footer);
        }
        self.store.write(leaf_id(self.id, self.page), &self.out)?;
        self.out.clear();
        self.out.extend([0; 4]);
        self.footer.clear();
        self.last_term_at = 0;
        self.page += 1;
        self.written += 1;
        self.first_term_in_page = true;
        self.first_row_in_page = true;
        Ok(())
    }

    /// Writes what `%_idx` says of the leaves since the last term that began one.
    fn flush_separator(&mut self) -> Result<()> {
        let (page, text) = std::mem::take(&mut self.separator);
        if page == 0 {
            return Ok(());
        }
        let indexed = self.flush_skips()?;
        let number = i64::from(page) << 1 | i64::from(indexed);
        let row = [Value::Int(self.id.into()), Value::blob(&text)?, Value::Int(number)];
        self.store.run(Sql::InsertPage, &row)
    }

    /// Writes the doclist's index, if it is worth one; answers whether.
    fn flush_skips(&mut self) -> Result<bool> {
        let worth = !self.skips[0].out.is_empty() && self.termless >= LEAST_INDEXED;
        for (height, s) in self.skips.iter_mut().enumerate() {
            if s.out.is_empty() {
                break;
            }
            if worth {
                self.store.write(skip_id(self.id, height as u32, s.page), &s.out)?;
            }
            s.out.clear();
            s.last = None;
        }
        self.termless = 0;
        Ok(worth)
    }

    /// Notes the first row of a leaf in the doclist's index.
    fn skip(&mut self, rowid: i64) -> Result<()> {
        let mut height = 0;
        loop {
            let full = self.skips[height].out.len() >= self.page_size;
            if full {
                // It goes to disk, and its successor's first row to the next height.
                let s = &mut self.skips[height];
                s.out[0] = 1;
                self.store.write(skip_id(self.id, height as u32, s.page), &s.out)?;
                let (page, mut at) = (s.page, 1);
                let _ = varint(&s.out, &mut at);
                let first = varint(&s.out, &mut at).unwrap_or(0) as i64;
                if self.skips.len() < height + 2 {
                    self.skips.push(SkipPage::default());
                }
                let above = &mut self.skips[height + 1];
                if above.out.is_empty() {
                    above.page = page;
                    push(&mut above.out, 0);
                    push(&mut above.out, page.into());
                    push(&mut above.out, first as u64);
                    above.last = Some(first);
                }
                let s = &mut self.skips[height];
                s.out.clear();
                s.last = None;
                s.page += 1;
            }
            let below = if height == 0 { self.page } else { self.skips[height - 1].page };
            let s = &mut self.skips[height];
            match s.last {
                Some(last) => push(&mut s.out, rowid.wrapping_sub(last) as u64),
                None => {
                    push(&mut s.out, full.into());
                    push(&mut s.out, below.into());
                    push(&mut s.out, rowid as u64);
                }
            }
            s.last = Some(rowid);
            if !full {
                return Ok(());
            }
            height += 1;
        }
    }

    /// Writes what is left; answers the number of the last leaf, 0 if there is none.
    pub fn finish(&mut self) -> Result<u32> {
        if self.out.len() > 4 {
            self.flush_leaf()?;
        }
        if self.page > 1 {
            self.flush_separator()?;
        }
        Ok(self.page - 1)
    }
}
