//! Big-endian integers in byte slices: every fixed-width number of the file format.
//!
//! A position past the end of the slice panics, as indexing does: callers check lengths first.

/// Two bytes at `at`.
#[inline(always)]
pub fn get_u16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(b[at..at + 2].try_into().expect("two bytes"))
}

/// Four bytes at `at`.
#[inline(always)]
pub fn get_u32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(b[at..at + 4].try_into().expect("four bytes"))
}

/// Eight bytes at `at`.
#[inline(always)]
pub fn get_u64(b: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}

/// Stores two bytes at `at`.
#[inline(always)]
pub fn put_u16(b: &mut [u8], at: usize, v: u16) {
    b[at..at + 2].copy_from_slice(&v.to_be_bytes());
}

/// Stores four bytes at `at`.
#[inline(always)]
pub fn put_u32(b: &mut [u8], at: usize, v: u32) {
    b[at..at + 4].copy_from_slice(&v.to_be_bytes());
}

/// Stores eight bytes at `at`.
#[inline(always)]
pub fn put_u64(b: &mut [u8], at: usize, v: u64) {
    b[at..at + 8].copy_from_slice(&v.to_be_bytes());
}
