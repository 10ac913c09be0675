//! When the host calls and when the devices run.

use std::ops::Range;

use super::random::Random;
use super::step::{Item, Stream};
use super::{Plan, Timing};

/// How long a collective runs alongside what it adds up, if the pace is known, in nanoseconds.
const PIECE_NS: u64 = 3000;

/// A call of the runtime that launches something.
#[derive(Debug)]
pub(super) struct Call {
    /// When the operator around it begins.
    pub(super) op_ns: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// When the operator ends.
    pub(super) op_end_ns: u64,
    /// What it launches.
    pub(super) items: Range<usize>,
}

/// When a kernel runs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
}

/// The times of a step.
#[derive(Debug)]
pub(super) struct Times {
    /// The mark on the host.
    pub(super) mark: Range<u64>,
    pub(super) calls: Vec<Call>,
    /// One for each item.
    pub(super) runs: Vec<Run>,
    /// When the host waits for the devices, if it does.
    pub(super) wait: Option<Range<u64>>,
}

/// How far the host and the devices are.
#[derive(Debug)]
pub(super) struct Schedule<'p> {
    plan: &'p Plan,
    host_ns: u64,
    compute_free_ns: u64,
    communication_free_ns: u64,
    copy_free_ns: u64,
    /// What ran on the compute stream last.
    last: Run,
}

impl<'p> Schedule<'p> {
    pub(super) fn new(plan: &'p Plan, start_ns: u64) -> Self {
        Self {
            plan,
            host_ns: start_ns,
            compute_free_ns: start_ns,
            communication_free_ns: start_ns,
            copy_free_ns: start_ns,
            last: Run { start_ns, duration_ns: 0 },
        }
    }

    /// The times of the next step.
    pub(super) fn step(&mut self, items: &[Item], random: &mut Random) -> Times {
        let start = self.host_ns;
        let before_ns = self.devices_end_ns();
        let main = items.iter().position(|item| item.is_after).unwrap_or(items.len());
        self.host_ns += random.ns(5000, 10_000);
        let mut calls = self.calls(items, 0..main, random);
        let called_ns = self.host_ns;
        let mut runs = Vec::with_capacity(items.len());
        let is_synchronous = self.plan.timing == Timing::Synchronous;
        if is_synchronous {
            self.run(items, &calls, 0, &mut runs, random);
        }
        let waited_ns = if is_synchronous { self.devices_end_ns() } else { before_ns };
        let wait = (waited_ns > called_ns).then_some(called_ns..waited_ns);
        let end = called_ns.max(waited_ns) + random.ns(2000, 3000);
        if !is_synchronous {
            let is_behind = self.plan.timing == Timing::Behind;
            let from_ns = if is_behind { end + random.ns(1000, 1000) } else { 0 };
            self.run(items, &calls, from_ns, &mut runs, random);
        }
        self.host_ns = end + random.ns(2000, 1000);
        let after = self.calls(items, main..items.len(), random);
        self.run(items, &after, 0, &mut runs, random);
        calls.extend(after);
        self.host_ns += random.ns(5000, 200_000);
        Times { mark: start..end, calls, runs, wait }
    }

    /// When everything that was launched has ended.
    fn devices_end_ns(&self) -> u64 {
        self.compute_free_ns.max(self.communication_free_ns).max(self.copy_free_ns)
    }

    /// The calls for some items, one after another.
    fn calls(&mut self, items: &[Item], range: Range<usize>, random: &mut Random) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut from = range.start;
        while let Some(first) = items.get(from).filter(|_| from < range.end) {
            let is_same = |item: &&Item| item.graph.is_some() && item.graph == first.graph;
            let more = items.iter().take(range.end).skip(from + 1).take_while(is_same).count();
            let op_ns = self.host_ns;
            let start_ns = op_ns + random.ns(1000, 2000);
            let end_ns = start_ns + random.ns(2000, 4000) + random.whole(more as u64 * 200);
            let op_end_ns = end_ns + random.ns(1000, 1000);
            self.host_ns = op_end_ns + random.ns(1000, 3000);
            let next = from + 1 + more;
            calls.push(Call { op_ns, start_ns, end_ns, op_end_ns, items: from..next });
            from = next;
        }
        calls
    }

    /// Runs what the calls launch, nothing before a time.
    fn run(
        &mut self,
        items: &[Item],
        calls: &[Call],
        from_ns: u64,
        runs: &mut Vec<Run>,
        random: &mut Random,
    ) {
        for call in calls {
            let ready = from_ns.max(call.start_ns + random.ns(2000, 3000));
            let items = items.get(call.items.clone()).unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                let pause_ns = self.plan.pace.map_or(0, |pace| pace.pause_ns(index == 0));
                runs.push(self.place(item, ready, random, pause_ns));
            }
        }
    }

    /// Runs a kernel, after a pause of the stream that computes.
    fn place(&mut self, item: &Item, ready: u64, random: &mut Random, pause_ns: u64) -> Run {
        let duration_ns = item.duration_ns.unwrap_or_else(|| random.ns(2000, 50_000));
        match item.stream {
            Stream::Compute => {
                let start_ns = ready.max(self.compute_free_ns) + pause_ns + random.ns(0, 1000);
                self.compute_free_ns = start_ns + duration_ns;
                self.last = Run { start_ns, duration_ns };
                self.last
            }
            Stream::Copy => {
                let start_ns = ready.max(self.copy_free_ns);
                self.copy_free_ns = start_ns + duration_ns;
                Run { start_ns, duration_ns }
            }
            Stream::Communication => {
                let done = self.done_ns(random);
                let start_ns = ready.max(self.communication_free_ns).max(self.last.start_ns + done);
                let end_ns = start_ns + duration_ns;
                self.communication_free_ns = end_ns;
                if item.holds_up(self.plan) {
                    let early = random.ns(0, duration_ns / 2 + 1);
                    self.compute_free_ns = self.compute_free_ns.max(end_ns - early);
                }
                Run { start_ns, duration_ns }
            }
        }
    }
    /// When what a collective adds up is there, from the beginning of what computes it: its last
    /// half is done in pieces that can already be added up.
    fn done_ns(&self, random: &mut Random) -> u64 {
        if self.plan.pace.is_some() {
            return self.last.duration_ns.saturating_sub(PIECE_NS);
        }
        let percent = 50 + random.below(50);
        random.whole(self.last.duration_ns * percent / 100)
    }
}
