//! `calibrate trace`: GPU profiler traces.

use std::io::{IsTerminal, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use kernel_traces::{Options, Summary, Trace};
use serde_json::json;

use crate::cli::{TraceCommand, TraceFileArgs, TraceKernelsArgs};
use crate::{exit, report};

/// Looks into a trace.
///
/// # Errors
///
/// When the file cannot be read, or is no trace.
pub fn trace(command: &TraceCommand) -> anyhow::Result<u8> {
    let mut text = match command {
        TraceCommand::Info(args) => info(args)?,
        TraceCommand::Kernels(args) => kernels(args)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(exit::DONE)
}

fn info(args: &TraceFileArgs) -> anyhow::Result<String> {
    let trace = load(&args.file)?;
    if !args.json {
        return Ok(report::trace_info(&trace));
    }
    let devices: Vec<_> = trace
        .metadata
        .devices
        .iter()
        .map(|device| {
            json!({
                "id": device.id,
                "name": device.name,
                "memory_bytes": device.memory_bytes,
                "multiprocessors": device.multiprocessors,
                "warp_size": device.warp_size,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&json!({
        "vendor": trace.vendor().name(),
        "devices": devices,
        "events": trace.events,
        "kernels": trace.kernels.len(),
        "launches": trace.launches.len(),
        "operators": trace.ops.len(),
        "annotations": trace.annotations.len(),
        "python_frames": trace.frames.len(),
        "streams": trace.lanes.len(),
    }))?)
}

fn kernels(args: &TraceKernelsArgs) -> anyhow::Result<String> {
    let trace = load(&args.file)?;
    let summary = Summary::of(&trace, args.taxonomy.into());
    if args.json {
        return Ok(serde_json::to_string_pretty(&summary)?);
    }
    Ok(report::trace_kernels(&summary, args.top))
}

/// Loads a trace, with a bar on a terminal, and prints its warnings on stderr.
fn load(path: &Path) -> anyhow::Result<Trace> {
    let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(0));
    if let (Some(bar), Ok(style)) = (
        &bar,
        ProgressStyle::with_template("{bar:24} {bytes}/{total_bytes}, {eta} left: {wide_msg}"),
    ) {
        bar.set_style(style);
        bar.set_message(path.display().to_string());
    }
    let trace = Trace::load(path, &Options::default(), &mut |done, total| {
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    })?;
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    for warning in &trace.warnings {
        eprintln!("warning: {}: {warning}; {}", warning.code(), warning.advice());
    }
    Ok(trace)
}
