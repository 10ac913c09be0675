//! One measured problem.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::two::two_if_any;
use super::{FailedCore, Reason, StateSpeedup, Verdict};
use crate::cost::Bottleneck;
use crate::vocabulary::{
    Backend, CacheState, Clock, Core, DType, Implementation, Problem, Rewrite,
};

/// The time of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Median of the samples, in milliseconds.
    pub median_ms: f64,
    /// First quartile, in milliseconds.
    pub q1_ms: f64,
    /// Third quartile, in milliseconds.
    pub q3_ms: f64,
    /// Lower end of the 95 % interval of the time, in milliseconds; absent in files from before
    /// version 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_ms: Option<f64>,
    /// Upper end of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_ms: Option<f64>,
    /// Runs per sample.
    pub inner_iterations: u32,
    /// The time in each process that counts, in the order in which they were made, in milliseconds;
    /// empty in files from before version 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub process_ms: Vec<f64>,
}

/// The time of one kernel of the unfused variant where it stands in the sequence: a
/// `[[fusion.step]]` table.
///
/// It was read from a clock between the kernels, in runs of their own after all pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTime {
    /// The op.
    pub op: String,
    /// Median over the processes, in milliseconds.
    pub ms: f64,
    /// Lower end of the interval of the median, which covers at least 95 %; absent with fewer than
    /// six processes, whose lowest and highest do not make one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_ms: Option<f64>,
    /// Upper end of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_ms: Option<f64>,
}

/// How both variants were proved to compute the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Rows of the output that were compared with the f64 reference.
    pub reference_rows: u64,
    /// Rows of the output; all of them were compared between the variants.
    pub rows: u64,
    /// Largest error of the unfused variant: `|y - reference|` over the root mean square of the
    /// reference plus `|reference|`.
    pub unfused_error: f64,
    /// The same of the fused variant.
    pub fused_error: f64,
    /// The error up to which a kernel counts as right.
    pub tolerance: f64,
}

impl Verification {
    /// The largest tolerance. Errors are relative: with 0.5, zeros would count as any result.
    pub const MOST_TOLERANCE: f64 = 0.125;

    /// The tolerance of a problem in f32, and the part of any tolerance that comes from computing in it:
    /// rounding grows with the square root of the number of terms that are summed. A kernel that
    /// forgets, repeats or reorders an op is wrong by thousands of times more.
    #[must_use]
    pub fn single_precision(problem: &Problem) -> f64 {
        let terms = problem
            .steps()
            .map(|step| if step.op.is_row() { step.output.cols } else { step.depth })
            .sum::<u64>();
        #[expect(clippy::cast_precision_loss, reason = "its square root is taken")]
        let terms = terms as f64;
        f64::from(f32::EPSILON) * (16.0 + 4.0 * terms.sqrt())
    }
}

/// Pairs that something disturbed, by cause; one pair can have several. They are left out, but for those
/// with `clock_change`. A cause without a number
/// could not be observed on this system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disturbed {
    /// The system took the processor from a thread, so often that it matters in a sample of this
    /// length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switch: Option<u32>,
    /// A thread moved to another processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<u32>,
    /// A thread was ready and had to wait for a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay: Option<u32>,
    /// The measuring thread had less processor time than went by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_processor: Option<u32>,
    /// Memory was touched for the first time, or moved by the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_fault: Option<u32>,
    /// The hypervisor ran something else during the round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<u32>,
    /// Something on the machine waited for a processor during the round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure: Option<u32>,
    /// The clock of a GPU changed around one of the samples. Such pairs are not left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_change: Option<u32>,
}

impl Disturbed {
    /// Every cause by its key, with its number of pairs.
    #[must_use]
    pub const fn causes(&self) -> [(&'static str, Option<u32>); 8] {
        [
            ("involuntary_switch", self.involuntary_switch),
            ("migration", self.migration),
            ("run_delay", self.run_delay),
            ("off_processor", self.off_processor),
            ("page_fault", self.page_fault),
            ("steal", self.steal),
            ("cpu_pressure", self.cpu_pressure),
            ("clock_change", self.clock_change),
        ]
    }

    /// What can disturb a time by a clock, by the keys of this table.
    ///
    /// The host's threads compute nothing for a GPU. Its own clock sees nothing of them, since its
    /// queue is full. By the launch-inclusive one a time contains what the host does to hand over
    /// the work, which only the thread that does so can be kept from; that thread may well sleep
    /// while it waits, and wake up on another processor.
    #[must_use]
    pub const fn causes_of(clock: Clock) -> &'static [&'static str] {
        match clock {
            Clock::Host => &[
                "involuntary_switch",
                "migration",
                "run_delay",
                "off_processor",
                "page_fault",
                "steal",
                "cpu_pressure",
            ],
            Clock::Device => &["clock_change"],
            Clock::LaunchInclusive => {
                &["involuntary_switch", "run_delay", "page_fault", "steal", "clock_change"]
            }
        }
    }

