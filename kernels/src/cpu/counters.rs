//! What the system has counted for the calling thread.
//!
//! All of it costs less than 1 us and allocates nothing after a thread's first call, so that it
//! can be read around every sample.

use std::time::Duration;

use crate::backend::ThreadCounters;

/// What the system has counted for the calling thread; `None` for what it does not count.
#[must_use]
pub fn counters_of_this_thread() -> ThreadCounters {
    let usage = usage();
    ThreadCounters {
        involuntary_switches: usage.map(|usage| usage.involuntary_switches),
        page_faults: usage.map(|usage| usage.page_faults),
        processor: processor(),
        processor_time: processor_time(),
        run_delay: run_delay(),
    }
}

/// What `getrusage` reports for a thread.
#[derive(Clone, Copy)]
struct Usage {
    involuntary_switches: u64,
    page_faults: u64,
}

#[cfg(target_os = "linux")]
fn usage() -> Option<Usage> {
    use nix::sys::resource::{UsageWho, getrusage};

    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    let count = |number| u64::try_from(number).ok();
    Some(Usage {
        involuntary_switches: count(usage.involuntary_context_switches())?,
        page_faults: count(usage.minor_page_faults())? + count(usage.major_page_faults())?,
    })
}

#[cfg(not(target_os = "linux"))]
fn usage() -> Option<Usage> {
    None
}

#[cfg(target_os = "linux")]
fn processor() -> Option<u32> {
    u32::try_from(nix::sched::sched_getcpu().ok()?).ok()
}

#[cfg(not(target_os = "linux"))]
fn processor() -> Option<u32> {
    None
}

/// Time on processors of all threads of this process; `None` where the system does not count it.
#[must_use]
pub fn processor_time_of_this_process() -> Option<Duration> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use nix::time::{ClockId, clock_gettime};

        clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok().map(Duration::from)
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    None
}

/// The time that all threads of another process have been on a processor; `None` where there is no such
/// process, or the system does not say it.
pub(crate) fn processor_time_of(process: u32) -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        use nix::time::{clock_getcpuclockid, clock_gettime};
        use nix::unistd::Pid;

        let process = Pid::from_raw(i32::try_from(process).ok()?);
        clock_gettime(clock_getcpuclockid(process).ok()?).ok().map(Duration::from)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = process;
        None
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn processor_time() -> Option<Duration> {
    use nix::time::{ClockId, clock_gettime};

    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn processor_time() -> Option<Duration> {
    None
}

#[cfg(target_os = "linux")]
fn run_delay() -> Option<Duration> {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    thread_local! {
        /// Stays open: opening it takes longer than all the rest. It is this thread's file for
        /// good, since the link is followed when it is opened.
        static SCHEDSTAT: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    // Three numbers of up to 20 digits with a character after each.
    let mut text = [0; 64];
    let length =
        SCHEDSTAT.try_with(|file| file.as_ref()?.read_at(&mut text, 0).ok()).ok().flatten()?;
    parse_run_delay(std::str::from_utf8(text.get(..length)?).ok()?)
}

#[cfg(not(target_os = "linux"))]
fn run_delay() -> Option<Duration> {
    None
}

/// The second of the three numbers of `schedstat`: nanoseconds on a processor, nanoseconds of
/// waiting for one, and how many times one was given. A system that counts none of them writes
/// zeros.
#[cfg(target_os = "linux")]
fn parse_run_delay(text: &str) -> Option<Duration> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (time, delay, slices) = (next()?, next()?, next()?);
    (time > 0 || delay > 0 || slices > 0).then_some(Duration::from_nanos(delay))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::affinity::Mask;

    fn spin(time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn the_delay_is_the_second_number_unless_nothing_is_counted() {
        assert_eq!(parse_run_delay("316219 4711 1\n"), Some(Duration::from_nanos(4711)));
        assert_eq!(parse_run_delay("316219 0 1\n"), Some(Duration::ZERO));
        let largest = format!("{0} {0} {0}\n", u64::MAX);
        assert!(largest.len() <= 64);
        assert_eq!(parse_run_delay(&largest), Some(Duration::from_nanos(u64::MAX)));
        assert_eq!(parse_run_delay("0 0 0\n"), None);
        assert_eq!(parse_run_delay("12 34"), None);
        assert_eq!(parse_run_delay(""), None);
        assert_eq!(parse_run_delay("1 -2 3"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_time_of_a_process_is_known_by_its_number() {
        let before = processor_time_of(std::process::id()).unwrap();
        spin(Duration::from_millis(20));
        let after = processor_time_of(std::process::id()).unwrap();
        assert!(after > before);
        assert!(after <= processor_time_of_this_process().unwrap());
        assert_eq!(processor_time_of(u32::MAX), None);
    }

    #[test]
    fn time_on_the_processor_passes_with_work_and_not_with_sleep() {
        let passed = |work: fn(Duration)| {
            let before = counters_of_this_thread().processor_time.unwrap();
            work(Duration::from_millis(60));
            counters_of_this_thread().processor_time.unwrap() - before
        };
        assert!(passed(std::thread::sleep) < Duration::from_millis(20));
        // Others may take the processor for a while.
        assert!(passed(spin) > Duration::from_millis(1));
    }

    #[test]
    fn touching_new_memory_is_a_page_fault() {
        let mut memory = memmap2::MmapMut::map_anon(1 << 20).unwrap();
        let before = counters_of_this_thread().page_faults.unwrap();
        memory.fill(1);
        assert!(counters_of_this_thread().page_faults.unwrap() > before);
    }

    #[test]
    fn the_processor_is_the_one_that_the_thread_is_bound_to() {
        for processor in Mask::of_this_thread().unwrap().processors() {
            let bound = std::thread::spawn(move || {
                assert!(Mask::of(&[processor]).bind_this_thread());
                counters_of_this_thread().processor
            });
            assert_eq!(bound.join().unwrap(), Some(processor));
        }
    }

    #[test]
    fn two_threads_on_one_processor_wait_for_each_other() {
        let processor = Mask::of_this_thread().unwrap().processors()[0];
        let threads = [(); 2].map(|()| {
            std::thread::spawn(move || {
                assert!(Mask::of(&[processor]).bind_this_thread());
                let before = counters_of_this_thread();
                spin(Duration::from_millis(200));
                (before, counters_of_this_thread())
            })
        });
        for thread in threads {
            let (before, after) = thread.join().unwrap();
            assert!(after.involuntary_switches > before.involuntary_switches, "{after:?}");
            if let (Some(before), Some(after)) = (before.run_delay, after.run_delay) {
                assert!(after - before > Duration::from_millis(10), "{before:?} {after:?}");
            }
        }
    }
}
