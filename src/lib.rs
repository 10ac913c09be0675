//! What kernel fusion really gains on a machine, for graph partitioners.
pub mod calibration;
pub mod cost;
pub mod hardware;
pub mod model;
mod vocabulary;
pub use vocabulary::*;
