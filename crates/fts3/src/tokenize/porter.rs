//! `porter`: runs of letters, digits and underscores, stemmed where they are English words; others are shortened to their ends.

use iolite_base::Result;
use iolite_ext::{Token, TokenSink, TokenizeFor, Tokenizer};

pub(super) struct Porter;

/// Words of this many letters are stemmed.
const STEMMED: std::ops::RangeInclusive<usize> = 3..=20;

fn belongs(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80
}

/// Puts what is indexed for a word into `out`.
fn stem(word: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend(word.iter().map(u8::to_ascii_lowercase));
    if STEMMED.contains(&word.len()) && word.iter().all(u8::is_ascii_alphabetic) {
        iolite_tokenize::stem(out);
        return;
    }
    let keep = if word.iter().any(u8::is_ascii_digit) { 3 } else { 10 };
    if out.len() > 2 * keep {
        out.drain(keep..out.len() - keep);
    }
}

impl Tokenizer for Porter {
    fn tokenize(
        &self,
        _: TokenizeFor,
        text: &[u8],
        _: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        let mut token = Vec::with_capacity(64);
        let mut at = 0;
        while let Some(skip) = text[at..].iter().position(belongs) {
            let start = at + skip;
            at = text[start..].iter().position(|b| !belongs(b)).map_or(text.len(), |n| start + n);
            stem(&text[start..at], &mut token);
            if !sink(&Token { text: &token, start, end: at, colocated: false, skipped: 0 })? {
                return Ok(());
            }
        }
        Ok(())
    }
}
