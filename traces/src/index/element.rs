//! Ties the columns of the tables to their bytes.

use std::sync::Arc;

use memmap2::Mmap;

use crate::section::Element;
use crate::{Column, DeviceWork, NameId};

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
