//! Tokenizers: how a text becomes the tokens that a full-text index has.

use iolite_base::Result;
use std::rc::Rc;

/// What a text is cut into tokens for. The numbers are those of `FTS5_TOKENIZE_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenizeFor {
    /// A query.
    Query = 1,
    /// A query that asks for all tokens beginning with its last one.
    PrefixQuery = 3,
    /// A document that is put into the index, or taken out.
    Document = 4,
    /// An auxiliary function.
    Auxiliary = 8,
}

/// A token, as it is found.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// The token as it is indexed.
    pub text: &'a [u8],
    /// Where it stands in the text, in bytes.
    pub start: usize,
    /// Where it ends there.
    pub end: usize,
    /// It stands at the place of the token before: a synonym.
    pub colocated: bool,
    /// How many places are left free in front of it, as where words were passed over.
    pub skipped: usize,
}

/// Takes the tokens one after the other. `Ok(false)`: no more are wanted.
pub type TokenSink<'s> = dyn FnMut(&Token<'_>) -> Result<bool> + 's;

/// Which patterns a table may look up by its tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TokenPatterns {
    /// None.
    #[default]
    None,
    /// GLOB.
    Glob,
    /// LIKE and GLOB.
    Like,
}

/// A tokenizer with its settings.
pub trait Tokenizer {
    /// Cuts a text, which need not be UTF-8.
    fn tokenize(
        &self,
        reason: TokenizeFor,
        text: &[u8],
        locale: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()>;
    /// The patterns that its tokens answer.
    fn patterns(&self) -> TokenPatterns {
        TokenPatterns::None
    }
}

/// A kind of tokenizers, known by a name.
pub trait TokenizerKind {
    /// Makes one; an error says that the arguments are wrong. `find` answers other kinds, to be wrapped.
    fn create(
        &self,
        args: &[&str],
        find: &dyn Fn(&str) -> Option<Rc<dyn TokenizerKind>>,
    ) -> Result<Rc<dyn Tokenizer>>;
}
