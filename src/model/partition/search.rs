//! The best ways to cut a graph into kernels.
//!
//! A kernel is a path: each op but the first transforms what the one before it wrote, and nothing
//! else reads that. So ops that may be in one kernel form trees, whose edges lead from an op to the
//! only one that reads it. The best cut of a tree follows from those of its subtrees: choose the path
//! that ends at its root, and cut best whatever else feeds that path.

/// The longest path that is tried: no chain has more ops.
const LONGEST: usize = crate::vocabulary::Chain::MAX_OPS;

/// Sums that differ by a smaller share of all that was added are the same but for rounding: measured times
/// have six digits.
const ROUNDED: f64 = 1e-12;

/// Which of two cuts is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The one that saves more; of two that save the same, the one with fewer kernels.
    Saving,
    /// The one with fewer kernels; of as many, the one that saves more.
    Kernels,
}

/// Kernels: each a path of ops.
pub(super) type Cut = Vec<Vec<usize>>;

/// What a cut is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Worth {
    saved: f64,
    /// The sum without signs of what each kernel saves or loses.
    added: f64,
    kernels: usize,
}

impl Worth {
    fn and(self, other: Self) -> Self {
        Self {
            saved: self.saved + other.saved,
            added: self.added + other.added,
            kernels: self.kernels + other.kernels,
        }
    }

    fn is_better(self, other: Self, order: Order) -> bool {
        let (more, fewer) = (self.saved > other.saved, self.kernels < other.kernels);
        match order {
            Order::Saving if self.saves_as_much_as(other) && self.kernels != other.kernels => fewer,
            Order::Saving => more,
            Order::Kernels if self.kernels == other.kernels => more,
            Order::Kernels => fewer,
        }
    }

    /// But for rounding.
    fn saves_as_much_as(self, other: Self) -> bool {
        (self.saved - other.saved).abs() <= ROUNDED * self.added.max(other.added)
    }
}

/// A cut of a subtree: the path that ends at its root, and which cut of each subtree that feeds it.
#[derive(Debug, Clone)]
struct Choice {
    worth: Worth,
    path: Vec<usize>,
    feeders: Vec<Ranked>,
}

/// A subtree by its root, and which of its cuts: 0 is the best.
type Ranked = (usize, usize);

/// The two best, if there are as many.
type Two<T> = [Option<T>; 2];

/// The best two ways to cut ops into kernels. `feeders` lists for each op those that may come before
/// it in a kernel; all of them have lower numbers, and each feeds one op at most. `saved` is what a
/// path of several ops saves as one kernel, or `None` where it is not to be one; a single op is always
/// a kernel, and saves nothing.
pub(super) fn best_two(
    feeders: &[Vec<usize>],
    order: Order,
    mut saved: impl FnMut(&[usize]) -> Option<f64>,
) -> Two<Cut> {
    let mut search = Search { feeders, order, choices: Vec::with_capacity(feeders.len()) };
    for op in 0..feeders.len() {
        let mut best = [None, None];
        each_path(feeders, &mut vec![op], &mut |path| search.consider(path, &mut best, &mut saved));
        search.choices.push(best);
    }
    let mut feeds = vec![false; feeders.len()];
    for &op in feeders.iter().flatten() {
        feeds[op] = true;
    }
    let roots: Vec<usize> = (0..feeders.len()).filter(|&op| !feeds[op]).collect();
    search.together(&roots).map(|ranked| {
        ranked.map(|(ranked, _)| {
            let mut cut = Cut::new();
            search.collect(&ranked, &mut cut);
            cut.sort_unstable_by_key(|path| path.last().copied());
            cut
        })
    })
}

/// Every path that ends where one does that is given from its last op to its first, itself and the
/// shorter ones first.
pub(super) fn each_path(
    feeders: &[Vec<usize>],
    backwards: &mut Vec<usize>,
    visit: &mut impl FnMut(&[usize]),
) {
    let path: Vec<usize> = backwards.iter().rev().copied().collect();
    visit(&path);
    if path.len() < LONGEST {
        for &before in &feeders[path[0]] {
            backwards.push(before);
            each_path(feeders, backwards, visit);
            backwards.pop();
        }
    }
}

