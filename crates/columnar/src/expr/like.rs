//! Conditions on the bytes of a text: `LIKE` with a pattern of words between percent signs, and how a text begins.
//!
//! Most patterns are such: no `_`, no ESCAPE, ASCII only. They match by finding one word after the other, each as early
//! as possible; ASCII letters in both cases, unless `PRAGMA case_sensitive_like` is on. All other patterns, and values that
//! are no texts, are left to the function.

use crate::expr::{Eval, Ex};
use iolite_base::Limit;
use iolite_plan::bound::CmpOp;
use iolite_value::Value;

/// A pattern. See the module's head.
pub(crate) struct Like {
    /// The words between the percent signs; in lower case if case does not count.
    words: Vec<Vec<u8>>,
    /// Nothing stands before the first word, nothing behind the last.
    from_start: bool,
    to_end: bool,
    fold: bool,
    not: bool,
}

impl Like {
    /// The pattern of `column LIKE 'pattern'` or its negation, if it is one of words.
    pub fn of(ex: &Ex, eval: &Eval<'_>) -> Option<Like> {
        let (call, not) = match ex {
            Ex::Not(e) => (&**e, true),
            e => (e, false),
        };
        let Ex::Call { function, args, .. } = call else { return None };
        let [Ex::Const(Value::Text(pattern, _)), Ex::Slot(_)] = &args[..] else { return None };
        // Functions of the user's are not let in.
        if !function.name.eq_ignore_ascii_case("like") {
            return None;
        }
        let plain = |c: &u8| c.is_ascii() && *c != b'_' && *c != 0;
        let most = eval.host().limit(Limit::LikePatternLength).clamp(0, 200);
        if pattern.len() > most as usize || !pattern.iter().all(plain) {
            return None;
        }
        // The function itself says whether case counts.
        let mut letters = Vec::new();
        for l in ["a", "A"] {
            letters.push(Ex::Const(Value::text(l).ok()?));
        }
        let probe = Ex::Call {
            function: function.clone(),
            args: letters,
            collation: Default::default(),
            frame: Default::default(),
        };
        let fold = eval.holds(&probe, &crate::expr::NoRow).ok()?;
        let split: Vec<&[u8]> = pattern.split(|c| *c == b'%').collect();
        let words = split
            .iter()
            .filter(|w| !w.is_empty())
            .map(|w| if fold { w.to_ascii_lowercase() } else { w.to_vec() })
            .collect();
        let from_start = split.first().is_some_and(|w| !w.is_empty()) || split.len() == 1;
        let to_end = split.last().is_some_and(|w| !w.is_empty()) || split.len() == 1;
        Some(Like { words, from_start, to_end, fold, not })
    }

    /// Whether the condition holds for a text.
    pub fn holds(&self, text: &[u8]) -> bool {
        self.matches(text) != self.not
    }

    fn same(&self, word: &[u8], text: &[u8]) -> bool {
        match self.fold {
            true => word.iter().zip(text).all(|(w, t)| *w == t.to_ascii_lowercase()),
            false => word == text,
        }
    }

    fn matches(&self, text: &[u8]) -> bool {
        // To functions a text ends at its first NUL.
        let text = match memchr::memchr(0, text) {
            Some(n) => &text[..n],
            None => text,
        };
        let mut words = &self.words[..];
        let (mut from, mut to) = (0, text.len());
        if self.from_start && self.to_end && words.len() <= 1 {
            let word = words.first().map_or(&[][..], |w| w);
            return word.len() == text.len() && self.same(word, text);
        }
        if self.from_start
            && let [first, rest @ ..] = words
        {
            if first.len() > text.len() || !self.same(first, &text[..first.len()]) {
                return false;
            }
            from = first.len();
            words = rest;
        }
        if self.to_end
            && let [rest @ .., last] = words
        {
            let Some(start) = to.checked_sub(last.len()).filter(|s| *s >= from) else { return false };
            if !self.same(last, &text[start..]) {
                return false;
            }
            to = start;
            words = rest;
        }
        for w in words {
            match self.find(w, &text[from..to]) {
                Some(at) => from += at + w.len(),
                None => return false,
            }
        }
        true
    }

