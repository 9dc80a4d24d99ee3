//! How much of a thread's stack is left, so that what calls itself may stop before it is used up. Where the system does not tell,
//! there is thought to be enough.

use std::cell::Cell;

thread_local! {
    /// The lowest address of this thread's stack and its size, once asked.
    static STACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Whether at least a quarter of the stack of this thread is left, or what the deepest calls may need.
pub fn has_stack() -> bool {
    /// More than what a statement needs at its innermost query.
    const ENOUGH: usize = 512 * 1024;
    let here = 0u8;
    let now = (&raw const here).addr();
    let (low, size) = STACK.get().unwrap_or_else(|| {
        let found = bounds().unwrap_or((0, 0));
        STACK.set(Some(found));
        found
    });
    // Another stack than the thread's own (a coroutine's) is not known.
    now < low || now - low > size || now - low > ENOUGH.min(size / 4)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn bounds() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut low, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are filled by the first call, read by the second and given back by the third.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let told = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (told == 0).then(|| (low.addr(), size))
    }
}

#[cfg(target_os = "macos")]
fn bounds() -> Option<(usize, usize)> {
    // SAFETY: both only read what the system knows of this thread.
    let (top, size) = unsafe {
        let this = libc::pthread_self();
        (libc::pthread_get_stackaddr_np(this).addr(), libc::pthread_get_stacksize_np(this))
    };
    Some((top.checked_sub(size)?, size))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos")))]
fn bounds() -> Option<(usize, usize)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deeper(n: u32) -> u32 {
        let used = std::hint::black_box([n as u8; 1024]);
        if n == 100_000 || !has_stack() { n } else { deeper(n + 1).max(u32::from(used[3])) }
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn a_recursion_ends_before_the_stack() {
        let thread = std::thread::Builder::new().stack_size(4 << 20);
        let reached = thread.spawn(|| deeper(0)).expect("a thread").join().expect("no overflow");
        assert!((1000..4000).contains(&reached), "{reached}");
    }
}
