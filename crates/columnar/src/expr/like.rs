//! Conditions on the bytes of a text: `LIKE` with a pattern of words between percent signs, and how a text begins.
//!
//! Most patterns are such: no ESCAPE, ASCII only, no `_` behind the last percent sign. They match by finding one word after the other, each as early
//! as possible; ASCII letters in both cases, unless `PRAGMA case_sensitive_like` is on. All other patterns, and values that
//! are no texts, are left to the function.
//!
//! What always holds: a word that a percent sign precedes does not begin with `_`. Such a one is a character that is passed before the word is
//! looked for: `%_a` is `_%a`.

use crate::expr::{Eval, Ex};
use iolite_base::Limit;
use iolite_plan::bound::CmpOp;
use iolite_value::{Value, utf8};

/// A pattern. See the module's head.
pub(crate) struct Like {
    /// The words between the percent signs.
    words: Vec<Word>,
    /// Nothing stands before the first word, nothing behind the last.
    from_start: bool,
    to_end: bool,
    fold: bool,
    not: bool,
}

/// A word of a pattern.
struct Word {
    /// So many characters are passed before it is looked for.
    passed: usize,
    /// In lower case if case does not count; [`ANY`] for a `_`.
    bytes: Vec<u8>,
    /// Whether there is a `_` in it.
    wild: bool,
}

/// Stands for any character. No pattern that is known has this byte.
const ANY: u8 = 0;

impl Word {
    /// A piece of a pattern; `first`: nothing precedes it.
    fn of(piece: &[u8], first: bool, fold: bool) -> Word {
        let passed = if first { 0 } else { piece.iter().take_while(|c| **c == b'_').count() };
        let byte = |c: &u8| match c {
            b'_' => ANY,
            c if fold => c.to_ascii_lowercase(),
            c => *c,
        };
        let bytes: Vec<u8> = piece[passed..].iter().map(byte).collect();
        Word { passed, wild: bytes.contains(&ANY), bytes }
    }
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
        let plain = |c: &u8| c.is_ascii() && *c != 0;
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
        Like::words(pattern, fold, not)
    }

    /// The words of a pattern of ASCII characters; none: `_` stands behind the last percent sign.
    fn words(pattern: &[u8], fold: bool, not: bool) -> Option<Like> {
        let pieces: Vec<&[u8]> = pattern.split(|c| *c == b'%').collect();
        let (from_start, to_end) = (
            !pieces[0].is_empty() || pieces.len() == 1,
            !pieces[pieces.len() - 1].is_empty() || pieces.len() == 1,
        );
        if pieces.len() > 1 && pieces[pieces.len() - 1].contains(&b'_') {
            return None;
        }
        let words = pieces.iter().enumerate().filter(|(_, p)| !p.is_empty());
        let words = words.map(|(i, p)| Word::of(p, i == 0, fold)).collect();
        Some(Like { words, from_start, to_end, fold, not })
    }

    /// Whether the condition holds for a text.
    pub fn holds(&self, text: &[u8]) -> bool {
        self.matches(text) != self.not
    }

    /// How many bytes of a text a word takes, if the text begins with it.
    #[inline]
    fn begins(&self, word: &Word, text: &[u8]) -> Option<usize> {
        if word.wild {
            return self.begins_wild(word, text);
        }
        let start = text.get(..word.bytes.len())?;
        let same = match self.fold {
            true => word.bytes.iter().zip(start).all(|(w, t)| *w == t.to_ascii_lowercase()),
            false => word.bytes == start,
        };
        same.then_some(start.len())
    }

    fn begins_wild(&self, word: &Word, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        for w in &word.bytes {
            let t = *text.get(at)?;
            at = match *w {
                ANY => utf8::after(text, at),
                w if w == t || self.fold && w == t.to_ascii_lowercase() => at + 1,
                _ => return None,
            };
        }
        Some(at)
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
            return match words.first() {
                Some(word) => self.begins(word, text) == Some(text.len()),
                None => text.is_empty(),
            };
        }
        if self.from_start
            && let [first, rest @ ..] = words
        {
            let Some(n) = self.begins(first, text) else { return false };
            from = n;
            words = rest;
        }
        if self.to_end
            && let [rest @ .., last] = words
        {
            let Some(start) = to.checked_sub(last.bytes.len()).filter(|s| *s >= from) else { return false };
            if self.begins(last, &text[start..]).is_none() {
                return false;
            }
            to = start;
            words = rest;
        }
        for w in words {
            match self.find(w, &text[from..to]) {
                Some(end) => from += end,
                None => return false,
            }
        }
        true
    }

    /// Where the first place of a word in a text ends.
    fn find(&self, word: &Word, text: &[u8]) -> Option<usize> {
        let mut from = 0;
        for _ in 0..word.passed {
            if from == text.len() {
                return None;
            }
            from = utf8::after(text, from);
        }
        let Some(&first) = word.bytes.first() else { return Some(from) };
        // Each character of the word takes a byte at least.
        let last = text.len().checked_sub(word.bytes.len())?;
        while from <= last {
            let rest = &text[from..=last];
            let at = match self.fold && first.is_ascii_lowercase() {
                true => memchr::memchr2(first, first.to_ascii_uppercase(), rest),
                false => memchr::memchr(first, rest),
            }?;
            if let Some(n) = self.begins(word, &text[from + at..]) {
                return Some(from + at + n);
            }
            from += at + 1;
        }
        None
    }
}

