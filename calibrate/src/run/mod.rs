//! A run: everything is measured, pass after pass, and nothing of it is lost.
//!
//! `session` makes the passes with its `settings`, `ceilings` joins what several passes measured of
//! the machine, and `journal` keeps every result, from which an ended run goes on. An
//! `observer` hears what is being done.

mod ceilings;
mod journal;
mod observer;
mod session;
mod settings;

pub use journal::{Entry, Journal, Part, Recovered, RunKey};
pub use observer::{Observer, Silent};
pub use session::{Measured, Outcome, Session, State};
pub use settings::RunSettings;
