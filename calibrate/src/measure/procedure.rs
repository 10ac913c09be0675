//! How much is measured.

use std::time::Duration;

use fusion_cost_model::calibration::FusionRecord;
use serde::{Deserialize, Serialize};

/// How much is measured: fresh process > round (a fresh memory layout) > pair (one
/// sample of each variant) > runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Procedure {
    /// Fresh processes per problem.
    pub processes: u32,
    /// Fresh processes for a problem that the stopping rule finds too wide after `processes`.
    pub more_processes: u32,
    /// Fresh processes for one that is still too wide then, and short enough for them to cost little.
    pub most_processes: u32,
    /// Rounds per process, unless the problem is so slow that the budget allows only fewer.
    pub rounds: u32,
    /// Rounds per process of the slowest problems.
    pub least_rounds: u32,
    /// Pairs per round, unless the problem is so slow that the budget allows only fewer.
    pub pairs: u32,
    /// How long a sample lasts at least, unless one run lasts longer.
    pub sample: Duration,
    /// How long the samples of one process may take together. Slow problems get fewer pairs, and the
    /// slowest fewer rounds, but never fewer than two of one pair in each order.
    pub process_budget: Duration,
    /// How often a process that measures the ceilings does so; the best counts, and each takes about
    /// a second.
    pub ceiling_rounds: u32,
}

impl Procedure {
    /// The standard procedure. With two rounds a process meets too few memory layouts: a placement that
    /// costs 20 % and that a tenth of the rounds have was in the interval in 91 % of simulated runs,
    /// with four in 97 %. With four pairs instead of eight a spike in one of them moves its round.
    pub const STANDARD: Self = Self {
        processes: 10,
        more_processes: 20,
        most_processes: 40,
        rounds: 4,
        least_rounds: Self::LEAST_ROUNDS,
        pairs: 8,
        sample: Duration::from_micros(500),
        process_budget: Duration::from_millis(300),
        ceiling_rounds: 3,
    };

    /// The shortened procedure of `--quick`.
    pub const QUICK: Self = Self {
        processes: 3,
        more_processes: 3,
        most_processes: 3,
        rounds: 2,
        least_rounds: Self::LEAST_ROUNDS,
        pairs: 4,
        sample: Duration::from_micros(300),
        process_budget: Duration::from_millis(300),
        ceiling_rounds: 1,
    };

    /// The nominal coverage of the interval at each of one, two and three looks that keeps 95 % over
    /// all of them, after Pocock (Biometrika 1977): 1 minus twice the tail of the normal distribution
    /// beyond 1.960, 2.178 and 2.289.
    const LEVELS: [f64; 3] = [0.95, 0.9706, 0.9779];

    /// A round has one pair in each order at least.
    pub const LEAST_PAIRS: u32 = 2;

    /// An interval needs two values at least.
    pub const LEAST_ROUNDS: u32 = 2;

    /// How long a sample of another program lasts at least: two runs of 0.2 ms of PyTorch took 1.5 times
    /// as long each as a hundred.
    pub const TOLD_SAMPLE: Duration = Duration::from_millis(5);

    /// How long the untimed runs before such a sample last at least. Another program waits for a message
    /// before them, and finds caches and buffers of the other variant: its first run then takes twice as
    /// long as those after 2 to 3 ms.
    pub const TOLD_UNTIMED: Duration = Duration::from_millis(3);

    /// A sample must last this many ticks of the clock, so that its resolution adds at most 0.1 %.
    pub const LEAST_TICKS: u32 = FusionRecord::LEAST_TICKS;

    /// Samples are made to last this many, since some turn out shorter than they were meant to be.
    pub const TICKS: u32 = 2 * Self::LEAST_TICKS;

    /// The same with other numbers of processes and rounds; rounds that are asked for are made, however
    /// slow a problem is. More processes than the standard ones
    /// are never cut short, and double when that does not suffice, as in the standard procedure;
    /// a single process stays single.
    #[must_use]
    pub fn with(self, processes: Option<u32>, rounds: Option<u32>) -> Self {
        let twice = |processes: u32| if processes == 1 { 1 } else { processes.saturating_mul(2) };
        Self {
            processes: processes.unwrap_or(self.processes),
            more_processes: processes.map_or(self.more_processes, twice),
            most_processes: processes.map_or(self.most_processes, twice),
            rounds: rounds.unwrap_or(self.rounds),
            least_rounds: rounds.unwrap_or(self.least_rounds),
            ..self
        }
    }

    /// The numbers of processes after which a problem is looked at. `is_short` says whether its
    /// processes cost little: a run of it takes less than a sample has to.
    #[must_use]
    pub fn looks(&self, is_short: bool) -> Vec<u32> {
        let last = if is_short { self.most_processes } else { self.more_processes };
        let mut looks = vec![self.processes, self.more_processes, last];
        looks.dedup();
        looks
    }

    /// The nominal coverage of the interval at each look at a problem.
    #[must_use]
    pub fn level(&self, is_short: bool) -> f64 {
        Self::LEVELS[self.looks(is_short).len() - 1]
    }

    /// The rounds, and the pairs in each, that the budget allows when a pair takes `pair_seconds`. The
    /// pairs are an even number.
    #[must_use]
    pub fn affordable(&self, pair_seconds: f64) -> (u32, usize) {
        let pairs_in = |rounds: u32| {
            let round_budget = self.process_budget.as_secs_f64() / f64::from(rounds);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates"
            )]
            let affordable = (round_budget / pair_seconds) as u32;
            affordable / 2 * 2
        };
        // A slow problem is a large one, whose time depends little on where its tensors lie.
        let fits = pairs_in(self.rounds) >= Self::LEAST_PAIRS;
        let rounds = if fits { self.rounds } else { self.least_rounds };
        let most = self.pairs.max(Self::LEAST_PAIRS);
        (rounds, pairs_in(rounds).clamp(Self::LEAST_PAIRS, most) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_problems_get_fewer_pairs_but_both_orders() {
        let procedure = Procedure::STANDARD;
        assert_eq!(procedure.affordable(1e-3), (4, 8));
        assert_eq!(procedure.affordable(0.018), (4, 4), "75 ms for a round");
        assert_eq!(procedure.affordable(0.037), (4, 2));
        assert_eq!(procedure.affordable(0.038), (2, 2), "150 ms for a round");
        assert_eq!(procedure.affordable(10.0), (2, 2));
        assert_eq!(procedure.affordable(0.0), (4, 8));
        // Whoever asks for rounds gets them.
        assert_eq!(procedure.with(None, Some(6)).affordable(10.0), (6, 2));
    }

    #[test]
    fn more_processes_double_and_one_stays_one() {
        let with = |processes| Procedure::STANDARD.with(processes, Some(3));
        let looks = |processes, is_short| with(processes).looks(is_short);
        assert_eq!((looks(None, false), looks(None, true)), (vec![10, 20], vec![10, 20, 40]));
        for is_short in [false, true] {
            assert_eq!(looks(Some(20), is_short), [20, 40]);
            assert_eq!(looks(Some(1), is_short), [1]);
            assert_eq!(Procedure::QUICK.looks(is_short), [3]);
        }
        assert_eq!(with(None).rounds, 3);
        let level = |processes, is_short| with(processes).level(is_short);
        assert_eq!((level(None, false), level(None, true)), (0.9706, 0.9779));
        assert_eq!(level(Some(1), true), 0.95);
    }
}
