//! Why a verdict is what it is, and what to do about it.

use std::fmt;

use fusion_cost_model::Core;
use fusion_cost_model::calibration::{Disturbed, FailedCore, MachineState, NoiseFloor, ReasonCode};

use crate::measure::{Cause, Estimate};

/// What was measured in one state of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct InState {
    /// The state.
    pub state: MachineState,
    /// Processes in it.
    pub processes: usize,
    /// The lower end of the interval, the speedup, and the upper end.
    pub speedup: [f64; 3],
}

/// Something that a reader of a verdict should know. Its text is what was found, and what to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// INVALID: the result was right before the timing and wrong after it.
    WrongAfterTiming(String),
    /// INVALID: more than half of the pairs were disturbed.
    MostlyDisturbed {
        /// Pairs that were taken.
        pairs: usize,
        /// Pairs that nothing disturbed.
        pairs_kept: usize,
        /// What disturbed the others.
        disturbed: Disturbed,
    },
    /// INVALID: without the A/A runs the noise of the machine is unknown.
    NoControl,
    /// INVALID: a kernel against itself came out different from itself.
    ControlOff(Box<NoiseFloor>),
    /// INVALID: the fused variant did not run as the same kernel.
    FellBack(Vec<String>),
    /// INVALID: the clock is too coarse for the samples. How many ticks the shortest one had.
    TooFewTicks(u64),
    /// INVALID: a variant ran faster than the measured ceilings of the machine allow.
    FasterThanTheMachine {
        /// Which one.
        variant: &'static str,
        /// Its median time in microseconds.
        median_us: f64,
        /// The least time in microseconds.
        least_us: f64,
    },
    /// AMBIGUOUS: neither beyond the noise floor with an interval that excludes 1, nor with an
    /// interval that is close to 1.
    Undecided {
        /// The noise floor as a ratio minus 1.
        floor: f64,
        /// How far the interval may reach to be close to 1, as a ratio minus 1.
        margin: f64,
        /// Half the width of the interval as a ratio minus 1.
        half_width: f64,
    },
    /// Everything was measured in one process.
    WithinProcess,
    /// Fewer processes were measured, or left undisturbed, than planned.
    FewProcesses {
        /// How many there are.
        processes: usize,
        /// How many were planned.
        planned: u32,
        /// Whether they are too few for an interval over processes.
        over_rounds: bool,
    },
    /// The speedup is above what the roofline allows.
    AboveCeiling {
        /// What it allows.
        ceiling: f64,
    },
    /// One variant measured after the other gives another ratio, by this much (a ratio minus 1).
    OrderSensitive(f64),
    /// Successive processes resemble each other; their correlation.
    SlowChange(f64),
    /// How much the logarithm of the ratio changes within a process.
    WarmingUp(f64),
    /// Disturbances of these kinds would not have been noticed.
    Unobserved(Vec<&'static str>),
    /// The clock of the GPU was held down, for these reasons.
    Throttled(Vec<String>),
    /// The clock of the GPU changed around most samples of a variant.
    ClockChanged {
        /// Samples of each variant around which it changed.
        samples: [usize; 2],
        /// Pairs that were taken, each with a sample of both.
        pairs: usize,
    },
    /// The kernels failed on better cores of the GPU than that on which they were measured.
    LowerCore {
        /// The core on which both variants ran.
        core: Core,
        /// How they failed, from the best core on.
        failed: Vec<FailedCore>,
    },
    /// The speedup depends on the state of the machine.
    StateChanged(Vec<InState>),
    /// Other programs used the machine.
    Neighbour {
        /// The processors that they kept busy, in the mean.
        processors: f64,
        /// The lowest triad that a process had, in 10^9 bytes per second.
        lowest_triad_gb_per_s: Option<f64>,
    },
    /// The processes lie close together in time.
    ShortSpan {
        /// Seconds from the first to the last one.
        seconds: f64,
        /// Seconds that are wanted.
        wanted: f64,
    },
}

impl Reason {
    /// The word that programs can look for.
    #[must_use]
    pub const fn code(&self) -> ReasonCode {
        match self {
            Self::WrongAfterTiming(_) => ReasonCode::WrongAfterTiming,
            Self::MostlyDisturbed { .. } => ReasonCode::MostlyDisturbed,
            Self::NoControl => ReasonCode::NoControl,
            Self::ControlOff(_) => ReasonCode::ControlOff,
            Self::FellBack(_) => ReasonCode::FellBack,
            Self::TooFewTicks(_) => ReasonCode::TooFewTicks,
            Self::FasterThanTheMachine { .. } => ReasonCode::FasterThanTheMachine,
            Self::Undecided { .. } => ReasonCode::Undecided,
            Self::WithinProcess => ReasonCode::WithinProcess,
            Self::FewProcesses { .. } => ReasonCode::FewProcesses,
            Self::AboveCeiling { .. } => ReasonCode::AboveCeiling,
            Self::OrderSensitive(_) => ReasonCode::OrderSensitive,
            Self::SlowChange(_) => ReasonCode::SlowChange,
            Self::WarmingUp(_) => ReasonCode::WarmingUp,
            Self::Unobserved(_) => ReasonCode::Unobserved,
            Self::Throttled(_) => ReasonCode::Throttled,
            Self::ClockChanged { .. } => ReasonCode::ClockChanged,
            Self::LowerCore { .. } => ReasonCode::LowerCore,
            Self::StateChanged(_) => ReasonCode::StateChanged,
            Self::Neighbour { .. } => ReasonCode::Neighbour,
            Self::ShortSpan { .. } => ReasonCode::ShortSpan,
        }
    }

