//! Reference-counted bytes: one buffer type for pages and for values.
//!
//! A [`Buf`] is a buffer with a plain (not atomic) count, so a clone costs an increment: registers can
//! hold text that still lies in its page. A [`Bytes`] is a run of bytes inside a `Buf`. A buffer's memory is
//! either its own, allocated in one piece with the header, or a [`PageData`], which threads may share.
//!
//! What always holds: bytes behind a `Buf` change only through [`Buf::get_mut`], which asks for the count to
//! be one and for no other thread to share the memory, or through [`Buf::page_mut`], whose caller names the
//! one other holder (the page table that it has borrowed). So `&[u8]` from a `Buf` is never written under.
//!
//! A `Buf` is not `Send`. A connection that moves to another thread moves all of its `Buf`s together; whoever
//! declares such a thing `Send` owns that argument.

use crate::{Result, alloc, slab};
use std::alloc::{Layout, alloc as raw_alloc, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// Page memory that threads may share: immutable while more than one holder exists.
pub struct PageData {
    ptr: NonNull<u8>,
    len: u32,
    /// The memory is a slab's.
    slab: bool,
}

// SAFETY: PageData owns its bytes alone; shared access is read-only (see `Buf::page_mut`, the one writer,
// which asks for an unshared Arc).
unsafe impl Send for PageData {}
// SAFETY: as above.
unsafe impl Sync for PageData {}

impl PageData {
    /// `len` zero bytes. `SQLITE_NOMEM` if there is no room.
    pub fn zeroed(len: usize) -> Result<Arc<PageData>> {
        PageData::filled(len, |raw| Ok(zero_fill(raw)))
    }

    /// `len` bytes that `fill` writes: it is given memory that holds nothing yet, and answers the same memory as bytes.
    /// Clearing a page before it is read costs as much as reading it from the system's cache.
    pub fn filled(
        len: usize,
        fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<&mut [u8]>,
    ) -> Result<Arc<PageData>> {
        // From here on the memory is freed by the drop of `PageData`, which reads nothing.
        let page = PageData::fresh(len)?;
        // SAFETY: fresh memory of `len` bytes that nobody else knows; MaybeUninit asks for no content.
        let raw = unsafe { std::slice::from_raw_parts_mut(page.ptr.as_ptr().cast::<MaybeUninit<u8>>(), len) };
        let bytes = fill(raw)?;
        // The bytes that came back are the whole of this memory, so all of it is initialised.
        assert!(std::ptr::eq(bytes.as_ptr(), page.ptr.as_ptr()) && bytes.len() == len);
        Ok(Arc::new(page))
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Result<Arc<PageData>> {
        PageData::filled(bytes.len(), |raw| Ok(raw.write_copy_of_slice(bytes)))
    }

    /// Memory that holds nothing yet: of a slab, or where that has none of this size, of the allocator, aligned to 16.
    fn fresh(len: usize) -> Result<PageData> {
        let size = u32::try_from(len).map_err(|_| crate::Code::Toobig)?;
        alloc::claim(len)?;
        // Tools that look for misuse of memory see each page in debug builds.
        if !cfg!(debug_assertions)
            && let Some(ptr) = slab::take(len)
        {
            return Ok(PageData { ptr, len: size, slab: true });
        }
        // SAFETY: the layout's size is not zero (`layout` rounds up).
        match NonNull::new(unsafe { raw_alloc(Self::layout(len)) }) {
            Some(ptr) => Ok(PageData { ptr, len: size, slab: false }),
            None => {
                alloc::release(len);
                Err(crate::Code::Nomem.into())
            }
        }
    }

    /// The bytes, for the sole owner of this memory.
    #[allow(clippy::should_implement_trait)]
    pub fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: `&mut self` excludes every other reference into this memory.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len as usize) }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len.max(1), 16).expect("page sizes are far below isize::MAX")
    }
}

impl Deref for PageData {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: ptr and len describe one live allocation, initialised when made.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len as usize) }
    }
}

impl Drop for PageData {
    fn drop(&mut self) {
        let len = self.len as usize;
        alloc::release(len);
        // SAFETY: taken in `fresh` with this length, or allocated there with this very layout.
        unsafe {
            match self.slab {
                true => slab::give(self.ptr, len),
                false => dealloc(self.ptr.as_ptr(), Self::layout(len)),
            }
        }
    }
}

