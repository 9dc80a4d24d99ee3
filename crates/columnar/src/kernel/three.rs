//! Numbers of three bytes, the least first: codes too wide for two bytes and too many for four.

/// A number as three bytes.
#[inline(always)]
pub(crate) fn three(v: u32) -> [u8; 3] {
    [v as u8, (v >> 8) as u8, (v >> 16) as u8]
}

/// The number of three bytes.
#[inline(always)]
pub(crate) fn of_three(b: [u8; 3]) -> u32 {
    u32::from_le_bytes([b[0], b[1], b[2], 0])
}
