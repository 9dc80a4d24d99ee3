//! A query's text as a tree.
//!
//! `NOT` binds most, then `AND`, then `OR`; phrases that follow each other without an operator belong together before all of
//! them. Phrases are numbered as they stand in the text.

use super::lexer::{self, Kind, Lexeme};
use crate::config::{Config, Detail};
use iolite_base::{Error, Result};
use iolite_ext::TokenizeFor;

/// A token of a phrase.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// The token and its synonyms.
    pub tokens: Vec<Vec<u8>>,
    /// All tokens that begin with it.
    pub prefix: bool,
    /// It is the first of its column.
    pub first: bool,
}

/// Tokens in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phrase {
    pub terms: Vec<Term>,
}

/// Phrases near each other, or one.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    /// Their numbers.
    pub phrases: Vec<usize>,
    pub distance: i64,
    /// The columns in which they are looked for, ascending.
    pub columns: Option<Vec<u32>>,
}

/// A part of a query.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Near(Near),
    /// A phrase without tokens: no row has it.
    Nothing,
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<[Expr; 2]>),
}

/// A query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pub phrases: Vec<Phrase>,
    pub root: Option<Expr>,
}

/// How deep a tree may be.
const MAX_DEPTH: usize = 256;
/// How deep parentheses may be nested.
const MAX_NESTING: usize = 98;
const DEFAULT_DISTANCE: i64 = 10;

struct Parser<'q> {
    config: &'q Config,
    locale: Option<&'q [u8]>,
    rest: &'q [u8],
    token: Lexeme<'q>,
    phrases: Vec<Phrase>,
    nesting: usize,
}

impl Expr {
    fn depth(&self) -> usize {
        match self {
            Expr::Near(_) | Expr::Nothing => 0,
            Expr::And(l) | Expr::Or(l) => 1 + l.iter().map(Expr::depth).max().unwrap_or(0),
            Expr::Not(l) => 1 + l[0].depth().max(l[1].depth()),
        }
    }

    fn joined(a: Expr, b: Expr, and: bool) -> Result<Expr> {
        let mut list = Vec::new();
        for e in [a, b] {
            match e {
                Expr::And(l) if and => list.extend(l),
                Expr::Or(l) if !and => list.extend(l),
                e => list.push(e),
            }
        }
        checked(if and { Expr::And(list) } else { Expr::Or(list) })
    }

    /// Confines it to columns.
    fn confine(&mut self, columns: &[u32]) {
        match self {
            Expr::Near(n) => match &mut n.columns {
                Some(own) => own.retain(|c| columns.contains(c)),
                None => n.columns = Some(columns.to_vec()),
            },
            Expr::Nothing => {}
            Expr::And(l) | Expr::Or(l) => l.iter_mut().for_each(|e| e.confine(columns)),
            Expr::Not(l) => l.iter_mut().for_each(|e| e.confine(columns)),
        }
    }
}

fn checked(e: Expr) -> Result<Expr> {
    if e.depth() > MAX_DEPTH {
        return Err(Error::sql(format!("fts5 expression tree is too large (maximum depth {MAX_DEPTH})")));
    }
    Ok(e)
}

impl Query {
    /// Reads a query. `column`: it is confined to that one.
    pub fn parse(config: &Config, text: &[u8], locale: Option<&[u8]>, column: Option<u32>) -> Result<Query> {
        let (token, rest) = lexer::next(text)?;
        let mut p = Parser { config, locale, rest, token, phrases: Vec::new(), nesting: 0 };
        let mut e = p.or()?;
        if p.token.kind != Kind::End {
            return Err(p.token.misplaced());
        }
        if let Some(c) = column {
            p.confine(&mut e, &[c])?;
        }
        Ok(Query { phrases: p.phrases, root: Some(e) })
    }

    /// A query for strings that a pattern has. Where the index knows no offsets, the tokens of a string may stand anywhere.
    pub fn pattern(config: &Config, text: &[u8], column: u32) -> Result<Query> {
        if config.detail == Detail::Full {
            return Query::parse(config, text, None, Some(column));
        }
        let mut q = Query::default();
        let mut list = Vec::new();
        let mut rest = text;
        loop {
            let (t, after) = lexer::next(rest)?;
            if t.kind != Kind::String {
                break;
            }
            rest = after;
            config.tokenize(TokenizeFor::Query, &t.plain(), None, &mut |t| {
                let term = Term { tokens: vec![t.text.to_vec()], prefix: false, first: false };
                let columns = (config.detail == Detail::Column).then(|| vec![column]);
                list.push(Expr::Near(Near {
                    phrases: vec![q.phrases.len()],
                    distance: DEFAULT_DISTANCE,
                    columns,
                }));
                q.phrases.push(Phrase { terms: vec![term] });
                Ok(true)
            })?;
        }
        q.root = Some(Expr::And(list));
        Ok(q)
    }

