//! Runs of characters of chosen general categories, folded.

use crate::chars::{self, Diacritics};

/// Which characters belong to tokens, and what becomes of them.
pub struct Cut {
    /// The ASCII characters that belong to tokens.
    ascii: [bool; 128],
    /// The categories whose characters do, as bits.
    categories: u32,
    /// Characters that are not what their category says, in order.
    exceptions: Vec<u32>,
    /// What becomes of letters that have diacritics.
    pub diacritics: Diacritics,
}

impl Cut {
    /// Characters of these categories, given as bits, belong to tokens.
    pub fn new(categories: u32, diacritics: Diacritics) -> Cut {
        let mut cut = Cut { ascii: [false; 128], categories, exceptions: Vec::new(), diacritics };
        for c in 1..128u8 {
            cut.ascii[c as usize] = cut.has_category(c.into());
        }
        cut
    }

    fn has_category(&self, c: u32) -> bool {
        self.categories & 1 << chars::category(c) != 0
    }

    fn is_exception(&self, c: u32) -> bool {
        !self.exceptions.is_empty() && self.exceptions.binary_search(&c).is_ok()
    }

    /// Whether a character beyond ASCII belongs to tokens.
    fn belongs(&self, c: u32) -> bool {
        self.has_category(c) != self.is_exception(c)
    }

    /// The characters of this list belong to tokens, or do not, whatever their categories.
    pub fn except(&mut self, mut list: &[u8], token: bool) {
        while let Some((c, n)) = chars::read(list) {
            list = &list[n..];
            if c < 128 {
                self.ascii[c as usize] = token;
            } else if self.has_category(c) != token
                && !chars::is_mark(c)
                && let Err(at) = self.exceptions.binary_search(&c)
            {
                self.exceptions.insert(at, c);
            }
        }
    }

    /// The next token from `at` on, written to `token`: where it begins and ends.
    #[inline]
    pub fn next(&self, text: &[u8], mut at: usize, token: &mut Vec<u8>) -> Option<(usize, usize)> {
        // To the first character of a token.
        let start = loop {
            let b = *text.get(at)?;
            if b < 0x80 {
                if self.ascii[b as usize] {
                    break at;
                }
                at += 1;
            } else {
                let (c, n) = chars::read(&text[at..])?;
                if self.belongs(c) {
                    break at;
                }
                at += n;
            }
        };
        token.clear();
        loop {
            let rest = &text[at..];
            let run = rest.iter().take_while(|b| **b < 0x80 && self.ascii[**b as usize]).count();
            token.extend(rest[..run].iter().map(u8::to_ascii_lowercase));
            at += run;
            if text.get(at).is_none_or(|b| *b < 0x80) {
                break;
            }
            let Some((c, n)) = chars::read(&text[at..]) else { break };
            if !self.belongs(c) && !chars::is_mark(c) {
                break;
            }
            if let Some(c) = chars::fold(c, self.diacritics) {
                chars::push(token, c);
            }
            at += n;
        }
        Some((start, at))
    }
}
