//! Synthetic traces with known truth, for tests and benchmarks.
//!
//! A model of some layers runs for some steps. Each kernel comes with the call that launched it,
//! the operator around that, the arrows between them, and Python frames if they are wanted, as in
//! the traces of the profiler.

mod writer;

use std::io::{self, Write};

use crate::Vendor;
use writer::Writer;

/// A way in which traces of real life differ from the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// The metadata comes after the events.
    MetadataLast,
    /// There is no metadata: the file is a list of events.
    BareList,
    /// The events are in several lists.
    DictOfLists,
    /// Categories and keys as of 2022.
    Capitalised,
    /// Times are whole microseconds.
    WholeTimes,
    /// Times are strings.
    StringTimes,
    /// Times have an exponent.
    ExponentTimes,
    /// Some names are not UTF-8.
    InvalidUtf8,
    /// Some names have a tab in them.
    ControlCharacters,
    /// Some operators are broken by a quote that is not escaped.
    UnescapedQuotes,
    /// Some ids do not fit into 64 bits.
    HugeIds,
    /// The devices have no names.
    EmptyNames,
    /// There are no devices.
    NoDevices,
    /// No spaces and no line ends.
    Compact,
    /// Keys in another order, and unknown ones.
    OtherKeys,
    /// The kernels of a layer are replayed from one graph and share a correlation id.
    Graphs,
}

impl Oddity {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::MetadataLast,
        Self::BareList,
        Self::DictOfLists,
        Self::Capitalised,
        Self::WholeTimes,
        Self::StringTimes,
        Self::ExponentTimes,
        Self::InvalidUtf8,
        Self::ControlCharacters,
        Self::UnescapedQuotes,
        Self::HugeIds,
        Self::EmptyNames,
        Self::NoDevices,
        Self::Compact,
        Self::OtherKeys,
        Self::Graphs,
    ];
}

/// What is generated.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whose names kernels and calls have.
    pub vendor: Vendor,
    /// Layers of the model.
    pub layers: u64,
    /// Steps that it runs.
    pub steps: u64,
    /// Python frames for each kernel.
    pub frames: u64,
    /// What is unusual.
    pub oddities: Vec<Oddity>,
    /// Where the durations come from.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            vendor: Vendor::Nvidia,
            layers: 2,
            steps: 2,
            frames: 1,
            oddities: Vec::new(),
            seed: 1,
        }
    }
}

/// What a loader must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Truth {
    /// Kernels, copies and fills.
    pub kernels: u64,
    /// Their durations together.
    pub kernel_ns: u128,
    /// Calls of the runtime.
    pub launches: u64,
    /// Operators that are not broken.
    pub ops: u64,
    /// Annotations.
    pub annotations: u64,
    /// Python frames.
    pub frames: u64,
    /// All events that are not broken.
    pub events: u64,
    /// Broken events.
    pub broken: u64,
    /// Events with an id that is too large.
    pub bad_ids: u64,
}

/// Writes a trace.
///
/// # Errors
///
/// When the writer cannot write.
pub fn write(plan: &Plan, out: &mut impl Write) -> io::Result<Truth> {
    let truth = Writer::new(plan, out).trace()?;
    out.flush()?;
    Ok(truth)
}

/// The text of a trace in memory.
///
/// # Errors
///
/// None that a vector could give.
pub fn text(plan: &Plan) -> io::Result<(Vec<u8>, Truth)> {
    let mut text = Vec::new();
    let truth = write(plan, &mut text)?;
    Ok((text, truth))
}
