//! `unicode61`: runs of letters and numbers of Unicode 6.1, folded.

use iolite_base::Result;
use iolite_ext::{Token, TokenSink, TokenizeFor, Tokenizer};
use iolite_tokenize::{CATEGORY_NAMES, Cut, Diacritics, UNASSIGNED};

pub(super) struct Unicode61(Cut);

impl Unicode61 {
    pub fn new(args: &[String]) -> Option<Unicode61> {
        let named = |n: &str| n.starts_with(['L', 'N']) || n == "Co";
        let categories = CATEGORY_NAMES.iter().enumerate().filter(|(_, n)| named(n));
        let bits = categories.fold(1 << UNASSIGNED, |bits, (i, _)| bits | 1 << i);
        let mut cut = Cut::new(bits, Diacritics::Single);
        for arg in args {
            let (option, value) = arg.split_once('=')?;
            match (option, value) {
                ("remove_diacritics", "0") => cut.diacritics = Diacritics::Kept,
                ("remove_diacritics", "1") => cut.diacritics = Diacritics::Single,
                ("remove_diacritics", "2") => cut.diacritics = Diacritics::Removed,
                ("tokenchars", list) => cut.except(list.as_bytes(), true),
                ("separators", list) => cut.except(list.as_bytes(), false),
                _ => return None,
            }
        }
        Some(Unicode61(cut))
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