    /// A query for one phrase of this one alone.
    pub fn only(&self, phrase: usize) -> Query {
        let columns = self.columns_of(phrase).map(<[u32]>::to_vec);
        let phrases = vec![self.phrases.get(phrase).cloned().unwrap_or_default()];
        let root = match phrases[0].terms.is_empty() {
            true => Expr::Nothing,
            false => Expr::Near(Near { phrases: vec![0], distance: DEFAULT_DISTANCE, columns }),
        };
        Query { phrases, root: Some(root) }
    }

    /// The phrases that a phrase has to be near, itself among them.
    pub fn near_of(&self, phrase: usize) -> Option<&Near> {
        fn find(e: &Expr, phrase: usize) -> Option<&Near> {
            match e {
                Expr::Near(n) => n.phrases.contains(&phrase).then_some(n),
                Expr::Nothing => None,
                Expr::And(l) | Expr::Or(l) => l.iter().find_map(|e| find(e, phrase)),
                Expr::Not(l) => l.iter().find_map(|e| find(e, phrase)),
            }
        }
        self.root.as_ref().and_then(|e| find(e, phrase))
    }

    /// The columns that a phrase is confined to.
    pub fn columns_of(&self, phrase: usize) -> Option<&[u32]> {
        self.near_of(phrase).and_then(|n| n.columns.as_deref())
    }

    /// A query for the phrases that have to be near one alone, with the numbers that they have here.
    pub fn near_alone(&self, phrase: usize) -> Query {
        Query { phrases: self.phrases.clone(), root: self.near_of(phrase).cloned().map(Expr::Near) }
    }

    /// Of phrases that a row's text has, whether one counts: the parts of the query that it is in match.
    pub fn counts(&self, phrase: usize, has: &[bool]) -> bool {
        fn matches(e: &Expr, has: &[bool]) -> bool {
            match e {
                Expr::Near(n) => n.phrases.iter().all(|p| has[*p]),
                Expr::Nothing => false,
                Expr::And(l) => l.iter().all(|e| matches(e, has)),
                Expr::Or(l) => l.iter().any(|e| matches(e, has)),
                Expr::Not(l) => matches(&l[0], has) && !matches(&l[1], has),
            }
        }
        fn counts(e: &Expr, phrase: usize, has: &[bool]) -> bool {
            matches(e, has)
                && match e {
                    Expr::Near(n) => n.phrases.contains(&phrase),
                    Expr::Nothing => false,
                    Expr::And(l) | Expr::Or(l) => l.iter().any(|e| counts(e, phrase, has)),
                    Expr::Not(l) => counts(&l[0], phrase, has),
                }
        }
        self.root.as_ref().is_some_and(|e| counts(e, phrase, has))
    }

    /// Both queries at once.
    pub fn and(mut self, other: Query) -> Query {
        let before = self.phrases.len();
        fn shift(e: &mut Expr, by: usize) {
            match e {
                Expr::Near(n) => n.phrases.iter_mut().for_each(|p| *p += by),
                Expr::Nothing => {}
                Expr::And(l) | Expr::Or(l) => l.iter_mut().for_each(|e| shift(e, by)),
                Expr::Not(l) => l.iter_mut().for_each(|e| shift(e, by)),
            }
        }
        let mut root = other.root;
        if let Some(e) = &mut root {
            shift(e, before);
        }
        self.phrases.extend(other.phrases);
        self.root = match (self.root, root) {
            (Some(a), Some(b)) => Some(Expr::And(vec![a, b])),
            _ => None,
        };
        self
    }
}

