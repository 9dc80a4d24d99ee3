//! How values of pragmas are read.

/// Truth as pragmas write it; other words are false.
pub fn truth(s: &str) -> bool {
    truth_or(s, false)
}

/// Truth as pragmas write it, and what other words mean.
pub fn truth_or(s: &str, other: bool) -> bool {
    match s.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" => true,
        "off" | "no" | "false" => false,
        // Of a number that begins with a digit the low byte counts, as in SQLite.
        n if n.starts_with(|c: char| c.is_ascii_digit()) => int32(n) as u8 != 0,
        _ => other,
    }
}

/// A number: decimal digits with a sign or hexadecimal ones at the start.
pub fn number(s: &str) -> i64 {
    match s.strip_prefix("0x").or(s.strip_prefix("0X")) {
        Some(hex) => {
            let n = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
            i64::from_str_radix(&hex[..n], 16).unwrap_or(0)
        }
        None => iolite_value::num::text_to_int(s.as_bytes()),
    }
}

/// A number with nothing behind it that 64 bits hold.
pub fn whole(s: &str) -> Option<i64> {
    match s.strip_prefix("0x").or(s.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
        None => s.trim().parse().ok(),
    }
}

/// A number of 32 bits at the start; 0 if it does not fit, or white space stands before it.
pub fn int32(s: &str) -> i32 {
    if s.starts_with(|c: char| c.is_ascii_whitespace()) {
        return 0;
    }
    i32::try_from(number(s)).unwrap_or(0)
}
