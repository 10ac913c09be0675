//! Work on a device, and the time that it takes.
//!
//! Two times are measured. That of the device lies between two events in the queue, and is only
//! true while the queue is full: a device that waits for its next kernel counts the waiting. So
//! runs are recorded into a graph, which the device works off without the host, and the first
//! event comes after a lead of further runs, during which the host submits everything else. What
//! starting a graph takes by itself is found out once (`start`) and taken off. The
//! launch-inclusive time is the host's, from handing a run to an idle device to its end.

mod events;
mod stamps;
mod start;
mod work;

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::driver::{DeviceError, Driver, Event, Graph};
use crate::backend::{FirstRuns, Variant};
use events::Events;
use stamps::Moment;

pub(crate) use stamps::Stamps;
pub(crate) use work::{Launch, Work};

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

/// The time between two events around some runs, unless no such time can be.
fn passed(milliseconds: f64, runs: u32) -> Result<Duration, DeviceError> {
    /// Fewer may be over before the clock of a device moves.
    const MANY: u32 = 64;
    let time = Duration::try_from_secs_f64(milliseconds / 1e3).ok();
    time.filter(|time| !time.is_zero() || runs < MANY).ok_or_else(|| {
        let runs = if runs == 1 { "one run".to_owned() } else { format!("{runs} runs") };
        DeviceError::Unsupported(format!(
            "the driver's events say that {runs} took {milliseconds} ms"
        ))
    })
}

/// Submits runs to a device and times them.
pub(crate) struct Queue {
    driver: Rc<dyn Driver>,
    start: Event,
    end: Event,
    /// Recorded for the current layout.
    graphs: HashMap<Stretch, Graph>,
    /// What says how fast the device's clock was, where it can.
    stamps: Option<Stamps>,
    /// What it said of the last runs.
    clock_mhz: Option<u32>,
    /// What starting a graph of a variant takes, where that was found out.
    starts: HashMap<Variant, Duration>,
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
        let (graphs, starts) = (HashMap::new(), HashMap::new());
        let driver = Rc::clone(driver);
        let (stamps, clock_mhz, records) = (None, None, true);
        Ok(Self { driver, start, end, graphs, stamps, clock_mhz, starts, records })
    }

    /// The same with stamps of the device's clock before and behind all that is timed by it.
    pub(crate) fn with_stamps(mut self, stamps: Option<Stamps>) -> Self {
        self.stamps = stamps;
        self
    }

    /// Runs the kernel of the stamps by itself, and says so. If the driver refuses it, there are no
    /// stamps.
    pub(crate) fn run_stamps(&mut self, hears: &mut FirstRuns<'_>) -> Result<(), DeviceError> {
        let Some(stamps) = &self.stamps else { return Ok(()) };
        let kernel = stamps.kernel();
        hears(Some(&kernel.name()));
        match stamps.write(Moment::Before) {
            Err(error) if error.is_of_one_kernel() => self.stamps = None,
            written => {
                written?;
                self.driver.synchronize().map_err(|error| kernel.failed(error))?;
            }
        }
        hears(None);
        Ok(())
    }

    /// The clock of the device's processors during the last runs that were timed by it; `None` where
    /// they were too short, or the device cannot say.
    pub(crate) fn clock_mhz(&self) -> Option<u32> {
        self.clock_mhz
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

    /// Runs a variant on consecutive sets, and returns the device's time of its kernels. Without a
    /// lead, nothing runs before, and the time is of little worth.
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
        // SAFETY: the caller's guarantee.
        unsafe {
            let start =
                if has_lead { self.start_of_graph(work, variant, sets)? } else { Duration::ZERO };
            let time = self.between_events(work, variant, runs, sets, has_lead)?;
            self.clock_mhz = match &self.stamps {
                Some(stamps) if has_lead => stamps.clock_mhz()?,
                _ => None,
            };
            let graphs = Self::split(work, variant, runs, sets).len();
            Ok(time.saturating_sub(start.saturating_mul(u32::try_from(graphs).unwrap_or(u32::MAX))))
        }
    }

    /// The time between two events around the runs, with that of starting their graphs.
    ///
    /// # Safety
    ///
    /// As for [`Self::device_time`].
    unsafe fn between_events(
        &mut self,
        work: &Work,
        variant: Variant,
        runs: u32,
        sets: Sets,
        has_lead: bool,
    ) -> Result<Duration, DeviceError> {
        let parts = Self::split(work, variant, runs, sets);
        // The longest part once more, on the sets before the first one: a short one would be over
        // before the host has submitted the rest, and the device's time would have a gap in it.
        let lead = parts.first().filter(|_| has_lead).map(|longest| {
            let back = longest.runs as usize % sets.count;
            let first_set = (sets.first + sets.count - back) % sets.count;
            Stretch { first_set, ..*longest }
        });
        for part in lead.iter().chain(&parts) {
            self.prepare(work, *part, sets.count)?;
        }
        // SAFETY: the caller's guarantee; the events are this queue's own and were recorded.
        unsafe {
            if let Some(lead) = lead {
                self.submit(work, lead, sets.count)?;
            }
            // Not before what must find the tensors as they are.
            let stamps = self.stamps.as_ref().filter(|_| has_lead);
            if let Some(stamps) = stamps {
                stamps.write(Moment::Before)?;
            }
            self.driver.record(self.start)?;
            for &part in &parts {
                self.submit(work, part, sets.count)?;
            }
            self.driver.record(self.end)?;
            if let Some(stamps) = stamps {
                stamps.write(Moment::After)?;
            }
            self.driver.synchronize()?;
            let milliseconds = self.driver.elapsed_ms(self.start, self.end)?;
            passed(milliseconds, runs)
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
                totals[index % kernels.len()] += passed(milliseconds, 1)?.as_secs_f64();
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
mod tests;