struct Search<'f> {
    feeders: &'f [Vec<usize>],
    order: Order,
    /// The best cuts of the subtree of each op so far.
    choices: Vec<Two<Choice>>,
}

impl Search<'_> {
    /// Keeps the cuts that have a path as the kernel at their root, if they are among the best.
    fn consider(
        &self,
        path: &[usize],
        best: &mut Two<Choice>,
        saved: &mut impl FnMut(&[usize]) -> Option<f64>,
    ) {
        let Some(alone) = (if path.len() == 1 { Some(0.0) } else { saved(path) }) else { return };
        let of_path = path.iter().flat_map(|&op| &self.feeders[op]).copied();
        let feeding: Vec<usize> = of_path.filter(|op| !path.contains(op)).collect();
        for (feeders, worth) in self.together(&feeding).into_iter().flatten() {
            let worth = worth.and(Worth { saved: alone, added: alone.abs(), kernels: 1 });
            self.keep(Choice { worth, path: path.to_vec(), feeders }, best);
        }
    }

    fn keep(&self, choice: Choice, [first, second]: &mut Two<Choice>) {
        let is_better = |other: &Option<Choice>| {
            other.as_ref().is_none_or(|other| choice.worth.is_better(other.worth, self.order))
        };
        if is_better(first) {
            *second = first.replace(choice);
        } else if is_better(second) {
            *second = Some(choice);
        }
    }

    /// The best two cuts of several subtrees: the best of each, and the same but for the one subtree
    /// whose second best is the least worse.
    fn together(&self, roots: &[usize]) -> Two<(Vec<Ranked>, Worth)> {
        let worth = |&(root, rank): &Ranked| {
            let choice: &Option<Choice> = &self.choices[root][rank];
            choice.as_ref().map(|choice| choice.worth)
        };
        let total = |ranked: Vec<Ranked>| {
            let none = Worth { saved: 0.0, added: 0.0, kernels: 0 };
            let mut worths = ranked.iter().map(worth);
            let total = worths.try_fold(none, |sum, worth| Some(sum.and(worth?)))?;
            Some((ranked, total))
        };
        let best: Vec<Ranked> = roots.iter().map(|&root| (root, 0)).collect();
        let mut second: Option<(Vec<Ranked>, Worth)> = None;
        for index in 0..best.len() {
            let mut ranked = best.clone();
            ranked[index].1 = 1;
            let Some(found) = total(ranked) else { continue };
            if second.as_ref().is_none_or(|other| found.1.is_better(other.1, self.order)) {
                second = Some(found);
            }
        }
        [total(best), second]
    }

    fn collect(&self, ranked: &[Ranked], cut: &mut Cut) {
        for &(root, rank) in ranked {
            if let Some(choice) = &self.choices[root][rank] {
                cut.push(choice.path.clone());
                self.collect(&choice.feeders, cut);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a path saves, in thousandths: any number, the same for the same path. Sums of these are exact;
    /// those of the floating-point numbers that they stand for are rounded.
    fn thousandths(path: &[usize], seed: u64) -> Option<i32> {
        let mut hash = seed;
        for &op in path {
            hash = (hash ^ op as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        // A fifth of the paths are not kernels, and there are many ties.
        (hash % 5 != 0).then_some(10 * (((hash >> 32) as i32 & 63) - 24))
    }

    /// Every way to cut: each op is joined to one of those that feed it, or to none.
    fn all_cuts(feeders: &[Vec<usize>]) -> Vec<Cut> {
        let mut joined: Vec<Vec<Option<usize>>> = vec![Vec::new()];
        for of_one in feeders {
            let choices = || of_one.iter().copied().map(Some).chain([None]);
            let longer = |so_far: &Vec<Option<usize>>| {
                let so_far = so_far.clone();
                choices().map(move |choice| [&so_far[..], &[choice]].concat()).collect::<Vec<_>>()
            };
            joined = joined.iter().flat_map(longer).collect();
        }
        let cut = |joined: &Vec<Option<usize>>| {
            let mut cut = Cut::new();
            for (op, before) in joined.iter().enumerate() {
                let ends_before =
                    |path: &Vec<usize>| before.is_some() && path.last() == before.as_ref();
                match cut.iter().position(ends_before) {
                    Some(path) => cut[path].push(op),
                    None => cut.push(vec![op]),
                }
            }
            cut.sort_unstable_by_key(|path| path.last().copied());
            cut
        };
        joined.iter().map(cut).collect()
    }

    fn worth(cut: &Cut, seed: u64) -> Option<(i32, usize)> {
        let of =
            |path: &Vec<usize>| if path.len() == 1 { Some(0) } else { thousandths(path, seed) };
        Some((cut.iter().map(of).sum::<Option<i32>>()?, cut.len()))
    }

    fn assert_as_brute_force(
        feeders: &[Vec<usize>],
        seed: u64,
        scale: f64,
    ) -> Result<(), TestCaseError> {
        for order in [Order::Saving, Order::Kernels] {
            let mut all: Vec<(i32, usize)> =
                all_cuts(feeders).iter().filter_map(|cut| worth(cut, seed)).collect();
            all.sort_by_key(|&(saved, kernels)| match order {
                Order::Saving => (-i64::from(saved), kernels as i64),
                Order::Kernels => (kernels as i64, -i64::from(saved)),
            });
            let saved = |path: &[usize]| Some(scale * f64::from(thousandths(path, seed)?) / 1e3);
            let found = best_two(feeders, order, saved);
            if let [Some(first), Some(second)] = &found {
                prop_assert_ne!(first, second);
            }
            let found = found.map(|cut| cut.map(|cut| worth(&cut, seed).unwrap()));
            prop_assert_eq!(found, [all.first().copied(), all.get(1).copied()]);
        }
        Ok(())
    }

    /// From the shortest time that a file can have to the longest.
    fn scales() -> impl Strategy<Value = f64> {
        prop::sample::select(vec![1e-14, 1e-6, 1e-3, 1.0, 3.7, 1e9])
    }

    proptest! {
        #[test]
        fn chains_are_cut_as_by_brute_force(ops in 1_usize..=10, seed: u64, scale in scales()) {
            let feeders: Vec<Vec<usize>> =
                (0..ops).map(|op| op.checked_sub(1).into_iter().collect()).collect();
            assert_as_brute_force(&feeders, seed, scale)?;
        }

        /// Each op feeds a later one, or none: any forest.
        #[test]
        fn graphs_are_cut_as_by_brute_force(
            readers in prop::collection::vec(prop::option::weighted(0.85, 1_usize..5), 1..=9),
            seed: u64,
            scale in scales(),
        ) {
            let mut feeders = vec![Vec::new(); readers.len()];
            for (op, ahead) in readers.iter().enumerate() {
                if let Some(of_reader) = ahead.and_then(|ahead| feeders.get_mut(op + ahead)) {
                    of_reader.push(op);
                }
            }
            assert_as_brute_force(&feeders, seed, scale)?;
        }
    }

    #[test]
    fn no_op_and_one_op() {
        assert_eq!(best_two(&[], Order::Saving, |_| None), [Some(vec![]), None]);
        assert_eq!(best_two(&[vec![]], Order::Saving, |_| None), [Some(vec![vec![0]]), None]);
    }

    #[test]
    fn of_cuts_that_save_the_same_the_one_with_fewer_kernels_is_better() {
        let feeders: Vec<Vec<usize>> =
            (0..4).map(|op: usize| op.checked_sub(1).into_iter().collect()).collect();
        // In two kernels a bit more, by rounding alone.
        let saved = |path: &[usize]| match path {
            [0, 1] => Some(0.1),
            [2, 3] => Some(0.2),
            [0, 1, 2, 3] => Some(0.3),
            _ => None,
        };
        let [best, second] = best_two(&feeders, Order::Saving, saved);
        assert_eq!(best, Some(vec![vec![0, 1, 2, 3]]));
        assert_eq!(second, Some(vec![vec![0, 1], vec![2, 3]]));
    }

    #[test]
    fn no_path_is_longer_than_a_chain() {
        let feeders: Vec<Vec<usize>> =
            (0..30).map(|op: usize| op.checked_sub(1).into_iter().collect()).collect();
        let [best, _] = best_two(&feeders, Order::Kernels, |_| Some(1.0));
        let best = best.unwrap();
        assert_eq!(best.len(), 3);
        assert!(best.iter().all(|path| path.len() <= LONGEST));
    }
}
