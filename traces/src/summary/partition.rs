//! Kernels divided by anything they have: a class, a name, a phase, a layer, a stream.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::group::{Group, Times, longest_first};
use super::order::ByDuration;
use crate::quantile::nearest_rank;

/// The kernels of a trace divided by a key. Kernels without a key are in no part.
///
/// ```
/// use kernel_traces::{ByDuration, Partition};
///
/// let phases = [Some("prefill"), Some("decode"), None, Some("decode")];
/// let durations_ns = [500, 20, 7, 30];
/// let by_phase = Partition::by(phases.len(), |kernel| phases[kernel]);
/// let groups = by_phase.groups(&ByDuration::of(&durations_ns), 557, |phase| {
///     ((*phase).to_owned(), String::new())
/// });
/// assert_eq!((groups[1].name.as_str(), groups[1].count, groups[1].total_ns), ("decode", 2, 50));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition<K> {
    keys: Vec<K>,
    /// The part of each kernel, or [`NO_PART`].
    of_kernel: Vec<u32>,
}

const NO_PART: u32 = u32::MAX;

impl<K: Eq + Hash + Clone> Partition<K> {
    /// Divides `kernels` kernels by a key. Keys may be pairs, as of a phase and a class.
    #[must_use]
    pub fn by(kernels: usize, mut key: impl FnMut(usize) -> Option<K>) -> Self {
        let mut parts = Parts::default();
        let of_kernel = (0..kernels).map(|kernel| key(kernel).map_or(NO_PART, |k| parts.id(k)));
        Self { of_kernel: of_kernel.collect(), keys: parts.keys }
    }

    /// Divides by a key that follows from this one: parts become one where it is the same.
    #[must_use]
    pub fn coarser<L: Eq + Hash + Clone>(
        &self,
        mut key: impl FnMut(&K) -> Option<L>,
    ) -> Partition<L> {
        let mut parts = Parts::default();
        let new_ids: Vec<u32> =
            self.keys.iter().map(|old| key(old).map_or(NO_PART, |k| parts.id(k))).collect();
        let new_id = |&old: &u32| new_ids.get(old as usize).copied().unwrap_or(NO_PART);
        Partition { of_kernel: self.of_kernel.iter().map(new_id).collect(), keys: parts.keys }
    }

    /// The keys, in the order in which kernels first have them.
    #[must_use]
    pub fn keys(&self) -> &[K] {
        &self.keys
    }

    /// The key of a kernel.
    #[must_use]
    pub fn key_of(&self, kernel: usize) -> Option<&K> {
        self.keys.get(*self.of_kernel.get(kernel)? as usize)
    }

