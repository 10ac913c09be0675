//! The threads of a runtime's process: what the system counts for them, and where they run.

use std::time::Duration;

use crate::backend::ThreadCounters;

/// The share of the time that a thread computes, or waits for a processor to do so, from which on it
/// is one of those that compute. Two threads that wait for each other cannot both reach it.
pub(super) const BUSY: f64 = 0.7;

/// Runs of less time together say nothing of how busy a thread is.
pub(super) const LONG_ENOUGH: Duration = Duration::from_millis(5);

/// What messages without a run cost a thread at most: the more, the less is seen of what disturbs.
const MOST_DELAY: Duration = Duration::from_micros(100);

/// How long a thread that has answered may take until it sleeps, when nobody is in its way.
const TIME_TO_SLEEP: Duration = Duration::from_micros(100);

/// The threads of a process.
#[derive(Debug)]
pub(super) struct Threads {
    process: u32,
    threads: Vec<Thread>,
    /// What a message costs any of them.
    message: Cost,
    /// Messages since the last reading.
    messages: u32,
    /// The time of all runs that is accounted for.
    accounted: Duration,
}

/// A thread, and what was counted for it.
#[derive(Debug)]
struct Thread {
    id: i32,
    files: system::Files,
    /// As the system counts.
    counted: ThreadCounters,
    /// The same without what messages cost.
    reported: ThreadCounters,
    /// When the last judgement of its work began.
    began: Duration,
}

/// What a message without a run costs a thread.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    switches: u64,
    delay: Duration,
}

/// The time that a thread computed, or was ready to.
fn demand(counters: &ThreadCounters) -> Duration {
    counters.processor_time.unwrap_or_default() + counters.run_delay.unwrap_or_default()
}

impl Threads {
    /// Those of a process.
    pub(super) fn of(process: u32) -> Self {
        let message = Cost::default();
        let accounted = Duration::ZERO;
        let mut all = Self { process, threads: Vec::new(), message, messages: 0, accounted };
        all.find_new();
        all
    }

    /// Looks for threads that it does not know. Those that ended stay, with their last counters.
    fn find_new(&mut self) {
        for id in system::threads(self.process) {
            if self.threads.iter().any(|known| known.id == id) {
                continue;
            }
            let Some(mut files) = system::Files::open(self.process, id) else { continue };
            let counted = files.read().unwrap_or_default();
            // All that it did was done since the work began that is judged next.
            let began = Duration::ZERO;
            self.threads.push(Thread { id, files, counted, reported: counted, began });
        }
    }

    /// Counts a message, since which costs what it costs.
    pub(super) fn count_message(&mut self) {
        self.messages += 1;
    }

    /// Counts a run, with the part of its reported time that is accounted for.
    pub(super) fn count_run(&mut self, accounted: Duration) {
        self.accounted += accounted;
    }

    /// Lets whoever has answered go to sleep. If it were still on its way there, it would wait for a
    /// processor while this thread reads, and that would count as a disturbance of the next runs.
    fn let_sleep(&self) {
        if self.messages > 0 {
            std::thread::sleep(TIME_TO_SLEEP);
        }
    }

    /// Forgets what the messages and all else until now have cost, and what a message costs.
    pub(super) fn forget_messages(&mut self) {
        self.let_sleep();
        (self.messages, self.message) = (0, Cost::default());
        for thread in &mut self.threads {
            thread.counted = thread.files.read().unwrap_or(thread.counted);
        }
    }

    /// Takes what the last messages cost, none with a run, for what any message costs, where
    /// that is more than what was known.
    pub(super) fn learn_message(&mut self) {
        self.let_sleep();
        let messages = std::mem::take(&mut self.messages).max(1);
        for thread in &mut self.threads {
            let Some(now) = thread.files.read() else { continue };
            let each = Growth::between(&thread.counted, &now);
            thread.counted = now;
            let message = &mut self.message;
            message.switches = message.switches.max(each.switches.div_ceil(u64::from(messages)));
            message.delay = message.delay.max((each.delay / messages).min(MOST_DELAY));
        }
    }

    /// What the system has counted, less what messages cost.
    pub(super) fn read(&mut self) -> Vec<ThreadCounters> {
        self.let_sleep();
        self.find_new();
        let messages = std::mem::take(&mut self.messages);
        let Cost { switches, delay } = self.message;
        let (switches, delay) = (switches * u64::from(messages), delay * messages);
        let read = |thread: &mut Thread| {
            if let Some(now) = thread.files.read() {
                let grown = Growth::between(&thread.counted, &now);
                let reported = &mut thread.reported;
                let more = grown.switches.saturating_sub(switches);
                reported.involuntary_switches = reported.involuntary_switches.map(|n| n + more);
                let more = grown.delay.saturating_sub(delay);
                reported.run_delay = reported.run_delay.map(|time| time + more);
                reported.page_faults = now.page_faults;
                reported.processor = now.processor;
                thread.counted = now;
            }
            // Which of its threads computes is the runtime's business, and one that hands its work
            // to another is off its processor meanwhile. Waiting for one is what is counted.
            ThreadCounters { processor_time: None, ..thread.reported }
        };
        let mut counters: Vec<ThreadCounters> = self.threads.iter_mut().map(read).collect();
        // For the thread that measures stands what is known of the runs: what went by in them, and is in
        // no time, is time off the processor.
        if let Some(first) = counters.first_mut() {
            first.processor_time = Some(self.accounted);
        }
        counters
    }

