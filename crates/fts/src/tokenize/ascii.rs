//! `ascii`: runs of letters and digits of ASCII and of all bytes beyond.

use super::{pairs, refused};
use iolite_base::Result;
use iolite_ext::{Token, TokenSink, TokenizeFor, Tokenizer, TokenizerKind};
use std::rc::Rc;

pub(super) struct Kind;

struct Ascii {
    belongs: [bool; 128],
}

impl TokenizerKind for Kind {
    fn create(
        &self,
        args: &[&str],
        _: &dyn Fn(&str) -> Option<Rc<dyn TokenizerKind>>,
    ) -> Result<Rc<dyn Tokenizer>> {
        let mut belongs = std::array::from_fn(|c| (c as u8).is_ascii_alphanumeric());
        for (name, value) in pairs(args)? {
            let token = match &*name {
                "tokenchars" => true,
                "separators" => false,
                _ => return Err(refused()),
            };
            for b in value.bytes().filter(u8::is_ascii) {
                belongs[b as usize] = token;
            }
        }
        Ok(Rc::new(Ascii { belongs }))
    }
}

impl Tokenizer for Ascii {
    fn tokenize(
        &self,
        _: TokenizeFor,
        text: &[u8],
        _: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        let is = |b: u8| b >= 0x80 || self.belongs[b as usize];
        let mut token = Vec::with_capacity(64);
        let mut at = 0;
        while let Some(skip) = text[at..].iter().position(|b| is(*b)) {
            let start = at + skip;
            let end = text[start..].iter().position(|b| !is(*b)).map_or(text.len(), |n| start + n);
            token.clear();
            token.extend(text[start..end].iter().map(u8::to_ascii_lowercase));
            if !sink(&Token { text: &token, start, end, colocated: false, skipped: 0 })? {
                return Ok(());
            }
            at = end;
        }
        Ok(())
    }
}
