//! Recordings of other profilers: Nsight Systems and rocprofv3.

use kernel_traces::{Options, Trace, TraceError};

use super::trace::{checks, said};
use super::{file_with, said_of};
use crate::Target;

/// Lines of JSON of Nsight Systems.
pub(super) const NSYS_LINES: Target = Target {
    name: "nsys_lines",
    seeds: || vec![include_bytes!("../../../traces/tests/data/profilers/nsys.jsonl").into()],
    run: text,
};

/// Its database. Without the feature `sqlite` it is refused, which must be said.
pub(super) const NSYS_DATABASE: Target = Target {
    name: "nsys_database",
    seeds: || vec![include_bytes!("../../../traces/tests/data/profilers/nsys.sqlite").into()],
    run: |bytes| {
        let path = file_with("report.sqlite", bytes);
        let loaded = Trace::load(&path, &Options::default(), &mut |_, _| {});
        assert!(matches!(loaded, Ok(_) | Err(TraceError::NotATrace { .. })), "{loaded:?}");
        if let Ok(trace) = &loaded {
            checks::analyse(trace);
        }
        said_of(&path, &said(loaded))
    },
};

/// The JSON of rocprofv3.
pub(super) const ROCPROF: Target = Target {
    name: "rocprof",
    seeds: || vec![include_bytes!("../../../traces/tests/data/profilers/rocprofv3.json").into()],
    run: text,
};

/// Its table of kernels.
pub(super) const ROCPROF_TABLE: Target = Target {
    name: "rocprof_table",
    seeds: || {
        let table =
            include_bytes!("../../../traces/tests/data/profilers/rocprofv3_kernel_trace.csv");
        vec![table.into()]
    },
    run: text,
};

/// Reading it never panics, in whatever way it is read, and the result can be summed up.
fn text(bytes: &[u8]) -> String {
    checks::load(bytes);
    checks::summarise(bytes);
    said(Trace::from_json(bytes, &Options::default()))
}
