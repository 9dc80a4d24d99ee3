//! `unicode61`: runs of characters of chosen general categories, folded.

use super::chars::{self, Diacritics};
use super::unicode_tables::{CATEGORY_NAMES, UNASSIGNED};
use super::{pairs, refused};
use iolite_base::Result;
use iolite_ext::{Token, TokenSink, TokenizeFor, Tokenizer, TokenizerKind};
use std::rc::Rc;

pub(super) struct Kind;

struct Unicode61 {
    /// The ASCII characters that belong to tokens.
    ascii: [bool; 128],
    /// The categories whose characters do, as bits.
    categories: u32,
    /// Characters that are not what their category says, in order.
    exceptions: Vec<u32>,
    diacritics: Diacritics,
}

/// The categories that a list such as `L* N* Co` names.
fn categories(list: &str) -> Result<u32> {
    let mut bits = 0;
    for word in list.split([' ', '\t']).filter(|w| !w.is_empty()) {
        let (major, minor) = match *word.as_bytes() {
            [a, b] => (a, b),
            _ => return Err(refused()),
        };
        let named = |n: &str| n.as_bytes()[0] == major && (minor == b'*' || n.as_bytes()[1] == minor);
        let found = CATEGORY_NAMES.iter().enumerate().filter(|(_, n)| named(n));
        let word_bits = found.fold(0, |bits, (i, _)| bits | 1 << i);
        if word_bits == 0 {
            return Err(refused());
        }
        bits |= word_bits;
    }
    Ok(bits)
}

impl TokenizerKind for Kind {
    fn create(
        &self,
        args: &[&str],
        _: &dyn Fn(&str) -> Option<Rc<dyn TokenizerKind>>,
    ) -> Result<Rc<dyn Tokenizer>> {
        let mut list = "L* N* Co";
        for (_, value) in pairs(args)?.filter(|(name, _)| name == "categories") {
            list = value;
        }
        let mut t = Unicode61 {
            ascii: [false; 128],
            categories: categories(list)? | 1 << UNASSIGNED,
            exceptions: Vec::new(),
            diacritics: Diacritics::Single,
        };
        for c in 1..128u8 {
            t.ascii[c as usize] = t.has_category(c.into());
        }
        for (name, value) in pairs(args)? {
            match &*name {
                "remove_diacritics" => {
                    t.diacritics = match value {
                        "0" => Diacritics::Kept,
                        "1" => Diacritics::Single,
                        "2" => Diacritics::Removed,
                        _ => return Err(refused()),
                    };
                }
                "tokenchars" => t.except(value.as_bytes(), true),
                "separators" => t.except(value.as_bytes(), false),
                "categories" => {}
                _ => return Err(refused()),
            }
        }
        Ok(Rc::new(t))
    }
}

impl Unicode61 {
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

    fn except(&mut self, mut list: &[u8], token: bool) {
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
}

impl Tokenizer for Unicode61 {
    fn tokenize(
        &self,
        _: TokenizeFor,
        text: &[u8],
        _: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        let mut token = Vec::with_capacity(64);
        let mut at = 0;
        loop {
            // To the first character of a token.
            let start = loop {
                let Some(&b) = text.get(at) else { return Ok(()) };
                if b < 0x80 {
                    if self.ascii[b as usize] {
                        break at;
                    }
                    at += 1;
                } else {
                    let Some((c, n)) = chars::read(&text[at..]) else { return Ok(()) };
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
                    chars::push(&mut token, c);
                }
                at += n;
            }
            if !sink(&Token { text: &token, start, end: at, colocated: false })? {
                return Ok(());
            }
        }
    }
}
