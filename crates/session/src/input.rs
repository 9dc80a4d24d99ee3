//! Where a changeset is read from: bytes in memory, or somebody who hands them over in pieces.

use crate::corrupt;
use iolite_base::{Result, alloc};

/// Fills a buffer with the next bytes; answers how many, 0 at the end.
pub type Source<'a> = Box<dyn FnMut(&mut [u8]) -> Result<usize> + 'a>;

/// Bytes to be read, and the place that was reached.
pub struct Input<'a> {
    from: From<'a>,
    at: usize,
}

enum From<'a> {
    Whole(&'a [u8]),
    Pieces { source: Source<'a>, size: usize, held: Vec<u8>, ended: bool },
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    pub fn whole(bytes: &'a [u8]) -> Input<'a> {
        Input { from: From::Whole(bytes), at: 0 }
    }

    /// What `source` gives, asked for in pieces of `size`.
    pub fn pieces(size: usize, source: Source<'a>) -> Input<'a> {
        Input { from: From::Pieces { source, size: size.max(1), held: Vec::new(), ended: false }, at: 0 }
    }

    /// What comes next: at least `n` bytes, if there are so many.
    pub(crate) fn ahead(&mut self, n: usize) -> Result<&[u8]> {
        match &mut self.from {
            From::Whole(b) => Ok(&b[self.at..]),
            From::Pieces { source, size, held, ended } => {
                while held.len() - self.at < n && !*ended {
                    if self.at >= *size {
                        held.drain(..self.at);
                        self.at = 0;
                    }
                    let had = held.len();
                    alloc::reserve(held, *size)?;
                    held.resize(had + *size, 0);
                    let got = source(&mut held[had..]).inspect_err(|_| *ended = true);
                    let more = got.as_ref().map_or(0, |n| (*n).min(*size));
                    held.truncate(had + more);
                    *ended |= more == 0;
                    got?;
                }
                Ok(&held[self.at..])
            }
        }
    }

    /// The next byte, `None` at the end.
    pub(crate) fn byte(&mut self) -> Result<Option<u8>> {
        let b = self.ahead(1)?.first().copied();
        self.at += b.is_some() as usize;
        Ok(b)
    }

    /// Copies the next `n` bytes behind `out`.
    pub(crate) fn take(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        let b = self.ahead(n)?.get(..n).ok_or_else(corrupt)?;
        alloc::reserve(out, n)?;
        out.extend_from_slice(b);
        self.at += n;
        Ok(())
    }

    /// Goes on by `n` bytes that have been looked at.
    pub(crate) fn skip(&mut self, n: usize) {
        self.at += n;
    }
}
