//! `calibrate compare` as a user meets it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../tests/consistent/mod.rs"]
mod consistent;
#[path = "../../../trace-tool/tests/compare/headless.rs"]
mod headless;
mod made;
mod pages;
mod program;
