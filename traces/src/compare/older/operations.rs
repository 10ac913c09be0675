//! The classes of kernels.

use serde::Serialize;

use super::{Status, Sums, avg_us, ms};
use crate::compare::{Comparison, KernelRow, Part, Which};

/// Operations differ if their sums differ by more than this, in milliseconds.
const OPERATION_GAP_MS: f64 = 5.0;

/// A class of kernels, with sums over the recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "OperationTotal"))]
#[non_exhaustive]
pub struct Operation<'c> {
    /// The class.
    pub operation: &'c str,
    /// Its kernels on the first side.
    pub trace1_count: u64,
    /// Its kernels on the second side.
    pub trace2_count: u64,
    /// Their mean duration on the first side, in microseconds.
    pub trace1_avg_us: Option<f64>,
    /// Their mean duration on the second side, in microseconds.
    pub trace2_avg_us: Option<f64>,
    /// Their durations together on the first side, in milliseconds.
    pub trace1_total_ms: f64,
    /// Their durations together on the second side, in milliseconds.
    pub trace2_total_ms: f64,
    /// The first mean over the second.
    pub ratio: Option<f64>,
    /// The first total minus the second.
    pub gap_ms: f64,
    /// How the sides compare: they differ above 5 ms.
    pub status: Status,
    /// The longest kernel on the first side.
    pub trace1_kernel: Option<&'c str>,
    /// The longest kernel on the second side.
    pub trace2_kernel: Option<&'c str>,
    /// The kernels on the first side by name.
    pub trace1_kernels: Vec<OperationKernel<'c>>,
    /// The kernels on the second side by name.
    pub trace2_kernels: Vec<OperationKernel<'c>>,
    /// What it adds to a step.
    #[serde(skip)]
    pub part: &'c Part,
}

/// The kernels of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OperationKernel<'c> {
    /// The name.
    pub name: &'c str,
    /// How many.
    pub count: u64,
    /// Their durations together, in microseconds.
    pub total_us: f64,
    /// Their mean duration, in microseconds.
    pub avg_us: Option<f64>,
}

/// The classes of kernels, the widest gap first.
#[must_use]
pub fn operations(comparison: &Comparison) -> Vec<Operation<'_>> {
    let is_work = |part: &Part| part.first_amount.count + part.second_amount.count > 0;
    let classes = comparison.gap.classes.iter().filter(|class| is_work(&class.part));
    let mut operations: Vec<Operation<'_>> =
        classes.map(|class| Operation::of(comparison, &class.class, &class.part)).collect();
    operations.sort_by(|a, b| b.gap_ms.abs().total_cmp(&a.gap_ms.abs()));
    operations
}

impl<'c> Operation<'c> {
    fn of(comparison: &'c Comparison, class: &'c str, part: &'c Part) -> Self {
        let sums = Sums::of(part);
        let kernels = |side: Which| -> Vec<OperationKernel<'c>> {
            let rows = comparison.kernels.iter();
            rows.filter(|row| row.side == side && row.class == class)
                .map(OperationKernel::of)
                .collect()
        };
        let (trace1_kernels, trace2_kernels) = (kernels(Which::First), kernels(Which::Second));
        Self {
            operation: class,
            trace1_count: sums.count[0],
            trace2_count: sums.count[1],
            trace1_avg_us: sums.avg_us[0],
            trace2_avg_us: sums.avg_us[1],
            trace1_total_ms: sums.total_ms[0],
            trace2_total_ms: sums.total_ms[1],
            ratio: sums.ratio_of_means(),
            gap_ms: sums.gap_ms,
            status: match sums.gap_ms {
                gap if gap > OPERATION_GAP_MS => Status::Slower,
                gap if gap < -OPERATION_GAP_MS => Status::Faster,
                _ => Status::Similar,
            }
            .of(comparison),
            trace1_kernel: trace1_kernels.first().map(|kernel| kernel.name),
            trace2_kernel: trace2_kernels.first().map(|kernel| kernel.name),
            trace1_kernels,
            trace2_kernels,
            part,
        }
    }
}

impl<'c> OperationKernel<'c> {
    fn of(row: &'c KernelRow) -> Self {
        let amount = row.amount;
        Self {
            name: &row.kernel,
            count: amount.count,
            total_us: ms(amount.total_ns) * 1e3,
            avg_us: avg_us(amount.count, amount.total_ns),
        }
    }
}
