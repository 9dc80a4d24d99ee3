//! `porter`: the tokens of another tokenizer, stemmed.

use super::refused;
use iolite_base::Result;
use iolite_ext::{Token, TokenSink, TokenizeFor, Tokenizer, TokenizerKind};
use std::rc::Rc;

pub(super) struct Kind;

struct Porter {
    inner: Rc<dyn Tokenizer>,
}

impl TokenizerKind for Kind {
    fn create(
        &self,
        args: &[&str],
        find: &dyn Fn(&str) -> Option<Rc<dyn TokenizerKind>>,
    ) -> Result<Rc<dyn Tokenizer>> {
        let (name, rest) = args.split_first().map_or((super::DEFAULT, &[][..]), |(n, r)| (*n, r));
        let kind = find(name).ok_or_else(refused)?;
        Ok(Rc::new(Porter { inner: kind.create(rest, find)? }))
    }
}

/// Shorter and longer tokens are left as they are.
const STEMMED: std::ops::RangeInclusive<usize> = 3..=64;

impl Tokenizer for Porter {
    fn tokenize(
        &self,
        reason: TokenizeFor,
        text: &[u8],
        locale: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        let mut word = Vec::with_capacity(80);
        self.inner.tokenize(reason, text, locale, &mut |t| {
            if !STEMMED.contains(&t.text.len()) {
                return sink(t);
            }
            word.clear();
            word.extend_from_slice(t.text);
            iolite_tokenize::stem(&mut word);
            sink(&Token { text: &word, ..*t })
        })
    }
}
