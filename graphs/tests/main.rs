//! Tests of the crate from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod checks;
mod damage;
mod models;
mod patterns;