    fn find(&self, word: &[u8], text: &[u8]) -> Option<usize> {
        let last = text.len().checked_sub(word.len())?;
        let first = word[0];
        let mut from = 0;
        while from <= last {
            let rest = &text[from..=last];
            let at = match self.fold && first.is_ascii_lowercase() {
                true => memchr::memchr2(first, first.to_ascii_uppercase(), rest),
                false => memchr::memchr(first, rest),
            }?;
            if self.same(word, &text[from + at..from + at + word.len()]) {
                return Some(from + at);
            }
            from += at + 1;
        }
        None
    }
}

/// `substr(column, 1, n) IN ('...', ...)`, or `=`: how a text begins.
pub(crate) struct Starts {
    n: usize,
    /// Each of them as long as the beginning, or the whole text.
    words: Vec<Vec<u8>>,
    not: bool,
}

impl Starts {
    /// The condition, if it is such a one, compared byte by byte.
    pub fn of(ex: &Ex) -> Option<Starts> {
        let text = |e: &Ex| match e {
            Ex::Const(Value::Text(t, _)) => Some(t.to_vec()),
            _ => None,
        };
        let (lhs, words, not) = match ex {
            Ex::In { not, lhs, list, affinity, collation }
                if collation.is_binary() && !affinity.is_numeric() =>
            {
                (&**lhs, list.iter().map(text).collect::<Option<Vec<_>>>()?, *not)
            }
            Ex::Compare(c)
                if c.op == CmpOp::Eq && c.collation.is_binary() && !c.affinity.is_numeric() && !c.null_eq =>
            {
                (&c.lhs, vec![text(&c.rhs)?], false)
            }
            _ => return None,
        };
        let Ex::Call { function, args, .. } = lhs else { return None };
        let name = &function.name;
        if !name.eq_ignore_ascii_case("substr") && !name.eq_ignore_ascii_case("substring") {
            return None;
        }
        match &args[..] {
            [Ex::Slot(_), Ex::Const(Value::Int(1)), Ex::Const(Value::Int(n))] if (1..100).contains(n) => {
                Some(Starts { n: *n as usize, words, not })
            }
            _ => None,
        }
    }

    /// Whether a text begins with characters of one byte each.
    pub fn known(&self, text: &[u8]) -> bool {
        text.iter().take(self.n).all(|c| c.is_ascii() && *c != 0)
    }

    /// Whether the condition holds for such a text.
    pub fn holds(&self, text: &[u8]) -> bool {
        let start = &text[..text.len().min(self.n)];
        self.words.iter().any(|w| w == start) != self.not
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(pattern: &str, fold: bool) -> Like {
        let split: Vec<&str> = pattern.split('%').collect();
        let word = |w: &&str| if fold { w.to_lowercase().into_bytes() } else { w.as_bytes().to_vec() };
        Like {
            words: split.iter().filter(|w| !w.is_empty()).map(word).collect(),
            from_start: !split[0].is_empty() || split.len() == 1,
            to_end: !split[split.len() - 1].is_empty() || split.len() == 1,
            fold,
            not: false,
        }
    }

    /// By trying all ways.
    fn slowly(p: &[u8], t: &[u8], fold: bool) -> bool {
        match p.split_first() {
            None => t.is_empty(),
            Some((b'%', rest)) => (0..=t.len()).any(|n| slowly(rest, &t[n..], fold)),
            Some((c, rest)) => t.split_first().is_some_and(|(d, more)| {
                (c == d || fold && c.eq_ignore_ascii_case(d)) && slowly(rest, more, fold)
            }),
        }
    }

    #[test]
    fn words_are_found_as_trying_all_ways_finds_them() {
        let letters = ["a", "B", "%", "b", "%a"];
        let mut patterns = vec![String::new()];
        for _ in 0..5 {
            let longer: Vec<String> =
                patterns.iter().flat_map(|p| letters.iter().map(move |l| format!("{p}{l}"))).collect();
            patterns.extend(longer);
            patterns.sort();
            patterns.dedup();
        }
        let texts = ["", "a", "ab", "AB", "aab", "abab", "bbab", "ba", "aBbA", "bAaB", "abba"];
        for p in patterns.iter().filter(|p| p.len() < 7) {
            for t in texts {
                for fold in [false, true] {
                    let want = slowly(p.as_bytes(), t.as_bytes(), fold);
                    assert_eq!(like(p, fold).matches(t.as_bytes()), want, "{p} {t} {fold}");
                }
            }
        }
        assert!(like("ab%", true).matches(b"abc\0%") && !like("%d", true).matches(b"abc\0d"));
    }
}
