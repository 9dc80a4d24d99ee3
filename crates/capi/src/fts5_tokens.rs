//! Tokens on their way to functions in C.

use crate::OK;
use iolite::engine::Result;
use iolite_ext::TokenSink;
use std::ffi::{c_char, c_int, c_void};

/// Takes a token: the tokenizer's context, flags, the token and where it stands.
pub type TakeToken = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, c_int, c_int, c_int) -> c_int;

/// Bytes that C hands over.
pub(crate) unsafe fn slice<'a>(p: *const c_char, n: c_int) -> &'a [u8] {
    if p.is_null() || n <= 0 { b"" } else { std::slice::from_raw_parts(p.cast(), n as usize) }
}

/// Hands tokens to a function in C, whose answer other than 0 ends that and is answered.
pub(crate) unsafe fn tokens_to_c(
    f: TakeToken,
    cx: *mut c_void,
    run: impl FnOnce(&mut TokenSink<'_>) -> Result<()>,
) -> c_int {
    let mut said = OK;
    let done = run(&mut |t| {
        // SAFETY: the function takes such tokens; the text lives across the call.
        said = unsafe {
            let (p, n) = (t.text.as_ptr().cast(), t.text.len() as c_int);
            f(cx, t.colocated as c_int, p, n, t.start as c_int, t.end as c_int)
        };
        Ok(said == OK)
    });
    match (said, done) {
        (OK, Err(e)) => e.code().number() as c_int,
        (crate::DONE, _) => OK,
        (said, _) => said,
    }
}
