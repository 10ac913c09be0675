//! Ties the columns of the tables to their bytes.

use std::sync::Arc;

use bytemuck::{CheckedBitPattern, NoUninit};
use memmap2::Mmap;

use super::Damage;
use crate::{Column, DeviceWork, NameId};

/// What a column of a table can be of.
pub(crate) trait Element: CheckedBitPattern + NoUninit {
    /// What its type is called in a file.
    const KIND: &'static str;

    /// The column in a part of a file, unless that is none.
    fn column(map: &Arc<Mmap>, start: usize, bytes: usize) -> Option<Column<Self>>;
}

macro_rules! elements {
    ($method:ident: $($type:ty = $kind:literal,)*) => {
        $(impl Element for $type {
            const KIND: &'static str = $kind;

            fn column(map: &Arc<Mmap>, start: usize, bytes: usize) -> Option<Column<Self>> {
                $method(map, start, bytes)
            }
        })*
    };
}

elements! { mapped: i64 = "i64", u64 = "u64", u32 = "u32", NameId = "u32", }
elements! { copied: bool = "bool", DeviceWork = "work", }

fn mapped<T: bytemuck::AnyBitPattern>(
    map: &Arc<Mmap>,
    start: usize,
    bytes: usize,
) -> Option<Column<T>> {
    Column::mapped(map, start, bytes)
}

/// Of a type that not all bytes are. The copy of these few cannot become invalid later on.
fn copied<T: Element>(map: &Arc<Mmap>, start: usize, bytes: usize) -> Option<Column<T>> {
    let part = map.get(start..start.checked_add(bytes)?)?;
    Some(bytemuck::checked::try_cast_slice::<u8, T>(part).ok()?.to_vec().into())
}

/// A section that is to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'t> {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) bytes: &'t [u8],
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
