//! How fast kernels computed and moved data, against what the machine can do.
//!
//! `amount` says how much work an operator is, by the sizes that the profiler recorded: FLOPs that are
//! exact for GEMMs, convolutions and attention, and the bytes that it must move at least (`moved`). The
//! work is that of the kernels that the operator launched to compute, not of their `helpers`.
//! [`Rates`] divides it by their time, [`Machine`] says what a data sheet promises, `achieved` what
//! of that was reached, and [`problems`] makes the operators problems that can be measured.

mod achieved;
mod amount;
mod helpers;
mod machine;
mod moved;
pub mod problems;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fusion_cost_model::DType;
use serde::Serialize;

use crate::classify::Class;
use crate::launched::{NONE, launches, operators};
use crate::ratio::ratio;
use crate::{Classes, DeviceWork, NameId, Trace};
pub(crate) use achieved::{Achieved, Done};
use amount::Amount;
use helpers::is_helper;
pub use machine::Machine;

/// How fast the kernels of a trace were.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// The durations of all kernels, in nanoseconds.
    pub total_ns: u64,
    /// The part of it in kernels whose work is known.
    pub known_share: f64,
    /// The machine, if it is known.
    pub machine: Option<Machine>,
    /// By class and dtype, the longest first.
    pub by_class: Vec<Rate>,
    /// By name, class and dtype, the longest first.
    pub by_kernel: Vec<Rate>,
}

/// How fast kernels with something in common were.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rate {
    /// The class, or the name of the kernel.
    pub name: String,
    /// The class.
    pub class: String,
    /// The dtype of the operands, if their work is known and a peak can be stated for it.
    pub dtype: Option<&'static str>,
    /// How many kernels.
    pub count: u64,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// Those of kernels whose work is known, in nanoseconds: rates are over these.
    pub known_ns: u64,
    /// Operations, a multiply-add counted as two.
    pub flops: f64,
    /// Bytes that must be moved at least: each tensor once.
    pub bytes: f64,
    /// 10^12 operations per second; none of what only moves data.
    pub tflop_per_s: Option<f64>,
    /// 10^9 bytes per second.
    pub gb_per_s: Option<f64>,
    /// Operations per byte.
    pub intensity: Option<f64>,
    /// What of the peak rate of its dtype it reached.
    pub of_peak: Option<f64>,
    /// What of the peak bandwidth it reached.
    pub of_bandwidth: Option<f64>,
    /// What limits it at this intensity.
    pub bound: Option<Bound>,
    /// The time that the roofline allows over the time that it took.
    pub of_roofline: Option<f64>,
}

/// What limits a kernel by the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The peak rate.
    Compute,
    /// The bandwidth of the memory.
    Memory,
}

impl Bound {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
        }
    }
}

/// What kernels have in common: name, label and dtype.
type Key = (Option<NameId>, String, Option<DType>);

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    total_ns: u64,
    known_ns: u64,
    flops: f64,
    bytes: f64,
}

impl Rates {
    /// The rates of all kernels; copies and fills of the runtime are none.
    #[must_use]
    pub fn of(trace: &Trace, classes: &Classes, machine: Option<Machine>) -> Self {
        Self::of_some(trace, classes, machine, |_| true)
    }

    /// The rates of some kernels, by their rows.
    #[must_use]
    pub fn of_some(
        trace: &Trace,
        classes: &Classes,
        machine: Option<Machine>,
        keep: impl Fn(usize) -> bool,
    ) -> Self {
        let work = Work::of(trace, classes);
        let mut by_class: BTreeMap<Key, Sums> = BTreeMap::new();
        let mut by_kernel: BTreeMap<Key, Sums> = BTreeMap::new();
        let mut all = Sums::default();
        for (row, &duration_ns) in trace.kernels.duration_ns.iter().enumerate() {
            if trace.kernels.work.get(row) != Some(&DeviceWork::Kernel) || !keep(row) {
                continue;
            }
            let name = trace.kernels.name.get(row).copied();
            let label = classes.get(row).label();
            let known = work.of_kernel(row, duration_ns);
            let dtype = known.and_then(|known| known.dtype).map(|dtype| {
                let is_tf32 = name.is_some_and(|id| trace.names.text(id).contains("tf32"));
                if dtype == DType::F32 && is_tf32 { DType::Tf32 } else { dtype }
            });
            for sums in [
                by_class.entry((None, label.clone(), dtype)).or_default(),
                by_kernel.entry((name, label, dtype)).or_default(),
                &mut all,
            ] {
                sums.add(duration_ns, known);
            }
        }
        let rates = |groups: BTreeMap<Key, Sums>| {
            let mut rates: Vec<Rate> = groups
                .into_iter()
                .map(|((name, class, dtype), sums)| {
                    let name = name.map_or_else(|| class.clone(), |id| trace.names.text(id).into());
                    sums.rate(name, class, dtype, machine.as_ref())
                })
                .collect();
            rates.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
            rates
        };
        Self {
            total_ns: all.total_ns,
            known_share: ratio(all.known_ns, all.total_ns),
            by_class: rates(by_class),
            by_kernel: rates(by_kernel),
            machine,
        }
    }
}

