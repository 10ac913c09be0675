//! Where the time on the devices goes: by class, and by kernel.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::classify::{Class, Classification, legacy_name};
use crate::{Classes, NameId, Trace};

/// Which names the classes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taxonomy {
    /// The project's own, fused combinations apart.
    Classes,
    /// The operation names of older tools.
    Legacy,
}

impl Taxonomy {
    /// What it calls the class of a kernel.
    pub(crate) fn label(self, classification: Classification, name: &str) -> String {
        match self {
            Self::Classes => classification.label(),
            Self::Legacy => legacy_name(classification.main, name).to_owned(),
        }
    }
}

/// The kernels with one thing in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The class, or the name of the kernel.
    pub name: String,
    /// The class of a kernel; that of a class is its name.
    pub class: String,
    /// How many there are.
    pub count: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// Their mean duration, in nanoseconds.
    pub mean_ns: f64,
    /// Their median duration, in nanoseconds.
    pub median_ns: u64,
    /// The duration that 95 % of them do not exceed, in nanoseconds.
    pub p95_ns: u64,
    /// Their part of the durations of all kernels.
    pub share: f64,
}

/// Where the time on the devices goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// The time in which at least one of them ran on any device, in nanoseconds.
    pub busy_ns: u64,
    /// From the beginning of the first to the end of the last, in nanoseconds.
    pub span_ns: u64,
    /// The share of the durations that no rule knows.
    pub unclassified_share: f64,
    /// By class, the longest first.
    pub by_class: Vec<Group>,
    /// By name and class, the longest first.
    pub by_kernel: Vec<Group>,
}

impl Summary {
    /// Sums up a trace. Each kernel is classified by its name and by the operator that launched
    /// it.
    #[must_use]
    pub fn of(trace: &Trace, taxonomy: Taxonomy) -> Self {
        let classes = Classes::of(trace);
        let mut by_class: FxHashMap<String, Vec<u64>> = FxHashMap::default();
        let mut by_kernel: FxHashMap<(NameId, String), Vec<u64>> = FxHashMap::default();
        let mut unclassified_ns = 0_u64;
        let kernels = &trace.kernels;
        for (index, (&name, &duration)) in kernels.name.iter().zip(&kernels.duration_ns).enumerate()
        {
            let classification = classes.get(index);
            if classification.main == Class::Unclassified {
                unclassified_ns = unclassified_ns.saturating_add(duration);
            }
            let label = taxonomy.label(classification, trace.names.text(name));
            by_class.entry(label.clone()).or_default().push(duration);
            by_kernel.entry((name, label)).or_default().push(duration);
        }
        let total_ns = kernels.duration_ns.iter().fold(0_u64, |sum, &ns| sum.saturating_add(ns));
        let classes =
            by_class.into_iter().map(|(class, times)| group(&class, &class, times, total_ns));
        let names = by_kernel
            .into_iter()
            .map(|((name, class), times)| group(trace.names.text(name), &class, times, total_ns));
        let (busy_ns, span_ns) = busy_and_span(trace);
        Self {
            kernels: kernels.len(),
            total_ns,
            busy_ns,
            span_ns,
            unclassified_share: share(unclassified_ns, total_ns),
            by_class: longest_first(classes.collect()),
            by_kernel: longest_first(names.collect()),
        }
    }
}

pub(crate) fn longest_first(mut groups: Vec<Group>) -> Vec<Group> {
    groups.sort_by(|a, b| {
        let by_name = || (&a.name, &a.class).cmp(&(&b.name, &b.class));
        b.total_ns.cmp(&a.total_ns).then_with(by_name)
    });
    groups
}

fn group(name: &str, class: &str, mut times: Vec<u64>, all_ns: u64) -> Group {
    times.sort_unstable();
    let count = times.len();
    let total_ns = times.iter().fold(0_u64, |sum, &ns| sum.saturating_add(ns));
    // The smallest time that so many per cent do not exceed.
    let quantile = |percent: usize| times[(count * percent).div_ceil(100).max(1) - 1];
    Group {
        name: name.to_owned(),
        class: class.to_owned(),
        count,
        total_ns,
        mean_ns: ratio(total_ns, count as u64),
        median_ns: quantile(50),
        p95_ns: quantile(95),
        share: share(total_ns, all_ns),
    }
}