/// Asks the processor to fetch these bytes while something else is done: pages lie scattered, and a copy of 4 KB is over
/// before the processor notices that it walks through them.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        // SAFETY: a hint, whatever the address; this one is valid.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// As [`prefetch`], for the first bytes at an address, which need not be a valid one.
#[inline(always)]
pub fn prefetch_at(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, whatever the address: it reads nothing that the program could see, and does not fault.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address as *const i8)
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Writes `parts` one behind the other to memory that holds nothing yet, and zeros behind them. Panics if they do not fit.
pub fn fill_from<'b>(raw: &'b mut [MaybeUninit<u8>], parts: &[&[u8]]) -> &'b mut [u8] {
    let mut rest = &mut *raw;
    for part in parts {
        let (to, behind) = rest.split_at_mut(part.len());
        to.write_copy_of_slice(part);
        rest = behind;
    }
    zero_fill(rest);
    // SAFETY: the parts and the zeros behind them cover every byte.
    unsafe { raw.assume_init_mut() }
}

/// As [`fill_from`], over what is there.
pub fn fill_bytes(mut to: &mut [u8], parts: &[&[u8]]) {
    for part in parts {
        let (now, behind) = to.split_at_mut(part.len());
        now.copy_from_slice(part);
        to = behind;
    }
    to.fill(0);
}

/// Writes zeros to memory that holds nothing yet.
pub fn zero_fill(raw: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    for b in raw.iter_mut() {
        b.write(0);
    }
    // SAFETY: every byte was just written.
    unsafe { raw.assume_init_mut() }
}

struct Header {
    refs: Cell<usize>,
    data: *mut u8,
    len: u32,
    cap: u32,
    /// How many bytes have been written at some time, if that is more than `len`.
    written: u32,
    page: Option<Arc<PageData>>,
}

const HEADER: usize = size_of::<Header>();

/// A counted buffer. See the module's head.
pub struct Buf(NonNull<Header>);

impl Buf {
    /// Asks memory for the count of holders, which making another handle changes: a hint.
    #[inline]
    pub fn prefetch_count(&self) {
        prefetch_at(self.0.as_ptr() as usize);
    }

    /// An empty buffer with room for `cap` bytes.
    pub fn with_capacity(cap: usize) -> Result<Buf> {
        Buf::fresh(cap, raw_alloc)
    }

    /// A buffer of `n` zeroes. Of a large one the kernel gives the pages as they are written to: those that are only read take no memory.
    pub fn zeroed(n: usize) -> Result<Buf> {
        let b = Buf::fresh(n, alloc_zeroed)?;
        // SAFETY: fresh and unshared; all of its `cap >= n` bytes are zero.
        unsafe { (*b.0.as_ptr()).len = n as u32 };
        Ok(b)
    }

    fn fresh(cap: usize, from: unsafe fn(Layout) -> *mut u8) -> Result<Buf> {
        if cap > u32::MAX as usize - 64 {
            return Err(crate::Code::Toobig.into());
        }
        let cap = (HEADER + cap.max(8)).next_multiple_of(16) - HEADER;
        alloc::claim(HEADER + cap)?;
        // SAFETY: the size is at least HEADER + 8.
        let p = unsafe { from(Self::layout(cap)) } as *mut Header;
        let Some(ptr) = NonNull::new(p) else {
            alloc::release(HEADER + cap);
            return Err(crate::Code::Nomem.into());
        };
        // SAFETY: freshly allocated, aligned for Header, HEADER + cap bytes long.
        unsafe {
            let data = (p as *mut u8).add(HEADER);
            p.write(Header { refs: Cell::new(1), data, len: 0, cap: cap as u32, written: 0, page: None });
        }
        Ok(Buf(ptr))
    }

