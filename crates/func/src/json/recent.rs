//! The texts that were parsed last, with what they became.
//!
//! A query mostly asks several things of the document of a row, each by a call of its own: the text is parsed for the first of them.
//! What is kept belongs to the thread, is the same for each connection, since it follows from
//! the text alone, and is bounded in number and size.

use super::parse::{self, Parsed};
use iolite_base::{Result, alloc};
use std::cell::RefCell;
use std::rc::Rc;

/// How many texts are kept; how long each may be, and how long one of them.
const MOST: usize = 4;
const LONG: usize = 1 << 18;
const LONGEST: usize = 1 << 22;

struct Known {
    text: Vec<u8>,
    parsed: Rc<Parsed>,
}

thread_local! {
    /// The latest one last.
    static RECENT: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// What a text becomes; an error if it is no JSON.
pub(super) fn parsed(text: &[u8]) -> Result<Rc<Parsed>> {
    // A thread that ends has nothing to keep.
    let known = RECENT.try_with(|r| {
        let mut r = r.borrow_mut();
        let at = r.iter().rposition(|p| p.text == text)?;
        let parsed = r[at].parsed.clone();
        // What is asked for again and again, such as a constant, outlives the documents of rows.
        if at + 1 < r.len() {
            r[at..].rotate_left(1);
        }
        Some(parsed)
    });
    if let Ok(Some(parsed)) = known {
        return Ok(parsed);
    }
    let parsed = Rc::new(parse::parse(text).map_err(|_| super::malformed())?);
    if text.len() <= LONGEST {
        let _ = RECENT.try_with(|r| keep(&mut r.borrow_mut(), text, &parsed));
    }
    Ok(parsed)
}

/// Keeps a text in the place of the oldest one, or a long one in that of another long one; without memory for it, it is not kept.
fn keep(recent: &mut Vec<Known>, text: &[u8], parsed: &Rc<Parsed>) -> Result<()> {
    if text.len() > LONG {
        recent.retain(|p| p.text.len() <= LONG);
    }
    let mut place = match recent.len() {
        MOST => Some(recent.remove(0).text).filter(|t| t.capacity() <= LONG).unwrap_or_default(),
        _ => Vec::new(),
    };
    place.clear();
    alloc::reserve(&mut place, text.len())?;
    place.extend_from_slice(text);
    alloc::reserve(recent, 1)?;
    recent.push(Known { text: place, parsed: parsed.clone() });
    Ok(())
}
