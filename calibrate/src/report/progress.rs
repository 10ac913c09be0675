//! Progress on stderr: a bar with the time left on a terminal, a line per problem elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a run.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    done: u64,
    total: u64,
}

impl Progress {
    /// For so many pieces of work.
    #[must_use]
    pub fn new(total: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            let style = "{bar:24} {pos}/{len}, {eta} left: {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            // No steady tick: its thread would run between the samples.
            bar
        });
        Self { bar, done: 0, total }
    }

    /// Says what is being done.
    pub fn start(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Says what came of it.
    pub fn finish(&mut self, what: &str, result: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => eprintln!("[{}/{}] {what}: {result}", self.done, self.total),
        }
    }

    /// Prints a line that stays.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
