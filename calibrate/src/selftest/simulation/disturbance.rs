//! What can be wrong with a scripted machine.

use serde::Serialize;

use super::script::{Rare, Script, States};
use crate::selftest::{LEAST_COVERAGE, LEAST_COVERAGE_OF_SLOW_CHANGES};

/// What is wrong with a scripted machine, in addition to the noise that all of them have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// Its speed swings by 30 % within seconds.
    Drift,
    /// One run in twenty takes far longer, and nothing shows why.
    Spikes,
    /// The second sample of a pair takes 5 % longer.
    PositionBias,
    /// The placement of the tensors moves each variant by 10 %.
    LayoutEffect,
    /// The clock rate drops by 30 % and comes back, every few seconds.
    ClockStep,
    /// Each process is faster or slower by 2 %, differently for each variant.
    ProcessEffect,
    /// The system takes the processor away during one run in ten, which its counters show; the
    /// second sample of a pair takes 5 % longer.
    Preemption,
    /// One variant takes 5 % longer in half of the processes.
    HalfOfProcesses,
    /// One variant takes 5 % longer in a fifth of the processes.
    FifthOfProcesses,
    /// One variant takes 10 % longer in a tenth of the processes.
    TenthOfProcesses,
    /// One variant takes 20 % longer in a tenth of the processes: more than what an interval is
    /// made for, which ten processes meet nothing of in a third of all cases.
    MoreInTenthOfProcesses,
    /// One variant takes 20 % longer in a tenth of the layouts.
    TenthOfLayouts,
    /// One variant takes 50 % longer in one layout of fifty.
    FiftiethOfLayouts,
    /// One variant takes longer in every process, exponentially distributed with a mean of 2 %.
    OneSided,
    /// Successive processes of a problem are correlated with 0.3; they deviate by 2 %.
    Correlated,
    /// Successive processes of a problem are correlated with 0.6; they deviate by 2 %.
    StronglyCorrelated,
    /// Two states of the machine, of two minutes each in the mean; one variant takes 15 % longer in one
    /// of them. Looks at the machine tell them apart.
    SeenStates,
    /// The same with states of ten minutes.
    LongSeenStates,
    /// Two states of two minutes that no look at the machine tells apart.
    HiddenStates,
    /// The same with states of ten minutes.
    LongHiddenStates,
    /// Something takes the processor 20 times a second, for a millisecond in the mean, from samples
    /// of 2 to 5 ms. The counters show 90 % of it.
    StolenMostlyNoticed,
    /// The counters show half of it.
    StolenHalfNoticed,
    /// The counters show nothing of it.
    StolenUnnoticed,
    /// Another program reads memory for two minutes in six, which makes one variant take 15 % longer.
    Neighbour,
}

impl Disturbance {
    /// Every kind.
    pub const ALL: [Self; 24] = [
        Self::Drift,
        Self::Spikes,
        Self::PositionBias,
        Self::LayoutEffect,
        Self::ClockStep,
        Self::ProcessEffect,
        Self::Preemption,
        Self::HalfOfProcesses,
        Self::FifthOfProcesses,
        Self::TenthOfProcesses,
        Self::MoreInTenthOfProcesses,
        Self::TenthOfLayouts,
        Self::FiftiethOfLayouts,
        Self::OneSided,
        Self::Correlated,
        Self::StronglyCorrelated,
        Self::SeenStates,
        Self::LongSeenStates,
        Self::HiddenStates,
        Self::LongHiddenStates,
        Self::StolenMostlyNoticed,
        Self::StolenHalfNoticed,
        Self::StolenUnnoticed,
        Self::Neighbour,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drift => "drift",
            Self::Spikes => "spikes",
            Self::PositionBias => "position bias",
            Self::LayoutEffect => "layout effect",
            Self::ClockStep => "clock step",
            Self::ProcessEffect => "process effect",
            Self::Preemption => "preemption",
            Self::HalfOfProcesses => "5 % in 1/2 of processes",
            Self::FifthOfProcesses => "5 % in 1/5 of processes",
            Self::TenthOfProcesses => "10 % in 1/10 of processes",
            Self::MoreInTenthOfProcesses => "20 % in 1/10 of processes",
            Self::TenthOfLayouts => "20 % in 1/10 of layouts",
            Self::FiftiethOfLayouts => "50 % in 1/50 of layouts",
            Self::OneSided => "one-sided process effect",
            Self::Correlated => "correlation 0.3",
            Self::StronglyCorrelated => "correlation 0.6",
            Self::SeenStates => "seen states, 2 min",
            Self::LongSeenStates => "seen states, 10 min",
            Self::HiddenStates => "hidden states, 2 min",
            Self::LongHiddenStates => "hidden states, 10 min",
            Self::StolenMostlyNoticed => "stolen, 90 % noticed",
            Self::StolenHalfNoticed => "stolen, 50 % noticed",
            Self::StolenUnnoticed => "stolen, 0 % noticed",
            Self::Neighbour => "neighbour",
        }
    }

    /// How a machine with it behaves. What happens within a process is scripted there.
    pub(super) const fn script(self) -> Script {
        let quiet = Script::QUIET;
        match self {
            Self::Drift
            | Self::Spikes
            | Self::PositionBias
            | Self::ClockStep
            | Self::Preemption => quiet,
            Self::LayoutEffect => Script { layout_deviation: 0.1, ..quiet },
            Self::ProcessEffect => Script { process_deviation: 0.02, ..quiet },
            Self::HalfOfProcesses => Script { processes: Rare::new(0.5, 0.05), ..quiet },
            Self::FifthOfProcesses => Script { processes: Rare::new(0.2, 0.05), ..quiet },
            Self::TenthOfProcesses => Script { processes: Rare::new(0.1, 0.1), ..quiet },
            Self::MoreInTenthOfProcesses => Script { processes: Rare::new(0.1, 0.2), ..quiet },
            Self::TenthOfLayouts => Script { layouts: Rare::new(0.1, 0.2), ..quiet },
            Self::FiftiethOfLayouts => Script { layouts: Rare::new(0.02, 0.5), ..quiet },
            Self::OneSided => Script { one_sided: 0.02, ..quiet },
            Self::Correlated => Script { correlation: Some(0.3), ..quiet },
            Self::StronglyCorrelated => Script { correlation: Some(0.6), ..quiet },
            Self::SeenStates => Script { states: Some(States::of(2.0, true)), ..quiet },
            Self::LongSeenStates => Script { states: Some(States::of(10.0, true)), ..quiet },
            Self::HiddenStates => Script { states: Some(States::of(2.0, false)), ..quiet },
            Self::LongHiddenStates => Script { states: Some(States::of(10.0, false)), ..quiet },
            Self::StolenMostlyNoticed => Script { stolen_noticed: Some(0.9), ..quiet },
            Self::StolenHalfNoticed => Script { stolen_noticed: Some(0.5), ..quiet },
            Self::StolenUnnoticed => Script { stolen_noticed: Some(0.0), ..quiet },
            Self::Neighbour => Script { states: Some(States::NEIGHBOUR), ..quiet },
        }
    }

    /// The least share of intervals that must contain the truth; 0 where no procedure of this length
    /// can keep a promise.
    #[must_use]
    pub const fn least_coverage(self) -> f64 {
        match self {
            Self::StronglyCorrelated | Self::LongSeenStates => LEAST_COVERAGE_OF_SLOW_CHANGES,
            Self::HiddenStates | Self::LongHiddenStates | Self::MoreInTenthOfProcesses => 0.0,
            _ => LEAST_COVERAGE,
        }
    }
}
