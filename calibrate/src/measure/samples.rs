//! The samples of one process.

use fused_kernels::Sensors;
use serde::{Deserialize, Serialize};

use super::disturbance::Cause;
use super::schedule::Order;

/// Two samples taken one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Seconds per run of the first and of the second variant.
    pub seconds: [f64; 2],
    /// Which one was sampled first.
    pub order: Order,
    /// What disturbed one of the two, whether or not that leaves the pair out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Whether the clock of a GPU changed around the sample of the first variant, and of the second.
    #[serde(default, skip_serializing_if = "is_steady")]
    pub clock_changed: [bool; 2],
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_steady(changed: &[bool; 2]) -> bool {
    *changed == [false; 2]
}

impl Pair {
    /// Whether nothing disturbed it that leaves a pair out.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !self.causes.iter().any(|cause| cause.leaves_out())
    }

    /// The logarithm of the first variant's time over the second's.
    #[must_use]
    pub fn log_ratio(&self) -> f64 {
        (self.seconds[0] / self.seconds[1]).ln()
    }

    /// The logarithm of the geometric mean of both times.
    #[must_use]
    pub fn log_middle(&self) -> f64 {
        0.5 * (self.seconds[0] * self.seconds[1]).ln()
    }
}

/// The pairs that were taken in one memory layout, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// In the order in which they were taken.
    pub pairs: Vec<Pair>,
}

/// All samples of two variants in one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// In the order in which they were taken.
    pub rounds: Vec<Round>,
    /// Runs per sample of each variant.
    pub iterations: [u32; 2],
    /// Ticks of the clock in the shortest sample.
    pub ticks: u64,
    /// The logarithm of the ratio when all samples of one variant are taken before those of the
    /// other, in the layout of the last round.
    pub back_to_back: f64,
    /// The causes of disturbances that this system shows.
    pub observable: Vec<Cause>,
    /// What the device reported of itself around the samples; `None` where it reports nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensors: Option<SensorRange>,
}

impl Samples {
    /// Whether more than half of the pairs are left out.
    #[must_use]
    pub fn is_mostly_disturbed(&self) -> bool {
        let pairs = || self.rounds.iter().flat_map(|round| &round.pairs);
        2 * pairs().filter(|pair| pair.is_kept()).count() < pairs().count()
    }
}

/// What a device reported of itself around some samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorRange {
    /// Its lowest and its highest clock.
    pub clock_mhz: Option<[u32; 2]>,
    /// The same of the clock that it counted itself, in the mean of each sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_clock_mhz: Option<[u32; 2]>,
    /// All bits of the reasons for which that was lower than it could be.
    pub throttle_reasons: Option<u64>,
}

impl SensorRange {
    /// The same with another reading.
    pub(super) fn add(&mut self, reading: Sensors) {
        let Sensors { clock_mhz, device_clock_mhz, throttle_reasons } = reading;
        *self = self.with(Self {
            clock_mhz: clock_mhz.map(|mhz| [mhz; 2]),
            device_clock_mhz: device_clock_mhz.map(|mhz| [mhz; 2]),
            throttle_reasons,
        });
    }

    /// What two processes reported together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let range = |one: Option<[u32; 2]>, other: Option<[u32; 2]>| {
            let both = one.into_iter().chain(other);
            both.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
        };
        let reasons = self.throttle_reasons.into_iter().chain(other.throttle_reasons);
        Self {
            clock_mhz: range(self.clock_mhz, other.clock_mhz),
            device_clock_mhz: range(self.device_clock_mhz, other.device_clock_mhz),
            throttle_reasons: reasons.reduce(|a, b| a | b),
        }
    }
}
