//! A column of a table: rows in memory, or a part of a mapped file.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::Arc;
use std::vec;

use bytemuck::AnyBitPattern;
use memmap2::Mmap;
use yoke::Yoke;

/// A column of a table, which is used as a slice.
///
/// Its rows are in memory, or a part of a mapped file that stays mapped as long as a column needs
/// it. Changing mapped rows copies them into memory first.
#[derive(Clone)]
pub struct Column<T: 'static>(Rows<T>);

#[derive(Clone)]
enum Rows<T: 'static> {
    Owned(Vec<T>),
    Mapped(Yoke<&'static [T], Arc<Mmap>>),
}

impl<T: AnyBitPattern> Column<T> {
    /// The rows in a part of a mapped file, unless the file has no such part, or the part is no
    /// whole number of rows or begins where in memory no row can.
    pub(crate) fn mapped(map: &Arc<Mmap>, start: usize, bytes: usize) -> Option<Self> {
        let rows = Yoke::try_attach_to_cart(Arc::clone(map), |map| {
            let part = map.get(start..start.checked_add(bytes).ok_or(())?).ok_or(())?;
            bytemuck::try_cast_slice(part).map_err(drop)
        });
        rows.ok().map(|rows| Self(Rows::Mapped(rows)))
    }
}

impl<T: Clone> Column<T> {
    /// The rows as a vector, to change them; those of a file are copied first.
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Rows::Mapped(rows) = &self.0 {
            self.0 = Rows::Owned(rows.get().to_vec());
        }
        match &mut self.0 {
            Rows::Owned(rows) => rows,
            Rows::Mapped(_) => unreachable!("these were copied"),
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, row: T) {
        // Not by way of the copy, that loaders pay for no more than the comparison.
        match &mut self.0 {
            Rows::Owned(rows) => rows.push(row),
            Rows::Mapped(_) => self.to_mut().push(row),
        }
    }

    /// Adds rows. `parts` is about how many such calls there will be.
    pub(crate) fn append(&mut self, part: &[T], parts: usize) {
        self.reserve(part.len(), parts);
        self.to_mut().extend_from_slice(part);
    }

    /// Sees that there is memory for more rows. If there is not, it is taken for that number of
    /// `parts` with as many: what is not used of it is not there, and rows need not be moved.
    pub(crate) fn reserve(&mut self, more: usize, parts: usize) {
        let rows = self.to_mut();
        if rows.capacity() - rows.len() < more {
            rows.reserve(more.saturating_mul(parts.max(1)));
        }
    }

    /// Removes rows by their numbers.
    pub(crate) fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        let mut row = 0;
        self.to_mut().retain(|_| {
            row += 1;
            keeps(row - 1)
        });
    }

    /// Removes all rows, and keeps the memory for new ones.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Rows::Owned(rows) => rows.clear(),
            Rows::Mapped(_) => *self = Self::default(),
        }
    }
}

impl<T> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Rows::Owned(rows) => rows,
            Rows::Mapped(rows) => rows.get(),
        }
    }
}

/// Copies the rows of a file, see [`Column::to_mut`].
impl<T: Clone> DerefMut for Column<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.to_mut()
    }
}

impl<T> AsRef<[T]> for Column<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(rows: Vec<T>) -> Self {
        Self(Rows::Owned(rows))
    }
}

impl<T> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        Vec::from_iter(rows).into()
    }
}

impl<T: Clone> Extend<T> for Column<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, rows: I) {
        self.to_mut().extend(rows);
    }
}

impl<'c, T> IntoIterator for &'c Column<T> {
    type Item = &'c T;
    type IntoIter = slice::Iter<'c, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Clone> IntoIterator for Column<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        match self.0 {
            Rows::Owned(rows) => rows.into_iter(),
            Rows::Mapped(rows) => rows.get().to_vec().into_iter(),
        }
    }
}

/// By the rows, wherever they are.
impl<T: PartialEq, O: AsRef<[T]> + ?Sized> PartialEq<O> for Column<T> {
    fn eq(&self, other: &O) -> bool {
        **self == *other.as_ref()
    }
}

impl<T: Eq> Eq for Column<T> {}

impl<T: fmt::Debug> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;

    use super::*;

    /// The numbers 0, 1, 2, ... of 32 bits in a mapping.
    fn map(numbers: u32) -> Arc<Mmap> {
        let mut map = MmapMut::map_anon(4 * numbers as usize).unwrap();
        for (place, number) in map.chunks_exact_mut(4).zip(0..numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Arc::new(map.make_read_only().unwrap())
    }

    #[test]
    fn mapped_rows_are_like_owned_ones() {
        let map = map(6);
        let mapped: Column<u32> = Column::mapped(&map, 4, 16).unwrap();
        drop(map);
        let owned: Column<u32> = (1..5).collect();
        assert_eq!(mapped, owned);
        assert_eq!(mapped, [1, 2, 3, 4]);
        assert_ne!(mapped, vec![1, 2, 3]);
        assert_eq!(format!("{mapped:?}"), "[1, 2, 3, 4]");
        assert_eq!(mapped.iter().zip(&owned).filter(|(a, b)| a == b).count(), 4);
        assert_eq!((mapped.get(3), mapped.get(4), mapped.len()), (Some(&4), None, 4));
        assert!(mapped.clone().into_iter().eq(owned));
    }

    #[test]
    fn a_change_is_made_to_a_copy() {
        let map = map(3);
        let first: Column<u32> = Column::mapped(&map, 0, 12).unwrap();
        let mut second = first.clone();
        second.push(7);
        second.swap(0, 1);
        second.extend([8, 9]);
        assert_eq!(second, [1, 0, 2, 7, 8, 9]);
        assert_eq!(first, [0, 1, 2]);
        let mut third = first.clone();
        third.clear();
        assert!(third.is_empty() && Column::<u32>::default() == third);
        assert_eq!(first.len(), 3);
    }

    #[test]
    fn parts_have_memory_for_those_that_follow() {
        let mut column: Column<u32> = Column::default();
        column.append(&[1, 2, 3], 10);
        let capacity = column.to_mut().capacity();
        assert!(capacity >= 30);
        (0..9).for_each(|_| column.append(&[4, 5, 6], 1));
        assert_eq!((column.len(), column.to_mut().capacity()), (30, capacity));
        // More of them than were expected, or none.
        column.append(&[7; 100], 0);
        assert_eq!((column.len(), column[129]), (130, 7));
        let mut mapped: Column<u32> = Column::mapped(&map(3), 0, 12).unwrap();
        mapped.append(&[9], 2);
        assert_eq!(mapped, [0, 1, 2, 9]);
    }

    #[test]
    fn what_is_no_part_of_the_file_is_no_column() {
        let map = map(6);
        let rows = |start, bytes| Column::<u32>::mapped(&map, start, bytes).map(|rows| rows.len());
        assert_eq!((rows(0, 24), rows(24, 0), rows(8, 8)), (Some(6), Some(0), Some(2)));
        for (start, bytes) in [(0, 28), (28, 0), (24, 4), (usize::MAX, 4), (4, usize::MAX)] {
            assert_eq!(rows(start, bytes), None, "{start} {bytes}");
        }
        assert_eq!((rows(2, 8), rows(0, 7)), (None, None), "between two rows");
    }
}