    /// How many kernels each part has, in the order of [`Self::keys`].
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.keys.len()];
        for &part in &self.of_kernel {
            if let Some(count) = counts.get_mut(part as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// The first kernel of each part, in the order of [`Self::keys`].
    #[must_use]
    pub fn examples(&self) -> Vec<usize> {
        let mut examples = Vec::with_capacity(self.keys.len());
        for (kernel, &part) in self.of_kernel.iter().enumerate() {
            // Parts are numbered in the order in which kernels first have them.
            if part as usize == examples.len() {
                examples.push(kernel);
            }
        }
        examples
    }

    /// The times of every part, in the order of [`Self::keys`].
    #[must_use]
    pub fn times(&self, by_duration: &ByDuration) -> Vec<Times> {
        let counts = self.counts();
        let mut times: Vec<Times> =
            counts.iter().map(|&count| Times { count, ..Times::default() }).collect();
        let ranks: Vec<Ranks> = times.iter().map(|times| Ranks::of(times.count)).collect();
        let mut seen = vec![0_usize; times.len()];
        for (duration, row) in by_duration.iter() {
            let part = self.of_kernel.get(row as usize).map_or(NO_PART, |&part| part) as usize;
            let (Some(times), Some(seen), Some(ranks)) =
                (times.get_mut(part), seen.get_mut(part), ranks.get(part))
            else {
                continue;
            };
            *seen += 1;
            times.total_ns = times.total_ns.saturating_add(duration);
            if *seen == ranks.median {
                times.median_ns = duration;
            }
            if *seen == ranks.p95 {
                times.p95_ns = duration;
            }
        }
        times
    }

    /// The parts as rows of a report, the longest total first. `named` gives a part's name and
    /// class; shares are of `whole_ns`.
    #[must_use]
    pub fn groups(
        &self,
        by_duration: &ByDuration,
        whole_ns: u64,
        mut named: impl FnMut(&K) -> (String, String),
    ) -> Vec<Group> {
        let times = self.times(by_duration);
        let groups = self.keys.iter().zip(&times).filter(|(_, times)| times.count > 0);
        longest_first(
            groups
                .map(|(key, times)| {
                    let (name, class) = named(key);
                    Group::new(name, class, times, whole_ns)
                })
                .collect(),
        )
    }
}

/// Which of the ascending durations of a part, counted from one, is a quantile.
struct Ranks {
    median: usize,
    p95: usize,
}

impl Ranks {
    fn of(count: usize) -> Self {
        Self { median: nearest_rank(count, 50), p95: nearest_rank(count, 95) }
    }
}

/// Gives each key a small number.
struct Parts<K> {
    ids: FxHashMap<K, u32>,
    keys: Vec<K>,
    /// Kernels with the same key often follow each other.
    last: Option<(K, u32)>,
}

impl<K> Default for Parts<K> {
    fn default() -> Self {
        Self { ids: FxHashMap::default(), keys: Vec::new(), last: None }
    }
}

impl<K: Eq + Hash + Clone> Parts<K> {
    fn id(&mut self, key: K) -> u32 {
        if let Some((last, id)) = &self.last
            && *last == key
        {
            return *id;
        }
        let id = match self.ids.get(&key) {
            Some(&id) => id,
            None => {
                // A table of kernels has fewer rows than there are numbers.
                let id = u32::try_from(self.keys.len()).unwrap_or(NO_PART);
                self.keys.push(key.clone());
                self.ids.insert(key.clone(), id);
                id
            }
        };
        self.last = Some((key, id));
        id
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_those_of_sorted_lists(
            kernels in prop::collection::vec(
                (prop::option::of(0_u8..5), prop_oneof![0_u64..9, any::<u64>()]),
                0..150,
            ),
        ) {
            let durations: Vec<u64> = kernels.iter().map(|kernel| kernel.1).collect();
            let order = ByDuration::of(&durations);
            let partition = Partition::by(kernels.len(), |kernel| kernels[kernel].0);
            let mut lists: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
            for &(key, duration) in &kernels {
                if let Some(key) = key {
                    lists.entry(key).or_default().push(duration);
                }
            }
            let times = partition.times(&order);
            prop_assert_eq!(times.len(), lists.len());
            for (key, times) in partition.keys().iter().zip(times) {
                let mut list = lists.remove(key).unwrap();
                list.sort_unstable();
                let total = list.iter().fold(0_u64, |sum, &ns| sum.saturating_add(ns));
                // By definition, the smallest value that this share of the list does not exceed.
                let quantile = |share: f64| {
                    *list
                        .iter()
                        .find(|&&ns| {
                            let count = list.iter().filter(|&&other| other <= ns).count();
                            count as f64 >= share * list.len() as f64
                        })
                        .unwrap()
                };
                prop_assert_eq!(times.count, list.len());
                prop_assert_eq!(times.total_ns, total);
                prop_assert_eq!((times.median_ns, times.p95_ns), (quantile(0.5), quantile(0.95)));
            }
        }

        #[test]
        fn a_coarser_key_is_the_key_of_its_own(keys in prop::collection::vec(0_u8..20, 0..100)) {
            let fine = Partition::by(keys.len(), |kernel| Some(keys[kernel]));
            let half = |key: u8| (key < 15).then_some(key / 2);
            let coarse = fine.coarser(|&key| half(key));
            for (kernel, &key) in keys.iter().enumerate() {
                prop_assert_eq!(coarse.key_of(kernel).copied(), half(key));
            }
        }
    }

    #[test]
    fn nothing_has_no_groups() {
        let none = Partition::by(0, |_| Some(1));
        assert!(none.groups(&ByDuration::of(&[]), 0, |_| Default::default()).is_empty());
        let unkeyed = Partition::<u8>::by(3, |_| None);
        assert!(unkeyed.times(&ByDuration::of(&[1, 2, 3])).is_empty());
        assert_eq!(unkeyed.key_of(0), None);
    }
}
