//! What the events of all these formats have in common.

use std::borrow::Cow;

use super::super::event::{Args, Category, Event, Field};

/// When something happened, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

/// An event of a kind, with a name and a time.
pub(super) fn event<'n>(category: Category, name: &'n str, span: Span) -> Event<'n> {
    let duration = span.start.zip(span.end).and_then(|(start, end)| end.checked_sub(start));
    Event {
        category,
        name: Cow::Borrowed(name.as_bytes()),
        start_ns: span.start.map_or(Field::Missing, Field::Is),
        duration_ns: duration.map_or(Field::Missing, Field::Is),
        ..Event::NONE
    }
}

/// Where something ran, and what ties it to its launch. What is not known is none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OnDevice {
    pub(super) device: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) correlation: Option<u64>,
    pub(super) graph_node: Option<u64>,
}

impl OnDevice {
    pub(super) fn args(self) -> Args {
        Args {
            device: field(self.device),
            stream: field(self.stream),
            correlation: field(self.correlation),
            graph_node: field(self.graph_node),
            ..Args::default()
        }
    }
}

/// The arguments of a call that launches what has the same id.
pub(super) fn launch(correlation: Option<u64>) -> Args {
    Args { correlation: field(correlation), ..Args::default() }
}

fn field<T>(value: Option<T>) -> Field<T> {
    value.map_or(Field::Missing, Field::Is)
}

/// What PyTorch's profiler calls a copy between hosts (`H`), devices (`D`) and their peers (`P`).
pub(super) fn copy_name(from: char, to: char) -> &'static str {
    match (from, to) {
        ('H', 'D') => "Memcpy HtoD",
        ('D', 'H') => "Memcpy DtoH",
        ('D', 'D') => "Memcpy DtoD",
        ('P', 'P') => "Memcpy PtoP",
        ('H', 'H') => "Memcpy HtoH",
        _ => "Memcpy",
    }
}

/// The name of a call without the version of its interface: Nsight Systems writes
/// `cudaLaunchKernel_v7000` and `cudaMemcpyAsync_v3020_ptsz`.
pub(super) fn without_version(name: &str) -> &str {
    let base = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
    match base.rsplit_once("_v") {
        // Below that it is part of the name, as in `cuMemAlloc_v2`.
        Some((plain, version))
            if version.len() >= 4 && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            plain
        }
        _ => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_calls() {
        assert_eq!(without_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(without_version("cudaMemcpyAsync_v3020_ptsz"), "cudaMemcpyAsync");
        assert_eq!(without_version("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
        assert_eq!(without_version("cuMemAlloc_v2"), "cuMemAlloc_v2");
        assert_eq!(without_version("cuLaunchKernel"), "cuLaunchKernel");
    }

    #[test]
    fn times_that_cannot_be() {
        let of = |start, end| event(Category::Kernel, "k", Span { start, end }).duration_ns;
        assert_eq!(of(Some(3), Some(10)), Field::Is(7));
        // It is counted as a bad duration, where it is kept.
        assert_eq!(of(Some(10), Some(3)), Field::Is(-7));
        assert_eq!(of(Some(i64::MIN), Some(i64::MAX)), Field::Missing);
        assert_eq!(of(None, Some(3)), Field::Missing);
    }
}
