//! Who hears what a run is doing.

use std::time::Duration;

use super::outcome::Measured;
use crate::plan::Subject;

/// What a run sets out to measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Problems, each as often as there are ways to measure it.
    pub problems: u64,
    /// A/A runs, which are the yardstick for the problems.
    pub controls: u64,
    /// Processes that are planned for each of both.
    pub processes: u32,
    /// Over what time these are spread at least.
    pub spread: Duration,
}

/// Hears what a run is doing. A run calls it between processes only, so that nothing it does
/// disturbs a sample.
pub trait Observer {
    /// The run starts.
    fn run_starts(&mut self, _extent: Extent) {}

    /// The ceilings of the machine are measured.
    fn ceilings_start(&mut self) {}

    /// The run does nothing for this time, so that the processes of a problem lie apart.
    fn waits(&mut self, _time: Duration) {}

    /// A process of a subject starts, in a pass counted from 0.
    fn process_starts(&mut self, _subject: &Subject, _pass: u32) {}

    /// A process was measured, now or in an earlier part of the run.
    fn process_ends(&mut self) {}

    /// More processes than planned are needed.
    fn processes_added(&mut self, _count: u64) {}

    /// A problem was measured in one more process, and needs others.
    fn problem_goes_on(&mut self, _measured: &Measured) {}

    /// A problem needs no more processes, or cannot be measured.
    fn problem_ends(&mut self, _measured: &Measured) {}

    /// A pass, counted from 0, has made a process of everything that needed one. These are all
    /// problems.
    fn pass_ends(&mut self, _pass: u32, _problems: &[Measured]) {}

    /// Something the user should know.
    fn warn(&mut self, _warning: &str) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {}
