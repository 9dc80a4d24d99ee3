//! `json_group_array`, `json_group_object` and their binary twins.
//!
//! The members are kept as text, one after another, with their lengths, so that the oldest can leave a window.

use super::{blob_result, json_text, parse, push_text, render};
use crate::WINDOWED;
use crate::entry::{Entry, aggregate};
use crate::scalar::{limit, too_big};
use iolite_base::Result;
use iolite_ext::{Aggregate, Context, FunctionFlags};
use iolite_value::Value;
use iolite_value::utf8;
use std::collections::VecDeque;

struct Group {
    object: bool,
    binary: bool,
    /// Members, each with a comma behind it.
    text: Vec<u8>,
    /// Where the members still in the frame start.
    start: usize,
    /// Their lengths, the comma included; kept once the first member has left.
    lengths: VecDeque<u32>,
}

impl Group {
    fn member(&self, out: &mut Vec<u8>, args: &[Value]) -> Result<bool> {
        if self.object {
            if args[0].is_null() {
                return Ok(false);
            }
            render::quoted(out, utf8::to_nul(&args[0].text_bytes()?));
            out.push(b':');
            push_text(out, &args[1])?;
        } else {
            push_text(out, &args[0])?;
        }
        out.push(b',');
        Ok(true)
    }
}

impl Aggregate for Group {
    fn step(&mut self, ctx: &mut Context<'_>, args: &[Value]) -> Result<()> {
        let before = self.text.len();
        let mut text = std::mem::take(&mut self.text);
        let added = self.member(&mut text, args);
        self.text = text;
        if added? {
            self.lengths.push_back((self.text.len() - before) as u32);
        }
        if self.text.len() - self.start > limit(ctx) { Err(too_big()) } else { Ok(()) }
    }

    fn inverse(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
        if self.object && args[0].is_null() {
            return Ok(());
        }
        self.start += self.lengths.pop_front().unwrap_or(0) as usize;
        if self.start > 4096 && self.start > self.text.len() / 2 {
            self.text.drain(..self.start);
            self.start = 0;
        }
        Ok(())
    }

    fn value(&mut self, ctx: &mut Context<'_>) -> Result<Value> {
        let members = &self.text[self.start..];
        let members = members.strip_suffix(b",").unwrap_or(members);
        let mut out = Vec::new();
        iolite_base::alloc::reserve(&mut out, members.len() + 2)?;
        out.push(if self.object { b'{' } else { b'[' });
        out.extend_from_slice(members);
        out.push(if self.object { b'}' } else { b']' });
        if !self.binary {
            return json_text(ctx, &out);
        }
        match parse::parse(&out) {
            // Of the binary ones, stock marks the object's result, and the array's only where there was no row at all.
            Ok(p) => Ok(match blob_result(ctx, &p.blob)? {
                Value::Blob(b, _) if self.object || self.text.is_empty() => Value::Blob(b, render::SUBTYPE),
                v => v,
            }),
            Err(_) => Err(super::malformed()),
        }
    }
}

fn make(object: bool, binary: bool) -> Box<dyn Aggregate> {
    Box::new(Group { object, binary, text: Vec::new(), start: 0, lengths: VecDeque::new() })
}

const FLAGS: FunctionFlags = WINDOWED.and(FunctionFlags::SUBTYPE);

pub(super) const JSON_GROUP_ARRAY: Entry = aggregate(
    "json_group_array",
    1,
    FLAGS,
    || make(false, false),
    &["1; NULL; 'a' | json_group_array(x) => '[1,null,\"a\"]'", "| json_group_array(x) => '[]'"],
);
pub(super) const JSONB_GROUP_ARRAY: Entry = aggregate(
    "jsonb_group_array",
    1,
    FLAGS,
    || make(false, true),
    &["1 | jsonb_group_array(x) => X'2B1331'"],
);
pub(super) const JSON_GROUP_OBJECT: Entry = aggregate(
    "json_group_object",
    2,
    FLAGS,
    || make(true, false),
    &["'a'; NULL | json_group_object(x, 1) => '{\"a\":1}'"],
);
pub(super) const JSONB_GROUP_OBJECT: Entry = aggregate(
    "jsonb_group_object",
    2,
    FLAGS,
    || make(true, true),
    &["'a' | jsonb_group_object(x, 1) => X'4C17611331'"],
);
