//! `simple`: runs of letters and digits of ASCII and of all bytes beyond, in lower case.

use iolite_base::Result;
use iolite_ext::{Token, TokenSink, TokenizeFor, Tokenizer};

pub(super) struct Simple {
    separates: [bool; 128],
}

impl Simple {
    /// A second argument lists the characters that separate tokens.
    pub fn new(args: &[String]) -> Option<Simple> {
        let mut separates: [bool; 128] =
            std::array::from_fn(|c| c != 0 && !(c as u8).is_ascii_alphanumeric());
        if let Some(list) = args.get(1) {
            separates = [false; 128];
            for b in list.bytes() {
                *separates.get_mut(b as usize)? = true;
            }
        }
        Some(Simple { separates })
    }
}

impl Tokenizer for Simple {
    fn tokenize(
        &self,
        _: TokenizeFor,
        text: &[u8],
        _: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        let is = |b: &u8| *b >= 0x80 || !self.separates[*b as usize];
        let mut token = Vec::with_capacity(64);
        let mut at = 0;
        while let Some(skip) = text[at..].iter().position(is) {
            let start = at + skip;
            at = text[start..].iter().position(|b| !is(b)).map_or(text.len(), |n| start + n);
            token.clear();
            token.extend(text[start..at].iter().map(u8::to_ascii_lowercase));
            if !sink(&Token { text: &token, start, end: at, colocated: false, skipped: 0 })? {
                return Ok(());
            }
        }
        Ok(())
    }
}
