//! Work on a device, and the time that it takes.
//!
//! Two times are measured. That of the device lies between two events in the queue, and is only
//! true while the queue is full: a device that waits for its next kernel counts the waiting. So
//! runs are recorded into a graph, which the device works off without the host, and the first
//! event comes after a lead of further runs, during which the host submits everything else. The
//! launch-inclusive time is the host's, from handing a run to an idle device to its end.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::driver::{DeviceError, Driver, Event, Graph};
use super::memory::DeviceTensors;
use crate::backend::{KernelFacts, Variant};

/// Kernels of a graph at most. A graph is recorded and made ready anew for every layout, which
/// takes some microseconds for each of its kernels.
const MOST_KERNELS: usize = 512;

/// Runs before those whose kernels are timed one by one, at least: while the device does them, the
/// host submits the others.
const LEAD_OF_STEPS: u32 = 32;

/// Consecutive runs of a variant, from a set of tensors on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stretch {
    variant: Variant,
    first_set: usize,
    runs: u32,
}

/// A kernel, of the project or of a library, that can be submitted.
pub(crate) trait Launch {
    /// What it is, for the record.
    fn name(&self) -> String;

    /// How it was compiled and is launched, where that is known.
    fn facts(&self) -> Option<KernelFacts>;

    /// Looks up where its tensors lie in every set.
    fn locate(&mut self, tensors: &DeviceTensors) -> Result<(), DeviceError>;

    /// Submits it on a set of tensors.
    ///
    /// # Safety
    ///
    /// The tensors must still lie where [`Self::locate`] found them.
    unsafe fn launch(&self, set: usize) -> Result<(), DeviceError>;
}

/// The kernels of each variant in their order.
pub(crate) struct Work {
    pub(crate) unfused: Vec<Box<dyn Launch>>,
    pub(crate) fused: Vec<Box<dyn Launch>>,
}

impl Work {
    pub(crate) fn of(&self, variant: Variant) -> &[Box<dyn Launch>] {
        match variant {
            Variant::Unfused => &self.unfused,
            Variant::Fused => &self.fused,
        }
    }

    pub(crate) fn of_mut(&mut self, variant: Variant) -> &mut [Box<dyn Launch>] {
        match variant {
            Variant::Unfused => &mut self.unfused,
            Variant::Fused => &mut self.fused,
        }
    }
}

/// Submits runs to a device and times them.
pub(crate) struct Queue {
    driver: Rc<dyn Driver>,
    start: Event,
    end: Event,
    /// Recorded for the current layout.
    graphs: HashMap<Stretch, Graph>,
    /// Whether the runtime records kernels like these. Once it has refused, they are submitted one
    /// by one.
    records: bool,
}

impl Queue {
    pub(crate) fn new(driver: &Rc<dyn Driver>) -> Result<Self, DeviceError> {
        let start = driver.create_event()?;
        let end = match driver.create_event() {
            Ok(end) => end,
            Err(error) => {
                // SAFETY: it was just made.
                unsafe { driver.destroy_event(start) };
                return Err(error);
            }
        };
        Ok(Self { driver: Rc::clone(driver), start, end, graphs: HashMap::new(), records: true })
    }

    /// Whether runs are recorded into graphs, or submitted one by one because the runtime refuses.
    pub(crate) fn records(&self) -> bool {
        self.records
    }

    /// Forgets what was recorded: before the tensors move.
    pub(crate) fn forget(&mut self) {
        for (_, graph) in self.graphs.drain() {
            // SAFETY: it was made by this driver, and this was its only handle. A graph that still
            // runs ends as it began.
            unsafe { self.driver.destroy_graph(graph) };
        }
    }

    /// Runs a variant on consecutive sets, and returns the device's time. Without a lead, nothing
    /// runs before, and the time is of little worth.
    ///
    /// # Safety
    ///
    /// The kernels must be located where their tensors are.
    pub(crate) unsafe fn device_time(
        &mut self,
        work: &Work,
        variant: Variant,
        runs: u32,
        sets: Sets,
        has_lead: bool,
    ) -> Result<Duration, DeviceError> {
        let parts = Self::split(work, variant, runs, sets);
        // The last part once more, on the sets before the first one.
        let lead = parts.last().filter(|_| has_lead).map(|last| {
            let back = last.runs as usize % sets.count;
            let first_set = (sets.first + sets.count - back) % sets.count;
            Stretch { first_set, ..*last }
        });
        for part in lead.iter().chain(&parts) {
            self.prepare(work, *part, sets.count)?;
        }
        // SAFETY: the caller's guarantee; the events are this queue's own and were recorded.
        unsafe {
            if let Some(lead) = lead {
                self.submit(work, lead, sets.count)?;
            }
            self.driver.record(self.start)?;
            for &part in &parts {
                self.submit(work, part, sets.count)?;
            }
            self.driver.record(self.end)?;
            self.driver.synchronize()?;
            let milliseconds = self.driver.elapsed_ms(self.start, self.end)?;
            Ok(Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default())
        }
    }

