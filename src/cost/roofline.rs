//! The roofline: how long a problem must take at least, on measured ceilings.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::traffic::Traffic;
use crate::vocabulary::Problem;

/// Bandwidth of streaming kernels at one working set, in 10^9 bytes read and written per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandwidthPoint {
    /// Bytes that the kernel touches.
    pub working_set_bytes: u64,
    /// Bandwidth of `a = b + c` with ordinary stores, as kernels have them.
    pub gb_per_s: f64,
    /// The same with non-temporal stores, which do not read a line before they write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nontemporal_gb_per_s: Option<f64>,
    /// Bandwidth of reading alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_gb_per_s: Option<f64>,
}

impl BandwidthPoint {
    /// The fastest way that was found to move bytes: what no kernel should exceed.
    #[must_use]
    pub fn fastest_gb_per_s(&self) -> f64 {
        let others = [self.nontemporal_gb_per_s, self.read_gb_per_s];
        others.into_iter().flatten().fold(self.gb_per_s, f64::max)
    }
}

/// The measured ceilings of a machine at one dtype and thread count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    /// Peak rate of multiply-adds, in 10^9 flops per second.
    pub peak_gflops: f64,
    /// Time to start a kernel on all threads and wait for it, in microseconds.
    pub launch_us: f64,
    /// Bandwidth over the working set, by increasing working set.
    pub bandwidth: Vec<BandwidthPoint>,
}

/// What limits a variant on the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// Arithmetic.
    Compute,
    /// Moving bytes.
    Memory,
    /// Starting kernels.
    Launch,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Launch => "launch",
        })
    }
}

/// The least time of both variants of a problem by the roofline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RooflineTime {
    /// Sum over the unfused kernels, in microseconds.
    pub unfused_us: f64,
    /// The fused kernel, in microseconds.
    pub fused_us: f64,
    /// What takes most of the unfused time.
    pub unfused_bottleneck: Bottleneck,
    /// What takes most of the fused time.
    pub fused_bottleneck: Bottleneck,
}

impl RooflineTime {
    /// The speedup that fusion would have if both variants ran on the roofline: every saved byte
    /// and launch is saved time, and nothing else changes.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        self.unfused_us / self.fused_us
    }
}

impl Ceilings {
    /// Bandwidth in 10^9 bytes per second for a kernel that touches `bytes`, interpolated in the
    /// logarithm of the working set; the outermost points hold beyond the curve.
    ///
    /// `None` when no bandwidth was measured.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an interpolation")]
    pub fn bandwidth_at(&self, bytes: u64) -> Option<f64> {
        let after = self.bandwidth.partition_point(|point| point.working_set_bytes < bytes);
        let above = self.bandwidth.get(after);
        let below = after.checked_sub(1).and_then(|index| self.bandwidth.get(index));
        match (below, above) {
            (Some(low), Some(high)) => {
                let position = |bytes: u64| (bytes.max(1) as f64).ln();
                let span = position(high.working_set_bytes) - position(low.working_set_bytes);
                let share = (position(bytes) - position(low.working_set_bytes)) / span;
                Some(low.gb_per_s + share * (high.gb_per_s - low.gb_per_s))
            }
            (Some(only), None) | (None, Some(only)) => Some(only.gb_per_s),
            (None, None) => None,
        }
    }

    /// The same machine with nothing in its caches: every working set has the bandwidth of the
    /// largest one.
    #[must_use]
    pub fn in_memory(&self) -> Self {
        let bandwidth = self.bandwidth.last().copied().into_iter().collect();
        Self { bandwidth, ..*self }
    }

    /// The least time of both variants.
    ///
    /// A kernel takes the longer of its arithmetic at the peak rate and its bytes at the
    /// bandwidth, and one launch. The bandwidth is that of the chain's footprint, the bytes that
    /// the fused variant touches, for every kernel of both variants: what the caches hold when a
    /// kernel begins depends on all that the chain has touched since, and a bandwidth of its own
    /// for each kernel would make fusion look like a loss where the curve falls steeply.
    ///
    /// `None` when no bandwidth was measured.
    #[must_use]
    pub fn roofline(&self, problem: &Problem) -> Option<RooflineTime> {
        let traffic = Traffic::of(problem);
        let bandwidth = self.bandwidth_at(traffic.fused_bytes)?;
        let mut unfused = Parts::default();
        for step in problem.steps() {
            let moved = step.input_bytes() + step.operand_bytes() + step.output_bytes();
            unfused.add(self.kernel(step.flops(), moved, bandwidth));
        }
        let fused = self.kernel(traffic.flops, traffic.fused_bytes, bandwidth);
        Some(RooflineTime {
            unfused_us: unfused.total_us(),
            fused_us: fused.total_us(),
            unfused_bottleneck: unfused.bottleneck(),
            fused_bottleneck: fused.bottleneck(),
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "times")]
    fn kernel(&self, flops: u64, bytes: u64, gb_per_s: f64) -> Parts {
        // 10^9 per second is 10^3 per microsecond.
        let compute_us = flops as f64 / (self.peak_gflops * 1e3);
        let memory_us = bytes as f64 / (gb_per_s * 1e3);
        let launch_us = self.launch_us;
        if compute_us >= memory_us {
            Parts { compute_us, memory_us: 0.0, launch_us }
        } else {
            Parts { compute_us: 0.0, memory_us, launch_us }
        }
    }
}

/// The time of one or more kernels by what limits it.
#[derive(Default)]
struct Parts {
    compute_us: f64,
    memory_us: f64,
    launch_us: f64,
}

impl Parts {
    fn add(&mut self, other: Self) {
        self.compute_us += other.compute_us;
        self.memory_us += other.memory_us;
        self.launch_us += other.launch_us;
    }

