//! A JSON value to walk over: what `json_each` and `json_tree` are made of.

use super::blob::{Children, Element, kind};
use super::{Blob, argument, lookup, path_argument, render, whole};
use iolite_base::{Bytes, Result};
use iolite_value::Value;

/// A JSON value, parsed.
pub struct Json(Blob);

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

    /// What a path finds; `None` where there is nothing, or the path is NULL.
    pub fn find(&self, path: &Value) -> Result<Option<JsonElement>> {
        let Some(path) = path_argument(path)? else { return Ok(None) };
        Ok(lookup(&self.0, &path)?.map(JsonElement))
    }

    /// The elements of an array, or an object's with their labels; none for other elements.
    pub fn children(&self, e: JsonElement) -> Result<Vec<(Option<Vec<u8>>, JsonElement)>> {
        let mut list = Vec::new();
        let mut children = Children::of(&self.0, e.0);
        match e.0.kind {
            kind::ARRAY => {
                while let Some(v) = children.next()? {
                    list.push((None, JsonElement(v)));
                }
            }
            kind::OBJECT => {
                while let Some((label, v)) = children.pair()? {
                    let label = render::unescaped(label.kind, label.payload(&self.0));
                    list.push((Some(label), JsonElement(v)));
                }
            }
            _ => {}
        }
        Ok(list)
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
