//! The kernels of a profiler trace.

use std::path::Path;

use super::{InputWarning, Measured, MeasuredBy, PredictedError};
use crate::{Classes, Options, Trace};

pub(super) fn read(path: &Path, by: MeasuredBy) -> Result<Measured, PredictedError> {
    Ok(kernels(&Trace::load(path, &options(by), &mut |_, _| {})?, by))
}

/// The same of what was read already.
pub(super) fn of_text(
    text: &[u8],
    path: &Path,
    by: MeasuredBy,
) -> Result<Measured, PredictedError> {
    Ok(kernels(&Trace::from_text_of(path, text, &options(by))?, by))
}

/// Frames and the like are only needed for the classes of some kernels.
fn options(by: MeasuredBy) -> Options {
    Options { frames: by == MeasuredBy::Class, ..Options::default() }
}

fn kernels(trace: &Trace, by: MeasuredBy) -> Measured {
    let classes = match by {
        MeasuredBy::Name => Classes::default(),
        MeasuredBy::Class => Classes::of(trace),
    };
    let mut measured = Measured { rows: trace.kernels.len() as u64, ..Measured::default() };
    let kernels = trace.kernels.name.iter().zip(&trace.kernels.duration_ns);
    for (kernel, (name, duration_ns)) in kernels.enumerate() {
        let name = match by {
            MeasuredBy::Name => trace.names.text(*name),
            MeasuredBy::Class => classes.get(kernel).main.name(),
        };
        measured.add(name, *duration_ns as f64 / 1000.0);
    }
    let warnings = trace.warnings.iter().filter(|warning| warning.code() != "no-kernels");
    measured.warnings.extend(warnings.map(|warning| InputWarning::Trace {
        message: warning.to_string(),
        advice: warning.advice().to_owned(),
    }));
    measured.warn_if_empty();
    measured
}
