//! Which marks contain a time.

use rustc_hash::FxHashMap;

use crate::Thread;

/// A stretch of time on a thread, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) thread: u32,
    /// What it belongs to.
    pub(super) item: u32,
}

/// Windows by their starts.
pub(super) struct Windows {
    by_start: Vec<Window>,
    /// The latest end of a window and all before it.
    latest_end: Vec<i64>,
    /// The process of each thread.
    process: Vec<u32>,
}

impl Windows {
    pub(super) fn new(mut windows: Vec<Window>, threads: &[Thread]) -> Self {
        // Of windows that begin together, the longest is the outermost.
        windows.sort_by_key(|window| (window.start_ns, std::cmp::Reverse(window.end_ns)));
        let mut latest = i64::MIN;
        let reach = |window: &Window| {
            latest = latest.max(window.end_ns);
            latest
        };
        let latest_end = windows.iter().map(reach).collect();
        let mut processes: FxHashMap<&str, u32> = FxHashMap::default();
        let process = threads
            .iter()
            .map(|thread| {
                let next = u32::try_from(processes.len()).unwrap_or(u32::MAX);
                *processes.entry(thread.process.as_str()).or_insert(next)
            })
            .collect();
        Self { by_start: windows, latest_end, process }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// The outermost and the innermost window that contain a time, among those of a thread, or if
    /// it has none among those of its process: a thread that works for another one, as that of
    /// the backward pass, has no marks of its own.
    pub(super) fn around(&self, time_ns: i64, thread: u32) -> Option<(&Window, &Window)> {
        let of_thread = |window: &Window| window.thread == thread;
        let of_process =
            |window: &Window| self.process_of(window.thread) == self.process_of(thread);
        self.around_where(time_ns, of_thread).or_else(|| self.around_where(time_ns, of_process))
    }

    /// Whether two windows are of threads of one process.
    pub(super) fn are_of_one_process(&self, a: &Window, b: &Window) -> bool {
        self.process_of(a.thread) == self.process_of(b.thread)
    }

    fn process_of(&self, thread: u32) -> Option<u32> {
        self.process.get(thread as usize).copied()
    }

    /// The outermost and the innermost window of a kind that contain a time.
    pub(super) fn around_where(
        &self,
        time_ns: i64,
        is_one: impl Fn(&Window) -> bool,
    ) -> Option<(&Window, &Window)> {
        let mut found: Option<(&Window, &Window)> = None;
        let begun = self.by_start.partition_point(|window| window.start_ns <= time_ns);
        let before = self.by_start.get(..begun)?.iter().zip(self.latest_end.get(..begun)?);
        for (window, latest_end) in before.rev() {
            if *latest_end < time_ns {
                break;
            }
            if window.end_ns >= time_ns && is_one(window) {
                found = Some((window, found.map_or(window, |(_, innermost)| innermost)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(process: &str, thread: &str) -> Thread {
        Thread { process: process.to_owned(), thread: thread.to_owned() }
    }

    #[test]
    fn nested_windows_and_threads() {
        let threads = [thread("1", "1"), thread("1", "2"), thread("2", "1")];
        let window = |start_ns, end_ns, thread, item| Window { start_ns, end_ns, thread, item };
        let windows = Windows::new(
            vec![window(10, 20, 0, 1), window(0, 100, 0, 0), window(30, 40, 1, 2)],
            &threads,
        );
        let items = |time, thread| {
            windows.around(time, thread).map(|(outer, inner)| (outer.item, inner.item))
        };
        assert_eq!(items(15, 0), Some((0, 1)));
        assert_eq!(items(20, 0), Some((0, 1)));
        assert_eq!(items(21, 0), Some((0, 0)));
        assert_eq!(items(35, 1), Some((2, 2)));
        assert_eq!(items(35, 0), Some((0, 0)));
        assert_eq!(items(50, 1), Some((0, 0)));
        assert_eq!(items(50, 2), None);
        assert_eq!(items(101, 0), None);
        assert_eq!(items(-1, 0), None);
        assert_eq!(items(15, 9), None);
    }
}
