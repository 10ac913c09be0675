//! A problem that a runtime has made ready.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::answer::Kernels;
use super::backend::Shared;
use super::clock::ClockCheck;
use super::error::RuntimeError;
use super::message::{Layout, Output, Poison, Run};
use super::output::OutputFile;
use super::processor_time::ProcessorTime;
use super::threads::Threads;
use crate::backend::{BackendError, Prepared, ThreadCounters, Variant};

/// Messages without a run by which it is seen what one takes.
const EMPTY_RUNS: u32 = 20;

/// A problem that a runtime has made ready.
pub(super) struct PreparedRuntime<'b> {
    pub(super) shared: &'b Shared,
    /// What the runtime calls it.
    pub(super) id: u32,
    pub(super) kernels: Kernels,
    /// Whether it moves its tensors.
    pub(super) layouts: bool,
    /// Where its output goes.
    pub(super) output: OutputFile,
    clock: ClockCheck,
}

/// The threads of the runtime, which all of its problems share.
pub(super) struct Watched {
    threads: Threads,
    processor_time: ProcessorTime,
    /// The time of all runs of the problem.
    runs: Duration,
    /// When that is this long, it is looked at again which threads compute.
    next_look: Duration,
    /// Whether more threads computed than may at the last look.
    suspected: bool,
    /// How many threads are bound.
    bound: usize,
    /// Whether it is known what a message costs the threads where they are now.
    knows_messages: bool,
    /// What was found and could not be said yet.
    found: Option<RuntimeError>,
}

impl Watched {
    pub(super) fn of(process: u32) -> Self {
        let (threads, never) = (Threads::of(process), Duration::ZERO);
        let (suspected, bound, knows_messages, found) = (false, 0, false, None);
        let (processor_time, runs, next_look) = (ProcessorTime::of(process), never, never);
        Self { threads, processor_time, runs, next_look, suspected, bound, knows_messages, found }
    }

    /// Begins anew, with another problem.
    fn begin(&mut self) {
        self.threads.begin();
        self.processor_time.begin();
        (self.runs, self.next_look) = (Duration::ZERO, Duration::ZERO);
        (self.suspected, self.bound, self.found) = (false, 0, None);
    }

    /// Looks at which threads compute, after runs of twice the time each: for a short time, the host of
    /// a virtual machine can have had a processor. Refuses more threads than the runtime was given at the
    /// second look that finds them, since on a busy machine one that only passes work on can wait for
    /// a processor for most of a short time; and likewise too much processor time, which has looks of
    /// its own. Binds each of them; those that are bound stay where they are.
    pub(super) fn look(&mut self, allowed: usize, processors: Option<&[u32]>) {
        if let Some(error) = self.processor_time.look(allowed, self.runs) {
            self.found.get_or_insert(error);
        }
        if self.runs < self.next_look {
            return;
        }
        let Some(busy) = self.threads.busy(self.runs) else { return };
        self.next_look = 2 * self.runs;
        let found = busy.len();
        let was_suspected = std::mem::replace(&mut self.suspected, found > allowed);
        if found > allowed {
            if was_suspected {
                self.found.get_or_insert(RuntimeError::Threads { found, allowed });
            }
        } else if let Some(processors) = processors.filter(|_| found > self.bound) {
            self.threads.bind(busy, processors);
            (self.bound, self.knows_messages) = (found, false);
        }
    }
}

/// The files through which tensors are passed; their names are gone when it is.
pub(super) struct Files(pub(super) Vec<PathBuf>);

impl Drop for Files {
    fn drop(&mut self) {
        for file in &self.0 {
            // The runtime may have removed them, and the folder is removed by whoever made it.
            let _ = std::fs::remove_file(file);
        }
    }
}

impl<'b> PreparedRuntime<'b> {
    pub(super) fn new(
        shared: &'b Shared,
        id: u32,
        (kernels, layouts): (Kernels, bool),
        output: OutputFile,
    ) -> Result<Self, BackendError> {
        let mut new =
            Self { shared, id, kernels, layouts, output, clock: ClockCheck::new(Duration::ZERO) };
        new.clock = ClockCheck::new(new.message()?);
        shared.watched.borrow_mut().begin();
        Ok(new)
    }

    /// What a message without a run takes at most, which the threads learn too.
    fn message(&mut self) -> Result<Duration, BackendError> {
        let mut longest = Duration::ZERO;
        // The first ones wake it up.
        let first = EMPTY_RUNS / 4;
        for index in 0..EMPTY_RUNS {
            let began = Instant::now();
            let said = self.ask_to_run(Variant::Fused, 0)?;
            let took = began.elapsed();
            if said > took {
                let text = format!("it says {said:.1?} of no run at all");
                return Err(self.shared.error(RuntimeError::Clock(text)));
            }
            let mut watched = self.shared.watched.borrow_mut();
            if index < first {
                watched.threads.forget_messages();
            } else {
                watched.threads.learn_message();
                longest = longest.max(took);
            }
        }
        self.shared.watched.borrow_mut().knows_messages = true;
        Ok(longest)
    }

