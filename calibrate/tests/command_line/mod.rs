//! The program as a user meets it: what it prints, writes and exits with.

mod answers;
mod files;
mod program;
mod reading;
mod refusals;
mod resumption;
mod runs;
mod spreadsheets;
#[cfg(target_os = "linux")]
mod streams;
mod system;
