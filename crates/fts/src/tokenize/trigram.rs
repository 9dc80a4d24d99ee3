//! `trigram`: every three characters in a row.

use super::{pairs, refused};
use iolite_base::Result;
use iolite_ext::{Token, TokenPatterns, TokenSink, TokenizeFor, Tokenizer, TokenizerKind};
use iolite_tokenize::{self as chars, Diacritics};
use std::rc::Rc;

pub(super) struct Kind;

struct Trigram {
    /// How characters are folded, if they are.
    fold: Option<Diacritics>,
}

impl TokenizerKind for Kind {
    fn create(
        &self,
        args: &[&str],
        _: &dyn Fn(&str) -> Option<Rc<dyn TokenizerKind>>,
    ) -> Result<Rc<dyn Tokenizer>> {
        let (mut sensitive, mut removed) = (false, false);
        for (name, value) in pairs(args)? {
            let on = match value {
                "0" => false,
                "1" => true,
                _ => return Err(refused()),
            };
            match &*name {
                "case_sensitive" => sensitive = on,
                "remove_diacritics" => removed = on,
                _ => return Err(refused()),
            }
        }
        if sensitive && removed {
            return Err(refused());
        }
        let diacritics = if removed { Diacritics::Removed } else { Diacritics::Kept };
        Ok(Rc::new(Trigram { fold: (!sensitive).then_some(diacritics) }))
    }
}

impl Trigram {
    /// The next character, where it starts, and where the text goes on.
    fn next(&self, text: &[u8], mut at: usize) -> (Option<u32>, usize, usize) {
        loop {
            let start = at;
            let Some((c, n)) = chars::read(&text[at..]) else { return (None, start, at) };
            at += n;
            let folded = match self.fold {
                Some(d) => chars::fold(c, d),
                None => Some(c),
            };
            if let Some(c) = folded.filter(|c| *c != 0) {
                return (Some(c), start, at);
            }
        }
    }
}

impl Tokenizer for Trigram {
    fn tokenize(
        &self,
        _: TokenizeFor,
        text: &[u8],
        _: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        let mut token = Vec::with_capacity(12);
        let mut starts = [0; 3];
        // How many bytes of the token each of its characters has.
        let mut lens = [0; 3];
        let mut at = 0;
        for k in 0..3 {
            let (c, start, next) = self.next(text, at);
            let Some(c) = c else { return Ok(()) };
            (starts[k], at) = (start, next);
            let before = token.len();
            chars::push(&mut token, c);
            lens[k] = token.len() - before;
        }
        loop {
            let (c, start, next) = self.next(text, at);
            let more =
                sink(&Token { text: &token, start: starts[0], end: start, colocated: false, skipped: 0 })?;
            let Some(c) = c.filter(|_| more) else { return Ok(()) };
            at = next;
            token.drain(..lens[0]);
            let before = token.len();
            chars::push(&mut token, c);
            starts = [starts[1], starts[2], start];
            lens = [lens[1], lens[2], token.len() - before];
        }
    }

    fn patterns(&self) -> TokenPatterns {
        match self.fold {
            None => TokenPatterns::Glob,
            Some(Diacritics::Kept) => TokenPatterns::Like,
            Some(_) => TokenPatterns::None,
        }
    }
}
