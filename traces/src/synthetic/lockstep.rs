//! Runs over several ranks that wait for each other, with known truth about who waits for whom.
//!
//! [`write_ranks`](super::write_ranks) gives every rank times of its own. Here all ranks of a group
//! enter each collective, which ends on all of them when the last has come and the data is there.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::json::{Event, Json};
use super::kernels::{ALL_REDUCE_OWN, QKV};
use super::random::Random;
use super::step::Stream;
use super::{Annotation, Phase, Plan};
use crate::Vendor;

/// A run of several steps, each of which alternates GEMMs and collectives.
#[derive(Debug, Clone)]
pub struct Lockstep {
    /// Whose names kernels have.
    pub vendor: Vendor,
    /// How many ranks there are.
    pub ranks: u64,
    /// So many ranks after each other are a group, whose collectives are its own.
    pub group: u64,
    /// Steps of each rank.
    pub steps: u64,
    /// Collectives of each step.
    pub collectives: u64,
    /// Ranks that reach each collective late, and by how many nanoseconds.
    pub late: Vec<(u64, u64)>,
    /// How long the GEMMs take at most beyond 20 us, in nanoseconds.
    pub spread_ns: u64,
    /// Ranks whose recordings lack steps at the beginning, and how many.
    pub missing: Vec<(u64, u64)>,
    /// Whether the clocks of the ranks differ: by seconds, and by some parts per million.
    pub own_clocks: bool,
    /// What kernels say of their collectives.
    pub naming: Naming,
    /// Whether the steps are marked.
    pub marks: bool,
    /// Where the durations come from.
    pub seed: u64,
}

impl Default for Lockstep {
    fn default() -> Self {
        Self {
            vendor: Vendor::Nvidia,
            ranks: 4,
            group: 4,
            steps: 4,
            collectives: 12,
            late: Vec::new(),
            spread_ns: 60_000,
            missing: Vec::new(),
            own_clocks: true,
            naming: Naming::Nothing,
            marks: true,
            seed: 1,
        }
    }
}

/// What profilers write beside the kernels of collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// Nothing, as before 2024.
    Nothing,
    /// The process group and the size.
    Groups,
    /// Also a number that counts the collectives of the group.
    Sequences,
}

/// A collective on one rank, as its trace has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveTruth {
    /// When it began by the clock of its rank, in nanoseconds.
    pub start_ns: u64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// The step that launched it.
    pub step: u64,
}

/// The elements of each collective, of two bytes.
pub const COLLECTIVE_ELEMENTS: u64 = 1 << 20;

/// AMD's library gives one in this many collectives no correlation id.
const LOST_EVERY: usize = 3;

/// When the run begins, in nanoseconds.
const START_NS: u64 = 1_000_000_000_000;

/// Ends of one collective on two ranks are less than this apart.
const END_SPREAD_NS: u64 = 2000;

/// What a rank did in the time of the run: GEMMs from the first to the second time, and
/// collectives from the second to the third.
type Runs = Vec<(u64, u64, u64)>;

impl Lockstep {
    /// The collectives of each rank, with those that its recording lacks.
    fn run(&self) -> Vec<Runs> {
        let mut random = Random::new(self.seed, 1);
        let mut runs: Vec<Runs> = vec![Runs::new(); self.ranks as usize];
        for members in runs.chunks_mut(self.group.max(1) as usize).enumerate() {
            let (number, members) = members;
            let first = number as u64 * self.group.max(1);
            let mut free: Vec<u64> = members.iter().map(|_| START_NS).collect();
            for place in 0..self.steps * self.collectives {
                let is_new_step = place % self.collectives == 0;
                let pause = if is_new_step { random.ns(50_000, 300_000) } else { 500 };
                let arrivals: Vec<(u64, u64)> = (first..)
                    .zip(&free)
                    .map(|(rank, free)| {
                        let late = self.late.iter().find(|(late, _)| *late == rank);
                        let product = random.ns(20_000, self.spread_ns.max(1));
                        let start = free + pause;
                        (start, start + product + late.map_or(0, |(_, ns)| *ns))
                    })
                    .collect();
                let last = arrivals.iter().map(|(_, arrival)| *arrival).max().unwrap_or(0);
                let done = last + random.ns(10_000, 20_000);
                for ((runs, free), (start, arrival)) in
                    members.iter_mut().zip(&mut free).zip(arrivals)
                {
                    let end = done + random.ns(0, END_SPREAD_NS);
                    runs.push((start, arrival, end));
                    *free = end;
                }
            }
        }
        runs
    }

    /// The time of the run by the clock of a rank.
    fn clock(&self, rank: u64, ns: u64) -> u64 {
        if !self.own_clocks {
            return ns;
        }
        let per_million = rank * 7 % 40;
        ns + rank * 1_234_567_891 + (ns - START_NS) / 1_000_000 * per_million
    }

