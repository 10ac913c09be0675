//! What a worker writes to its standard error.

use std::io::{self, Read};
use std::process::ChildStderr;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that are kept at each end. Of a stack trace the beginning says what happened, of a log
/// the end.
const MOST_BYTES: usize = 1 << 10;

/// How long after a process its last words are waited for. Usually they are there; but a process
/// that it started may hold the pipe open.
const PATIENCE: Duration = Duration::from_millis(500);

/// A thread that reads it to its end, so that a worker with much to say never waits for a reader.
#[derive(Debug)]
pub(crate) struct StandardError {
    text: Arc<Mutex<Ends>>,
    ended: Receiver<()>,
}

/// The beginning and the end of a long text.
#[derive(Debug, Default)]
struct Ends {
    beginning: Vec<u8>,
    end: Vec<u8>,
    left_out: bool,
}

impl StandardError {
    /// Begins to read it.
    ///
    /// # Errors
    ///
    /// When the system has no thread for it.
    pub(crate) fn read(mut from: ChildStderr) -> io::Result<Self> {
        let text = Arc::new(Mutex::new(Ends::default()));
        let (end, ended) = mpsc::channel();
        let reading = Arc::clone(&text);
        thread::Builder::new().spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut part) {
                reading.lock().unwrap_or_else(PoisonError::into_inner).add(&part[..count]);
            }
            let _ = end.send(());
        })?;
        Ok(Self { text, ended })
    }

    /// All of it, once the process has ended.
    pub(crate) fn after_the_end(&self) -> String {
        let _ = self.ended.recv_timeout(PATIENCE);
        self.text.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

impl Ends {
    fn add(&mut self, part: &[u8]) {
        let room = MOST_BYTES - self.beginning.len();
        let (first, rest) = part.split_at(room.min(part.len()));
        self.beginning.extend(first);
        self.end.extend(rest);
        if self.end.len() > MOST_BYTES {
            self.left_out = true;
            self.end.drain(..self.end.len() - MOST_BYTES);
        }
    }

    fn text(&self) -> String {
        let gap: &[u8] = if self.left_out { b" [...] " } else { b"" };
        let text = [&self.beginning, gap, &self.end].concat();
        String::from_utf8_lossy(&text).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_both_ends_are_kept() {
        let mut ends = Ends::default();
        ends.add(b"first ");
        assert_eq!(ends.text(), "first");
        for _ in 0..1000 {
            ends.add(b"and more ");
        }
        ends.add(b"and last\n");
        let text = ends.text();
        assert!(text.starts_with("first and") && text.ends_with("more and last"), "{text}");
        assert!(text.contains(" [...] ") && text.len() < 2100, "{}", text.len());

        let mut whole = Ends::default();
        whole.add(&[b'x'; 1500]);
        assert_eq!(whole.text(), "x".repeat(1500));
    }
}
