//! Sums over kernels that come in parts: of a trace that is streamed, or of several ranks.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::classify::Class;
use crate::quantile::nearest_rank;
use crate::ratio::ratio;
use crate::summary::longest_first;
use crate::{Classes, Group, NameId, Taxonomy, Trace};

/// How often each duration occurs, by duration in nanoseconds: a name has many kernels and few
/// distinct durations, so medians are exact and need no list of all.
type Durations = FxHashMap<u64, u64>;

/// The kernels of one name and class.
#[derive(Debug, Clone)]
struct Kind {
    name: Box<str>,
    class: String,
    durations: Durations,
}

/// Sums kernels up, part by part, with the figures of [`Summary`](crate::Summary) that do not need
/// all of them at once: without the time in which a device was busy.
///
/// The memory is that of the distinct names and durations.
#[derive(Debug, Clone)]
pub struct Totals {
    taxonomy: Taxonomy,
    kinds: Vec<Kind>,
    ids: FxHashMap<(Box<str>, String), usize>,
    unclassified_ns: u64,
    /// When the first began and the last ended.
    span: Option<(i64, i64)>,
}

/// Where the time of kernels goes that were summed up in parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TotalsSummary {
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// The share of the durations that no rule knows.
    pub unclassified_share: f64,
    /// By class, the longest first.
    pub by_class: Vec<Group>,
    /// By name and class, the longest first.
    pub by_kernel: Vec<Group>,
}

impl Totals {
    /// Of nothing.
    #[must_use]
    pub fn new(taxonomy: Taxonomy) -> Self {
        Self {
            taxonomy,
            kinds: Vec::new(),
            ids: FxHashMap::default(),
            unclassified_ns: 0,
            span: None,
        }
    }

    /// Adds the kernels of a trace, or of a part of one.
    pub fn add(&mut self, part: &Trace, classes: &Classes) {
        let mut kinds: FxHashMap<(NameId, u32), (usize, bool)> = FxHashMap::default();
        let kernels = &part.kernels;
        let rows = kernels.name.iter().zip(&kernels.start_ns).zip(&kernels.duration_ns);
        for (row, ((&name, &start), &duration)) in rows.enumerate() {
            let (kind, is_unclassified) =
                *kinds.entry((name, classes.id(row))).or_insert_with(|| {
                    let classification = classes.get(row);
                    let text = part.names.text(name);
                    let class = self.taxonomy.label(classification, text);
                    (self.kind(text.into(), class), classification.main == Class::Unclassified)
                });
            if is_unclassified {
                self.unclassified_ns = self.unclassified_ns.saturating_add(duration);
            }
            if let Some(kind) = self.kinds.get_mut(kind) {
                *kind.durations.entry(duration).or_default() += 1;
            }
            let end = start.saturating_add_unsigned(duration);
            self.extend_span(start, end);
        }
    }

    /// Adds what others summed up, as those of another rank.
    pub fn absorb(&mut self, other: Self) {
        for kind in other.kinds {
            let id = self.kind(kind.name, kind.class);
            let Some(known) = self.kinds.get_mut(id) else { continue };
            for (duration, count) in kind.durations {
                *known.durations.entry(duration).or_default() += count;
            }
        }
        self.unclassified_ns = self.unclassified_ns.saturating_add(other.unclassified_ns);
        if let Some((start, end)) = other.span {
            self.extend_span(start, end);
        }
    }

    /// From the beginning of the first to the end of the last, in nanoseconds; over several traces
    /// only if their clocks have one zero.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        self.span.map_or(0, |(start, end)| end.abs_diff(start))
    }

    /// What came together.
    #[must_use]
    pub fn summary(&self) -> TotalsSummary {
        let mut by_class: FxHashMap<&str, Durations> = FxHashMap::default();
        for kind in &self.kinds {
            let class = by_class.entry(&kind.class).or_default();
            for (&duration, &count) in &kind.durations {
                *class.entry(duration).or_default() += count;
            }
        }
        let all_ns = by_class.values().fold(0_u64, |sum, one| sum.saturating_add(total_ns(one)));
        let classes = by_class.iter().map(|(class, times)| group(class, class, times, all_ns));
        let names =
            self.kinds.iter().map(|kind| group(&kind.name, &kind.class, &kind.durations, all_ns));
        let by_class: Vec<Group> = longest_first(classes.collect());
        TotalsSummary {
            kernels: by_class.iter().map(|group| group.count).sum(),
            total_ns: all_ns,
            unclassified_share: ratio(self.unclassified_ns, all_ns),
            by_class,
            by_kernel: longest_first(names.collect()),
        }
    }

    fn kind(&mut self, name: Box<str>, class: String) -> usize {
        let key = (name, class);
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let (name, class) = key.clone();
        self.kinds.push(Kind { name, class, durations: Durations::default() });
        self.ids.insert(key, self.kinds.len() - 1);
        self.kinds.len() - 1
    }

    fn extend_span(&mut self, start: i64, end: i64) {
        let (first, last) = self.span.unwrap_or((start, end));
        self.span = Some((first.min(start), last.max(end)));
    }
}

fn total_ns(durations: &Durations) -> u64 {
    durations
        .iter()
        .fold(0, |sum, (duration, count)| u64::saturating_add(sum, duration.saturating_mul(*count)))
}

fn group(name: &str, class: &str, durations: &Durations, all_ns: u64) -> Group {
    let mut sorted: Vec<(u64, u64)> = durations.iter().map(|(&ns, &count)| (ns, count)).collect();
    sorted.sort_unstable();
    let count: u64 = sorted.iter().map(|(_, count)| count).sum();
    let whole = usize::try_from(count).unwrap_or(usize::MAX);
    let quantile = |percent| {
        let wanted = nearest_rank(whole, percent) as u64;
        let mut reached = 0;
        let found = sorted.iter().find(|(_, count)| {
            reached += count;
            reached >= wanted
        });
        found.map_or(0, |&(duration, _)| duration)
    };
    let total_ns = total_ns(durations);
    Group {
        name: name.to_owned(),
        class: class.to_owned(),
        count: whole,
        total_ns,
        mean_ns: ratio(total_ns, count),
        median_ns: quantile(50),
        p95_ns: quantile(95),
        share: ratio(total_ns, all_ns),
    }
}
