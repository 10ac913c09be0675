//! The order of the samples within pairs, and of the problems within a pass.

use rand::SeedableRng;
use rand::seq::SliceRandom;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

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