    /// Writes the trace of each rank into a folder, which must exist: `rank0.json` and so on.
    /// Returns the collectives in it.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<Vec<(PathBuf, Vec<CollectiveTruth>)>> {
        let one = |(rank, runs): (u64, Runs)| {
            let path = folder.join(format!("rank{rank}.json"));
            let truth = self.rank(rank, &runs, &mut BufWriter::new(File::create(&path)?))?;
            Ok((path, truth))
        };
        (0..).zip(self.run()).map(one).collect()
    }

    /// The texts of the traces in memory.
    ///
    /// # Errors
    ///
    /// None that a vector could give.
    pub fn texts(&self) -> io::Result<Vec<(Vec<u8>, Vec<CollectiveTruth>)>> {
        let one = |(rank, runs): (u64, Runs)| {
            let mut text = Vec::new();
            let truth = self.rank(rank, &runs, &mut text)?;
            Ok((text, truth))
        };
        (0..).zip(self.run()).map(one).collect()
    }

    fn rank(
        &self,
        rank: u64,
        runs: &Runs,
        out: &mut impl Write,
    ) -> io::Result<Vec<CollectiveTruth>> {
        let (vendor, world_size) = (self.vendor, self.ranks);
        let plan = Plan { vendor, rank, world_size, frames: 0, ..Plan::default() };
        let missing = self.missing.iter().find(|(missing, _)| *missing == rank);
        let missing = missing.map_or(0, |(_, steps)| *steps);
        let mut json = Json::new(&plan, out);
        let mut truth = Vec::new();
        let mut number = 0;
        json.begin()?;
        for (step, runs) in (0..).zip(runs.chunks(self.collectives.max(1) as usize)) {
            if step < missing {
                continue;
            }
            let of_clock = |ns: u64| self.clock(rank, ns);
            let begin = of_clock(runs.first().map_or(START_NS, |run| run.0)) - 40_000;
            if self.marks {
                let end = of_clock(runs.last().map_or(START_NS, |run| run.1));
                let name = Annotation::ProfilerStep.text(step, Phase::Decode);
                let args = "\"External id\": 1";
                event(&mut json, ("user_annotation", &name), (851, 852), (begin, end), args)?;
            }
            for (&(start, arrival, end), launched) in runs.iter().zip((begin + 1000..).step_by(2)) {
                let (arrival, end) = (of_clock(arrival), of_clock(end));
                let times = [(QKV.name(plan.is_amd()), Stream::Compute, of_clock(start), arrival)];
                let name = ALL_REDUCE_OWN.name(plan.is_amd());
                for (name, stream, start, end) in
                    times.into_iter().chain([(name, Stream::Communication, arrival, end)])
                {
                    number += 1;
                    let is_one = stream == Stream::Communication;
                    let is_lost = is_one && plan.is_amd() && truth.len() % LOST_EVERY == 1;
                    let correlation = if is_lost { 0 } else { number };
                    let stream = stream.number();
                    let args = format!("\"correlation\": {correlation}");
                    let call = ("cuda_runtime", if plan.is_amd() { HIP } else { CUDA });
                    let time = (launched, launched + 1);
                    event(&mut json, call, (851, 852), time, &args)?;
                    let message =
                        if is_one { self.message(rank, step, truth.len()) } else { String::new() };
                    let args = format!("\"device\": 0, \"stream\": {stream}, {args}{message}");
                    event(&mut json, ("kernel", name), (0, stream), (start, end), &args)?;
                }
                let duration_ns = end - arrival;
                truth.push(CollectiveTruth { start_ns: arrival, duration_ns, step });
            }
        }
        json.end()?;
        out.flush()?;
        Ok(truth)
    }
}

impl Lockstep {
    /// What the kernel of a collective says of it: its step, and its place on this rank.
    fn message(&self, rank: u64, step: u64, place: usize) -> String {
        if self.naming == Naming::Nothing {
            return String::new();
        }
        let size = self.group.max(1);
        let (group, first) = (rank / size, rank / size * size);
        let ranks: Vec<String> =
            (first..(first + size).min(self.ranks)).map(|rank| rank.to_string()).collect();
        let of_step = place as u64 % self.collectives.max(1);
        let sequence = match self.naming {
            Naming::Sequences => format!(", \"Seq\": {}", step * self.collectives + of_step + 1),
            _ => String::new(),
        };
        format!(
            ", \"Collective name\": \"allreduce\", \"In msg nelems\": {COLLECTIVE_ELEMENTS}, \
             \"Out msg nelems\": {COLLECTIVE_ELEMENTS}, \"Group size\": {}, \"dtype\": \"BFloat16\", \
             \"Process Group Name\": \"{group}\", \"Process Group Description\": \"tp\", \
             \"Process Group Ranks\": \"[{}]\"{sequence}",
            ranks.len(),
            ranks.join(", ")
        )
    }
}

/// The calls that launch kernels.
const CUDA: &str = "cudaLaunchKernel";
const HIP: &str = "hipLaunchKernel";

fn event<W: Write>(
    json: &mut Json<'_, W>,
    (category, name): (&str, &str),
    (process, thread): (u64, u64),
    (start_ns, end_ns): (u64, u64),
    args: &str,
) -> io::Result<()> {
    let (name, duration_ns) = (name.as_bytes(), end_ns.saturating_sub(start_ns));
    json.event(&Event { category, name, process, thread, start_ns, duration_ns, args })
}
