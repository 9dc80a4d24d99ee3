//! A JSON value to walk over: what `json_each` and `json_tree` are made of.

use super::blob::{Element, kind, malformed};
use super::path::labelled_end;
use super::{Blob, argument, missed, path_argument, render, whole};
use iolite_base::{Bytes, Result};
use iolite_value::Value;

/// A JSON value, parsed.
pub struct Json(Blob);

/// How far the elements of a container were gone through.
#[derive(Clone, Debug)]
pub struct JsonChildren {
    object: bool,
    at: usize,
    end: usize,
}

/// An element of a [`Json`]: valid for that value alone.
#[derive(Clone, Copy, Debug)]
pub struct JsonElement(Element);

impl Json {
    /// The JSON that a value is; `None` for NULL, an error for what is no JSON.
    pub fn of(v: &Value) -> Result<Option<Json>> {
        Ok(argument(v)?.map(Json))
    }

    /// The outermost element.
    pub fn root(&self) -> Result<JsonElement> {
        whole(&self.0).map(JsonElement)
    }

    /// What a path finds, with its label, if the last step has one; `None` where there is nothing, or the path is NULL.
    pub fn find(&self, path: &Value) -> Result<Option<(Option<JsonElement>, JsonElement)>> {
        let Some(path) = path_argument(path)? else { return Ok(None) };
        match labelled_end(&self.0, whole(&self.0)?, &path[1..]) {
            Ok((label, e)) => Ok(Some((label.map(JsonElement), JsonElement(e)))),
            Err(miss) => missed(miss, &path).map(|()| None),
        }
    }

    /// The elements of an array, or an object's with their labels; none of other elements.
    pub fn children(&self, e: JsonElement) -> JsonChildren {
        let e = e.0;
        let container = e.kind >= kind::ARRAY;
        JsonChildren {
            object: e.kind == kind::OBJECT,
            at: if container { e.body } else { e.end },
            end: e.end,
        }
    }

    /// The next of them, with its label in an object.
    pub fn next_child(&self, c: &mut JsonChildren) -> Result<Option<(Option<JsonElement>, JsonElement)>> {
        if c.at >= c.end {
            return Ok(None);
        }
        let read = |at: usize| Element::read(&self.0, at, c.end);
        let first = read(c.at)?;
        let (label, value) = match c.object {
            false => (None, first),
            true if !first.is_text() => return Err(malformed()),
            true => (Some(JsonElement(first)), read(first.end)?),
        };
        c.at = value.end;
        Ok(Some((label, JsonElement(value))))
    }

    /// The text of a label as it is written, with its escapes.
    pub fn written(&self, e: JsonElement) -> &[u8] {
        e.0.payload(&self.0)
    }

    /// The text of a label.
    pub fn label(&self, e: JsonElement) -> Vec<u8> {
        render::unescaped(e.0.kind, e.0.payload(&self.0))
    }

    /// The SQL value of an element that is no container; NULL for a container.
    pub fn atom(&self, e: JsonElement) -> Result<Value> {
        Ok(render::sql_value(&self.0, e.0)?.unwrap_or(Value::Null))
    }

    /// The SQL value of an element: a container is JSON text or, if `binary`, JSONB.
    pub fn value(&self, e: JsonElement, binary: bool) -> Result<Value> {
        if let Some(v) = render::sql_value(&self.0, e.0)? {
            return Ok(v);
        }
        if binary {
            return Value::blob(e.0.bytes(&self.0));
        }
        let mut out = Vec::new();
        render::text(&mut out, &self.0, e.0)?;
        Ok(Value::Text(Bytes::copy_of(&out)?, render::SUBTYPE))
    }

    /// What `json_type` says of an element.
    pub fn type_name(&self, e: JsonElement) -> &'static str {
        render::type_name(e.0)
    }

    /// The element's offset in the JSONB form: a number of its own for each element.
    pub fn id(&self, e: JsonElement) -> usize {
        e.0.start
    }

    /// Whether an element is an array or an object.
    pub fn is_container(&self, e: JsonElement) -> bool {
        e.0.kind >= kind::ARRAY
    }
}
