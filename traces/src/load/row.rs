//! An event as columns take it.

use super::event::{Category, Event, Field};
use crate::number::scaled;
use crate::{Lane, NameId};

/// The numbers of an event, each in the column of its name if its table has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) category: Category,
    pub(super) start_ns: i64,
    pub(super) duration_ns: u64,
    /// Of what ran on a device.
    pub(super) lane: Lane,
    pub(super) correlation: u64,
    pub(super) external_id: u64,
    pub(super) graph_node: u64,
    /// As [`gradient`] writes it.
    pub(super) gradient: u32,
}

/// What an event refers to, by the numbers that a builder gave it. What its table has no column for
/// is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct References {
    pub(super) name: NameId,
    pub(super) thread: u32,
    pub(super) shape: u32,
    pub(super) message: u32,
    pub(super) sequence: u32,
}

impl Row {
    pub(super) fn of(event: &Event<'_>, start_ns: i64, duration_ns: u64) -> Self {
        let args = &event.args;
        let lane = if event.category.is_on_device() {
            Lane {
                device: number_or(args.device, &event.process),
                stream: number_or(args.stream, &event.thread),
            }
        } else {
            Lane { device: -1, stream: -1 }
        };
        Self {
            category: event.category,
            start_ns,
            duration_ns,
            lane,
            correlation: id(args.correlation),
            external_id: id(args.external_id),
            graph_node: id(args.graph_node),
            gradient: if let Field::Is(number) = args.gradient { gradient(number) } else { 0 },
        }
    }
}

/// Whether an id that the event's table keeps is not a number that fits.
pub(super) fn has_bad_id(event: &Event<'_>) -> bool {
    let args = &event.args;
    let on_device =
        || args.device == Field::Bad || args.stream == Field::Bad || args.graph_node == Field::Bad;
    match event.category {
        Category::Kernel | Category::Memcpy | Category::Memset => {
            on_device() || [args.correlation, args.external_id].contains(&Field::Bad)
        }
        Category::Launch | Category::XpuLaunch | Category::MtiaLaunch => {
            [args.correlation, args.external_id].contains(&Field::Bad)
        }
        Category::Annotation | Category::DeviceAnnotation | Category::Op => {
            args.external_id == Field::Bad
        }
        Category::Frame | Category::Other => false,
    }
}

/// The number of a gradient, from 1 on; 0 if it is too large to be kept, or if there is none.
pub(super) fn gradient(number: u64) -> u32 {
    u32::try_from(number).ok().and_then(|number| number.checked_add(1)).unwrap_or(0)
}

fn id(field: Field<u64>) -> u64 {
    if let Field::Is(value) = field { value } else { 0 }
}

/// The number of a device or a stream; without an argument the event's process or thread is it.
fn number_or(field: Field<i64>, text: &[u8]) -> i64 {
    match field {
        Field::Is(value) => value,
        Field::Bad => -1,
        Field::Missing => scaled(text, 0).and_then(|value| value.try_into().ok()).unwrap_or(-1),
    }
}
