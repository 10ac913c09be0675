//! The numbers of a scripted machine.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// How a machine behaves from process to process and from layout to layout. All effects are on the
/// logarithm of a time; where only one variant has an effect, it is the first one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    /// Standard deviation of each variant over the processes.
    pub(super) process_deviation: f64,
    /// Standard deviation of each variant over the layouts.
    pub(super) layout_deviation: f64,
    /// An effect that some processes have.
    pub(super) processes: Rare,
    /// An effect that some layouts have.
    pub(super) layouts: Rare,
    /// The mean of an exponential distribution over the processes.
    pub(super) one_sided: f64,
    /// Successive processes of a problem are correlated by this much.
    pub(super) correlation: Option<f64>,
    /// The machine changes between two states.
    pub(super) states: Option<States>,
    /// Something takes the processor away, and the counters show this share of it.
    pub(super) stolen_noticed: Option<f64>,
}

/// Something that happens to some.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rare {
    /// To how many.
    pub(super) share: f64,
    /// How much longer a run then takes, as a ratio minus 1.
    pub(super) longer: f64,
}

impl Rare {
    const NEVER: Self = Self::new(0.0, 0.0);

    pub(super) const fn new(share: f64, longer: f64) -> Self {
        Self { share, longer }
    }

    /// What it adds to the logarithm in the mean.
    fn mean(self) -> f64 {
        self.share * self.longer.ln_1p()
    }
}

/// Two states of a machine. In the second one the first variant takes 15 % longer.
#[derive(Debug, Clone, Copy)]
pub(super) struct States {
    /// How long each lasts in the mean, in seconds.
    pub(super) dwell: [f64; 2],
    /// What a look at the machine shows in each: the hand-off time in microseconds, and the triad in
    /// 10^9 bytes per second.
    pub(super) looks: [(f64, f64); 2],
    /// How many processors another program keeps busy in each.
    pub(super) others_busy: [f64; 2],
    /// Whether the looks differ.
    pub(super) are_seen: bool,
}

/// How much longer the first variant takes in the second state, as a ratio minus 1.
const SLOWER_STATE: f64 = 0.15;

/// What the looks at a virtual machine with two processors show in its two states.
const LOOKS: [(f64, f64); 2] = [(0.11, 57.0), (0.57, 112.0)];

impl States {
    /// States of the machine itself that last as long as each other.
    pub(super) const fn of(minutes: f64, are_seen: bool) -> Self {
        let looks = if are_seen { LOOKS } else { [LOOKS[0]; 2] };
        Self { dwell: [60.0 * minutes; 2], looks, others_busy: [0.0; 2], are_seen }
    }

    /// Another program on the memory bus, which comes for two minutes and stays away for four.
    pub(super) const NEIGHBOUR: Self = Self {
        dwell: [240.0, 120.0],
        looks: [LOOKS[0], (LOOKS[0].0, 0.5 * LOOKS[0].1)],
        others_busy: [0.0, 1.0],
        are_seen: true,
    };

    /// Share of the time in the second state.
    pub(super) fn share(self) -> f64 {
        self.dwell[1] / (self.dwell[0] + self.dwell[1])
    }

    /// What a state adds to the logarithm of the first variant's time.
    pub(super) fn effect(state: usize) -> f64 {
        if state == 1 { SLOWER_STATE.ln_1p() } else { 0.0 }
    }

    fn mean(self) -> f64 {
        Rare::new(self.share(), SLOWER_STATE).mean()
    }
}

impl Script {
    /// No effect but the noise that all machines have.
    pub(super) const QUIET: Self = Self {
        process_deviation: 0.005,
        layout_deviation: 0.01,
        processes: Rare::NEVER,
        layouts: Rare::NEVER,
        one_sided: 0.0,
        correlation: None,
        states: None,
        stolen_noticed: None,
    };

    /// Standard deviation of a ratio over the processes where they are correlated.
    pub(super) const CORRELATED_DEVIATION: f64 = 0.02;

    /// What the effects add to the logarithm of a ratio, over its processes in the long run.
    pub(super) fn long_run(&self) -> f64 {
        let states = self.states.map_or(0.0, States::mean);
        self.processes.mean() + self.layouts.mean() + self.one_sided + states
    }

    /// Seconds that a run of the second variant takes. What takes the processor away meets long runs
    /// more often than short ones, and most samples here are one run. On other machines half of the
    /// problems are shorter than a sample, and are looked at three times.
    pub(super) const fn run_seconds(&self, is_long: bool) -> f64 {
        match (self.stolen_noticed, is_long) {
            (Some(_), _) => 2e-3,
            (None, true) => 1e-3,
            (None, false) => 100e-6,
        }
    }
}

/// A draw from the normal distribution around 0.
pub(super) fn normal(deviation: f64, random: &mut ChaCha8Rng) -> f64 {
    let normal: f64 = StandardNormal.sample(random);
    deviation * normal
}