/// `substr(column, 1, n) IN ('...', ...)`, or `=`: how a text begins.
pub(crate) struct Starts {
    n: usize,
    /// Each of them as long as the beginning, or the whole text; in order.
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
        let (lhs, mut words, not) = match ex {
            Ex::In { not, lhs, list, affinity, collation }
                if collation.is_binary() && !affinity.is_numeric() =>
            {
                (&**lhs, list.iter().map(text).collect::<Option<Vec<_>>>()?, *not)
            }
            Ex::InSet(u) if u.collation.is_binary() && !u.affinity.is_numeric() => {
                (&u.lhs, u.set.as_ref()?.only_texts()?.map(Vec::from).collect(), u.not)
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
                words.sort_unstable();
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
        self.words.binary_search_by(|w| (**w).cmp(start)).is_ok() != self.not
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By trying all ways.
    fn slowly(p: &[u8], t: &[u8], fold: bool) -> bool {
        match p.split_first() {
            None => t.is_empty(),
            Some((b'%', rest)) => {
                slowly(rest, t, fold) || !t.is_empty() && slowly(p, &t[utf8::after(t, 0)..], fold)
            }
            Some((b'_', rest)) => !t.is_empty() && slowly(rest, &t[utf8::after(t, 0)..], fold),
            Some((c, rest)) => t.split_first().is_some_and(|(d, more)| {
                (c == d || fold && c.eq_ignore_ascii_case(d)) && slowly(rest, more, fold)
            }),
        }
    }

    #[test]
    fn words_are_found_as_trying_all_ways_finds_them() {
        let letters = ["a", "B", "%", "_", "b", "%a"];
        let mut patterns = vec![String::new()];
        for _ in 0..5 {
            let longer: Vec<String> =
                patterns.iter().flat_map(|p| letters.iter().map(move |l| format!("{p}{l}"))).collect();
            patterns.extend(longer);
            patterns.sort();
            patterns.dedup();
        }
        let texts = [
            "",
            "a",
            "ab",
            "AB",
            "aab",
            "abab",
            "bbab",
            "ba",
            "aBbA",
            "bAaB",
            "abba",
            "\u{e9}ab",
            "a\u{20ac}b",
        ];
        for p in patterns.iter().filter(|p| p.len() < 7) {
            for t in texts {
                for fold in [false, true] {
                    let want = slowly(p.as_bytes(), t.as_bytes(), fold);
                    if let Some(like) = Like::words(p.as_bytes(), fold, false) {
                        assert_eq!(like.matches(t.as_bytes()), want, "{p} {t} {fold}");
                    }
                }
            }
        }
        let like = |pattern: &str| Like::words(pattern.as_bytes(), true, false).unwrap();
        assert!(like("ab%").matches(b"abc\0%") && !like("%d").matches(b"abc\0d"));
        assert!(like("%_b%").matches("\u{e9}b".as_bytes()) && !like("%__b%").matches("\u{e9}b".as_bytes()));
    }
}
