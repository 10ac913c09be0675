//! A table as sections of bytes, one for each column: what an index is made of.

use std::sync::Arc;

use bytemuck::{CheckedBitPattern, NoUninit};
use memmap2::Mmap;

use crate::Column;

/// What a column of a table can be of.
pub(crate) trait Element: CheckedBitPattern + NoUninit {
    /// What its type is called in a file.
    const KIND: &'static str;

    /// The column in a part of a file, unless that is none.
    fn column(map: &Arc<Mmap>, start: usize, bytes: usize) -> Option<Column<Self>>;
}

/// A section that is to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'t> {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) bytes: &'t [u8],
}

impl<'t> Part<'t> {
    /// The section of a column.
    pub(crate) fn of<T: Element>(name: &'static str, rows: &'t [T]) -> Self {
        Self { name, kind: T::KIND, bytes: bytemuck::cast_slice(rows) }
    }
}

/// Sections that are taken one after the other.
pub(crate) trait Sections {
    /// Takes the next one, which must be the column of this name.
    ///
    /// # Errors
    ///
    /// When it is another one, or no such column.
    fn column<T: Element>(&mut self, name: &'static str) -> Result<Column<T>, Damage>;
}

/// What is wrong with the bytes of an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The header, or the table of sections.
    #[error("its header is broken")]
    Header,
    /// A section is not where it must be, or missing, or one too many.
    #[error("{section} is not where it belongs")]
    Place {
        /// The name of the section.
        section: String,
    },
    /// A section does not have the checksum it had.
    #[error("{section} has another checksum")]
    Checksum {
        /// The name of the section.
        section: String,
    },
    /// A section has values that no trace gives.
    #[error("{section} has impossible values")]
    Values {
        /// The name of the section.
        section: String,
    },
}
