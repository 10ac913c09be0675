//! A trace with what comparisons need of it.

use kernel_traces::compare::Side;
use kernel_traces::{Classes, Options, Segments, Trace};

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

    /// From a text in JSON.
    pub(crate) fn read(text: impl AsRef<[u8]>) -> Self {
        Self::of(Trace::from_json(text.as_ref(), &Options::default()).unwrap())
    }

    pub(crate) fn side<'t>(&'t self, name: &'t str) -> Side<'t> {
        let Self { trace, classes, segments } = self;
        Side { trace, classes, segments, name }
    }
}
