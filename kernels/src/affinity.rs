//! Which processors a thread may run on, and binding threads to them. Only Linux can, and its C
//! library knows 1024 processors: on a machine with more, threads stay free.

use std::cell::Cell;

pub(crate) use system::Mask;
use system::{Thread, is_alive, this_thread};

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;

    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    pub(super) use nix::unistd::{Pid as Thread, gettid as this_thread};

    /// What the system takes for the calling thread.
    const CALLING: Thread = Thread::from_raw(0);

    /// A set of processors.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Mask(CpuSet);

    impl Mask {
        /// The set of these processors, without those that no set can hold.
        pub(crate) fn of(processors: &[u32]) -> Self {
            let mut set = CpuSet::new();
            for &processor in processors {
                let _ = set.set(processor as usize);
            }
            Self(set)
        }

        /// The processors in it, in order.
        pub(crate) fn processors(&self) -> Vec<u32> {
            let has = |processor: &u32| self.0.is_set(*processor as usize).unwrap_or(false);
            (0..CpuSet::count() as u32).filter(has).collect()
        }

        /// The processors that the calling thread may run on, where the system reports them.
        pub(crate) fn of_this_thread() -> Option<Self> {
            sched_getaffinity(CALLING).ok().map(Self)
        }

        /// Lets the calling thread run on these processors only; whether the system did so.
        pub(crate) fn bind_this_thread(&self) -> bool {
            self.bind(CALLING)
        }

        /// Lets a thread run on these processors only; whether the system did so.
        pub(crate) fn bind(&self, thread: Thread) -> bool {
            sched_setaffinity(thread, &self.0).is_ok()
        }
    }

    /// Whether a thread of this process has not ended.
    pub(super) fn is_alive(thread: Thread) -> bool {
        Path::new(&format!("/proc/self/task/{thread}")).exists()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) type Thread = ();

    /// A set of processors that the system does not describe.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Mask;

    impl Mask {
        pub(crate) fn of(_processors: &[u32]) -> Self {
            Self
        }

        pub(crate) fn processors(&self) -> Vec<u32> {
            Vec::new()
        }

        pub(crate) fn of_this_thread() -> Option<Self> {
            None
        }

        pub(crate) fn bind_this_thread(&self) -> bool {
            false
        }

        pub(super) fn bind(&self, _thread: Thread) -> bool {
            false
        }
    }

    pub(super) fn this_thread() -> Thread {}

    pub(super) fn is_alive(_thread: Thread) -> bool {
        false
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.processors()).finish()
    }
}

thread_local! {
    /// Where the thread could run before it was bound, while it is.
    static FREE: Cell<Option<Mask>> = const { Cell::new(None) };
}

/// Where the calling thread could run if it were not bound by a [`Binding`]; `None` when it is
/// not.
///
/// The threads that it starts inherit that it is bound. Those that should use the whole machine
/// begin with binding themselves to this mask.
pub(crate) fn before_binding() -> Option<Mask> {
    FREE.get()
}

/// Keeps a thread bound: when dropped, the thread can run again where it could before.
#[derive(Debug)]
pub(crate) struct Binding {
    before: Mask,
    thread: Thread,
}

impl Binding {
    /// For the calling thread, which could run on the processors in `before` and has been bound.
    pub(crate) fn of_this_thread(before: Mask) -> Self {
        FREE.set(Some(before));
        Self { before, thread: this_thread() }
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        if self.thread == this_thread() {
            FREE.set(None);
            self.before.bind_this_thread();
        } else if is_alive(self.thread) {
            // Dropped elsewhere.
            self.before.bind(self.thread);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_mask_holds_what_was_put_in() {
        let processors = [0, 1, 63, 64, 200, 1023];
        assert_eq!(Mask::of(&processors).processors(), processors);
        assert_eq!(Mask::of(&[3, 1024, u32::MAX]).processors(), [3]);
        assert!(Mask::of(&[]).processors().is_empty());
    }

    #[test]
    fn a_thread_is_bound_and_free_again() {
        std::thread::spawn(|| {
            let before = Mask::of_this_thread().unwrap();
            assert_eq!(before_binding(), None);
            let last = *before.processors().last().unwrap();
            assert!(Mask::of(&[last]).bind_this_thread());
            let binding = Binding::of_this_thread(before);
            assert_eq!(Mask::of_this_thread(), Some(Mask::of(&[last])));
            assert_eq!(before_binding(), Some(before));
            drop(binding);
            assert_eq!(Mask::of_this_thread(), Some(before));
            assert_eq!(before_binding(), None);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_binding_that_is_dropped_elsewhere_frees_its_own_thread() {
        std::thread::spawn(|| {
            let before = Mask::of_this_thread().unwrap();
            assert!(Mask::of(&before.processors()[..1]).bind_this_thread());
            let binding = Binding::of_this_thread(before);
            std::thread::spawn(move || drop(binding)).join().unwrap();
            assert_eq!(Mask::of_this_thread(), Some(before));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn no_thread_is_bound_to_a_processor_that_is_not_there() {
        assert!(!Mask::of(&[1023]).bind_this_thread());
        assert!(!Mask::of(&[]).bind_this_thread());
    }
}
