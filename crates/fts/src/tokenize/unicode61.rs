//! `unicode61`: runs of characters of chosen general categories, folded.

use super::{pairs, refused};
use iolite_base::Result;
use iolite_ext::{Token, TokenSink, TokenizeFor, Tokenizer, TokenizerKind};
use iolite_tokenize::{CATEGORY_NAMES, Cut, Diacritics, UNASSIGNED};
use std::rc::Rc;

pub(super) struct Kind;

struct Unicode61(Cut);

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
        let mut cut = Cut::new(categories(list)? | 1 << UNASSIGNED, Diacritics::Single);
        for (name, value) in pairs(args)? {
            match &*name {
                "remove_diacritics" => {
                    cut.diacritics = match value {
                        "0" => Diacritics::Kept,
                        "1" => Diacritics::Single,
                        "2" => Diacritics::Removed,
                        _ => return Err(refused()),
                    };
                }
                "tokenchars" => cut.except(value.as_bytes(), true),
                "separators" => cut.except(value.as_bytes(), false),
                "categories" => {}
                _ => return Err(refused()),
            }
        }
        Ok(Rc::new(Unicode61(cut)))
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
        while let Some((start, end)) = self.0.next(text, at, &mut token) {
            if !sink(&Token { text: &token, start, end, colocated: false, skipped: 0 })? {
                return Ok(());
            }
            at = end;
        }
        Ok(())
    }
}
