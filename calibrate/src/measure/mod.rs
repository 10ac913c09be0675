//! The third stage: interleaved pairs of samples, in rounds with a fresh memory layout each, in
//! fresh processes.
//!
//! `sample` takes the `samples` of one process, in the order that `schedule` draws, while
//! `disturbance` and `watch` look for what goes wrong; `estimate` turns the processes into a ratio
//! with its `interval`, with the arithmetic of `statistics`; `stopping` says when there are enough.
//! `steps` times the kernels of the unfused variant one by one, after all that.
//! `warm_up` brings a GPU to its clock before that, and `surroundings` is what the machine was like
//! meanwhile; `others` counts what other programs did.

mod disturbance;
mod estimate;
mod interval;
mod others;
mod procedure;
mod sample;
mod samples;
mod schedule;
mod states;
mod statistics;
mod steps;
mod stopping;
mod surroundings;
mod warm_up;
mod watch;

pub use disturbance::Cause;
pub use estimate::{
    Estimate, LEAST_PROCESSES, StateEstimate, Unit, VariantTime, estimate, log_ratios,
};
pub use interval::{Method, pooled_correlation};
pub use others::Others;
pub use procedure::Procedure;
pub use sample::{Instruments, measure};
pub use samples::{Pair, Round, Samples, SensorRange};
pub use schedule::{Order, draw_beginning, draw_orders, draw_pass};
pub use states::States;
pub use statistics::{Quartiles, mean, median, median_interval, quartiles};
pub(crate) use statistics::{chi_squared_quantile, normal_quantile, t_factor};
pub use steps::step_seconds;
pub use stopping::enough;
pub use surroundings::Surroundings;
pub use warm_up::warm_up;
pub use watch::{Reading, SystemWatch, Watch};