    /// Begins to watch what they do.
    pub(super) fn begin(&mut self) {
        self.find_new();
        for thread in &mut self.threads {
            thread.began = thread.files.read().as_ref().map_or(thread.began, demand);
        }
    }

    /// The threads that were busy for most of the time that runs took since [`Self::begin`], the
    /// busiest first; `None` where that was too short to tell.
    pub(super) fn busy(&mut self, runs: Duration) -> Option<Vec<i32>> {
        if runs < LONG_ENOUGH {
            return None;
        }
        self.find_new();
        let mut busy = Vec::new();
        for thread in &mut self.threads {
            let Some(now) = thread.files.read() else { continue };
            let worked = demand(&now).saturating_sub(thread.began);
            if worked.as_secs_f64() >= BUSY * runs.as_secs_f64() {
                busy.push((worked, thread.id));
            }
        }
        busy.sort_unstable_by(|one, other| other.cmp(one));
        Some(busy.into_iter().map(|(_, id)| id).collect())
    }

    /// Binds each of these threads to a processor of its own.
    pub(super) fn bind(&self, threads: Vec<i32>, processors: &[u32]) {
        for (thread, processor) in self.first_answers(threads).into_iter().zip(processors) {
            system::bind(thread, *processor);
        }
    }

    /// These threads, the one that answers first: on the first processor it meets whoever asks, if it
    /// does so anywhere.
    fn first_answers(&self, mut threads: Vec<i32>) -> Vec<i32> {
        threads.sort_by_key(|thread| u32::try_from(*thread) != Ok(self.process));
        threads
    }
}

/// By how much counters grew.
struct Growth {
    switches: u64,
    delay: Duration,
}

