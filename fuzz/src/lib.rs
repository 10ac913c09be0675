//! What must hold of every reader, whatever bytes it is given.
//!
//! A [`Target`] is a reader with inputs that it takes and a check of whatever it makes of others.
//! [`drive`] makes inputs from those and hands them over, with nothing but stable Rust; the tests of
//! this crate do so for a moment each, and `.ci/fuzz` for longer. The targets of
//! `libfuzzer/` are the same ones, for cargo-fuzz.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a target fails by panicking"
)]

mod driver;
mod mutation;
mod targets;

pub use driver::{Figures, Finding, drive};
pub use targets::TARGETS;

/// A reader, and what must hold of it.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Inputs of every kind that it takes, from which others are made.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads some bytes and panics if what must hold does not. Returns what the reader said: an
    /// input that makes it say something new is worth changing further.
    pub run: fn(&[u8]) -> String,
}

/// The target of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