impl<'q> Parser<'q> {
    fn take(&mut self) -> Result<Lexeme<'q>> {
        let (next, rest) = lexer::next(self.rest)?;
        self.rest = rest;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn expect(&mut self, kind: Kind) -> Result<Lexeme<'q>> {
        match self.token.kind == kind {
            true => self.take(),
            false => Err(self.token.misplaced()),
        }
    }

    /// Takes the token if it is such.
    fn skip(&mut self, kind: Kind) -> Result<bool> {
        let is = self.token.kind == kind;
        if is {
            self.take()?;
        }
        Ok(is)
    }

    /// Whether the token after this one is such.
    fn followed_by(&self, kind: Kind) -> bool {
        lexer::next(self.rest).is_ok_and(|(t, _)| t.kind == kind)
    }

    fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        while self.skip(Kind::Or)? {
            left = Expr::joined(left, self.and()?, false)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        while self.skip(Kind::And)? {
            left = Expr::joined(left, self.not()?, true)?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        let mut left = self.primary()?;
        while self.skip(Kind::Not)? {
            left = checked(Expr::Not(Box::new([left, self.primary()?])))?;
        }
        Ok(left)
    }

    fn primary(&mut self) -> Result<Expr> {
        if self.token.kind == Kind::Open {
            return self.parenthesised();
        }
        let columns = self.columns()?;
        if let Some(columns) = &columns
            && self.token.kind == Kind::Open
        {
            let mut e = self.parenthesised()?;
            self.confine(&mut e, columns)?;
            return Ok(e);
        }
        let mut list = self.confined_near(columns)?;
        // Phrases without an operator between them.
        loop {
            match self.token.kind {
                Kind::String | Kind::Caret | Kind::Minus | Kind::OpenColumns => {}
                _ => return Ok(list),
            }
            let columns = self.columns()?;
            let next = self.confined_near(columns)?;
            list = match (list, next) {
                (list, Expr::Nothing) => {
                    self.phrases.pop();
                    list
                }
                (Expr::Nothing, next) => {
                    let at = self.phrases.len() - self.phrase_count(&next) - 1;
                    self.phrases.remove(at);
                    self.renumber(next)
                }
                (Expr::And(mut l), next) => {
                    l.push(next);
                    checked(Expr::And(l))?
                }
                (list, next) => checked(Expr::And(vec![list, next]))?,
            };
        }
    }

    fn phrase_count(&self, e: &Expr) -> usize {
        match e {
            Expr::Near(n) => n.phrases.len(),
            _ => 1,
        }
    }

    /// A phrase before these is gone.
    fn renumber(&self, mut e: Expr) -> Expr {
        if let Expr::Near(n) = &mut e {
            n.phrases.iter_mut().for_each(|p| *p -= 1);
        }
        e
    }

    fn parenthesised(&mut self) -> Result<Expr> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(Error::sql("fts5: parser stack overflow"));
        }
        self.expect(Kind::Open)?;
        let e = self.or()?;
        self.expect(Kind::Close)?;
        self.nesting -= 1;
        Ok(e)
    }

    fn confine(&self, e: &mut Expr, columns: &[u32]) -> Result<()> {
        if self.config.detail == Detail::None {
            return Err(Error::sql("fts5: column queries are not supported (detail=none)"));
        }
        e.confine(columns);
        Ok(())
    }

    fn confined_near(&mut self, columns: Option<Vec<u32>>) -> Result<Expr> {
        let mut e = self.near()?;
        if let Some(columns) = columns {
            self.confine(&mut e, &columns)?;
        }
        Ok(e)
    }

    fn column(&self, t: &Lexeme<'_>) -> Result<u32> {
        let name = t.plain();
        let is = |c: &crate::config::Column| c.name.as_bytes().eq_ignore_ascii_case(&name);
        match self.config.columns.iter().position(is) {
            Some(i) => Ok(i as u32),
            None => Err(Error::sql(format!("no such column: {}", String::from_utf8_lossy(&name)))),
        }
    }

    /// `column :`, `{ columns } :`, either with `-` in front.
    fn columns(&mut self) -> Result<Option<Vec<u32>>> {
        let inverse = self.token.kind == Kind::Minus;
        if inverse {
            self.take()?;
        }
        let mut columns = Vec::new();
        if self.skip(Kind::OpenColumns)? {
            loop {
                let t = self.expect(Kind::String)?;
                columns.push(self.column(&t)?);
                if self.skip(Kind::CloseColumns)? {
                    break;
                }
            }
        } else if inverse || self.token.kind == Kind::String && self.followed_by(Kind::Colon) {
            let t = self.expect(Kind::String)?;
            columns.push(self.column(&t)?);
        } else {
            return Ok(None);
        }
        self.expect(Kind::Colon)?;
        columns.sort_unstable();
        columns.dedup();
        if inverse {
            let all = 0..self.config.columns.len() as u32;
            columns = all.filter(|c| !columns.contains(c)).collect();
        }
        Ok(Some(columns))
    }

    /// A phrase, one that begins its column, or `NEAR(...)`.
    fn near(&mut self) -> Result<Expr> {
        let mut near = Near { phrases: Vec::new(), distance: DEFAULT_DISTANCE, columns: None };
        if self.skip(Kind::Caret)? {
            let n = self.phrase()?;
            if let Some(t) = self.phrases[n].terms.first_mut() {
                t.first = true;
            }
            near.phrases.push(n);
        } else if self.token.kind == Kind::String && self.followed_by(Kind::Open) {
            let name = self.take()?;
            self.take()?;
            loop {
                let n = self.phrase()?;
                let empty = |p: &Parser<'_>, n: usize| p.phrases[n].terms.is_empty();
                match near.phrases.last() {
                    Some(_) if empty(self, n) => {
                        self.phrases.pop();
                    }
                    Some(&last) if empty(self, last) => {
                        self.phrases.remove(last);
                    }
                    _ => near.phrases.push(n),
                }
                if matches!(self.token.kind, Kind::Comma | Kind::Close) {
                    break;
                }
            }
            let distance = match self.skip(Kind::Comma)? {
                true => Some(self.expect(Kind::String)?),
                false => None,
            };
            self.expect(Kind::Close)?;
            if name.text != b"NEAR" {
                return Err(name.misplaced());
            }
            if let Some(d) = distance {
                near.distance = self.distance(&d)?;
            }
        } else {
            near.phrases.push(self.phrase()?);
        }
        self.check_detail(&near)?;
        let empty = near.phrases.iter().any(|n| self.phrases[*n].terms.is_empty());
        Ok(if empty { Expr::Nothing } else { Expr::Near(near) })
    }

    fn distance(&self, t: &Lexeme<'_>) -> Result<i64> {
        let mut n = 0i64;
        for b in t.text {
            if !b.is_ascii_digit() {
                let text = String::from_utf8_lossy(t.text);
                return Err(Error::sql(format!("expected integer, got \"{text}\"")));
            }
            // Beyond this it cannot matter any more.
            if n < 214_748_363 {
                n = n * 10 + i64::from(b - b'0');
            }
        }
        Ok(n)
    }

    fn check_detail(&self, near: &Near) -> Result<()> {
        if self.config.detail == Detail::Full {
            return Ok(());
        }
        let terms = &self.phrases[near.phrases[0]].terms;
        let what = match near.phrases.len() {
            1 if terms.len() > 1 || terms.first().is_some_and(|t| t.first) => "phrase",
            1 => return Ok(()),
            _ => "NEAR",
        };
        Err(Error::sql(format!("fts5: {what} queries are not supported (detail!=full)")))
    }

    /// Strings with `+` between them; answers the phrase's number.
    fn phrase(&mut self) -> Result<usize> {
        let mut phrase = Phrase::default();
        loop {
            let t = self.expect(Kind::String)?;
            let prefix = self.skip(Kind::Star)?;
            self.tokens(&mut phrase, &t.plain(), prefix)?;
            if !self.skip(Kind::Plus)? {
                break;
            }
        }
        self.phrases.push(phrase);
        Ok(self.phrases.len() - 1)
    }

    fn tokens(&self, phrase: &mut Phrase, text: &[u8], prefix: bool) -> Result<()> {
        let reason = if prefix { TokenizeFor::PrefixQuery } else { TokenizeFor::Query };
        self.config.tokenize(reason, text, self.locale, &mut |t| {
            let token = t.text[..t.text.len().min(crate::index::LONGEST_TOKEN)].to_vec();
            match phrase.terms.last_mut() {
                Some(last) if t.colocated => last.tokens.push(token),
                _ => phrase.terms.push(Term { tokens: vec![token], prefix: false, first: false }),
            }
            Ok(true)
        })?;
        if prefix && let Some(last) = phrase.terms.last_mut() {
            last.prefix = true;
        }
        Ok(())
    }
}
