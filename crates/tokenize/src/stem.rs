//! Porter's algorithm: English words without their endings.
//!
//! M. F. Porter, *An algorithm for suffix stripping*, 1980, with the two changes that its author made later (`bli`, `logi`).
//! The measure of a stem is the number of times that a vowel is followed by a consonant.

/// Stems a word of three bytes or more, in lower case.
pub fn stem(w: &mut Vec<u8>) {
    plural(w);
    past(w);
    if let [stem @ .., b'y'] = &w[..]
        && has_vowel(stem)
    {
        replace(w, 1, b"i");
    }
    rule(w, SECOND, |stem| measure(stem) > 0);
    rule(w, THIRD, |stem| measure(stem) > 0);
    fourth(w);
    if let [stem @ .., b'e'] = &w[..] {
        let m = measure(stem);
        if m > 1 || m == 1 && !is_short(stem) {
            w.pop();
        }
    }
    if w.ends_with(b"ll") && measure(&w[..w.len() - 1]) > 1 {
        w.pop();
    }
}

fn replace(w: &mut Vec<u8>, ending: usize, by: &[u8]) {
    w.truncate(w.len() - ending);
    w.extend_from_slice(by);
}

/// Whether a letter is a vowel; `y` is one after a consonant.
fn is_vowel(c: u8, after_consonant: bool) -> bool {
    matches!(c, b'a' | b'e' | b'i' | b'o' | b'u') || c == b'y' && after_consonant
}

/// For each letter, whether it is a consonant.
fn consonants(stem: &[u8]) -> impl Iterator<Item = bool> + '_ {
    let mut last = false;
    stem.iter().map(move |c| {
        last = !is_vowel(*c, last);
        last
    })
}

fn measure(stem: &[u8]) -> u32 {
    let (mut m, mut vowel) = (0, false);
    for consonant in consonants(stem) {
        m += (consonant && vowel) as u32;
        vowel = !consonant;
    }
    m
}

fn has_vowel(stem: &[u8]) -> bool {
    stem.iter().enumerate().any(|(i, c)| is_vowel(*c, i > 0))
}

/// Whether it ends with consonant, vowel, consonant, the last not being `w`, `x` or `y`.
fn is_short(stem: &[u8]) -> bool {
    if matches!(stem.last(), None | Some(b'w' | b'x' | b'y')) {
        return false;
    }
    consonants(stem).fold(0u8, |bits, c| bits << 1 & 7 | c as u8) == 5
}

fn plural(w: &mut Vec<u8>) {
    let cut = match &w[..] {
        [_, .., b's', b's', b'e', b's'] | [_, .., b'i', b'e', b's'] => 2,
        [.., b's', b's'] => 0,
        [.., b's'] => 1,
        _ => 0,
    };
    replace(w, cut, b"");
}

fn past(w: &mut Vec<u8>) {
    match &w[..] {
        [_, .., b'e', b'e', b'd'] => {
            if measure(&w[..w.len() - 3]) > 0 {
                w.pop();
            }
            return;
        }
        [stem @ .., b'e', b'd'] if !stem.is_empty() && has_vowel(stem) => replace(w, 2, b""),
        [stem @ .., b'i', b'n', b'g'] if !stem.is_empty() && has_vowel(stem) => replace(w, 3, b""),
        _ => return,
    }
    match &w[..] {
        [_, .., b'a', b't'] | [_, .., b'b', b'l'] | [_, .., b'i', b'z'] => w.push(b'e'),
        [.., a, b] if a == b && !is_vowel(*b, false) && !matches!(b, b'l' | b's' | b'z') => {
            w.pop();
        }
        _ if measure(w) == 1 && is_short(w) => w.push(b'e'),
        _ => {}
    }
}

/// Endings and what they become. The first that fits counts, even if its stem is too short.
type Endings = &'static [(&'static str, &'static str)];

const SECOND: Endings = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const THIRD: Endings = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const FOURTH: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

fn rule(w: &mut Vec<u8>, endings: Endings, applies: fn(&[u8]) -> bool) {
    let fits = |e: &&(&str, &str)| w.len() > e.0.len() && w.ends_with(e.0.as_bytes());
    if let Some((from, to)) = endings.iter().find(fits)
        && applies(&w[..w.len() - from.len()])
    {
        replace(w, from.len(), to.as_bytes());
    }
}

fn fourth(w: &mut Vec<u8>) {
    let fits = |e: &&&str| w.len() > e.len() && w.ends_with(e.as_bytes());
    let Some(ending) = FOURTH.iter().find(fits) else { return };
    let stem = &w[..w.len() - ending.len()];
    if measure(stem) > 1 && (*ending != "ion" || matches!(stem.last(), Some(b's' | b't'))) {
        replace(w, ending.len(), b"");
    }
}
