//! The one place that prints to stderr.
//!
//! `eprintln!` panics when stderr cannot be written: its terminal was closed, or it is a file on a
//! full disk. What is said there is said for people, and is no reason to lose a measurement over.

use std::fmt::Arguments;
use std::io::Write;

use crate::plain;

/// Prints a line to stderr, if it can be written, without what a terminal would obey.
///
/// In one write, so that the lines of threads and processes do not mix.
pub fn line(text: Arguments<'_>) {
    let text = format!("{text}\n");
    let _ = std::io::stderr().write_all(plain::text(&text).as_bytes());
}

/// Prints a line to stderr as `eprintln!` does, but never panics.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::stderr::line(format_args!($($text)*))
    };
}
