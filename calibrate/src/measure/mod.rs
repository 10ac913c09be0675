//! The third stage: interleaved pairs of samples, in rounds with a fresh memory layout each.
//!
//! `sample` takes the samples, in the order that `schedule` draws; `estimate` turns them
//! into a ratio with its interval, with the arithmetic of `statistics`.

mod estimate;
mod sample;
mod schedule;
mod statistics;

pub use estimate::{Estimate, estimate};
pub use sample::{Measurement, Pair, Procedure, Round, measure};
pub use schedule::{Order, draw_orders};
pub use statistics::{Quartiles, mean_interval, median, quartiles, t_quantile_975};
