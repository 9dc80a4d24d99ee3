//! `fts3tokenize`: the tokens of a text, as a tokenizer finds them.

use crate::{tokenize, words};
use iolite_base::{Code, Result};
use iolite_ext::{
    ConstraintOp, Declared, FilterArgs, Host, IndexInfo, Module, TableArgs, TokenizeFor, Tokenizer,
    VirtualCursor, VirtualTable,
};
use iolite_value::Value;
use std::rc::Rc;

pub(crate) struct Tokens;

struct Table(Rc<dyn Tokenizer>);

impl Module for Tokens {
    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let args: Vec<String> = args.args.iter().map(|a| words::dequote(a)).collect();
        let (name, rest) = args.split_first().map_or(("simple", &[][..]), |(n, r)| (n, r));
        let tokenizer = tokenize::create(&**host, name, rest)?;
        Ok(Declared::new("CREATE TABLE x(input, token, start, end, position)", Rc::new(Table(tokenizer))))
    }
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let is = |c: &iolite_ext::Constraint| c.usable && c.column == 0 && c.op == ConstraintOp::Eq;
        if let Some(i) = info.constraints.iter().position(is) {
            info.index_num = 1;
            info.usage[i].arg = 1;
            info.usage[i].omit = true;
            info.cost = 1.0;
        }
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Cursor { tokenizer: self.0.clone(), input: Value::Null, tokens: Vec::new(), at: 0 }))
    }
}

struct Cursor {
    tokenizer: Rc<dyn Tokenizer>,
    input: Value,
    /// Text, ends and places.
    tokens: Vec<(Vec<u8>, usize, usize, usize)>,
    at: usize,
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, number: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        self.tokens.clear();
        self.at = 0;
        if number != 1 {
            return Err(Code::Error.into());
        }
        self.input = args[0].to_text()?;
        let text = self.input.text_bytes()?;
        let (tokens, mut place) = (&mut self.tokens, 0);
        self.tokenizer.tokenize(TokenizeFor::Document, tokenize::visible(&text), None, &mut |t| {
            place += t.skipped + 1;
            tokens.push((t.text.to_vec(), t.start, t.end, place - 1));
            Ok(true)
        })
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let Some((token, start, end, place)) = self.tokens.get(self.at) else { return Ok(Value::Null) };
        Ok(match n {
            0 => self.input.clone(),
            1 => Value::text(token)?,
            2 => Value::Int(*start as i64),
            3 => Value::Int(*end as i64),
            _ => Value::Int(*place as i64),
        })
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.at as i64 + 1)
    }
}