    /// What can disturb a time by this clock and has no number.
    pub fn unobserved(&self, clock: Clock) -> impl Iterator<Item = &'static str> {
        let can_disturb = move |cause: &str| Self::causes_of(clock).contains(&cause);
        let causes = self.causes().into_iter();
        causes
            .filter(move |(cause, count)| can_disturb(cause) && count.is_none())
            .map(|(cause, _)| cause)
    }
}

/// Where the threads and the tensors of a measurement were.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Whether each thread was bound to a processor.
    pub pinned: bool,
    /// The processors that the threads are bound to, or were seen on.
    pub processors: Vec<u32>,
    /// Share of the tensors' memory that lay in huge pages; absent where the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_page_share: Option<f64>,
}

/// A kernel of a GPU as it was compiled and launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuKernel {
    /// Its entry point.
    pub name: String,
    /// Blocks of a launch.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's registers that had to go to memory.
    pub spilled_bytes: u32,
    /// Bytes of on-chip memory that the threads of a block share.
    pub shared_bytes: u32,
    /// Blocks that a multiprocessor or compute unit holds at a time.
    pub resident_blocks: u32,
}

/// What only a GPU reports of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuDetails {
    /// The matrix instructions that both variants were written with; absent for kernels of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Core>,
    /// The lowest clock of its processors that was read around a sample; absent where it does not
    /// report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_clock_mhz: Option<u32>,
    /// The highest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_clock_mhz: Option<u32>,
    /// The lowest and the highest clock of a sample, in its mean, as the GPU's processors counted it
    /// themselves; absent where they were not asked.
    #[serde(default, deserialize_with = "two_if_any", skip_serializing_if = "Option::is_none")]
    pub device_clock_mhz: Option<[u32; 2]>,
    /// Samples of the unfused and of the fused variant around which the clock changed by more than 2 %;
    /// absent where it is not reported. No pair is left out for it.
    #[serde(default, deserialize_with = "two_if_any", skip_serializing_if = "Option::is_none")]
    pub clock_changes: Option<[u32; 2]>,
    /// Every reason for which the clock was lower than it could be around some sample; absent
    /// where the GPU does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_reasons: Option<Vec<String>>,
    /// Better cores, on which the kernels failed.
    #[serde(default, rename = "failed_core", skip_serializing_if = "Vec::is_empty")]
    pub failed_cores: Vec<FailedCore>,
    /// The kernels of the unfused variant, in order.
    #[serde(default, rename = "unfused_kernel", skip_serializing_if = "Vec::is_empty")]
    pub unfused_kernels: Vec<GpuKernel>,
    /// Those of the fused variant: one.
    #[serde(default, rename = "fused_kernel", skip_serializing_if = "Vec::is_empty")]
    pub fused_kernels: Vec<GpuKernel>,
}