    /// Runs the unfused variant on consecutive sets behind a lead as long as they are, or longer, with
    /// an event behind every kernel, and returns the mean seconds of each kernel.
    ///
    /// # Safety
    ///
    /// As for [`Self::device_time`].
    pub(crate) unsafe fn step_times(
        &mut self,
        work: &Work,
        runs: u32,
        sets: Sets,
    ) -> Result<Vec<f64>, DeviceError> {
        let kernels = work.of(Variant::Unfused);
        let lead = Self::split(work, Variant::Unfused, LEAD_OF_STEPS.max(runs), sets);
        let Some(&lead) = lead.first() else { return Ok(Vec::new()) };
        // On the sets before the first one.
        let back = lead.runs as usize % sets.count;
        let lead = Stretch { first_set: (sets.first + sets.count - back) % sets.count, ..lead };
        self.prepare(work, lead, sets.count)?;
        let mut events = Events::new(&self.driver);
        for _ in 0..=kernels.len() * runs as usize {
            events.add()?;
        }
        let mut totals = vec![0.0; kernels.len()];
        // SAFETY: the caller's guarantee; the events are this call's own and were recorded.
        unsafe {
            self.submit(work, lead, sets.count)?;
            let mut moments = events.all.iter();
            if let Some(&first) = moments.next() {
                self.driver.record(first)?;
            }
            for run in 0..runs as usize {
                for (kernel, &moment) in kernels.iter().zip(&mut moments) {
                    kernel.launch((sets.first + run) % sets.count)?;
                    self.driver.record(moment)?;
                }
            }
            self.driver.synchronize()?;
            for (index, two) in events.all.windows(2).enumerate() {
                let milliseconds = self.driver.elapsed_ms(two[0], two[1])?;
                totals[index % kernels.len()] += milliseconds / 1e3;
            }
        }
        totals.iter_mut().for_each(|total| *total /= f64::from(runs.max(1)));
        Ok(totals)
    }

    /// Runs a variant on consecutive sets, each run by itself on an idle device, and returns the
    /// host's time of all of them.
    ///
    /// # Safety
    ///
    /// As for [`Self::device_time`].
    pub(crate) unsafe fn launch_inclusive_time(
        &mut self,
        work: &Work,
        variant: Variant,
        runs: u32,
        sets: Sets,
    ) -> Result<Duration, DeviceError> {
        let mut total = Duration::ZERO;
        self.driver.synchronize()?;
        for run in 0..runs as usize {
            let set = (sets.first + run) % sets.count;
            let start = Instant::now();
            for kernel in work.of(variant) {
                // SAFETY: the caller's guarantee.
                unsafe { kernel.launch(set)? };
            }
            self.driver.synchronize()?;
            total += start.elapsed();
        }
        Ok(total)
    }

    /// Runs in parts that are not too long for a graph.
    fn split(work: &Work, variant: Variant, runs: u32, sets: Sets) -> Vec<Stretch> {
        let kernels = work.of(variant).len().max(1);
        let most = u32::try_from((MOST_KERNELS / kernels).max(1)).unwrap_or(1);
        let mut parts = Vec::new();
        let mut first_set = sets.first;
        let mut left = runs;
        while left > 0 {
            let runs = left.min(most);
            parts.push(Stretch { variant, first_set, runs });
            first_set = (first_set + runs as usize) % sets.count;
            left -= runs;
        }
        parts
    }

    /// Records a stretch, unless it is there or the runtime refuses.
    fn prepare(&mut self, work: &Work, stretch: Stretch, sets: usize) -> Result<(), DeviceError> {
        if !self.records || self.graphs.contains_key(&stretch) {
            return Ok(());
        }
        if self.driver.begin_capture().is_err() {
            self.records = false;
            return Ok(());
        }
        // SAFETY: nothing runs while it is recorded; when it does, the callers of `submit`
        // guarantee the tensors.
        let recorded = unsafe { Self::enqueue(work, stretch, sets) };
        match (recorded, self.driver.end_capture()) {
            (Ok(()), Ok(graph)) => {
                self.graphs.insert(stretch, graph);
            }
            (_, ended) => {
                if let Ok(graph) = ended {
                    // SAFETY: it was just made.
                    unsafe { self.driver.destroy_graph(graph) };
                }
                self.records = false;
            }
        }
        Ok(())
    }

