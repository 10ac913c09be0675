//! What kernel fusion really gains on a machine, for graph partitioners.
//!
//! A calibration file records, for one machine, how long op chains take unfused (one kernel per
//! op) and fused (one kernel), with the evidence. This crate is what a partitioner links: it reads
//! such files and answers questions about them, and it holds the vocabulary that all parts of the
//! project share. It measures nothing itself; the `calibrate` program does.
//!
//! - [`Op`], [`Chain`], [`Pattern`] and [`Problem`] are the words: what is computed, on which
//!   sizes, in which number format. They read the names of frameworks.
//! - [`cost`] is a problem on paper: flops, bytes, and the roofline.
//! - [`hardware`] holds data-sheet facts, [`calibration`] what was measured.
//! - [`model::FusionCostModel`] answers: what does fusing this problem gain, how sure is that, and
//!   should it be done.

#![forbid(unsafe_code)]

pub mod calibration;
pub mod cost;
pub mod hardware;
pub mod model;
mod vocabulary;

pub use vocabulary::*;
