//! How values of pragmas are read.

/// Truth as pragmas write it.
pub fn truth(s: &str) -> bool {
    match s.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" => true,
        // Of a number that begins with a digit the low byte counts, as in SQLite.
        n if n.starts_with(|c: char| c.is_ascii_digit()) => int32(n) as u8 != 0,
        _ => false,
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

/// A number of 32 bits; 0 if it does not fit.
pub fn int32(s: &str) -> i32 {
    i32::try_from(number(s)).unwrap_or(0)
}
