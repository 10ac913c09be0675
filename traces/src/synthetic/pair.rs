//! Two traces that differ in one thing.

use std::io;

use super::random::Random;
use super::step::{Item, Stream, items};
use super::{Difference, Fused, Model, Pace, Plan, Planted, Truth, text};

/// One of the two traces of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first.
    First,
    /// The second.
    Second,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// Two traces that differ in one thing.
#[derive(Debug, Clone)]
pub struct PairPlan {
    /// The first trace.
    pub first: Plan,
    /// The second trace.
    pub second: Plan,
    /// In what they differ.
    pub difference: Difference,
    /// The changed side.
    pub changed: Side,
}

/// What a comparison must find.
#[derive(Debug, Clone, PartialEq)]
pub struct PairTruth {
    /// What a reader of the first trace must find.
    pub first: Truth,
    /// What a reader of the second trace must find.
    pub second: Truth,
    /// How much longer a step of the first takes for what was planted, in nanoseconds: without
    /// noise, and as if the devices were equally fast. What runs alongside computation is counted
    /// in full.
    pub gap_ns: f64,
}

impl PairPlan {
    /// Two programs of the same kind, on devices of the speeds of their paces, that differ in one
    /// thing.
    #[must_use]
    pub fn new(first: Plan, second: Plan, difference: Difference, changed: Side) -> Self {
        let mut pair = Self { first, second, difference, changed };
        let other = pair.side_mut(changed.other());
        other.edits.extend(difference.other_edit());
        let plan = pair.side_mut(changed);
        plan.edits.extend(difference.edit());
        let pace = plan.pace.get_or_insert_default();
        pace.call_pause_ns += difference.call_pause_ns(plan.launching);
        if difference == Difference::MoreSteps {
            plan.steps += 3;
        }
        pair
    }

    /// What a comparison must find.
    #[must_use]
    pub fn planted(&self) -> Planted {
        match self.difference.planted() {
            // It is the GEMM of the experts that computes the activation.
            Planted::Fusion(fused)
                if matches!(
                    self.difference,
                    Difference::SilentAct | Difference::CheapAct | Difference::ModestAct
                ) && self.first.model == Model::MixtureOfExperts =>
            {
                let (operation, separate) = ("ACT+MOE_GEMM", &["MOE_GEMM", "ACT+MUL"]);
                Planted::Fusion(Fused { operation, separate, ..fused })
            }
            planted => planted,
        }
    }

    /// The plan of a side.
    #[must_use]
    pub fn side(&self, side: Side) -> &Plan {
        match side {
            Side::First => &self.first,
            Side::Second => &self.second,
        }
    }

    fn side_mut(&mut self, side: Side) -> &mut Plan {
        match side {
            Side::First => &mut self.first,
            Side::Second => &mut self.second,
        }
    }
}

/// The texts of both traces in memory, and what a comparison of them must find.
///
/// # Errors
///
/// None that a vector could give.
pub fn pair_text(pair: &PairPlan) -> io::Result<(Vec<u8>, Vec<u8>, PairTruth)> {
    let (first_text, first) = text(&pair.first)?;
    let (second_text, second) = text(&pair.second)?;
    let gap_ns = step_ns(&pair.first) - step_ns(&pair.second);
    Ok((first_text, second_text, PairTruth { first, second, gap_ns }))
}

/// How long a step takes by its kernels and the pauses before them, without noise.
fn step_ns(plan: &Plan) -> f64 {
    let call_pause_ns = plan.pace.map_or(0, |pace| pace.call_pause_ns);
    let pace = Pace { call_pause_ns, permille: 1000, noise: 0 };
    let plan = Plan { pace: Some(pace), ..plan.clone() };
    let mut random = Random::new(1, 1).steady();
    let mut total_ns = 0;
    for step in 0..plan.steps {
        let items = items(&plan, plan.phase(step), &mut random);
        let mut before: Option<&Item> = None;
        for item in &items {
            let is_same = |before: &Item| before.graph.is_some() && before.graph == item.graph;
            let begins_call = !before.is_some_and(is_same);
            total_ns += match item.stream {
                Stream::Compute => {
                    pace.pause_ns(begins_call) + item.duration_ns.unwrap_or_default()
                }
                Stream::Communication => item.duration_ns.unwrap_or_default(),
                Stream::Copy => 0,
            };
            before = Some(item);
        }
    }
    total_ns as f64 / plan.steps.max(1) as f64
}
