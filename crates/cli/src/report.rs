//! Errors as the user sees them: what happened, where in the input, and the place marked in the statement.

use iolite::engine::{Code, Error};

/// The text, and below it the place in `sql` that the error points at.
pub fn marked(e: &Error, sql: &str) -> String {
    let mut out = e.message().to_string();
    if e.code() != Code::Error {
        out.push_str(&format!(" ({})", e.code().primary().number()));
    }
    if let Some(m) = e.offset().and_then(|at| mark(sql, at as usize)) {
        out.push('\n');
        out.push_str(&m);
    }
    out
}

/// The statement around byte `at`, with an arrow below. At most 78 bytes of the statement are shown, 50 before the
/// place.
fn mark(sql: &str, at: usize) -> Option<String> {
    let sql = sql.trim_end();
    if at > sql.len() || !sql.is_char_boundary(at) {
        return None;
    }
    let mut start = at.saturating_sub(50);
    while !sql.is_char_boundary(start) {
        start += 1;
    }
    let mut end = (start + 78).min(sql.len());
    while !sql.is_char_boundary(end) {
        end -= 1;
    }
    let shown: String = sql[start..end].chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let before = unicode_width::UnicodeWidthStr::width(&shown[..at - start]);
    Some(if before < 25 {
        format!("  {shown}\n  {:before$}^--- error here", "")
    } else {
        format!("  {shown}\n  {:>w$}error here ---^", "", w = before - 14)
    })
}

#[cfg(test)]
mod tests {
    use super::mark;

    #[test]
    fn arrow_on_either_side() {
        assert_eq!(mark("selec 1", 0).unwrap(), "  selec 1\n  ^--- error here");
        let sql = "select aaaaaaaaaaaaaaaaaaaaaaaaaaaaa, b from t";
        let m = mark(sql, 38).unwrap();
        assert_eq!(m, format!("  {sql}\n  {}error here ---^", " ".repeat(24)));
        assert_eq!(mark("x", 9), None);
    }
}