    /// A buffer holding a copy of `bytes`.
    #[inline]
    pub fn copy_of(bytes: &[u8]) -> Result<Buf> {
        let b = Self::with_capacity(bytes.len())?;
        // SAFETY: fresh and unshared; cap >= bytes.len().
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), b.h().data, bytes.len());
            (*b.0.as_ptr()).len = bytes.len() as u32;
        }
        Ok(b)
    }

    /// A buffer over page memory that other threads may share.
    pub fn of_page(page: Arc<PageData>) -> Result<Buf> {
        alloc::claim(HEADER)?;
        let data = page.ptr.as_ptr();
        let len = page.len;
        let h = Box::new(Header { refs: Cell::new(1), data, len, cap: len, written: 0, page: Some(page) });
        Ok(Buf(NonNull::from(Box::leak(h))))
    }

    fn layout(cap: usize) -> Layout {
        Layout::from_size_align(HEADER + cap, 16).expect("capacity is at most u32::MAX")
    }

    #[inline(always)]
    fn h(&self) -> &Header {
        // SAFETY: the header lives as long as any Buf counts on it.
        unsafe { self.0.as_ref() }
    }

    /// How many `Buf`s and `Bytes` hold this buffer.
    #[inline(always)]
    pub fn refs(&self) -> usize {
        self.h().refs.get()
    }

    /// The page memory under this buffer, if it is one.
    pub fn page(&self) -> Option<&Arc<PageData>> {
        self.h().page.as_ref()
    }

    /// Room in bytes.
    pub fn capacity(&self) -> usize {
        self.h().cap as usize
    }

    /// The bytes, to change in place, if nobody else holds the buffer or its memory.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        if self.refs() != 1 { None } else { self.exclusive() }
    }

    /// The bytes, to change in place, if exactly this `Buf` and one other hold the buffer and no other thread
    /// shares its memory.
    ///
    /// # Safety
    /// The one other holder must not read its bytes while the result lives.
    #[inline]
    pub unsafe fn page_mut(&mut self) -> Option<&mut [u8]> {
        if self.refs() > 2 { None } else { self.exclusive() }
    }

    #[inline]
    fn exclusive(&mut self) -> Option<&mut [u8]> {
        // SAFETY: callers checked that no other Buf reads; here no other Arc may share the memory. The strong
        // count cannot grow meanwhile: a new Arc is only made from a Buf of this connection. No Weak exists.
        unsafe {
            let h = self.0.as_mut();
            if let Some(page) = &h.page
                && Arc::strong_count(page) != 1
            {
                return None;
            }
            // Another thread may just have dropped its Arc: what it read comes before what is written now.
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            Some(std::slice::from_raw_parts_mut(h.data, h.len as usize))
        }
    }

    /// Empties the buffer and makes room for `n` bytes; a shared or too small buffer is replaced by a new one.
    #[inline]
    pub fn reuse(&mut self, n: usize) -> Result<()> {
        if self.refs() != 1 || self.h().page.is_some() || self.capacity() < n {
            *self = Buf::with_capacity(n)?;
        }
        // SAFETY: sole holder (checked or just made).
        let h = unsafe { self.0.as_mut() };
        h.written = h.written.max(h.len);
        h.len = 0;
        Ok(())
    }

    /// As [`Buf::reuse`], but the buffer holds `n` bytes afterwards, to be written over: what they are is not said.
    #[inline]
    pub fn reuse_filled(&mut self, n: usize) -> Result<&mut [u8]> {
        self.reuse(n)?;
        // SAFETY: sole holder of at least `n` bytes (`reuse`). Those that nobody has written yet are initialised here:
        // only then, since clearing memory that is written at once was a tenth of an insert's time.
        unsafe {
            let h = self.0.as_mut();
            let written = h.written as usize;
            if written < n {
                std::ptr::write_bytes(h.data.add(written), 0, n - written);
            }
            h.len = n as u32;
            Ok(std::slice::from_raw_parts_mut(h.data, n))
        }
    }

    /// The buffer, if it is worth keeping for another content: nobody else holds it, and it is no page and not large.
    #[inline]
    pub fn spare(self) -> Option<Buf> {
        self.is_spare().then_some(self)
    }

    #[inline(always)]
    fn is_spare(&self) -> bool {
        let h = self.h();
        h.refs.get() == 1 && h.page.is_none() && h.cap <= 4096
    }

    /// Appends `bytes`. The buffer must be unshared, of values, and have room; else `false` and no change.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let h = self.h();
        if h.refs.get() != 1 || h.page.is_some() || ((h.cap - h.len) as usize) < bytes.len() {
            return false;
        }
        // SAFETY: sole holder, and cap - len >= bytes.len() was checked.
        unsafe {
            let h = self.0.as_mut();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), h.data.add(h.len as usize), bytes.len());
            h.len += bytes.len() as u32;
        }
        true
    }

    /// A run of this buffer. Panics if it does not lie inside.
    #[inline]
    pub fn slice(&self, off: usize, len: usize) -> Bytes {
        assert!(off + len <= self.h().len as usize);
        Bytes { buf: self.clone(), off: off as u32, len: len as u32 }
    }

    /// All of this buffer.
    #[inline]
    pub fn into_bytes(self) -> Bytes {
        let len = self.h().len;
        Bytes { buf: self, off: 0, len }
    }

    /// Whether both are the same buffer.
    #[inline]
    pub fn same(&self, other: &Buf) -> bool {
        self.0 == other.0
    }
}

impl Clone for Buf {
    #[inline(always)]
    fn clone(&self) -> Buf {
        let h = self.h();
        h.refs.set(h.refs.get() + 1);
        Buf(self.0)
    }
}

