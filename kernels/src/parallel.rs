//! Work on all processors before and after a measurement.

use std::sync::{Mutex, PoisonError};

use crate::affinity;

/// Numbers for which it is not worth starting threads: they are written in the time that takes.
const FEW: usize = 1 << 15;

/// Gives every processor a part of `items` to work on, also when the calling thread is bound to one
/// of them for a measurement. A part begins at a multiple of `grain`, and `work` gets the index at
/// which it does. The caller's own processor does few items alone.
pub(crate) fn on_all_processors<T: Send>(
    items: &mut [T],
    grain: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if items.len() < FEW {
        return work(0, items);
    }
    in_parts(items, grain, work);
}

/// What `work` makes of each number below `count`, in order; for work that is worth a thread each.
pub(crate) fn map_on_all_processors<T: Send>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
    in_parts(&mut results, 1, |first, part| {
        for (index, result) in part.iter_mut().enumerate() {
            *result = Some(work(first + index));
        }
    });
    results.into_iter().flatten().collect()
}

/// The index of the first item of a part, and its items, until somebody takes them.
type Part<'i, T> = Mutex<Option<(usize, &'i mut [T])>>;

fn in_parts<T: Send>(items: &mut [T], grain: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let free = affinity::before_binding();
    let threads = match free {
        Some(mask) => mask.processors().len(),
        None => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    };
    let grain = grain.max(1);
    let share = items.len().div_ceil(grain).div_ceil(threads.max(1)).max(1) * grain;
    if share >= items.len() {
        return work(0, items);
    }
    let parts: Vec<Part<'_, T>> = items
        .chunks_mut(share)
        .enumerate()
        .map(|(part, items)| Mutex::new(Some((part * share, items))))
        .collect();
    let work_on = |part: &Part<'_, T>| {
        let taken = part.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((first, items)) = taken {
            work(first, items);
        }
    };
    std::thread::scope(|scope| {
        for part in &parts {
            let started = std::thread::Builder::new().spawn_scoped(scope, || {
                if let Some(mask) = free {
                    // Where that fails, it is only slower.
                    mask.bind_this_thread();
                }
                work_on(part);
            });
            // Where the system has no more threads, the caller does it itself.
            if started.is_err() {
                work_on(part);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_in_parts_of_whole_grains() {
        for count in [0, 1, 7, FEW - 1, FEW, FEW + 13] {
            for grain in [0, 1, 100, 2 * FEW] {
                let mut items = vec![0; count];
                on_all_processors(&mut items, grain, |first, part| {
                    assert_eq!(first % grain.max(1), 0);
                    for (index, item) in part.iter_mut().enumerate() {
                        *item += first + index + 1;
                    }
                });
                assert!(items.iter().enumerate().all(|(index, item)| *item == index + 1));
            }
        }
    }

    #[test]
    fn results_are_in_order() {
        for count in [0, 1, 2, 5, 100] {
            let doubled: Vec<usize> = (0..count).map(|number| 2 * number).collect();
            assert_eq!(map_on_all_processors(count, |number| 2 * number), doubled);
        }
    }
}
