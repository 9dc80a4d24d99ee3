//! Rows of one width, field by field in one piece of memory: a VALUES clause may have very many.

/// Rows of equal width. What always holds: there are as many fields as rows times columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<T> {
    width: usize,
    fields: Vec<T>,
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows { width: 0, fields: Vec::new() }
    }
}

impl<T> Rows<T> {
    /// Rows of `width` fields, one after the other. What is too short for a row at the end is left out; of no width, there are none.
    pub fn new(width: usize, mut fields: Vec<T>) -> Rows<T> {
        fields.truncate(if width == 0 { 0 } else { fields.len() - fields.len() % width });
        Rows { width, fields }
    }

    /// The one row of these fields.
    pub fn one(fields: Vec<T>) -> Rows<T> {
        Rows::new(fields.len(), fields)
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.fields.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Row number `i`, from 0.
    pub fn get(&self, i: usize) -> Option<&[T]> {
        let at = i.checked_mul(self.width)?;
        if self.is_empty() { None } else { self.fields.get(at..at + self.width) }
    }

    /// Row by row.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> + Clone {
        self.fields.chunks_exact(self.width.max(1))
    }

    /// The same, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        self.fields.chunks_exact_mut(self.width.max(1))
    }

    /// All fields, row by row.
    pub fn fields(&self) -> &[T] {
        &self.fields
    }

    /// All fields, to change them.
    pub fn fields_mut(&mut self) -> &mut [T] {
        &mut self.fields
    }

    /// All fields, row by row.
    pub fn into_fields(self) -> Vec<T> {
        self.fields
    }
}

#[cfg(test)]
mod tests {
    use super::Rows;

    #[test]
    fn fields_are_rows() {
        let r = Rows::new(2, vec![1, 2, 3, 4]);
        assert_eq!((r.len(), r.width()), (2, 2));
        assert_eq!(r.iter().collect::<Vec<_>>(), [&[1, 2], &[3, 4]]);
        assert_eq!((r.get(1), r.get(2)), (Some(&[3, 4][..]), None));
        assert_eq!(Rows::one(vec![7]).get(0), Some(&[7][..]));
    }

    #[test]
    fn without_columns_there_are_no_rows() {
        let r = Rows::new(0, vec![1]);
        assert!(r.is_empty() && r.iter().next().is_none() && r.get(0).is_none());
        assert_eq!(Rows::<i32>::default().len(), 0);
    }
}
