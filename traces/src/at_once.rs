//! Two pieces of work on two threads.

use std::thread;

/// Does two pieces of work at once, and the second one after the first where the system has no thread.
pub fn at_once<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, &second);
        let first = first();
        // A thread that panics has said why, and the same again says it here.
        let second = other.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(&second);
        (first, second)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_is_done_once_and_results_stay_in_order() {
        let calls = AtomicUsize::new(0);
        let second = || calls.fetch_add(1, Ordering::Relaxed);
        assert_eq!(at_once(|| "first", second), ("first", 0));
        assert_eq!(calls.into_inner(), 1);
    }

    #[test]
    fn what_panics_on_a_thread_is_done_again_by_the_caller() {
        let caller = thread::current().id();
        let second = || {
            assert_eq!(thread::current().id(), caller, "on the other thread");
            7
        };
        assert_eq!(at_once(|| 1, second), (1, 7));
    }
}
