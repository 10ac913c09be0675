//! Why a verdict is what it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that a reader of a record should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The word that programs look for.
    pub code: ReasonCode,
    /// What was found, and what to do about it.
    pub text: String,
}

/// The code and the text.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident $name:literal,)+) => {
        /// What a [`Reason`] is about.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[non_exhaustive]
        pub enum ReasonCode {
            $($(#[$doc])* #[serde(rename = $name)] $code,)+
        }

        impl ReasonCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$code),+];

            /// The word in files and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }
        }
    };
}

codes! {
    /// INVALID: the result was right before the timing and wrong after it.
    WrongAfterTiming "wrong-after-timing",
    /// INVALID: more than half of the pairs were disturbed.
    MostlyDisturbed "mostly-disturbed",
    /// INVALID: without the A/A runs the noise of the machine is unknown.
    NoControl "no-control",
    /// INVALID: a kernel against itself came out different from itself.
    ControlOff "control-off",
    /// INVALID: the fused variant did not run as the same kernel.
    FellBack "fell-back",
    /// INVALID: the clock is too coarse for the samples.
    TooFewTicks "too-few-ticks",
    /// INVALID: a variant ran faster than the measured ceilings of the machine allow.
    FasterThanTheMachine "faster-than-the-machine",
    /// AMBIGUOUS: neither beyond the noise floor nor close to 1.
    Undecided "undecided",
    /// Everything was measured in one process.
    WithinProcess "within-process",
    /// Fewer processes ran, or were left undisturbed, than planned.
    FewProcesses "few-processes",
    /// The speedup is above what the roofline allows.
    AboveCeiling "above-ceiling",
    /// One variant measured after the other gives another ratio.
    OrderSensitive "order-sensitive",
    /// Successive processes resemble each other: something changes slowly.
    SlowChange "slow-change",
    /// The speedup at the end of a process is another than at its beginning.
    WarmingUp "warming-up",
    /// Some kinds of disturbances would not have been noticed.
    Unobserved "unobserved",
    /// The machine was in states between which the result differs, or is known to have others.
    StateChanged "state-changed",
    /// Other programs used the machine's processors, and with them its memory.
    Neighbour "neighbour",
    /// The processes lie within less time than a state of the machine lasts.
    ShortSpan "short-span",
    /// The clock of the GPU was held down.
    Throttled "throttled",
    /// The clock of the GPU changed around most samples of a variant.
    ClockChanged "clock-changed",
    /// The kernels failed on the best core of the GPU, and were measured on another.
    LowerCore "lower-core",
}

impl ReasonCode {
    /// Whether a measurement with such a reason is [`Verdict::Invalid`](super::Verdict::Invalid).
    #[must_use]
    pub const fn is_invalidity(self) -> bool {
        matches!(
            self,
            Self::WrongAfterTiming
                | Self::MostlyDisturbed
                | Self::NoControl
                | Self::ControlOff
                | Self::FellBack
                | Self::TooFewTicks
                | Self::FasterThanTheMachine
        )
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