impl Drop for Buf {
    #[inline(always)]
    fn drop(&mut self) {
        let h = self.h();
        let left = h.refs.get() - 1;
        h.refs.set(left);
        if left == 0 {
            free(self.0);
        }
    }
}

#[inline(never)]
fn free(p: NonNull<Header>) {
    // SAFETY: the count reached zero, so this is the last user. A page header came from a Box, the others
    // from `raw_alloc` with `Buf::layout(cap)`.
    unsafe {
        if p.as_ref().page.is_some() {
            alloc::release(HEADER);
            drop(Box::from_raw(p.as_ptr()));
        } else {
            let cap = p.as_ref().cap as usize;
            alloc::release(HEADER + cap);
            dealloc(p.as_ptr() as *mut u8, Buf::layout(cap));
        }
    }
}

impl Deref for Buf {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        let h = self.h();
        // SAFETY: data..data+len is initialised and lives as long as the header; writers need `&mut` and
        // exclusive hold (module head).
        unsafe { std::slice::from_raw_parts(h.data, h.len as usize) }
    }
}

/// A run of bytes inside a counted buffer: 16 bytes wide, cheap to clone.
#[derive(Clone)]
pub struct Bytes {
    buf: Buf,
    off: u32,
    len: u32,
}

impl Bytes {
    /// A copy of `bytes` in a buffer of its own.
    #[inline]
    pub fn copy_of(bytes: &[u8]) -> Result<Bytes> {
        Ok(Buf::copy_of(bytes)?.into_bytes())
    }

    /// Becomes a copy of `bytes` in the memory that it has, if that is worth keeping ([`Buf::spare`]) and large enough; else `false`,
    /// and no change.
    #[inline]
    pub fn refill(&mut self, bytes: &[u8]) -> bool {
        if !self.buf.is_spare() || self.buf.capacity() < bytes.len() {
            return false;
        }
        // SAFETY: sole holder of at least so many bytes; `bytes` cannot lie among them, since a reference to them would
        // need this value, which is borrowed to be changed.
        unsafe {
            let h = self.buf.0.as_mut();
            h.written = h.written.max(h.len);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), h.data, bytes.len());
            h.len = bytes.len() as u32;
        }
        (self.off, self.len) = (0, bytes.len() as u32);
        true
    }

    /// A part of this run. Panics if it does not lie inside.
    #[inline]
    pub fn slice(&self, off: usize, len: usize) -> Bytes {
        assert!(off + len <= self.len as usize);
        Bytes { buf: self.buf.clone(), off: self.off + off as u32, len: len as u32 }
    }

    /// The buffer under this run.
    #[inline]
    pub fn buf(&self) -> &Buf {
        &self.buf
    }

    /// Whether the run lies in page memory (and so pins a page).
    #[inline]
    pub fn in_page(&self) -> bool {
        self.buf.h().page.is_some()
    }

    /// Whether the buffer goes on behind the run, with a zero.
    #[inline]
    pub fn has_zero_behind(&self) -> bool {
        self.buf.get((self.off + self.len) as usize) == Some(&0)
    }

    /// The buffer, to be filled again.
    #[inline]
    pub fn into_buf(self) -> Buf {
        self.buf
    }
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: off + len lay inside the buffer when this run was made, and a buffer held by a run is not
        // shortened: `reuse` and `get_mut` ask for a count of one.
        unsafe { std::slice::from_raw_parts(self.buf.h().data.add(self.off as usize), self.len as usize) }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self))
    }
}

impl std::fmt::Debug for Buf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buf({} bytes, {} refs)", self.len(), self.refs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_buffer_is_never_written() {
        let mut a = Buf::copy_of(b"hello").unwrap();
        assert!(a.get_mut().is_some());
        let run = a.slice(1, 3);
        assert!(a.get_mut().is_none());
        assert!(!a.push(b"x"));
        a.reuse(5).unwrap();
        assert!(a.push(b"other"));
        assert_eq!(&*run, b"ell");
        assert_eq!(&*a, b"other");
    }

    #[test]
    fn page_memory_shared_with_another_thread_is_never_written() {
        let page = PageData::copy_of(&[7; 512]).unwrap();
        let mut b = Buf::of_page(page.clone()).unwrap();
        assert!(b.get_mut().is_none());
        drop(page);
        b.get_mut().unwrap()[0] = 1;
        let table = b.clone();
        // SAFETY: `table` is not read while the slice lives.
        assert!(unsafe { b.page_mut() }.is_some());
        let third = b.clone();
        // SAFETY: as above.
        assert!(unsafe { b.page_mut() }.is_none());
        drop((table, third));
    }
}
