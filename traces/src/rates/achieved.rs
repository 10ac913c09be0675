//! What an amount of work in a time is of a machine's peaks.

use fusion_cost_model::DType;

use super::{Bound, Machine};

/// An amount of work, and the time for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Done {
    pub(crate) flops: f64,
    pub(crate) bytes: f64,
    pub(crate) ns: u64,
    pub(crate) dtype: Option<DType>,
}

/// How fast that is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Achieved {
    pub(crate) tflop_per_s: Option<f64>,
    pub(crate) gb_per_s: Option<f64>,
    pub(crate) of_peak: Option<f64>,
    pub(crate) of_bandwidth: Option<f64>,
    pub(crate) bound: Option<Bound>,
    pub(crate) of_roofline: Option<f64>,
}

impl Achieved {
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub(crate) fn of(done: Done, machine: Option<&Machine>) -> Self {
        let Done { flops, bytes, ns, dtype } = done;
        let over = |amount: f64| (ns > 0 && amount > 0.0).then(|| amount / ns as f64);
        // Amounts per nanosecond are 10^9 per second.
        let (gflop_per_s, gb_per_s) = (over(flops), over(bytes));
        let peak = machine.zip(dtype).and_then(|(machine, dtype)| machine.peak_gflops(dtype));
        let bandwidth = machine.map(|machine| machine.bandwidth_gb_per_s);
        let compute_ns = peak.map(|peak| flops / peak);
        let memory_ns = bandwidth.map(|bandwidth| bytes / bandwidth);
        // Without the peak of what computes, nothing is known of its roofline.
        let roofline = match (compute_ns, memory_ns) {
            (Some(compute), Some(memory)) if compute >= memory => Some((Bound::Compute, compute)),
            (Some(_), Some(memory)) => Some((Bound::Memory, memory)),
            (None, Some(memory)) if flops == 0.0 => Some((Bound::Memory, memory)),
            _ => None,
        };
        let roofline = roofline.filter(|(_, least_ns)| ns > 0 && *least_ns > 0.0);
        Self {
            tflop_per_s: gflop_per_s.map(|rate| rate / 1e3),
            gb_per_s,
            of_peak: gflop_per_s.zip(peak).map(|(rate, peak)| rate / peak),
            of_bandwidth: gb_per_s.zip(bandwidth).map(|(rate, most)| rate / most),
            bound: roofline.map(|(bound, _)| bound),
            of_roofline: roofline.map(|(_, least_ns)| least_ns / ns as f64),
        }
    }
}