    unsafe fn submit(&self, work: &Work, stretch: Stretch, sets: usize) -> Result<(), DeviceError> {
        match self.graphs.get(&stretch) {
            // SAFETY: the graph is of this driver; the caller guarantees the tensors.
            Some(&graph) => unsafe { self.driver.launch_graph(graph) },
            // SAFETY: as above.
            None => unsafe { Self::enqueue(work, stretch, sets) },
        }
    }

    unsafe fn enqueue(work: &Work, stretch: Stretch, sets: usize) -> Result<(), DeviceError> {
        for run in 0..stretch.runs as usize {
            let set = (stretch.first_set + run) % sets;
            for kernel in work.of(stretch.variant) {
                // SAFETY: the caller's guarantee.
                unsafe { kernel.launch(set)? };
            }
        }
        Ok(())
    }
}

/// Events that are given back together.
struct Events<'d> {
    driver: &'d Rc<dyn Driver>,
    all: Vec<Event>,
}

impl<'d> Events<'d> {
    const fn new(driver: &'d Rc<dyn Driver>) -> Self {
        Self { driver, all: Vec::new() }
    }

    fn add(&mut self) -> Result<(), DeviceError> {
        self.all.push(self.driver.create_event()?);
        Ok(())
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        for &event in &self.all {
            // SAFETY: it was made by this driver, and nothing else owns it.
            unsafe { self.driver.destroy_event(event) };
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = self.driver.synchronize();
        self.forget();
        // SAFETY: they were made by this driver, and nothing else owns them.
        unsafe {
            self.driver.destroy_event(self.start);
            self.driver.destroy_event(self.end);
        }
    }
}

/// On which sets of tensors runs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sets {
    /// The set of the first run.
    pub(crate) first: usize,
    /// How many there are; after the last comes the first.
    pub(crate) count: usize,
}

#[cfg(test)]
mod tests {
    use super::super::cache::CodeCache;
    use super::super::loaded::Loader;
    use super::super::lower::probes;
    use super::super::tensors::TensorTable;
    use super::*;
    use crate::gpu::tests::scripted::{NoCompiler, Scripted};

    /// A queue with a variant of two kernels and one of one.
    fn queue(driver: &Rc<Scripted>) -> (Queue, Work, DeviceTensors) {
        let shared: Rc<dyn Driver> = Rc::clone(driver) as Rc<dyn Driver>;
        let loader = Loader::new(Rc::clone(&shared), Rc::new(NoCompiler), CodeCache::default());
        let tensors = DeviceTensors::allocate(&shared, TensorTable::default(), 3).unwrap();
        let kernel = || {
            let mut kernel = loader.load(probes::nothing()).unwrap();
            kernel.locate(&tensors).unwrap();
            Box::new(kernel) as Box<dyn Launch>
        };
        let work = Work { unfused: vec![kernel(), kernel()], fused: vec![kernel()] };
        (Queue::new(&shared).unwrap(), work, tensors)
    }

    fn calls_of(driver: &Scripted, run: impl FnOnce()) -> Vec<String> {
        driver.calls.borrow_mut().clear();
        run();
        driver.calls.borrow().clone()
    }

    const SETS: Sets = Sets { first: 1, count: 3 };

    #[test]
    fn the_first_event_comes_after_a_lead_and_all_recording() {
        let driver = Rc::new(Scripted::new());
        let (mut queue, work, _tensors) = queue(&driver);
        let calls = calls_of(&driver, || {
            // SAFETY: the kernels were located where the tensors are.
            let time = unsafe { queue.device_time(&work, Variant::Unfused, 2, SETS, true) };
            assert_eq!(time.unwrap(), Duration::from_micros(1));
        });
        let launches = ["launch 1"; 4];
        let mut expected = vec!["begin"];
        expected.extend(launches);
        expected.extend(["end", "begin"]);
        expected.extend(launches);
        expected.extend(["end", "graph", "record", "graph", "record", "synchronize", "elapsed"]);
        assert_eq!(calls, expected);
        // What was recorded serves again, until the tensors move.
        let calls = calls_of(&driver, || {
            // SAFETY: as above.
            let time = unsafe { queue.device_time(&work, Variant::Unfused, 2, SETS, true) };
            assert!(time.is_ok());
        });
        assert_eq!(calls, ["graph", "record", "graph", "record", "synchronize", "elapsed"]);
        assert_eq!(calls_of(&driver, || queue.forget()), ["destroy graph"; 2]);
    }

