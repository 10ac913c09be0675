//! The order of the samples within pairs, and of the problems within a pass.

use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Which member of a pair is sampled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    /// The first variant, then the second.
    FirstSecond,
    /// The second variant, then the first.
    SecondFirst,
}

impl Order {
    /// The indices of the variants in the order in which they are sampled.
    #[must_use]
    pub const fn positions(self) -> [usize; 2] {
        match self {
            Self::FirstSecond => [0, 1],
            Self::SecondFirst => [1, 0],
        }
    }
}

/// The orders of the pairs of a round: half of them each way (one more of the first kind where
/// the number is odd), shuffled, so that neither drift nor the position favours a variant.
#[must_use]
pub fn draw_orders(pairs: usize, random: &mut ChaCha8Rng) -> Vec<Order> {
    let mut orders: Vec<Order> = (0..pairs)
        .map(|index| if index % 2 == 0 { Order::FirstSecond } else { Order::SecondFirst })
        .collect();
    orders.shuffle(random);
    orders
}

/// The order in which a pass goes through `count` problems: as they were listed in the first
/// pass, shuffled in the others, so that what one leaves behind (a hot processor, a low clock)
/// meets another problem each time.
#[must_use]
pub fn draw_pass(count: usize, pass: u32, seed: u64) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..count).collect();
    if pass > 0 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(u64::from(pass));
        indices.shuffle(&mut random);
    }
    indices
}

/// When a pass begins at the earliest, after the beginning of the run, if the first `planned` ones are
/// to be spread over some time.
///
/// These begin at equal distances, and those after them at half of that: a problem that needs more
/// processes would else have most of them in a burst at the end, and its mean be that of the state
/// which the machine was in then. Each begins a little late, by a time that is drawn: passes at equal
/// distances would meet a job that runs as often always in the same phase.
#[must_use]
pub fn draw_beginning(pass: u32, planned: u32, spread: Duration, seed: u64) -> Duration {
    if pass == 0 || planned < 2 {
        return Duration::ZERO;
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // Others than those of the orders of passes.
    random.set_stream((1 << 32) | u64::from(pass));
    let late = random.random_range(0.0..0.5);
    let distance = spread / (planned - 1);
    match pass.checked_sub(planned - 1) {
        None | Some(0) => distance.mul_f64(f64::from(pass) + late),
        Some(beyond) => spread + (distance / 2).mul_f64(f64::from(beyond) + late),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn passes_are_spread_and_never_a_burst() {
        let spread = Duration::from_secs(120);
        let begins =
            |seed| (0..40).map(move |pass| draw_beginning(pass, 10, spread, seed).as_secs_f64());
        let even = spread.as_secs_f64() / 9.0;
        let mut phases = HashSet::new();
        for seed in 0..20 {
            let all: Vec<f64> = begins(seed).collect();
            assert_eq!(all[0], 0.0);
            for (pass, pair) in all.windows(2).enumerate() {
                let distance = pair[1] - pair[0];
                let least = if pass == 9 { 0.0 } else { 0.25 * even };
                assert!(least <= distance && distance <= 1.5 * even, "{seed} {pass}: {distance}");
            }
            assert!(all[9] >= spread.as_secs_f64());
            // As many in the first part of the time as in the last, but for the first distance.
            let middle = all[39] / 2.0;
            let before = all.iter().filter(|begins| **begins < middle).count();
            assert!((12..=20).contains(&before), "{before} of 40 in the first half");
            phases
                .extend(all.iter().map(|begins| (begins / even).fract().mul_add(8.0, 0.0) as u32));
        }
        assert!(phases.len() >= 4, "passes keep to {phases:?}");
        assert_eq!(draw_beginning(5, 10, spread, 1), draw_beginning(5, 10, spread, 1));
        assert_eq!(draw_beginning(5, 10, Duration::ZERO, 1), Duration::ZERO);
        assert_eq!(draw_beginning(1, 1, spread, 1), Duration::ZERO);
    }

    #[test]
    fn the_orders_are_balanced_shuffled_and_reproducible() {
        let mut seen = HashSet::new();
        for seed in 0..100 {
            let orders = draw_orders(8, &mut ChaCha8Rng::seed_from_u64(seed));
            let first = orders.iter().filter(|order| **order == Order::FirstSecond).count();
            assert_eq!(first, 4);
            assert_eq!(orders, draw_orders(8, &mut ChaCha8Rng::seed_from_u64(seed)));
            seen.insert(orders);
        }
        // There are 70 such orders.
        assert!(seen.len() > 40, "{}", seen.len());
    }

    #[test]
    fn every_pass_visits_every_problem_in_an_order_of_its_own() {
        let mut seen = HashSet::new();
        for pass in 0..10 {
            let order = draw_pass(20, pass, 3);
            assert_eq!(order, draw_pass(20, pass, 3));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
            seen.insert(order);
        }
        assert_eq!(seen.len(), 10);
        assert!(draw_pass(20, 0, 3).is_sorted());
        assert_ne!(draw_pass(20, 1, 3), draw_pass(20, 1, 4));
    }
}
