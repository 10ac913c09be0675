//! How much is measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How much is measured: fresh process > round (a fresh memory layout) > pair (one
/// sample of each variant) > runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Procedure {
    /// Fresh processes per problem.
    pub processes: u32,
    /// Fresh processes for a problem that the stopping rule finds too wide after `processes`.
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
}

impl Procedure {
    /// The standard procedure. With two rounds a process meets too few memory layouts: a placement that
    /// costs 20 % and that a tenth of the rounds have was in the interval in 91 % of simulated runs,
    /// with four in 97 %. With four pairs instead of eight a spike in one of them moves its round.
    pub const STANDARD: Self = Self {
        processes: 10,
        most_processes: 20,
        rounds: 4,
        least_rounds: Self::LEAST_ROUNDS,
        pairs: 8,
        sample: Duration::from_micros(500),
        process_budget: Duration::from_millis(300),
    };

    /// The shortened procedure of `--quick`.
    pub const QUICK: Self = Self {
        processes: 3,
        most_processes: 3,
        rounds: 2,
        least_rounds: Self::LEAST_ROUNDS,
        pairs: 4,
        sample: Duration::from_micros(300),
        process_budget: Duration::from_millis(300),
    };

    /// The nominal coverage of the interval at each of two looks that keeps 95 % over both, after
    /// Pocock (Biometrika 1977): 1 minus twice the tail of the normal distribution beyond 2.178.
    const LEVEL_OF_TWO_LOOKS: f64 = 0.9706;

    /// A round has one pair in each order at least.
    pub const LEAST_PAIRS: u32 = 2;

    /// An interval needs two values at least.
    pub const LEAST_ROUNDS: u32 = 2;

    /// A sample must last this many ticks of the clock, so that its resolution adds at most 0.1 %.
    pub const LEAST_TICKS: u32 = 1000;

    /// Samples are made to last this many, since some turn out shorter than they were meant to be.
    pub const TICKS: u32 = 2 * Self::LEAST_TICKS;

    /// The same with other numbers of processes and rounds; rounds that are asked for are made, however
    /// slow a problem is. More processes than the standard ones
    /// are never cut short, and double when that does not suffice, as in the standard procedure;
    /// a single process stays single.
    #[must_use]
    pub fn with(self, processes: Option<u32>, rounds: Option<u32>) -> Self {
        let most = |processes: u32| if processes == 1 { 1 } else { processes.saturating_mul(2) };
        Self {
            processes: processes.unwrap_or(self.processes),
            most_processes: processes.map_or(self.most_processes, most),
            rounds: rounds.unwrap_or(self.rounds),
            least_rounds: rounds.unwrap_or(self.least_rounds),
            ..self
        }
    }

    /// The nominal coverage of the interval at each look. There are two where an undecided problem
    /// gets more processes: one after the planned ones, one after the most.
    #[must_use]
    pub const fn level(&self) -> f64 {
        if self.most_processes > self.processes { Self::LEVEL_OF_TWO_LOOKS } else { 0.95 }
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
        assert_eq!((with(None).processes, with(None).most_processes), (10, 20));
        assert_eq!((with(Some(20)).processes, with(Some(20)).most_processes), (20, 40));
        assert_eq!((with(Some(1)).processes, with(Some(1)).most_processes), (1, 1));
        assert_eq!(with(None).rounds, 3);
        assert!(with(None).level() > 0.97 && with(Some(1)).level() == 0.95);
    }
}
