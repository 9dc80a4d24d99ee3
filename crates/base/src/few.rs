//! A list that mostly has one element: the first lies in the value itself, so that a list of one allocates nothing.
//!
//! What is compiled is mostly small: one table, one condition, one result column. A list is a slice to its readers;
//! only adding and removing know which of the two forms it has.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// A list.
#[derive(Clone)]
pub struct Few<T>(Repr<T>);

#[derive(Clone)]
enum Repr<T> {
    One(T),
    /// No element or several; also one that came to it as a `Vec`.
    Many(Vec<T>),
}

impl<T> Few<T> {
    /// An empty list.
    #[inline]
    pub const fn new() -> Few<T> {
        Few(Repr::Many(Vec::new()))
    }

    /// A list of one element.
    #[inline]
    pub const fn one(x: T) -> Few<T> {
        Few(Repr::One(x))
    }

    /// An empty list with room for `n` elements.
    #[inline]
    pub fn with_capacity(n: usize) -> Few<T> {
        Few(Repr::Many(if n > 1 { Vec::with_capacity(n) } else { Vec::new() }))
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, x: T) {
        match &self.0 {
            Repr::Many(v) if v.capacity() == 0 => self.0 = Repr::One(x),
            _ => self.several().push(x),
        }
    }

    /// Takes the last element away.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        match &mut self.0 {
            Repr::Many(v) => v.pop(),
            Repr::One(_) => match std::mem::take(self).0 {
                Repr::One(x) => Some(x),
                Repr::Many(_) => None,
            },
        }
    }

    /// The element of a list that has just one.
    ///
    /// # Panics
    /// Panics if the list is empty.
    #[inline]
    pub fn into_only(self) -> T {
        match self.0 {
            Repr::One(x) => x,
            Repr::Many(mut v) => v.pop().expect("a list of one element"),
        }
    }

    /// The list as a vector, for all else that vectors can do.
    #[cold]
    pub fn several(&mut self) -> &mut Vec<T> {
        if let Repr::One(_) = self.0
            && let Repr::One(x) = std::mem::take(self).0
        {
            let mut v = Vec::with_capacity(4);
            v.push(x);
            self.0 = Repr::Many(v);
        }
        match &mut self.0 {
            Repr::Many(v) => v,
            Repr::One(_) => unreachable!("made a vector above"),
        }
    }
}

impl<T> Default for Few<T> {
    #[inline]
    fn default() -> Self {
        Few::new()
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Repr::One(x) => std::slice::from_ref(x),
            Repr::Many(v) => v,
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Repr::One(x) => std::slice::from_mut(x),
            Repr::Many(v) => v,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Few<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: PartialEq> PartialEq for Few<T> {
    fn eq(&self, other: &Few<T>) -> bool {
        **self == **other
    }
}

impl<T> From<Vec<T>> for Few<T> {
    #[inline]
    fn from(v: Vec<T>) -> Few<T> {
        Few(Repr::Many(v))
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(i: I) -> Few<T> {
        let i = i.into_iter();
        if i.size_hint().0 > 1 {
            return Few(Repr::Many(i.collect()));
        }
        let mut out = Few::new();
        out.extend(i);
        out
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, i: I) {
        i.into_iter().for_each(|x| self.push(x));
    }
}

/// The elements of a list, by value.
pub enum IntoIter<T> {
    /// Of a list of one.
    One(Option<T>),
    /// Of any other.
    Many(std::vec::IntoIter<T>),
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match self {
            IntoIter::One(x) => x.take(),
            IntoIter::Many(v) => v.next(),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            IntoIter::One(x) => (x.is_some() as usize, Some(x.is_some() as usize)),
            IntoIter::Many(v) => v.size_hint(),
        }
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}

impl<T> DoubleEndedIterator for IntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        match self {
            IntoIter::One(x) => x.take(),
            IntoIter::Many(v) => v.next_back(),
        }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    #[inline]
    fn into_iter(self) -> IntoIter<T> {
        match self.0 {
            Repr::One(x) => IntoIter::One(Some(x)),
            Repr::Many(v) => IntoIter::Many(v.into_iter()),
        }
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Few<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn a_list_is_what_a_vector_with_the_same_steps_is() {
        // Each number is a step: 0 takes the last element away, others are appended.
        for steps in [&[1, 2, 0, 0, 0, 3][..], &[0, 1], &[1, 0, 2, 3, 0, 4], &[5, 6, 7, 8, 9, 0]] {
            let (mut few, mut vec) = (Few::new(), Vec::new());
            for &s in steps {
                if s == 0 {
                    assert_eq!(few.pop(), vec.pop());
                } else {
                    few.push(s);
                    vec.push(s);
                }
                assert_eq!(&*few, &*vec);
                assert_eq!(few.clone().into_iter().collect::<Vec<_>>(), vec);
                assert_eq!(vec.iter().copied().collect::<Few<_>>(), few);
            }
            few.several().insert(0, 10);
            vec.insert(0, 10);
            assert_eq!(&*few, &*vec);
        }
    }
}
