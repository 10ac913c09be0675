//! The columns of each table: a line for each.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{Extent, Rows, Table};
use crate::segment::Layer;
use crate::{DeviceWork, NameId, Thread};

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    Text,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell<'r> {
    Signed(i64),
    Unsigned(u64),
    Text(Cow<'r, str>),
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Text(value) => serializer.serialize_str(value),
        }
    }
}

/// Reads the value of a row; `None` if the trace does not contain it.
type Read = for<'r, 't> fn(&'r Rows<'t>, usize) -> Option<Cell<'r>>;

pub(super) struct Column {
    pub(super) name: &'static str,
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "text has no types"))]
    pub(super) kind: Kind,
    /// Whether it takes a whole trace to know.
    needs_whole: bool,
    read: Read,
}

impl Column {
    pub(super) fn cell<'r>(&self, rows: &'r Rows<'_>, row: usize) -> Option<Cell<'r>> {
        (self.read)(rows, row)
    }
}

/// The columns of a table.
pub(super) fn of(table: Table, extent: Extent) -> Vec<&'static Column> {
    let own = match table {
        Table::Kernels => KERNELS,
        Table::Launches => LAUNCHES,
        Table::Annotations => ANNOTATIONS,
        Table::Ops => OPS,
        Table::Frames => FRAMES,
    };
    let columns = ORIGIN.iter().chain(own);
    columns.filter(|column| extent == Extent::Whole || !column.needs_whole).collect()
}

const fn signed(name: &'static str, read: Read) -> Column {
    Column { name, kind: Kind::Signed, needs_whole: false, read }
}

const fn unsigned(name: &'static str, read: Read) -> Column {
    Column { name, kind: Kind::Unsigned, needs_whole: false, read }
}

const fn text(name: &'static str, read: Read) -> Column {
    Column { name, kind: Kind::Text, needs_whole: false, read }
}

/// A column that only a whole trace can fill.
const fn whole(column: Column) -> Column {
    Column { needs_whole: true, ..column }
}

/// Where a row is from.
const ORIGIN: &[Column] = &[
    text("file", |rows, _| Some(Cell::Text(rows.file.into()))),
    unsigned("rank", |rows, _| rows.rank.map(Cell::Unsigned)),
];

const KERNELS: &[Column] = &[
    signed("start_ns", |rows, row| number(&rows.trace.kernels.start_ns, row)),
    unsigned("duration_ns", |rows, row| count(&rows.trace.kernels.duration_ns, row)),
    signed("device", |rows, row| place(rows.trace.lane_of(row)?.device)),
    signed("stream", |rows, row| place(rows.trace.lane_of(row)?.stream)),
    text("kind", |rows, row| Some(Cell::Text(kind(*rows.trace.kernels.work.get(row)?).into()))),
    text("class", |rows, row| Some(Cell::Text(rows.classes.get(row).main.name().into()))),
    text("label", label),
    text("name", |rows, row| name(rows, &rows.trace.kernels.name, row)),
    unsigned("correlation", |rows, row| id(&rows.trace.kernels.correlation, row)),
    unsigned("external_id", |rows, row| id(&rows.trace.kernels.external_id, row)),
    unsigned("graph_node", |rows, row| id(&rows.trace.kernels.graph_node, row)),
    whole(text("op", launching_op)),
    whole(text("phase", |rows, row| {
        Some(Cell::Text(rows.segments.steps.phase(row)?.name().into()))
    })),
    whole(unsigned("step", |rows, row| {
        Some(Cell::Unsigned(rows.segments.steps.step(row)? as u64))
    })),
    whole(unsigned("pass", |rows, row| Some(Cell::Unsigned(layer(rows, row)?.pass.into())))),
    whole(unsigned("layer", |rows, row| Some(Cell::Unsigned(layer(rows, row)?.number.into())))),
];

const LAUNCHES: &[Column] = &[
    signed("start_ns", |rows, row| number(&rows.trace.launches.start_ns, row)),
    unsigned("duration_ns", |rows, row| count(&rows.trace.launches.duration_ns, row)),
    text("process", |rows, row| process(rows, &rows.trace.launches.thread, row)),
    text("thread", |rows, row| thread(rows, &rows.trace.launches.thread, row)),
    text("name", |rows, row| name(rows, &rows.trace.launches.name, row)),
    unsigned("correlation", |rows, row| id(&rows.trace.launches.correlation, row)),
    unsigned("external_id", |rows, row| id(&rows.trace.launches.external_id, row)),
];