    #[test]
    fn a_runtime_that_records_nothing_gets_kernels_one_by_one() {
        for failing in ["begin_capture", "end_capture"] {
            let driver = Rc::new(Scripted::new());
            let (mut queue, work, _tensors) = queue(&driver);
            driver.failing.borrow_mut().push(failing);
            for _ in 0..2 {
                // SAFETY: as above.
                let time = unsafe { queue.device_time(&work, Variant::Fused, 5, SETS, true) };
                assert_eq!(time.unwrap(), Duration::from_micros(5));
            }
            assert!(!queue.records());
            let calls = driver.calls.borrow();
            assert_eq!(calls.iter().filter(|call| *call == "begin").count(), 1, "{failing}");
        }
    }

    #[test]
    fn long_stretches_are_recorded_in_parts() {
        let driver = Rc::new(Scripted::new());
        let (mut queue, work, _tensors) = queue(&driver);
        let runs = 3 * (MOST_KERNELS as u32 / 2) + 7;
        // SAFETY: as above.
        unsafe { queue.device_time(&work, Variant::Unfused, runs, SETS, true) }.unwrap();
        let calls = driver.calls.borrow();
        let of = |name: &str| calls.iter().filter(|call| call.starts_with(name)).count();
        // The three whole parts begin at the same set, as many runs are a multiple of three sets
        // away or not; what is launched is all of them and the lead.
        assert_eq!(of("graph"), 3 + 1 + 1);
        assert_eq!(of("record"), 2);
        let parts = Queue::split(&work, Variant::Unfused, runs, SETS);
        assert_eq!(parts.iter().map(|part| part.runs).sum::<u32>(), runs);
        let mut set = SETS.first;
        for part in parts {
            assert_eq!(part.first_set, set);
            set = (set + part.runs as usize) % SETS.count;
        }
    }

    #[test]
    fn the_hosts_time_is_of_each_run_by_itself() {
        let driver = Rc::new(Scripted::new());
        let (mut queue, work, _tensors) = queue(&driver);
        let calls = calls_of(&driver, || {
            // SAFETY: as above.
            let time = unsafe { queue.launch_inclusive_time(&work, Variant::Unfused, 2, SETS) };
            assert!(time.is_ok());
        });
        let run = ["launch 1", "launch 1", "synchronize"];
        assert_eq!(calls, [&["synchronize"][..], &run, &run].concat());
    }

    #[test]
    fn kernels_are_timed_one_by_one_behind_a_lead() {
        let driver = Rc::new(Scripted::new());
        let (mut queue, work, _tensors) = queue(&driver);
        let calls = calls_of(&driver, || {
            // SAFETY: as above.
            let seconds = unsafe { queue.step_times(&work, 2, SETS) }.unwrap();
            assert_eq!(seconds.len(), 2);
            assert!(seconds.iter().all(|one| (one - 1e-6).abs() < 1e-12), "{seconds:?}");
        });
        let graph = calls.iter().position(|call| call == "graph").unwrap();
        let run = ["launch 1", "record"];
        assert_eq!(
            calls[graph + 1..][..10],
            [&["record"][..], &run, &run, &run, &run, &["synchronize"]].concat()
        );
        assert_eq!(
            calls[graph + 11..],
            [["elapsed"; 4].as_slice(), &["destroy event"; 5]].concat()
        );
    }

    #[test]
    fn events_of_steps_are_given_back_whatever_fails() {
        for failing in ["create_event", "launch", "record", "synchronize", "elapsed"] {
            let driver = Rc::new(Scripted::new());
            let (mut queue, work, tensors) = queue(&driver);
            driver.failing.borrow_mut().push(failing);
            // SAFETY: as above.
            assert!(unsafe { queue.step_times(&work, 2, SETS) }.is_err(), "{failing}");
            drop((queue, work, tensors));
            assert_eq!(driver.alive.get(), 0, "{failing}");
        }
    }

    #[test]
    fn everything_is_given_back_whatever_fails() {
        for failing in
            ["launch", "record", "synchronize", "elapsed", "launch_graph", "begin_capture"]
        {
            let driver = Rc::new(Scripted::new());
            let (mut queue, work, tensors) = queue(&driver);
            driver.failing.borrow_mut().push(failing);
            // SAFETY: as above.
            let time = unsafe { queue.device_time(&work, Variant::Unfused, 2, SETS, true) };
            assert_eq!(time.is_ok(), failing == "begin_capture", "{failing}");
            drop((queue, work, tensors));
            assert_eq!(driver.alive.get(), 0, "{failing}");
        }
    }
}
