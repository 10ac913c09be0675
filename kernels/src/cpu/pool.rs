//! The threads that both variants run on.
//!
//! Kernels of a few microseconds cannot pay for waking a thread, which costs 30 to 280 us from
//! outside a work-stealing pool. So the workers of this pool spin for the next kernel while a
//! measurement is going on, and sleep when none has come for [`SPIN_LIMIT`].

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pulp::Arch;

use super::topology;
use crate::affinity::{Binding, Mask};

/// How long a worker spins before it sleeps. Longer than any pause between two kernels of a
/// measurement, shorter than the phases that need no pool, such as the reference.
const SPIN_LIMIT: Duration = Duration::from_millis(20);

/// How many spins pass, some tens of microseconds, before a thread looks at the clock and lets
/// others run: with more threads than processors, the one that is waited for may need this one's.
const SPINS_PER_LOOK: u32 = 4096;

type Job<'a> = &'a (dyn Fn(usize) + Sync);

struct Shared {
    /// A pointer to the reference to the current job, which lies on the stack of [`Pool::run`].
    job: AtomicPtr<()>,
    /// Incremented for every job; workers wait for it to change.
    generation: AtomicU64,
    /// Workers that have not finished the current job.
    running: AtomicUsize,
    panicked: AtomicBool,
    stop: AtomicBool,
    /// Workers that sleep, guarded for the condition variable.
    sleepers: Mutex<usize>,
    wake: Condvar,
    /// A hint, so that starting a job takes no lock while everybody spins.
    any_asleep: AtomicBool,
}

/// A fixed set of threads; the calling one is the first.
pub(crate) struct Pool {
    arch: Arch,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    bound: Option<Bound>,
    /// Whether a job is going on. That it is a cell also keeps the pool out of the jobs, which must
    /// be `Sync`: none can start another one.
    is_running: Cell<bool>,
}

/// Each thread is bound to a processor of its own.
struct Bound {
    /// By thread.
    processors: Vec<u32>,
    /// Of the calling thread; the others are bound for all their life.
    _caller: Binding,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} threads)", self.threads())
    }
}