    /// What left out most pairs of these estimates together.
    #[must_use]
    pub fn mostly_disturbed<'e>(estimates: impl IntoIterator<Item = &'e Estimate>) -> Self {
        let (mut pairs, mut pairs_kept, mut disturbed) = (0, 0, Disturbed::default());
        for estimate in estimates {
            pairs += estimate.pairs;
            pairs_kept += estimate.pairs_kept;
            disturbed = Cause::sum(disturbed, estimate.disturbed);
        }
        Self::MostlyDisturbed { pairs, pairs_kept, disturbed }
    }

    /// What to do about it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::WrongAfterTiming(_) => {
                "do not use this kernel, and report it with the problem and the seed"
            }
            Self::MostlyDisturbed { disturbed, pairs, pairs_kept }
                if is_most(disturbed.steal, *pairs - *pairs_kept) =>
            {
                "the hypervisor ran other guests meanwhile: measure at another time, or on a machine \
                 that is not shared"
            }
            Self::MostlyDisturbed { .. } => {
                "close other programs, or leave them a processor with --threads"
            }
            Self::NoControl => {
                "calibrate again on a quieter machine, and report it if a kernel failed"
            }
            Self::ControlOff(_) => {
                "calibrate again on a quieter machine, or with more --processes and --rounds"
            }
            Self::FellBack(_) => "nothing was fused here; do not use the speedup",
            Self::TooFewTicks(_) => "measure a larger problem, or on a system with a finer clock",
            Self::FasterThanTheMachine { .. } => {
                "calibrate again when the machine is quiet: its ceilings may have been measured \
                 while it was not; report it if it persists"
            }
            Self::Undecided { .. } => {
                "measure on a quieter machine, or with more --processes and --rounds"
            }
            Self::WithinProcess => "leave out --quick, or ask for more --processes",
            Self::FewProcesses { .. } => {
                "run the same command again: it measures those that a run that ended early left out, \
                 and all of them after a complete one"
            }
            Self::AboveCeiling { .. } => {
                "do not explain the gain by saved bytes alone: write-allocate traffic, caches or a \
                 weak unfused kernel have a part in it"
            }
            Self::SlowChange(_) => {
                "calibrate again at another time, or with a longer --spread: what this run did not \
                 meet is not in the interval"
            }
            Self::WarmingUp(_) => {
                "compare with more --rounds, which make processes longer: a program that runs for \
                 long may have the speedup of the end"
            }
            Self::OrderSensitive(_) => {
                "do not compare with benchmarks that run one variant after the other"
            }
            Self::Unobserved(_) => {
                "trust the interval, not the count of kept pairs; run outside the container, on \
                 Linux, and with the management library of a GPU, to see more"
            }
            Self::Throttled(_) => {
                "the ratio stands, since both variants met the same clock, but the times are those \
                 of this clock; look at the power limit and the cooling"
            }
            Self::ClockChanged { .. } => {
                "the pairs count all the same: a variant may change the clock by the power that it \
                 takes; where both do, lock the clocks or look at what else the GPU does"
            }
            Self::LowerCore { .. } => {
                "the speedup is that of fusion on this core, and the times are not the best of \
                 this GPU; report the failure with the page of calibrate doctor"
            }
            Self::StateChanged(_) => {
                "the interval holds all of them; ask the cost model for the state that you run in"
            }
            Self::Neighbour { .. } => {
                "what streams through memory was measured under their load; stop them, or take the \
                 speedup as one under such a load"
            }
            Self::ShortSpan { .. } => {
                "a state of the machine lasts minutes, and another one may give another speedup; \
                 leave out --quick, or ask for a longer --spread"
            }
        }
    }
}

