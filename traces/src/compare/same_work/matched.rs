//! The operators that both sides called with the same sizes.

use super::super::result::{MatchedOperator, MatchedWork};
use super::workload::{Calls, Workload};
use crate::ratio::ratio;

/// Finds them.
pub(super) fn matched(works: &[Workload; 2]) -> MatchedWork {
    let [first, second] = works;
    let mut operators = Vec::new();
    let mut own_ns = [0_u64; 2];
    let mut sums = [0.0; 2];
    for ((operator, sizes), one) in &first.calls {
        let Some(other) = second.calls.get(&(operator.clone(), sizes.clone())) else { continue };
        let both = [one, other];
        for (own_ns, calls) in own_ns.iter_mut().zip(both) {
            *own_ns = own_ns.saturating_add(calls.total_ns);
        }
        let [first_mean_ns, second_mean_ns] = both.map(mean_ns);
        operators.push(MatchedOperator {
            operator: operator.clone(),
            sizes: sizes.clone(),
            first_calls: one.count,
            second_calls: other.count,
            first_mean_ns,
            second_mean_ns,
            ratio: (second_mean_ns > 0.0).then(|| first_mean_ns / second_mean_ns),
        });
    }
    let longest = |one: &MatchedOperator| {
        #[expect(clippy::cast_precision_loss, reason = "an order")]
        let times = [
            one.first_mean_ns * one.first_calls as f64,
            one.second_mean_ns * one.second_calls as f64,
        ];
        times[0].max(times[1])
    };
    operators.sort_by(|a, b| {
        let by_time = longest(b).total_cmp(&longest(a));
        by_time.then_with(|| (&a.operator, &a.sizes).cmp(&(&b.operator, &b.sizes)))
    });
    for one in &operators {
        #[expect(clippy::cast_precision_loss, reason = "a weight")]
        let calls = one.first_calls.min(one.second_calls) as f64;
        sums[0] += calls * one.first_mean_ns;
        sums[1] += calls * one.second_mean_ns;
    }
    MatchedWork {
        first_share: ratio(own_ns[0], first.all_ns),
        second_share: ratio(own_ns[1], second.all_ns),
        ratio: (sums[1] > 0.0).then(|| sums[0] / sums[1]),
        operators,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn mean_ns(calls: &Calls) -> f64 {
    if calls.count == 0 { 0.0 } else { calls.total_ns as f64 / calls.count as f64 }
}