impl Pool {
    /// A pool of `threads` threads, the caller included, for kernels that use the vector
    /// instructions of `arch`.
    ///
    /// # Errors
    ///
    /// The error of the operating system when it gives no more threads.
    pub(crate) fn new(threads: usize, arch: Arch) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            job: AtomicPtr::new(std::ptr::null_mut()),
            generation: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
            any_asleep: AtomicBool::new(false),
        });
        let mut pool =
            Self { arch, shared, workers: Vec::new(), bound: None, is_running: Cell::new(false) };
        for index in 1..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let worker = std::thread::Builder::new()
                .name(format!("kernel-{index}"))
                .spawn(move || work(&shared, index))?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Binds each thread to a processor of its own, the calling one until the pool is dropped.
    /// Where there are fewer processors than threads, or the system refuses, all stay free.
    pub(crate) fn bind(&mut self) {
        let Some(before) = Mask::of_this_thread() else {
            return;
        };
        let best = topology::best_first(Path::new("/sys/devices"), &before.processors());
        let Some(processors) = best.get(..self.threads()) else {
            return;
        };
        let bound = self.collect(&|index| Mask::of(&[processors[index]]).bind_this_thread());
        let caller = Binding::of_this_thread(before);
        if bound.contains(&false) {
            // The workers could run where the thread that started them could.
            self.collect(&|_| before.bind_this_thread());
            return;
        }
        self.bound = Some(Bound { processors: processors.to_vec(), _caller: caller });
    }

    /// The processors that the threads are bound to, by thread; `None` when they are free.
    pub(crate) fn processors(&self) -> Option<&[u32]> {
        Some(&self.bound.as_ref()?.processors)
    }

    /// The vector instructions that kernels use.
    pub(crate) fn arch(&self) -> Arch {
        self.arch
    }

    /// How many threads run a job.
    #[must_use]
    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job(index)` for every index below [`Self::threads`], each on its own thread, and
    /// waits until all have finished. Index 0 is the calling thread.
    ///
    /// One job at a time: the pool is for one thread, since it is not `Sync`.
    pub(crate) fn run(&self, job: Job<'_>) {
        assert!(!self.is_running.replace(true), "a job started another one");
        let finish = Finish(self);
        if self.workers.is_empty() {
            job(0);
            return;
        }
        let shared = &*self.shared;
        let pointer: *const Job<'_> = &raw const job;
        shared.job.store(pointer.cast_mut().cast(), Ordering::Relaxed);
        shared.running.store(self.workers.len(), Ordering::Relaxed);
        // Where the caller panicked, too, nobody asked whether a worker had.
        shared.panicked.store(false, Ordering::Relaxed);
        shared.generation.fetch_add(1, Ordering::SeqCst);
        if shared.any_asleep.load(Ordering::SeqCst) {
            let _guard = shared.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            shared.wake.notify_all();
        }
        job(0);
        drop(finish);
        assert!(
            !shared.panicked.swap(false, Ordering::Relaxed),
            "a kernel panicked on a worker thread"
        );
    }

    /// Runs a job that returns something; the results in the order of the threads.
    pub(crate) fn collect<T: Send>(&self, job: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
        let results: Vec<Mutex<Option<T>>> =
            (0..self.threads()).map(|_| Mutex::new(None)).collect();
        self.run(&|index| {
            *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(job(index));
        });
        let results = results.into_iter();
        results.filter_map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
    }
}

impl Pool {
    /// Gives every thread a part of `items` to work on, which begins at a multiple of `grain`;
    /// `work` gets the index at which it does. Few items are left to the calling thread.
    pub(crate) fn share<T: Send>(
        &self,
        items: &mut [T],
        grain: usize,
        work: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        /// Items that are done by the time another thread has them in its cache.
        const FEW: usize = 1 << 12;
        if items.len() <= FEW {
            return work(0, items);
        }
        let part = items.len().div_ceil(grain).div_ceil(self.threads()) * grain;
        let parts: Vec<Mutex<&mut [T]>> = items.chunks_mut(part).map(Mutex::new).collect();
        self.run(&|thread| {
            // The last parts may have been taken up by rounding.
            if let Some(items) = parts.get(thread) {
                let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
                work(thread * part, &mut items);
            }
        });
    }
}

/// Waits for the workers, also when the job of the calling thread panics.
struct Finish<'a>(&'a Pool);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        wait_for_workers(&self.0.shared);
        self.0.is_running.set(false);
    }
}

fn wait_for_workers(shared: &Shared) {
    loop {
        for _ in 0..SPINS_PER_LOOK {
            if shared.running.load(Ordering::Acquire) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        {
            let _guard = self.shared.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.wake.notify_all();
        }
        for worker in self.workers.drain(..) {
            // A worker catches the panics of jobs, so joining cannot fail.
            let _ = worker.join();
        }
    }
}

/// A worker's life.
fn work(shared: &Shared, index: usize) {
    super::numeric::flush_denormals();
    let mut seen = 0;
    loop {
        seen = wait_for_job(shared, seen);
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let pointer = shared.job.load(Ordering::Relaxed).cast::<Job<'_>>();
        // SAFETY: `Pool::run` stored the pointer before it published the generation just seen,
        // and does not return or unwind before the decrement below (see `Finish`).
        let job = unsafe { *pointer };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(index)));
        if result.is_err() {
            shared.panicked.store(true, Ordering::Relaxed);
        }
        shared.running.fetch_sub(1, Ordering::Release);
    }
}

/// Waits until the generation is no longer `seen`: spinning first, then asleep.
fn wait_for_job(shared: &Shared, seen: u64) -> u64 {
    let start = Instant::now();
    loop {
        for _ in 0..SPINS_PER_LOOK {
            let generation = shared.generation.load(Ordering::Acquire);
            if generation != seen {
                return generation;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN_LIMIT {
            break;
        }
        std::thread::yield_now();
    }
    let mut sleepers = shared.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
    *sleepers += 1;
    // Published before the last look at the generation: either this thread sees the new job, or
    // the starter sees that a thread sleeps and takes the lock to wake it.
    shared.any_asleep.store(true, Ordering::SeqCst);
    let generation = loop {
        let generation = shared.generation.load(Ordering::SeqCst);
        if generation != seen {
            break generation;
        }
        sleepers = shared.wake.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
    };
    *sleepers -= 1;
    if *sleepers == 0 {
        shared.any_asleep.store(false, Ordering::SeqCst);
    }
    generation
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs of a test; Miri looks at every access to memory.
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 200 };

    #[test]
    fn every_index_runs_once_per_job_also_after_a_sleep() {
        let pool = Pool::new(3, Arch::new()).unwrap();
        let counts: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
        for round in 1..=ROUNDS {
            pool.run(&|index| {
                counts[index].fetch_add(1, Ordering::Relaxed);
            });
            for count in &counts {
                assert_eq!(count.load(Ordering::Relaxed), round);
            }
            if round % (ROUNDS / 2) == 0 {
                std::thread::sleep(SPIN_LIMIT * 3);
            }
        }
    }

    #[test]
    fn a_pool_of_one_runs_on_the_caller() {
        let caller = std::thread::current().id();
        let pool = Pool::new(1, Arch::new()).unwrap();
        pool.run(&|index| {
            assert_eq!(index, 0);
            assert_eq!(std::thread::current().id(), caller);
        });
    }

    #[test]
    fn results_come_in_the_order_of_the_threads() {
        for threads in [1, 3] {
            let pool = Pool::new(threads, Arch::new()).unwrap();
            assert_eq!(pool.collect(&|index| 10 * index), [0, 10, 20][..threads]);
        }
    }

    #[test]
    fn items_are_shared_by_all_threads_in_whole_grains() {
        for threads in [1, 3] {
            let pool = Pool::new(threads, Arch::new()).unwrap();
            for count in [0, 5, 5000, 5003] {
                for grain in [1, 16, 3000, 9000] {
                    let mut items = vec![0; count];
                    pool.share(&mut items, grain, &|first, part| {
                        assert_eq!(first % grain, 0);
                        for (index, item) in part.iter_mut().enumerate() {
                            *item += first + index + 1;
                        }
                    });
                    assert!(items.iter().enumerate().all(|(index, item)| *item == index + 1));
                }
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(2, Arch::new()).unwrap();
        for panicking in [&[1][..], &[0, 1], &[0]] {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                pool.run(&|index| assert!(!panicking.contains(&index)));
            }));
            assert!(result.is_err());
            let ran = AtomicUsize::new(0);
            pool.run(&|_| {
                ran.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(ran.load(Ordering::Relaxed), 2);
        }
    }

    // Miri has no processors to bind to.
    #[cfg(all(target_os = "linux", not(miri)))]
    mod bound {
        use super::*;

        /// Runs in a thread of its own, which can be bound without harm to other tests.
        fn alone(test: fn()) {
            std::thread::spawn(test).join().unwrap();
        }

        #[test]
        fn every_thread_has_a_processor_of_its_own_until_the_pool_is_dropped() {
            alone(|| {
                let before = Mask::of_this_thread().unwrap();
                let threads = before.processors().len();
                let mut pool = Pool::new(threads, Arch::new()).unwrap();
                assert_eq!(pool.processors(), None);
                pool.bind();
                let processors = pool.processors().unwrap().to_vec();
                let mut sorted = processors.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, before.processors());
                let masks = pool.collect(&|_| Mask::of_this_thread().unwrap());
                let expected: Vec<Mask> = processors.iter().map(|&one| Mask::of(&[one])).collect();
                assert_eq!(masks, expected);
                drop(pool);
                assert_eq!(Mask::of_this_thread(), Some(before));
            });
        }

        #[test]
        fn more_threads_than_processors_stay_free() {
            alone(|| {
                let before = Mask::of_this_thread().unwrap();
                let threads = before.processors().len() + 1;
                let mut pool = Pool::new(threads, Arch::new()).unwrap();
                pool.bind();
                assert_eq!(pool.processors(), None);
                let masks = pool.collect(&|_| Mask::of_this_thread().unwrap());
                assert_eq!(masks, vec![before; threads]);
            });
        }

        #[test]
        fn only_processors_that_the_thread_may_use_are_taken() {
            alone(|| {
                let before = Mask::of_this_thread().unwrap();
                let last = *before.processors().last().unwrap();
                assert!(Mask::of(&[last]).bind_this_thread());
                let mut pool = Pool::new(1, Arch::new()).unwrap();
                pool.bind();
                assert_eq!(pool.processors(), Some(&[last][..]));
                drop(pool);
                assert_eq!(Mask::of_this_thread(), Some(Mask::of(&[last])));
            });
        }
    }
}
