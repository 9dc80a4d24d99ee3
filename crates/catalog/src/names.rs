//! Objects by their names, which are the same in any case, in the order in which SQLite goes through its own.
//!
//! Statements that go through all tables show that order: `PRAGMA table_list` and `foreign_key_check`, ANALYZE. It is that of a
//! list in which a few entries stand with the newest first. When there are five, buckets are made, and from then on an entry comes
//! before the newest of its bucket, or to the front when the bucket is empty. When there are more than two entries for a bucket,
//! there come to be more of them, and the list is made anew in its own order. An entry that is taken out leaves the others as they are.

use iolite_base::hash::FastMap;

/// The most buckets that are made.
const MOST_BUCKETS: usize = 64;

/// No entry.
const NONE: usize = usize::MAX;

/// Objects by their names.
#[derive(Clone)]
pub(crate) struct NameMap<T> {
    places: FastMap<Box<str>, usize>,
    /// The entries, and places without one that can be taken.
    entries: Vec<Option<Entry<T>>>,
    free: Vec<usize>,
    first: usize,
    buckets: Vec<Bucket>,
}

#[derive(Clone)]
struct Entry<T> {
    hash: u32,
    object: T,
    before: usize,
    after: usize,
}

#[derive(Clone, Copy)]
struct Bucket {
    len: usize,
    newest: usize,
}

impl<T> Default for NameMap<T> {
    fn default() -> Self {
        let (places, entries, free) = Default::default();
        NameMap { places, entries, free, first: NONE, buckets: Vec::new() }
    }
}

impl<T> NameMap<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The object with this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        let mut low = [0u8; 48];
        let place = match low.get_mut(..name.len()) {
            Some(buf) => {
                buf.copy_from_slice(name.as_bytes());
                buf.make_ascii_lowercase();
                self.places.get(std::str::from_utf8(buf).ok()?)
            }
            None => self.places.get(&*name.to_ascii_lowercase()),
        };
        Some(&self.entries[*place?].as_ref()?.object)
    }

    /// Adds an object, or puts it in the place of another with its name.
    pub fn insert(&mut self, name: &str, object: T) {
        let key: Box<str> = name.to_ascii_lowercase().into();
        if let Some(e) = self.places.get(&key).and_then(|p| self.entries[*p].as_mut()) {
            e.object = object;
            return;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.entries[place] = Some(Entry { hash: hash(name), object, before: NONE, after: NONE });
        self.places.insert(key, place);
        let n = self.len();
        if n >= 5 && n > 2 * self.buckets.len() {
            self.make_buckets((3 * n).min(MOST_BUCKETS));
        }
        self.link(place);
    }

    /// Takes an object out.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        let place = self.places.remove(&*name.to_ascii_lowercase())?;
        let e = self.entries[place].take()?;
        self.free.push(place);
        match self.entry(e.before) {
            Some(before) => before.after = e.after,
            None => self.first = e.after,
        }
        if let Some(after) = self.entry(e.after) {
            after.before = e.before;
        }
        let buckets = self.buckets.len();
        if buckets > 0 {
            let b = &mut self.buckets[e.hash as usize % buckets];
            b.len -= 1;
            if b.newest == place {
                b.newest = e.after;
            }
        }
        if self.len() == 0 {
            *self = NameMap::default();
        }
        Some(e.object)
    }

    /// All of them.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let at = |place: usize| self.entries.get(place).and_then(Option::as_ref);
        std::iter::successors(at(self.first), move |e| at(e.after)).map(|e| &e.object)
    }

    fn entry(&mut self, place: usize) -> Option<&mut Entry<T>> {
        self.entries.get_mut(place)?.as_mut()
    }

    fn make_buckets(&mut self, n: usize) {
        if n == self.buckets.len() {
            return;
        }
        self.buckets = vec![Bucket { len: 0, newest: NONE }; n];
        let mut place = std::mem::replace(&mut self.first, NONE);
        while let Some(e) = self.entry(place) {
            let next = e.after;
            self.link(place);
            place = next;
        }
    }

    /// Puts an entry into the list.
    fn link(&mut self, place: usize) {
        let Some(e) = self.entry(place) else { return };
        let hash = e.hash as usize;
        let mut after = NONE;
        let buckets = self.buckets.len();
        if buckets > 0 {
            let b = &mut self.buckets[hash % buckets];
            if b.len > 0 {
                after = b.newest;
            }
            *b = Bucket { len: b.len + 1, newest: place };
        }
        if after == NONE {
            after = self.first;
        }
        let before = match self.entry(after) {
            Some(e) => std::mem::replace(&mut e.before, place),
            None => NONE,
        };
        match self.entry(before) {
            Some(e) => e.after = place,
            None => self.first = place,
        }
        if let Some(e) = self.entry(place) {
            (e.before, e.after) = (before, after);
        }
    }
}

/// What decides on an entry's bucket.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0, |h: u32, c| h.wrapping_add(u32::from(c & 0xdf)).wrapping_mul(0x9e37_79b1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(map: &NameMap<u32>) -> Vec<u32> {
        map.values().copied().collect()
    }

    #[test]
    fn few_are_listed_with_the_newest_first() {
        let mut map = NameMap::default();
        for (i, name) in ["a", "b", "C", "d"].iter().enumerate() {
            map.insert(name, i as u32);
        }
        assert_eq!(listed(&map), [3, 2, 1, 0]);
        assert_eq!(map.remove("B"), Some(1));
        map.insert("c", 9);
        assert_eq!(listed(&map), [3, 9, 0]);
        assert_eq!((map.get("c"), map.get("b"), map.len()), (Some(&9), None, 3));
    }

    #[test]
    fn all_are_listed_whatever_was_taken_out() {
        let mut map = NameMap::default();
        for i in 0..1000 {
            map.insert(&format!("t{i}"), i);
            if i % 3 == 0 {
                map.remove(&format!("t{}", i / 2));
            }
        }
        let mut all = listed(&map);
        assert_eq!(all.len(), map.len());
        all.sort_unstable();
        assert!((0..1000).filter(|i| map.get(&format!("T{i}")).is_some()).eq(all));
    }
}
