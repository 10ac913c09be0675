//! How fast the kernels of both sides were, beside each other.

use fusion_cost_model::DType;

use super::Comparison;
use super::basis::Steps;
use super::result::{RateComparison, RateRow, SideRate};
use super::side::{Chosen, on_both};
use super::text::{percent, three_digits};
use crate::rates::{Achieved, Done, Machine, Rate, Rates};

/// Rates that differ by less are the same.
const SAME_RATE: f64 = 1.05;

/// From this part of a difference on, it comes from one thing.
const MOST_OF_IT: f64 = 2.0 / 3.0;

/// Puts the rates of both sides beside each other, without peaks.
pub(super) fn compare(sides: &[Chosen<'_>; 2], steps: &Steps) -> RateComparison {
    let [first, second] = on_both(&|index| {
        let side = &sides[index];
        let is_compared = side.is_compared();
        let keep = |row: usize| is_compared.get(row) == Some(&true);
        Rates::of_some(side.side.trace, side.side.classes, None, keep)
    });
    let mut rows: Vec<RateRow> = Vec::new();
    for (side, rates) in [&first, &second].into_iter().enumerate() {
        for rate in rates.by_class.iter().filter(|rate| rate.known_ns > 0) {
            let own = Some(side_rate(rate, steps.counts[side]));
            let known =
                rows.iter_mut().find(|row| row.class == rate.class && row.dtype == rate.dtype);
            match (known, side) {
                (Some(row), _) => row.second = own,
                (None, 0) => rows.push(row(rate, own, None)),
                (None, _) => rows.push(row(rate, None, own)),
            }
        }
    }
    rows.sort_by(|a, b| {
        let by_time = longest(b).total_cmp(&longest(a));
        by_time.then_with(|| (&a.class, a.dtype).cmp(&(&b.class, b.dtype)))
    });
    RateComparison {
        first_known_share: first.known_share,
        second_known_share: second.known_share,
        rows,
        ..RateComparison::default()
    }
}

fn row(rate: &Rate, first: Option<SideRate>, second: Option<SideRate>) -> RateRow {
    RateRow { class: rate.class.clone(), dtype: rate.dtype, first, second }
}

fn longest(row: &RateRow) -> f64 {
    let time = |side: &Option<SideRate>| side.map_or(0.0, |side| side.step_ns);
    time(&row.first).max(time(&row.second))
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn side_rate(rate: &Rate, steps: f64) -> SideRate {
    let &Rate { known_ns, flops, bytes, tflop_per_s, gb_per_s, .. } = rate;
    let step_ns = if steps > 0.0 { known_ns as f64 / steps } else { 0.0 };
    SideRate {
        step_ns,
        known_ns,
        flops,
        bytes,
        tflop_per_s,
        gb_per_s,
        of_peak: None,
        of_bandwidth: None,
        bound: None,
        of_roofline: None,
    }
}

impl RateComparison {
    /// Sets the rates against the peaks of the sides' machines.
    fn against(&mut self, machines: [Option<&Machine>; 2]) {
        [self.first_machine, self.second_machine] =
            machines.map(|machine| machine.map(|machine| machine.name.clone()));
        for row in &mut self.rows {
            let dtype = DType::ALL.into_iter().find(|dtype| Some(dtype.name()) == row.dtype);
            for (side, machine) in [&mut row.first, &mut row.second].into_iter().zip(machines) {
                let Some(side) = side else { continue };
                let SideRate { flops, bytes, known_ns: ns, .. } = *side;
                let found = Achieved::of(Done { flops, bytes, ns, dtype }, machine);
                (side.of_peak, side.of_bandwidth) = (found.of_peak, found.of_bandwidth);
                (side.bound, side.of_roofline) = (found.bound, found.of_roofline);
            }
        }
    }

    /// The kernels that both sides have with known work and whose times differ the most.
    fn widest(&self) -> Option<(&RateRow, [SideRate; 2])> {
        let both = self.rows.iter().filter_map(|row| Some((row, [row.first?, row.second?])));
        let gap = |sides: &[SideRate; 2]| (sides[0].step_ns - sides[1].step_ns).abs();
        // Of equals the first, which takes the longest.
        both.reduce(|best, next| if gap(&next.1) > gap(&best.1) { next } else { best })
    }
}

impl Comparison {
    /// The comparison with what the rates are of the peaks of the sides' machines, of those that
    /// are known.
    #[must_use]
    pub fn with_machines(mut self, machines: [Option<&Machine>; 2]) -> Self {
        self.rates.against(machines);
        self
    }

    /// How fast the kernels are whose times differ the most, and where the difference comes from,
    /// without a full stop; none if no work is known on both sides.
    #[must_use]
    pub fn rates_sentence(&self) -> Option<String> {
        let (row, sides) = self.rates.widest()?;
        let computes = sides.iter().all(|side| side.tflop_per_s.is_some());
        let rates = sides.map(|side| if computes { side.tflop_per_s } else { side.gb_per_s });
        let [Some(first), Some(second)] = rates else { return None };
        let unit = if computes { "TFLOP/s" } else { "GB/s" };
        let labels = [&self.first.label, &self.second.label];
        let side = |at: usize, rate: f64| {
            let of = sides[at].of_roofline;
            let of = of.map_or_else(String::new, |of| {
                format!(", {} of what its roofline allows,", percent(of))
            });
            format!("{} reaches {} {unit}{of}", labels[at], three_digits(rate))
        };
        let what = row.dtype.map_or_else(String::new, |dtype| format!(" ({dtype})"));
        let rates = format!(
            "In {}{what} {} and {}",
            row.class,
            side(0, first),
            side(1, second).trim_end_matches(',')
        );
        let factor = first / second;
        if factor.max(1.0 / factor) < SAME_RATE {
            return Some(format!("{rates}: no difference to speak of"));
        }
        let [Some(of_first), Some(of_second)] = sides.map(|side| side.of_roofline) else {
            return Some(rates);
        };
        // The rate is what the roofline allows times what of that is reached.
        let reached = (of_first / of_second).ln() / factor.ln();
        let cause = if reached >= MOST_OF_IT {
            "the difference is what of their rooflines they reach, and not the machines' peaks"
        } else if reached <= 1.0 - MOST_OF_IT {
            "the difference is that of the machines' peaks, and not what of them they reach"
        } else {
            "the machines' peaks and what of them they reach both make the difference"
        };
        Some(format!("{rates}: {cause}"))
    }
}