impl Growth {
    fn between(before: &ThreadCounters, after: &ThreadCounters) -> Self {
        let switches = |of: &ThreadCounters| of.involuntary_switches.unwrap_or_default();
        let delay = |of: &ThreadCounters| of.run_delay.unwrap_or_default();
        Self {
            switches: switches(after).saturating_sub(switches(before)),
            delay: delay(after).saturating_sub(delay(before)),
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::time::Duration;

    use nix::unistd::Pid;

    use crate::affinity::Mask;
    use crate::backend::ThreadCounters;

    /// The threads of a process now.
    pub(super) fn threads(process: u32) -> Vec<i32> {
        let Ok(folder) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
        let number =
            |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        let mut threads: Vec<i32> = folder.filter_map(number).collect();
        threads.sort_unstable();
        threads
    }

    pub(super) fn bind(thread: i32, processor: u32) {
        let _ = Mask::of(&[processor]).bind(Pid::from_raw(thread));
    }

    /// What the system says of a thread. The files stay open, since opening one takes longer than
    /// reading it.
    #[derive(Debug)]
    pub(super) struct Files {
        schedule: File,
        state: File,
        status: File,
    }

    impl Files {
        pub(super) fn open(process: u32, thread: i32) -> Option<Self> {
            let open = |name| File::open(format!("/proc/{process}/task/{thread}/{name}")).ok();
            Some(Self {
                schedule: open("schedstat")?,
                state: open("stat")?,
                status: open("status")?,
            })
        }

        /// `None` when the thread has ended.
        pub(super) fn read(&mut self) -> Option<ThreadCounters> {
            let (time, delay) = times(&text(&self.schedule)?)?;
            let (page_faults, processor) = faults_and_processor(&text(&self.state)?)?;
            Some(ThreadCounters {
                involuntary_switches: switches(&text(&self.status)?),
                page_faults: Some(page_faults),
                processor: Some(processor),
                processor_time: Some(time),
                run_delay: Some(delay),
            })
        }
    }

    fn text(file: &File) -> Option<String> {
        // Longer than any of them.
        let mut bytes = [0; 4096];
        let length = file.read_at(&mut bytes, 0).ok()?;
        Some(String::from_utf8_lossy(bytes.get(..length)?).into_owned())
    }

    /// `schedstat`: nanoseconds on a processor, and of waiting for one.
    pub(super) fn times(text: &str) -> Option<(Duration, Duration)> {
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok().map(Duration::from_nanos);
        Some((next()?, next()?))
    }

    /// `stat`: minor and major page faults together, and the processor. The name before them may
    /// hold anything.
    pub(super) fn faults_and_processor(text: &str) -> Option<(u64, u32)> {
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // Numbered from 3 on in the manual.
        let field = |number: usize| fields.get(number - 3);
        let faults = |number| field(number)?.parse::<u64>().ok();
        Some((faults(10)? + faults(12)?, field(39)?.parse().ok()?))
    }

    /// `status`: times the system took the processor from it.
    pub(super) fn switches(text: &str) -> Option<u64> {
        let line =
            text.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
        line.trim().parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use crate::backend::ThreadCounters;

    pub(super) fn threads(_process: u32) -> Vec<i32> {
        Vec::new()
    }

    pub(super) fn bind(_thread: i32, _processor: u32) {}

    /// Not reported by this system.
    #[derive(Debug)]
    pub(super) struct Files;

    impl Files {
        pub(super) fn open(_process: u32, _thread: i32) -> Option<Self> {
            None
        }

        pub(super) fn read(&mut self) -> Option<ThreadCounters> {
            None
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_thread_are_read_whatever_its_name() {
        let state = "7 (a) b (c)) S 1 2 3 4 5 6 11 8 13 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 \
                     25 26 27 28 29 30 31 32 33 5 37 38";
        let fields: Vec<&str> = state.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let expected = (
            fields[7].parse::<u64>().unwrap() + fields[9].parse::<u64>().unwrap(),
            fields[36].parse::<u32>().unwrap(),
        );
        assert_eq!(system::faults_and_processor(state), Some(expected));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(system::switches(status), Some(4));
        let times = (Duration::from_nanos(5), Duration::from_nanos(7));
        assert_eq!(system::times("5 7 1\n"), Some(times));
        assert_eq!(system::times("5"), None);
    }

    #[test]
    fn a_thread_that_spins_is_busy_and_one_that_sleeps_is_not() {
        use std::sync::atomic::{AtomicBool, Ordering};

        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut threads = Threads::of(std::process::id());
            threads.begin();
            // One that is started by the first run, as pools are.
            let (tell, told) = std::sync::mpsc::channel();
            let ended = &ended;
            scope.spawn(move || {
                tell.send(nix::unistd::gettid().as_raw()).unwrap();
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let spinning = told.recv().unwrap();
            let began = std::time::Instant::now();
            let mut busy = Vec::new();
            // For a short time, the host of a virtual machine can have had the processor.
            while !busy.contains(&spinning) && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(60));
                busy = threads.busy(began.elapsed()).unwrap();
            }
            ended.store(true, Ordering::Relaxed);
            assert!(busy.contains(&spinning), "{spinning}: {busy:?}");
            assert!(!busy.contains(&nix::unistd::gettid().as_raw()), "this one sleeps");
            assert_eq!(threads.busy(Duration::from_millis(1)), None);
            assert!(threads.read().len() >= 2);
        });
    }

    #[test]
    fn the_thread_that_answers_comes_first_and_the_others_keep_their_order() {
        let process = std::process::id();
        let threads = Threads::of(process);
        let answers = i32::try_from(process).unwrap();
        let given = vec![answers + 9, answers + 3, answers, answers + 5];
        let expected = [answers, answers + 9, answers + 3, answers + 5];
        assert_eq!(threads.first_answers(given), expected);
        assert_eq!(threads.first_answers(vec![4, 2]), [4, 2]);
    }

    #[test]
    fn what_was_before_the_first_message_is_in_no_message() {
        let mut threads = Threads::of(std::process::id());
        for thread in &mut threads.threads {
            // As if it had waited for long, and often.
            thread.counted = ThreadCounters { run_delay: Some(Duration::ZERO), ..thread.counted };
            thread.counted.involuntary_switches = Some(0);
        }
        threads.message = Cost { switches: 7, delay: MOST_DELAY };
        threads.count_message();
        let before: Vec<Option<ThreadCounters>> =
            threads.threads.iter_mut().map(|thread| thread.files.read()).collect();
        threads.forget_messages();
        assert_eq!((threads.messages, threads.message.switches), (0, 0));
        assert_eq!(threads.message.delay, Duration::ZERO);
        for (thread, before) in threads.threads.iter_mut().zip(before) {
            let (Some(now), Some(before)) = (thread.files.read(), before) else { continue };
            assert!(Growth::between(&thread.counted, &now).delay < Duration::from_secs(1));
            // A thread that has just begun may have waited for nothing.
            assert!(thread.counted.run_delay >= before.run_delay);
        }
    }

    #[test]
    fn what_messages_cost_is_no_disturbance() {
        let mut threads = Threads::of(std::process::id());
        threads.message = Cost { switches: 1, delay: Duration::from_micros(10) };
        let first = threads.read();
        threads.messages = 1_000_000;
        threads.count_run(Duration::from_millis(3));
        let second = threads.read();
        let times = |all: &[ThreadCounters]| -> Vec<Option<Duration>> {
            all.iter().map(|one| one.processor_time).collect()
        };
        // Only of the first one: that of the runs.
        assert_eq!(times(&first)[0], Some(Duration::ZERO));
        assert_eq!(times(&second)[0], Some(Duration::from_millis(3)));
        assert!(times(&second)[1..].iter().all(Option::is_none));
        for (before, after) in first.iter().zip(&second) {
            assert_eq!(before.involuntary_switches, after.involuntary_switches);
            assert_eq!(before.run_delay, after.run_delay);
        }
    }
}
