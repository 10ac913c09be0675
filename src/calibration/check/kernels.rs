//! What must be true of the kernels that ran.

use super::contradiction::{Checked, check_text, fail};
use crate::calibration::{FusionRecord, Timing};
use crate::place::Place;
use crate::vocabulary::{Backend, Implementation};

/// Checks what a record says of its kernels. A runtime may have no words for them.
pub(super) fn check(record: &FusionRecord) -> Checked {
    if record.problem.chain().is_single() {
        check_one(record)?;
    }
    if record.implementation.runtime().is_some() {
        return Ok(());
    }
    if record.unfused_kernels.is_empty() {
        return fail(Place::of("unfused_kernels"), "there are none");
    }
    for kernel in &record.unfused_kernels {
        check_text(Place::of("unfused_kernels"), kernel)?;
    }
    check_text(Place::of("fused_kernel"), &record.fused_kernel)?;
    match record.backend {
        Backend::Cpu => check_of_cpu(record),
        Backend::Cuda | Backend::Hip => Ok(()),
    }
}

/// A processor has kernels of this project alone, of the unfused variant one for each op, which its
/// name begins with.
fn check_of_cpu(record: &FusionRecord) -> Checked {
    let FusionRecord { operators, unfused_kernels: kernels, .. } = record;
    if record.implementation == Implementation::Vendor {
        let why = "a CPU has no library of its vendor";
        return fail(Place::of("implementation"), why);
    }
    let is_of = |(kernel, op): (&String, &String)| kernel.split(':').next() == Some(op.as_str());
    if kernels.len() == operators.len() && kernels.iter().zip(operators).all(is_of) {
        return Ok(());
    }
    let ops = operators.join(", ");
    let why = format!("the unfused variant has one for each op, named after it: {ops}");
    fail(Place::of("unfused_kernels"), why)
}

/// Both variants of a single op are one kernel, with one time. How many runs make a sample is found
/// for each of its copies.
fn check_one(record: &FusionRecord) -> Checked {
    let FusionRecord { unfused_timing: one, fused_timing: other, .. } = record;
    let fused = |key| Place::within("fused_timing", key);
    let is_same = |of: fn(&Timing) -> Option<f64>| of(one) == of(other);
    for (place, is_same) in [
        (fused("median_ms"), is_same(|timing| Some(timing.median_ms))),
        (fused("q1_ms"), is_same(|timing| Some(timing.q1_ms))),
        (fused("q3_ms"), is_same(|timing| Some(timing.q3_ms))),
        (fused("low_ms"), is_same(|timing| timing.low_ms)),
        (fused("high_ms"), is_same(|timing| timing.high_ms)),
        (fused("process_ms"), one.process_ms == other.process_ms),
        (
            Place::of("fused_scratch_bytes"),
            record.unfused_scratch_bytes == record.fused_scratch_bytes,
        ),
        (Place::of("fused_kernel"), record.unfused_kernels.join("; ") == record.fused_kernel),
    ] {
        if !is_same {
            let why = "it is not that of the unfused variant, and a single op is one kernel";
            return fail(place, why);
        }
    }
    Ok(())
}