    fn total_us(&self) -> f64 {
        self.compute_us + self.memory_us + self.launch_us
    }

    fn bottleneck(&self) -> Bottleneck {
        if self.launch_us > self.compute_us.max(self.memory_us) {
            Bottleneck::Launch
        } else if self.compute_us >= self.memory_us {
            Bottleneck::Compute
        } else {
            Bottleneck::Memory
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ceilings(launch_us: f64) -> Ceilings {
        let point = |working_set_bytes, gb_per_s| BandwidthPoint {
            working_set_bytes,
            gb_per_s,
            nontemporal_gb_per_s: None,
            read_gb_per_s: None,
        };
        Ceilings {
            peak_gflops: 100.0,
            launch_us,
            bandwidth: vec![point(1 << 20, 100.0), point(1 << 24, 20.0)],
        }
    }

    #[test]
    fn bandwidth_is_interpolated_in_the_logarithm_and_held_outside() {
        let ceilings = ceilings(0.0);
        for (bytes, expected) in
            [(0, 100.0), (1 << 20, 100.0), (1 << 22, 60.0), (1 << 24, 20.0), (1 << 30, 20.0)]
        {
            let bandwidth = ceilings.bandwidth_at(bytes).unwrap();
            assert!((bandwidth - expected).abs() < 1e-9, "{bytes}: {bandwidth}");
        }
        assert_eq!(ceilings.in_memory().bandwidth_at(1), Some(20.0));
        let empty = Ceilings { bandwidth: vec![], ..ceilings };
        assert_eq!(empty.bandwidth_at(1), None);
        assert_eq!(empty.in_memory(), empty);
    }

    #[test]
    fn add_relu_in_memory_gains_five_thirds() {
        let problem: Problem = "add_relu/f32/m4096.n4096".parse().unwrap();
        let time = ceilings(0.0).roofline(&problem).unwrap();
        // 64 MiB a tensor at 20 GB/s: five tensors against three.
        assert!((time.fused_us - 3.0 * 67_108_864.0 / 20e3).abs() < 1e-6);
        assert!((time.speedup() - 5.0 / 3.0).abs() < 1e-9);
        assert_eq!(time.fused_bottleneck, Bottleneck::Memory);
    }

    #[test]
    fn a_large_product_is_bound_by_compute_and_a_tiny_one_by_launches() {
        let large: Problem = "linear_bias_relu/f32/m1024.k4096.n1024".parse().unwrap();
        let time = ceilings(5.0).roofline(&large).unwrap();
        assert_eq!(time.unfused_bottleneck, Bottleneck::Compute);
        assert!(time.speedup() < 1.1);
        let tiny: Problem = "linear_bias_relu/f32/m2.k2.n2".parse().unwrap();
        let time = ceilings(5.0).roofline(&tiny).unwrap();
        assert_eq!(time.unfused_bottleneck, Bottleneck::Launch);
        assert!((time.speedup() - 3.0).abs() < 0.01);
    }

    proptest! {
        /// Saved bytes and launches cannot make the fused variant slower on paper, whatever the
        /// curve of the bandwidth.
        #[test]
        fn on_paper_fusion_never_loses(
            m in 1_u64..5000, k in 1_u64..500, n in 1_u64..500, peak in 1.0..1e4_f64,
        ) {
            let problem: Problem =
                format!("linear_bias_relu/f32/m{m}.k{k}.n{n}").parse().unwrap();
            let ceilings = Ceilings { peak_gflops: peak, ..ceilings(1.0) };
            prop_assert!(ceilings.roofline(&problem).unwrap().speedup() >= 1.0);
        }
    }
}
