//! The target of this name.

#![no_main]

include!("../target.rs");
