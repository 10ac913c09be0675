//! Which processors a thread may run on, and binding threads to them. Only Linux can.

use std::cell::Cell;

/// Words of a mask: for 8192 processors, the most that Linux can be built for.
const WORDS: usize = 8192 / usize::BITS as usize;

/// A set of processors, as Linux takes it: one bit each, in words of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mask([usize; WORDS]);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.processors()).finish()
    }
}

impl Mask {
    /// The set of these processors, without those that no system can have.
    pub(crate) fn of(processors: &[u32]) -> Self {
        let mut words = [0; WORDS];
        for &processor in processors {
            if let Some(word) = words.get_mut((processor / usize::BITS) as usize) {
                *word |= 1 << (processor % usize::BITS);
            }
        }
        Self(words)
    }

    /// The processors in it, in order.
    pub(crate) fn processors(&self) -> Vec<u32> {
        let has = |processor: u32| {
            let word = self.0[(processor / usize::BITS) as usize];
            word >> (processor % usize::BITS) & 1 == 1
        };
        (0..WORDS as u32 * usize::BITS).filter(|&processor| has(processor)).collect()
    }

    /// The processors that the calling thread may run on, where the system tells.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_this_thread() -> Option<Self> {
        let mut mask = Self([0; WORDS]);
        // SAFETY: the call writes at most `size_of` bytes to the valid pointer, which is aligned
        // for the words that a `cpu_set_t` consists of.
        let result = unsafe {
            libc::sched_getaffinity(0, size_of::<Self>(), (&raw mut mask).cast::<libc::cpu_set_t>())
        };
        (result == 0).then_some(mask)
    }

    /// The processors that the calling thread may run on, where the system tells.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of_this_thread() -> Option<Self> {
        None
    }

    /// Lets the calling thread run on these processors only; whether the system did so.
    pub(crate) fn bind_this_thread(&self) -> bool {
        self.bind(0)
    }

    /// Lets a thread run on these processors only; 0 is the calling one.
    #[cfg(target_os = "linux")]
    fn bind(&self, thread: i32) -> bool {
        // SAFETY: the call reads `size_of` bytes from the valid pointer.
        let result = unsafe {
            libc::sched_setaffinity(
                thread,
                size_of::<Self>(),
                (&raw const *self).cast::<libc::cpu_set_t>(),
            )
        };
        result == 0
    }

    /// Lets a thread run on these processors only; 0 is the calling one.
    #[cfg(not(target_os = "linux"))]
    fn bind(&self, _thread: i32) -> bool {
        false
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

/// That a thread is bound: when dropped, the thread can run again where it could before.
#[derive(Debug)]
pub(crate) struct Binding {
    before: Mask,
    thread: i32,
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
        } else if std::path::Path::new(&format!("/proc/self/task/{}", self.thread)).exists() {
            // Dropped elsewhere, and the thread has not ended.
            self.before.bind(self.thread);
        }
    }
}

/// The number by which the system knows the calling thread.
#[cfg(target_os = "linux")]
fn this_thread() -> i32 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() }
}

/// Nothing is bound where the system has no such numbers.
#[cfg(not(target_os = "linux"))]
fn this_thread() -> i32 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_holds_what_was_put_in() {
        let processors = [0, 1, 63, 64, 200, 8191];
        assert_eq!(Mask::of(&processors).processors(), processors);
        assert_eq!(Mask::of(&[3, 8192, u32::MAX]).processors(), [3]);
        assert_eq!(Mask::of(&[]).processors(), []);
    }

    #[cfg(target_os = "linux")]
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

    #[cfg(target_os = "linux")]
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

    #[cfg(target_os = "linux")]
    #[test]
    fn no_thread_is_bound_to_a_processor_that_is_not_there() {
        assert!(!Mask::of(&[8191]).bind_this_thread());
        assert!(!Mask::of(&[]).bind_this_thread());
    }
}
