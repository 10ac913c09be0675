//! Calls of operators that both sides have, such as `moe_layer` or `attention`: where there are no
//! layers, fusions are looked for in them.

use rustc_hash::FxHashMap;

use super::basis::Steps;
use super::side::{Chosen, on_both};
use crate::Trace;
use crate::enclosing::{Intervals, Moment};
use crate::launched::{NONE, launches};

/// An operator that is called fewer times shows nothing that repeats.
const LEAST_CALLS: usize = 3;

/// Calls of more kernels are steps, or parts of a model that hold many layers.
const MOST_KERNELS: usize = 128;

/// A call, and what it launched.
pub(super) struct Call {
    /// Which operator: the same number on both sides.
    pub(super) operator: u32,
    /// In the order in which they began.
    pub(super) kernels: Vec<u32>,
}

/// The calls of operators that are called often on both sides, and launch several kernels on at
/// least one of them. Of calls in each other the larger ones; no kernel is in two.
pub(super) fn calls(sides: &[Chosen<'_>; 2], steps: &Steps) -> [Vec<Call>; 2] {
    let mut all = on_both(&|side: usize| by_name(&sides[side], steps));
    let size = |calls: &Vec<Vec<u32>>| calls.iter().map(Vec::len).max().unwrap_or(0);
    let mut names: Vec<(usize, &str)> = all[0]
        .iter()
        .filter_map(|(name, first)| {
            let second = all[1].get(name)?;
            let larger = size(first).max(size(second));
            let is_often = first.len().min(second.len()) >= LEAST_CALLS;
            (is_often && (2..=MOST_KERNELS).contains(&larger)).then_some((larger, *name))
        })
        .collect();
    // The same in either order of the sides.
    names.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let mut taken = sides.each_ref().map(|side| vec![false; side.side.trace.kernels.len()]);
    let mut found: [Vec<Call>; 2] = Default::default();
    for (operator, (_, name)) in (0..).zip(names) {
        for ((all, taken), found) in all.iter_mut().zip(&mut taken).zip(&mut found) {
            for kernels in all.remove(name).unwrap_or_default() {
                if kernels.iter().any(|kernel| taken[*kernel as usize]) {
                    continue;
                }
                kernels.iter().for_each(|kernel| taken[*kernel as usize] = true);
                found.push(Call { operator, kernels });
            }
        }
    }
    found
}

/// What each call of each operator, or marked part of the program, launched.
fn by_name<'t>(side: &Chosen<'t>, steps: &Steps) -> FxHashMap<&'t str, Vec<Vec<u32>>> {
    let trace = side.side.trace;
    let launches = launches(trace);
    let is_counted =
        |row: u32| !steps.needs_marks() || side.side.segments.steps.step(row as usize).is_some();
    let mut launched: Vec<(u32, Moment)> = side
        .rows
        .iter()
        .filter(|row| is_counted(**row))
        .filter_map(|&row| {
            let launch = launches.get(row as usize).copied().filter(|launch| *launch != NONE)?;
            let launch = launch as usize;
            let (thread, time_ns) =
                (trace.launches.thread[launch], trace.launches.start_ns[launch]);
            Some((row, Moment { thread, time_ns }))
        })
        .collect();
    launched.sort_by_key(|(row, _)| trace.kernels.start_ns.get(*row as usize).copied());
    let moments: Vec<Moment> = launched.iter().map(|(_, moment)| *moment).collect();
    let mut found: FxHashMap<&str, Vec<Vec<u32>>> = FxHashMap::default();
    for (intervals, names) in [operators(trace), annotations(trace)] {
        let mut of_call: FxHashMap<usize, Vec<(usize, u32)>> = FxHashMap::default();
        intervals.around(&moments, |place, calls| {
            for call in calls {
                of_call.entry(*call).or_default().push((place, launched[place].0));
            }
        });
        let mut calls: Vec<(usize, Vec<(usize, u32)>)> = of_call.into_iter().collect();
        calls.sort_unstable_by_key(|(call, _)| *call);
        for (call, mut kernels) in calls {
            kernels.sort_unstable();
            let kernels = kernels.into_iter().map(|(_, row)| row).collect();
            found.entry(trace.names.text(names[call])).or_default().push(kernels);
        }
    }
    found
}

fn operators(trace: &Trace) -> (Intervals<'_>, &[crate::NameId]) {
    let table = &trace.ops;
    let intervals = Intervals {
        start_ns: &table.start_ns,
        duration_ns: &table.duration_ns,
        thread: &table.thread,
    };
    (intervals, &table.name)
}

fn annotations(trace: &Trace) -> (Intervals<'_>, &[crate::NameId]) {
    let table = &trace.annotations;
    let intervals = Intervals {
        start_ns: &table.start_ns,
        duration_ns: &table.duration_ns,
        thread: &table.thread,
    };
    (intervals, &table.name)
}
