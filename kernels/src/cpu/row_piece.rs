//! A few rows that go through a chain together.

use pulp::Arch;

use super::tail::Stretch;

/// Rows that go through the stages together.
#[derive(Clone, Copy)]
pub(crate) struct Piece<E> {
    pub(crate) arch: Arch,
    /// The first one in the whole matrix.
    pub(crate) first_row: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// The rows after these, and what the first stage has for them, or where they go.
    pub(crate) ahead: [*const E; 2],
}

impl<E> Piece<E> {
    /// The first row as a stretch of the whole matrix.
    pub(crate) const fn first(&self) -> Stretch {
        Stretch { col: 0, element: self.first_row * self.cols, len: self.cols }
    }
}
