//! The log of errors (documentation page `errlog`): one function of the program is told of what went wrong anywhere in the
//! process.

use iolite_os::Published;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

type Told = unsafe extern "C" fn(*mut c_void, c_int, *const c_char);

/// The function that `sqlite3_config` was given.
struct Logger(Told, *mut c_void);

// SAFETY: the program said that the function may be called on any thread.
unsafe impl Send for Logger {}
// SAFETY: as above.
unsafe impl Sync for Logger {}

static LOGGER: Published<Option<Logger>> = Published::new();
/// Whether there is one: asked before a text is made.
static ON: AtomicBool = AtomicBool::new(false);

/// Sets or removes the function.
pub(crate) fn set(told: Option<Told>, user: *mut c_void) {
    ON.store(told.is_some(), Ordering::Release);
    LOGGER.replace(|_| Some(told.map(|f| Logger(f, user))));
}

/// Tells of something, if somebody listens.
pub(crate) fn log(code: c_int, text: impl FnOnce() -> Vec<u8>) {
    if !ON.load(Ordering::Acquire) {
        return;
    }
    let mut text = text();
    text.iter_mut().filter(|b| **b == 0).for_each(|b| *b = b' ');
    let text = CString::new(text).unwrap_or_default();
    if let Some(Some(Logger(f, user))) = LOGGER.get() {
        // SAFETY: registered for this shape of call.
        unsafe { f(*user, code, text.as_ptr()) };
    }
}

/// Tells of what the engine warns of.
pub(crate) fn warned(code: iolite::Code, text: &dyn Fn() -> String) {
    log(code.number() as c_int, || iolite_base::raw_text::decode(&text()).into_owned());
}