const ANNOTATIONS: &[Column] = &[
    signed("start_ns", |rows, row| number(&rows.trace.annotations.start_ns, row)),
    unsigned("duration_ns", |rows, row| count(&rows.trace.annotations.duration_ns, row)),
    text("side", side),
    text("process", |rows, row| process(rows, &rows.trace.annotations.thread, row)),
    text("thread", |rows, row| thread(rows, &rows.trace.annotations.thread, row)),
    text("name", |rows, row| name(rows, &rows.trace.annotations.name, row)),
    unsigned("external_id", |rows, row| id(&rows.trace.annotations.external_id, row)),
];

const OPS: &[Column] = &[
    signed("start_ns", |rows, row| number(&rows.trace.ops.start_ns, row)),
    unsigned("duration_ns", |rows, row| count(&rows.trace.ops.duration_ns, row)),
    text("process", |rows, row| process(rows, &rows.trace.ops.thread, row)),
    text("thread", |rows, row| thread(rows, &rows.trace.ops.thread, row)),
    text("name", |rows, row| name(rows, &rows.trace.ops.name, row)),
    unsigned("external_id", |rows, row| id(&rows.trace.ops.external_id, row)),
];

const FRAMES: &[Column] = &[
    signed("start_ns", |rows, row| number(&rows.trace.frames.start_ns, row)),
    unsigned("duration_ns", |rows, row| count(&rows.trace.frames.duration_ns, row)),
    text("process", |rows, row| process(rows, &rows.trace.frames.thread, row)),
    text("thread", |rows, row| thread(rows, &rows.trace.frames.thread, row)),
    text("name", |rows, row| name(rows, &rows.trace.frames.name, row)),
];

fn number(column: &[i64], row: usize) -> Option<Cell<'static>> {
    column.get(row).copied().map(Cell::Signed)
}

fn count(column: &[u64], row: usize) -> Option<Cell<'static>> {
    column.get(row).copied().map(Cell::Unsigned)
}

/// Zero is not an id.
fn id(column: &[u64], row: usize) -> Option<Cell<'static>> {
    column.get(row).copied().filter(|&id| id != 0).map(Cell::Unsigned)
}

/// -1 means none.
fn place(number: i64) -> Option<Cell<'static>> {
    (number != -1).then_some(Cell::Signed(number))
}

fn name<'r>(rows: &'r Rows<'_>, column: &[NameId], row: usize) -> Option<Cell<'r>> {
    column.get(row).map(|&id| Cell::Text(rows.trace.names.text(id).into()))
}

fn thread_of<'r>(rows: &'r Rows<'_>, column: &[u32], row: usize) -> Option<&'r Thread> {
    rows.trace.threads.get(*column.get(row)? as usize)
}

fn process<'r>(rows: &'r Rows<'_>, column: &[u32], row: usize) -> Option<Cell<'r>> {
    thread_of(rows, column, row).map(|thread| Cell::Text(thread.process.as_str().into()))
}

fn thread<'r>(rows: &'r Rows<'_>, column: &[u32], row: usize) -> Option<Cell<'r>> {
    thread_of(rows, column, row).map(|thread| Cell::Text(thread.thread.as_str().into()))
}

fn kind(work: DeviceWork) -> &'static str {
    match work {
        DeviceWork::Kernel => "kernel",
        DeviceWork::Memcpy => "memcpy",
        DeviceWork::Memset => "memset",
    }
}

/// The class with everything that is fused into it.
fn label<'r>(rows: &'r Rows<'_>, row: usize) -> Option<Cell<'r>> {
    let class = rows.classes.get(row);
    let label = if class.is_fused() { class.label().into() } else { class.main.name().into() };
    Some(Cell::Text(label))
}

fn launching_op<'r>(rows: &'r Rows<'_>, row: usize) -> Option<Cell<'r>> {
    let external_id = *rows.trace.kernels.external_id.get(row)?;
    let op = rows.ops.get(&external_id).filter(|_| external_id != 0)?;
    Some(Cell::Text(rows.trace.names.text(*op).into()))
}

fn layer<'r>(rows: &'r Rows<'_>, row: usize) -> Option<&'r Layer> {
    rows.segments.layers.list.get(rows.segments.layers.layer(row)?)
}

fn side<'r>(rows: &'r Rows<'_>, row: usize) -> Option<Cell<'r>> {
    let on_device = *rows.trace.annotations.on_device.get(row)?;
    Some(Cell::Text(if on_device { "device" } else { "host" }.into()))
}