impl Sums {
    fn add(&mut self, duration_ns: u64, known: Option<Amount>) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(duration_ns);
        if let Some(known) = known {
            self.known_ns = self.known_ns.saturating_add(duration_ns);
            self.flops += known.flops;
            self.bytes += known.bytes;
        }
    }

    fn rate(
        self,
        name: String,
        class: String,
        dtype: Option<DType>,
        machine: Option<&Machine>,
    ) -> Rate {
        let Self { count, total_ns, known_ns, flops, bytes } = self;
        let achieved = Achieved::of(Done { flops, bytes, ns: known_ns, dtype }, machine);
        Rate {
            name,
            class,
            dtype: dtype.map(DType::name),
            count,
            total_ns,
            known_ns,
            flops,
            bytes,
            tflop_per_s: achieved.tflop_per_s,
            gb_per_s: achieved.gb_per_s,
            intensity: (flops > 0.0 && bytes > 0.0).then(|| flops / bytes),
            of_peak: achieved.of_peak,
            of_bandwidth: achieved.of_bandwidth,
            bound: achieved.bound,
            of_roofline: achieved.of_roofline,
        }
    }
}

/// The work of the operators that launched kernels.
struct Work {
    operators: Vec<u32>,
    /// Of each kernel whether it does the work of its operator, or only helps.
    is_main: Vec<bool>,
    /// By operator: its work, and the durations of the kernels that do it.
    by_operator: BTreeMap<u32, (Amount, u64)>,
}

impl Work {
    fn of(trace: &Trace, classes: &Classes) -> Self {
        let operators = operators(trace, &launches(trace));
        let mut known: BTreeMap<(NameId, u32), Option<Amount>> = BTreeMap::new();
        let mut helps: BTreeMap<NameId, bool> = BTreeMap::new();
        let mut by_operator: BTreeMap<u32, (Amount, u64)> = BTreeMap::new();
        let mut is_main = vec![false; operators.len()];
        let rows = operators.iter().enumerate().filter(|(_, op)| **op != NONE);
        for (row, &op) in rows {
            let place = op as usize;
            let (Some(&name), Some(&shape)) =
                (trace.ops.name.get(place), trace.ops.shape.get(place))
            else {
                continue;
            };
            let amount = *known.entry((name, shape)).or_insert_with(|| {
                Amount::of(trace.names.text(name), trace.shapes.text(NameId(shape)))
            });
            let Some(amount) = amount else { continue };
            let class = classes.get(row);
            let is_of_work = |class: Class| {
                matches!(class, Class::Gemm | Class::Conv | Class::Attn | Class::MoeGemm)
            };
            let computes = is_of_work(class.main) || class.also.iter().any(is_of_work);
            let kernel = trace.kernels.name.get(row).copied().unwrap_or(NameId(0));
            // A GEMM's helpers have a class of their own.
            let may_help = matches!(class.main, Class::Conv | Class::Attn);
            let helps = may_help
                && *helps.entry(kernel).or_insert_with(|| is_helper(trace.names.text(kernel)));
            if let Some(place) = is_main.get_mut(row) {
                // What only moves data has no helpers.
                *place = (computes && !helps) || amount.flops == 0.0;
                if *place {
                    let duration_ns = trace.kernels.duration_ns.get(row).copied().unwrap_or(0);
                    let sums = by_operator.entry(op).or_insert((amount, 0));
                    sums.1 = sums.1.saturating_add(duration_ns);
                }
            }
        }
        Self { operators, is_main, by_operator }
    }

    /// The part of its operator's work that a kernel did, by its part of the time.
    fn of_kernel(&self, kernel: usize, duration_ns: u64) -> Option<Amount> {
        let op = self.operators.get(kernel).filter(|_| self.is_main.get(kernel) == Some(&true))?;
        let (amount, all_ns) = self.by_operator.get(op)?;
        Some(amount.part(ratio(duration_ns, *all_ns)))
    }
}
