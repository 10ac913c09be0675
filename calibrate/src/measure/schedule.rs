//! The order of the samples within pairs.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Which member of a pair is sampled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The first variant, then the second.
    FirstSecond,
    /// The second variant, then the first.
    SecondFirst,
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
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
}
