//! Who hears what a run is doing.

use std::time::Duration;

use super::outcome::Measured;
use crate::plan::Subject;

/// Hears what a run is doing. A run calls it between processes only, so that nothing it does
/// disturbs a sample.
pub trait Observer {
    /// The run starts, with this many processes planned for this many problems.
    fn run_starts(&mut self, _processes: u64, _problems: u64) {}

    /// The ceilings of the machine are measured.
    fn ceilings_start(&mut self) {}

    /// The run does nothing for this time, so that the processes of a problem lie apart.
    fn waits(&mut self, _time: Duration) {}

    /// A process of a subject starts, in a pass counted from 0.
    fn process_starts(&mut self, _subject: &Subject, _pass: u32) {}

    /// A process was measured, now or in an earlier part of the run.
    fn process_ends(&mut self) {}

    /// One process more than planned is needed.
    fn process_added(&mut self) {}

    /// A problem needs no more processes, or cannot be measured.
    fn problem_ends(&mut self, _measured: &Measured) {}

    /// Something the user should know.
    fn warn(&mut self, _warning: &str) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {}