/// One measured problem on one backend: a `[[fusion]]` table of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FusionRecord {
    /// The problem in its text form.
    pub problem: Problem,
    /// The pattern's name, or the ops joined with `+`.
    pub fusion_pattern: String,
    /// The ops in order.
    pub operators: Vec<String>,
    /// How many ops there are.
    pub num_operators: u32,
    /// Where it ran.
    pub backend: Backend,
    /// The dtype of every tensor.
    pub dtype: DType,
    /// On how many threads.
    pub threads: u32,
    /// What the caches held.
    pub cache_state: CacheState,
    /// What its times begin and end with; absent for the host's clock.
    #[serde(default, skip_serializing_if = "Clock::is_host")]
    pub clock: Clock,
    /// Whose kernels ran: `native` are the project's own.
    pub implementation: Implementation,
    /// What the ops were rewritten to before they were fused; absent for the ops as they are written.
    ///
    /// The unfused variant is the same in both records of a problem. Modelled figures are those of the
    /// ops as they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,

    /// Time of the unfused variant. Divided by the fused one it is the speedup.
    pub unfused_latency_ms: f64,
    /// Modelled bytes that the unfused variant moves.
    pub unfused_memory_bytes: u64,
    /// Modelled bytes of the tensors that are alive at the same time in the unfused variant, at most:
    /// see [`PeakMemory`](crate::cost::PeakMemory). Absent in files from before version 5, as are
    /// the bytes of scratch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfused_peak_bytes: Option<u64>,
    /// Bytes that the kernels of the unfused variant need for themselves, in addition to tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfused_scratch_bytes: Option<u64>,
    /// Flops of the chain over the unfused time, in 10^9 per second.
    pub unfused_gflops: f64,
    /// Time of the fused variant.
    pub fused_latency_ms: f64,
    /// Modelled bytes that the fused variant moves.
    pub fused_memory_bytes: u64,
    /// The same as `unfused_peak_bytes` of the fused variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fused_peak_bytes: Option<u64>,
    /// Bytes that the fused kernel needs for itself, in addition to tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fused_scratch_bytes: Option<u64>,
    /// Flops of the chain over the fused time, in 10^9 per second.
    pub fused_gflops: f64,

    /// Unfused time over fused time, from the paired measurement.
    pub speedup_factor: f64,
    /// Lower end of the 95 % interval of the speedup.
    pub speedup_low: f64,
    /// Upper end of the 95 % interval of the speedup.
    pub speedup_high: f64,
    /// Modelled share of bytes that fusion saves.
    pub memory_reduction: f64,
    /// Gain of achieved flop rate: `speedup_factor - 1`.
    pub efficiency_improvement: f64,
    /// The speedup that the roofline allows; absent where no ceilings were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_speedup: Option<f64>,

    /// The shape of the first input.
    pub input_shape: Vec<u64>,
    /// Every size by its key.
    pub extra_params: BTreeMap<String, u64>,
    /// What limits the unfused variant on the roofline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck_unfused: Option<Bottleneck>,
    /// What limits the fused variant on the roofline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck_fused: Option<Bottleneck>,
    /// Flops per modelled byte of the unfused variant.
    pub arithmetic_intensity_unfused: f64,
    /// Flops per modelled byte of the fused variant.
    pub arithmetic_intensity_fused: f64,

    /// What the measurement says.
    pub verdict: Verdict,
    /// The noise floor that the verdict was made with, as a ratio minus 1.
    pub noise_floor: f64,
    /// How the interval was made.
    pub interval_method: String,
    /// The correlation of successive processes that the interval allows for: that of all records of the
    /// run, or the record's own where it is higher beyond chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_correlation: Option<f64>,
    /// Seconds from the first process to the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_s: Option<f64>,
    /// The states of the machine that it was measured in, as [`MachineState::id`]; empty where none
    /// were looked for.
    ///
    /// [`MachineState::id`]: super::MachineState::id
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<u32>,
    /// Fresh processes.
    pub processes: u32,
    /// Rounds, each with a fresh memory layout.
    pub rounds: u32,
    /// Pairs of one unfused and one fused sample that were measured.
    pub pairs: u32,
    /// Pairs that were used.
    pub pairs_kept: u32,
    /// Ticks of the clock in the shortest sample of a process; half of the processes have at least as
    /// many.
    pub sample_ticks: u64,
    /// What the speedup would have been off by, as a ratio minus 1, had the variants been measured
    /// one after the other instead of in turns; absent where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_sensitivity: Option<f64>,
    /// The share of the unfused time that is in none of its steps: below 0 by what reading the clock
    /// costs. Absent where the steps were not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_outside_steps: Option<f64>,
    /// The kernels that the unfused variant ran, in order.
    pub unfused_kernels: Vec<String>,
    /// The kernel that the fused variant ran.
    pub fused_kernel: String,

    /// The unfused variant's time in detail.
    pub unfused_timing: Timing,
    /// The fused variant's time in detail.
    pub fused_timing: Timing,
    /// The time of each kernel of the unfused variant, in order; empty where they were not timed, and
    /// for a chain of a single op, whose time is the record's.
    #[serde(default, rename = "step", skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepTime>,
    /// Pairs that were not used, by what disturbed them.
    pub disturbed: Disturbed,
    /// Where the threads and the tensors were.
    pub placement: Placement,
    /// The proof.
    pub verification: Verification,
    /// What only a GPU reports; absent for a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuDetails>,
    /// What was measured in each state of the machine, where that differs: the interval of the record
    /// then holds all of theirs. Empty where it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_state: Vec<StateSpeedup>,
    /// Why the verdict is not a better one, or what a reader should know about it.
    #[serde(default, rename = "reason", skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

impl FusionRecord {
    /// A sample must last this many ticks of the clock, so that its resolution adds at most 0.1 %.
    pub const LEAST_TICKS: u32 = 1000;

    /// A speedup above its ceiling by more than this factor contradicts the model, and the record says
    /// so.
    pub const CEILING_MARGIN: f64 = 1.1;

    /// A time below the least that the ceilings allow, by more than this factor, contradicts them, and
    /// the record is invalid.
    pub const LEAST_TIME_MARGIN: f64 = 1.1;

    /// The same of a step of the unfused variant. It may find what those before it left in a nearer cache
    /// than the ceilings were measured in: of 1049 steps in three committed calibrations, twelve are
    /// below their least time by more than a tenth, and one by 27 %.
    pub const LEAST_STEP_MARGIN: f64 = 2.0;

    /// A reader should know when measuring one variant after the other instead of in turns changes the
    /// logarithm of the ratio by more than this, and by more than twice the noise floor.
    pub const ORDER_SENSITIVE: f64 = 0.05;

    /// Processes that all lie within fewer seconds may have met one state of the machine only: they are
    /// spread over two minutes, less a fifth, since the first pass of a run is longer than those after
    /// it.
    pub const SHORT_SPAN_S: f64 = 96.0;

    /// Other programs disturb if they keep more processors busy than this, in the mean.
    pub const MOST_OTHERS_BUSY: f64 = 0.2;
}
