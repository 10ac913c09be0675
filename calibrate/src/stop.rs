//! Ctrl-C: the first one ends the run in order, the second one at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit;

/// Whether the user wants the run to end.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for Ctrl-C, and on Unix for SIGTERM and SIGHUP.
    ///
    /// # Errors
    ///
    /// When the system refuses the handler.
    pub fn listen() -> anyhow::Result<Self> {
        let stop = Self::default();
        let flag = Arc::clone(&stop.0);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            eprintln!("\nstopping: writing what is done (once more to quit at once)");
        })?;
        Ok(stop)
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