/// The causes that left pairs out, each with the number of them.
pub(crate) fn causes_of(disturbed: Disturbed) -> String {
    // Only those that leave a pair out.
    let left_out = Disturbed { clock_change: None, ..disturbed };
    let causes = left_out.causes().into_iter();
    let causes = causes.filter_map(|(name, count)| Some((name, count.filter(|n| *n > 0)?)));
    let causes: Vec<String> = causes.map(|(name, count)| format!("{name} {count}")).collect();
    causes.join(", ")
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongAfterTiming(wrong) => f.write_str(wrong)?,
            Self::MostlyDisturbed { pairs, pairs_kept, disturbed } => {
                let causes = causes_of(*disturbed);
                write!(f, "only {pairs_kept} of {pairs} pairs were undisturbed ({causes})")?;
            }
            Self::NoControl => {
                f.write_str("no A/A run can be used, so the noise is unknown")?;
            }
            Self::ControlOff(control) => write!(
                f,
                "{} against itself came out as {:.3} [{:.3}, {:.3}]",
                control.problem, control.ratio, control.ratio_low, control.ratio_high
            )?,
            Self::FellBack(kernels) => write!(
                f,
                "the fused variant did not run as one and the same kernel, but as {}",
                kernels.join("; ")
            )?,
            Self::TooFewTicks(ticks) => {
                write!(f, "the shortest samples had {ticks} ticks of the clock")?;
            }
            Self::FasterThanTheMachine { variant, median_us, least_us } => write!(
                f,
                "the {variant} variant took {median_us:.2} us, and the measured ceilings of this \
                 machine allow no less than {least_us:.2} us"
            )?,
            Self::Undecided { floor, margin, half_width } => write!(
                f,
                "the interval (half-width {:.1} %) is neither clear of 1, with a speedup beyond \
                 the noise floor of {:.1} %, nor within {:.1} % of 1",
                half_width * 100.0,
                floor * 100.0,
                margin * 100.0
            )?,
            Self::WithinProcess => f.write_str(
                "one process, so the interval assumes how far others would lie from it",
            )?,
            Self::FewProcesses { processes, planned, over_rounds } => {
                write!(f, "{processes} of {planned} processes had undisturbed pairs")?;
                if *over_rounds {
                    f.write_str(
                        ", so that the interval is over rounds and assumes how far processes lie \
                         apart",
                    )?;
                }
            }
            Self::AboveCeiling { ceiling } => write!(
                f,
                "above the ceiling of {ceiling:.2}: the roofline does not explain the whole gain"
            )?,
            Self::SlowChange(correlation) => write!(
                f,
                "the speedup of a process resembles that of the one before (correlation \
                 {correlation:.2}): something changes slowly, and the interval is wider for it"
            )?,
            Self::WarmingUp(change) => write!(
                f,
                "the speedup is {:+.1} % off at the end of a process from what it is at its beginning",
                change.exp_m1() * 100.0
            )?,
            Self::OrderSensitive(off) => write!(
                f,
                "one variant measured after the other gives a speedup that is {:+.1} % off",
                off * 100.0
            )?,
            Self::Unobserved(causes) => {
                write!(f, "this system does not show {}", causes.join(", "))?;
            }
            Self::Throttled(reasons) => {
                write!(f, "the clock of the GPU was held down ({})", reasons.join(", "))?;
            }
            Self::ClockChanged { samples: [unfused, fused], pairs } => write!(
                f,
                "the clock of the GPU changed by more than 2 % around {unfused} of {pairs} samples \
                 of the unfused variant and {fused} of the fused"
            )?,
            Self::LowerCore { core, failed } => {
                write!(f, "measured on {core}")?;
                for failed in failed {
                    write!(f, "; {failed}")?;
                }
            }
            Self::StateChanged(states) => {
                f.write_str("the speedup depends on the state of the machine: ")?;
                for (index, InState { state, processes, speedup: [low, ratio, high] }) in
                    states.iter().enumerate()
                {
                    let comma = if index > 0 { ", " } else { "" };
                    let state = Looks(state.handoff_us, state.triad_gb_per_s);
                    let times = if *processes == 1 { "process" } else { "processes" };
                    write!(f, "{comma}{ratio:.3} [{low:.3}, {high:.3}] in {processes} {times} ")?;
                    write!(f, "with {state}")?;
                }
            }
            Self::Neighbour { processors, lowest_triad_gb_per_s } => {
                write!(f, "other programs kept {processors:.1} processors busy")?;
                if let Some(triad) = lowest_triad_gb_per_s {
                    write!(f, ", and memory gave {triad:.0} GB/s at its lowest")?;
                }
            }
            Self::ShortSpan { seconds, wanted } => {
                write!(f, "all processes lie within {seconds:.0} s, not {wanted:.0} s")?;
            }
        }
        write!(f, "; {}", self.advice())
    }
}

/// Whether a cause is behind more than half of the pairs that were left out.
const fn is_most(count: Option<u32>, left_out: usize) -> bool {
    match count {
        Some(count) => 2 * count as usize > left_out,
        None => false,
    }
}

/// A state of the machine in words: its hand-off time, if it has one, and its triad.
struct Looks(Option<f64>, f64);

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(handoff_us, triad_gb_per_s) = self;
        if let Some(handoff) = handoff_us {
            write!(f, "a hand-off of {handoff:.2} us and ")?;
        }
        write!(f, "{triad_gb_per_s:.0} GB/s")
    }
}
