//! A run: everything is measured, pass after pass, and nothing of it is lost.
//!
//! `target` is the device that it runs on. `session` makes the passes with its `settings` and its
//! `seed`, `findings` and `ceilings` join what several passes say of the machine, and `journal` keeps
//! every result, from which an ended run goes on. An `observer` hears what is being done. `workload`
//! lets a session measure whole models.

mod ceilings;
mod entry;
mod findings;
mod journal;
mod line;
mod observer;
mod outcome;
mod seed;
mod session;
mod settings;
mod target;
pub mod workload;

pub use entry::{Entry, Part, RunKey};
pub use journal::{Begun, Journal, Recovered};
pub use observer::{Extent, Observer, Silent};
pub use outcome::{Measured, Outcome, State};
pub use seed::Seed;
pub use session::Session;
pub use settings::RunSettings;
pub use target::{Target, introduced, why_unusable};
