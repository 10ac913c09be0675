//! What measured figures can be at all, on whatever machine.

use crate::range::Range;

/// One run of a kernel, up to eleven days. Where a clock does not move, its step is shared by as many
/// runs as a sample can have, which is 10^-14 ms for a step of a nanosecond.
pub(super) const TIME_MS: Range = Range::new(1e-14..=1e9, "ms");

/// A time that can be too short for a clock to see.
pub(super) const SHORT_TIME_US: Range = Range::new(0.0..=1e9, "us");

/// What it takes to hand work to other threads.
pub(super) const HANDOFF_US: Range = Range::new(1e-9..=1e9, "us");

/// A measured rate.
pub(super) const RATE: Range = Range::new(1e-6..=1e9, "GB/s or GFLOP/s");

/// From the first process of a problem to the last one, or how long a run may take: up to thirty years.
pub(super) const SPAN_S: Range = Range::new(0.0..=1e9, "s");

/// A ratio of two times of one process.
pub(super) const RATIO: Range = Range::new(1e-9..=1e9, "");

/// An end of the interval of a time, or of the ratio of a kernel to itself: with two rounds, each of
/// them may be a million times wider than what was measured.
pub(super) const END: Range = Range::new(1e-25..=1e25, "");

/// An end of the interval of a speedup, whose width other keys bound too. With two rounds it lies nearly
/// thirteen standard errors from the middle, each up to the width of [`RATIO`], in the logarithm: some
/// 10^114 at most.
pub(super) const SPEEDUP_END: Range = Range::new(1e-150..=1e150, "");

/// Runs in a sample, which a slow clock makes many.
pub(super) const RUNS: Range = Range::new(1.0..=1e9, "runs");

/// Processes or rounds that are planned.
pub(super) const PLANNED: Range = Range::new(1.0..=1e6, "");

/// A level of cache, and its bytes.
pub(super) const CACHE_LEVEL: Range = Range::new(1.0..=9.0, "");
pub(super) const CACHE_BYTES: Range = Range::new(1.0..=1e12, "bytes");

/// What a kernel of a GPU is made of and launched with, from a small device to one that nobody has
/// built.
pub(super) const BLOCKS: Range = Range::new(1.0..=1e15, "blocks");
pub(super) const THREADS_OF_BLOCK: Range = Range::new(1.0..=4096.0, "threads");
pub(super) const REGISTERS: Range = Range::new(0.0..=4096.0, "registers");
pub(super) const ON_CHIP_BYTES: Range = Range::new(0.0..=1e9, "bytes");
pub(super) const RESIDENT_BLOCKS: Range = Range::new(0.0..=1e6, "blocks");

/// The memory of a machine or of a GPU.
pub(super) const MEMORY: Range = Range::new(1e6..=1e18, "bytes");

/// The cores, threads or processors of a machine, and what share a cache.
pub(super) const PROCESSORS: Range = Range::new(1.0..=1e5, "");

/// The clock of a GPU, which may sleep.
pub(super) const CLOCK_MHZ: Range = Range::new(0.0..=20_000.0, "MHz");

/// Ticks of a clock in a sample: up to eleven days in nanoseconds.
pub(super) const TICKS: Range = Range::new(1.0..=1e15, "ticks");