    fn request(&self, variant: Variant, iterations: u32) -> Run {
        Run { id: self.id, variant: variant.name(), iterations }
    }

    fn ask_to_run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
        let ran = self.shared.ask(&self.request(variant, iterations))?;
        self.shared.watched.borrow_mut().threads.count_message();
        Ok(Duration::from_nanos(ran.ns))
    }

    /// Says that more computes than may, where the last look found that.
    fn say_what_was_found(&self) -> Result<(), BackendError> {
        let found = self.shared.watched.borrow_mut().found.take();
        found.map_or(Ok(()), |error| Err(self.shared.error(error)))
    }

    /// What the last look at the threads makes necessary: says that more computes than may, or
    /// finds out anew what messages cost them, since they have been bound.
    fn after_look(&mut self) -> Result<(), BackendError> {
        self.say_what_was_found()?;
        if !self.shared.watched.borrow().knows_messages {
            self.message()?;
        }
        Ok(())
    }

    /// Counts runs, after a look at whether they can have taken what it says they took. A part of that
    /// may have been held back.
    fn count(
        &mut self,
        variant: Variant,
        messages: u32,
        passed: Duration,
        said: Duration,
        held_back: Duration,
    ) -> Result<(), BackendError> {
        let mut watched = self.shared.watched.borrow_mut();
        watched.runs += said;
        let missing = self.clock.add(variant, messages, passed, said);
        let missing = missing.map_err(|error| self.shared.error(error))?;
        watched.threads.count_run(said.saturating_sub(missing.max(held_back)));
        Ok(())
    }
}

impl Prepared for PreparedRuntime<'_> {
    fn kernels(&self, variant: Variant) -> Vec<String> {
        let mut kernels = match variant {
            Variant::Unfused => self.kernels.unfused.clone(),
            Variant::Fused => self.kernels.fused.clone(),
        };
        if let (false, Some(last)) = (self.layouts, kernels.last_mut()) {
            last.push_str(" (its tensors were not moved)");
        }
        kernels
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        if self.layouts {
            // JavaScript and others have no larger whole numbers than 2^53.
            #[expect(clippy::cast_possible_truncation, reason = "half of the bits are enough")]
            let seed = (seed ^ (seed >> 32)) as u32;
            self.shared.ask(&Layout { id: self.id, seed })?;
        }
        Ok(())
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        // Behind the last samples no run follows at which it would be said.
        self.say_what_was_found()?;
        self.shared.ask(&Poison { id: self.id })?;
        // What a run left would pass for the result of the next one.
        let left = self.output()?.into_iter().filter(|number| !number.is_nan()).count();
        if left > 0 {
            let elements = self.output.numbers;
            return Err(self.shared.error(RuntimeError::Unpoisoned { left, elements }));
        }
        Ok(())
    }

    fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
        self.after_look()?;
        let before = self.shared.watched.borrow().processor_time.before_runs();
        let began = Instant::now();
        let said = self.ask_to_run(variant, iterations)?;
        let passed = began.elapsed();
        self.shared.watched.borrow_mut().processor_time.count(variant, &before);
        self.count(variant, 1, passed, said, Duration::ZERO)?;
        // Threads that are found before the samples are not moved in the middle of one.
        self.shared.look();
        Ok(said)
    }

    /// Without a pause: a process that has waited for a message takes longer for its next runs, for some
    /// milliseconds.
    fn run_behind(
        &mut self,
        variant: Variant,
        untimed: u32,
        iterations: u32,
    ) -> Result<[Duration; 2], BackendError> {
        self.after_look()?;
        let requests = [untimed, iterations].map(|runs| self.request(variant, runs));
        let before = self.shared.watched.borrow().processor_time.before_runs();
        let began = Instant::now();
        let answers = self.shared.ask_in_a_row(requests.each_ref())?;
        self.shared.watched.borrow_mut().processor_time.count(variant, &before);
        let [(first, between), (second, behind)] = answers;
        let [first, second] = [first, second].map(|ran| Duration::from_nanos(ran.ns));
        // The second ones may have begun before the first answer was read here, but not before it was
        // given.
        let wrong = |error| self.shared.error(error);
        self.clock.check_longest(between - began, first).map_err(wrong)?;
        let held_back = if self.shared.leaves_one {
            self.clock.add_second(variant, behind - between, second).map_err(wrong)?
        } else {
            // The first answer is read when the thread that gave it leaves its processor.
            Duration::ZERO
        };
        for _ in 0..2 {
            self.shared.watched.borrow_mut().threads.count_message();
        }
        self.count(variant, 2, behind - began, first.saturating_add(second), held_back)?;
        Ok([first, second])
    }

    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        let wrong = |source| self.shared.error(RuntimeError::Tensors(source));
        // What an earlier output left must not pass for this one.
        self.output.fill_with_nan().map_err(wrong)?;
        self.shared.ask(&Output { id: self.id })?;
        self.output.read().map_err(wrong)
    }

    fn counters(&mut self) -> Vec<ThreadCounters> {
        self.shared.look();
        self.shared.watched.borrow_mut().threads.read()
    }
}
