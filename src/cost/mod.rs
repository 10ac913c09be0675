//! What a problem costs on paper: flops, bytes, launches, and the roofline estimate.
//!
//! These are modelled numbers: compulsory traffic, every flop counted once. The measured numbers
//! are in the [calibration](crate::calibration).

mod least_time;
mod peak;
mod roofline;
mod traffic;

pub use least_time::LeastTime;
pub use peak::PeakMemory;
pub use roofline::{BandwidthPoint, Bottleneck, Ceilings, RooflineTime};
pub use traffic::Traffic;