/// The time in which anything ran, and the time from the first beginning to the last end.
fn busy_and_span(trace: &Trace) -> (u64, u64) {
    let kernels = &trace.kernels;
    let end = |start: i64, duration: u64| start.saturating_add_unsigned(duration);
    let mut intervals: Vec<(i64, i64)> = kernels
        .start_ns
        .iter()
        .zip(&kernels.duration_ns)
        .map(|(&start, &duration)| (start, end(start, duration)))
        .collect();
    intervals.sort_unstable();
    let Some(&(first, _)) = intervals.first() else { return (0, 0) };
    let (mut busy, mut reached) = (0_u64, first);
    for (start, end) in intervals {
        busy = busy.saturating_add(end.abs_diff(start.max(reached).min(end)));
        reached = reached.max(end);
    }
    (busy, reached.abs_diff(first))
}

pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { ratio(part, whole) }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    fn summary(events: &str, taxonomy: Taxonomy) -> Summary {
        let text = format!("{{\"traceEvents\": [{events}]}}");
        Summary::of(&Trace::from_json(text.as_bytes(), &Options::default()).unwrap(), taxonomy)
    }

    fn kernel(name: &str, start: u32, duration: u32, external_id: u32) -> String {
        format!(
            "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": 0, \"tid\": 7, \
             \"ts\": {start}, \"dur\": {duration}, \"args\": {{\"External id\": {external_id}, \
             \"device\": 0, \"stream\": 7}}}}"
        )
    }

    #[test]
    fn kernels_are_summed_by_class_and_by_name() {
        let events = [
            kernel("void cublasLt::splitKreduce_kernel<32>(float*)", 0, 10, 0),
            kernel("ampere_sgemm_128x64_tn", 5, 10, 0),
            kernel("ampere_sgemm_128x64_tn", 20, 30, 0),
            kernel("what_is_this", 100, 50, 0),
        ];
        let summary = summary(&events.join(","), Taxonomy::Classes);
        assert_eq!((summary.kernels, summary.total_ns), (4, 100_000));
        // 0 to 15, 20 to 50 and 100 to 150.
        assert_eq!((summary.busy_ns, summary.span_ns), (95_000, 150_000));
        assert_eq!(summary.unclassified_share, 0.5);
        let names: Vec<&str> = summary.by_class.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["UNCLASSIFIED", "GEMM", "GEMM_EPILOGUE"]);
        let gemm = &summary.by_class[1];
        assert_eq!(
            (gemm.count, gemm.total_ns, gemm.median_ns, gemm.p95_ns),
            (2, 40_000, 10_000, 30_000)
        );
        assert!((gemm.mean_ns - 20_000.0).abs() < 1e-9 && (gemm.share - 0.4).abs() < 1e-12);
        assert_eq!(summary.by_kernel.len(), 3);
        assert_eq!(summary.by_kernel[1].name, "ampere_sgemm_128x64_tn");
    }

    #[test]
    fn the_launching_operator_tells_what_the_name_does_not() {
        let op = "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::layer_norm\", \"pid\": 1, \
                  \"tid\": 1, \"ts\": 0, \"dur\": 5, \"args\": {\"External id\": 42}}";
        let events = [op.to_owned(), kernel("kernel_1", 10, 10, 42)];
        let summary = summary(&events.join(","), Taxonomy::Classes);
        assert_eq!(summary.by_class[0].name, "NORM");
    }

    #[test]
    fn a_trace_without_kernels_is_empty_and_not_a_number() {
        let op = "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 1, \
                  \"tid\": 1, \"ts\": 0, \"dur\": 5}";
        let summary = summary(op, Taxonomy::Legacy);
        assert_eq!((summary.kernels, summary.busy_ns, summary.span_ns), (0, 0, 0));
        assert_eq!(summary.unclassified_share, 0.0);
        assert!(summary.by_class.is_empty() && summary.by_kernel.is_empty());
    }
}
