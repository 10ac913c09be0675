//! The rank that stands for all.

use serde::Serialize;

use super::record::{RankName, RankRecord};

/// The rank that is nearest to the medians of all: the one to look into, or to compare.
///
/// It is one of those whose traces were read whole, if there are any, and the medians are of
/// these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Representative {
    /// Which rank.
    #[serde(flatten)]
    pub name: RankName,
    /// Its place in the list of records that it was chosen from.
    #[serde(skip)]
    pub place: usize,
    /// Its differences from the three medians added up, in nanoseconds.
    pub distance_ns: u64,
    /// The largest such sum of any rank that it was chosen from, in nanoseconds.
    pub largest_distance_ns: u64,
    /// The medians.
    pub medians: Medians,
    /// How many ranks it was chosen from.
    pub chosen_from: usize,
    /// How many were left out because their traces are not whole.
    pub left_out: usize,
}

/// The medians over ranks, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Medians {
    /// Of the busy times.
    pub busy_ns: u64,
    /// Of the times of exposed communication.
    pub exposed_ns: u64,
    /// Of the spans.
    pub span_ns: u64,
}

impl Representative {
    /// That of some ranks; none of none.
    #[must_use]
    pub fn of(records: &[RankRecord]) -> Option<Self> {
        let places = || records.iter().enumerate();
        let mut chosen: Vec<(usize, &RankRecord)> =
            places().filter(|(_, one)| one.is_whole()).collect();
        if chosen.is_empty() {
            chosen = places().collect();
        }
        let middle = |value: fn(&RankRecord) -> u64| {
            median(chosen.iter().map(|(_, record)| value(record)).collect())
        };
        let medians = Medians {
            busy_ns: middle(|record| record.busy_ns),
            exposed_ns: middle(|record| record.communication.exposed_ns),
            span_ns: middle(|record| record.span_ns),
        };
        let distance = |record: &RankRecord| medians.distance_ns(record);
        let order = |record: &RankRecord| (distance(record), record.name.rank.unwrap_or(u64::MAX));
        let (place, nearest) = chosen.iter().copied().min_by(|(_, a), (_, b)| {
            order(a).cmp(&order(b)).then_with(|| a.name.file.cmp(&b.name.file))
        })?;
        Some(Self {
            name: nearest.name.clone(),
            place,
            distance_ns: distance(nearest),
            largest_distance_ns: chosen.iter().map(|(_, one)| distance(one)).max().unwrap_or(0),
            medians,
            chosen_from: chosen.len(),
            left_out: records.len() - chosen.len(),
        })
    }
}

impl Medians {
    fn distance_ns(&self, record: &RankRecord) -> u64 {
        let exposed_ns = record.communication.exposed_ns;
        record
            .busy_ns
            .abs_diff(self.busy_ns)
            .saturating_add(exposed_ns.abs_diff(self.exposed_ns))
            .saturating_add(record.span_ns.abs_diff(self.span_ns))
    }
}

/// The middle value, or the mean of the two middle ones; 0 of none.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    let upper = values.get(values.len() / 2).copied().unwrap_or(0);
    let lower = values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    lower.midpoint(upper)
}
