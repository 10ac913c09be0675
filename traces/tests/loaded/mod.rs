//! A trace with what comparisons need of it.

use kernel_traces::compare::Side;
use kernel_traces::{Classes, Segments, Trace};

pub(crate) struct Loaded {
    pub(crate) trace: Trace,
    pub(crate) classes: Classes,
    pub(crate) segments: Segments,
}

impl Loaded {
    pub(crate) fn of(trace: Trace) -> Self {
        let classes = Classes::of(&trace);
        let segments = Segments::of(&trace, &classes);
        Self { trace, classes, segments }
    }

    pub(crate) fn side<'t>(&'t self, name: &'t str) -> Side<'t> {
        let Self { trace, classes, segments } = self;
        Side { trace, classes, segments, name }
    }
}
