//! The worker's side: read one task, do it, write one report.

use std::io::{BufRead, Write};
use std::time::Duration;

use anyhow::Context;

use super::device::{Device, Opened};
use super::{FoundGpu, Report, Task, launch_on};
use crate::exit;

/// Does the task on standard input and writes its report to standard output.
///
/// The caller keeps the input open as long as it wants the report: when it closes it, or is
/// killed, the worker ends at once instead of disturbing what comes after it.
///
/// # Errors
///
/// When there is no task, or the device cannot be had.
pub fn serve() -> anyhow::Result<u8> {
    // Where Ctrl-C reaches every process of a terminal, what to do about it is the caller's choice.
    ctrlc::set_handler(|| {})?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("cannot read a task")?;
    let (device, time_left, task): (Device, Option<Duration>, Task) =
        serde_json::from_str(&line).context("this is a worker of `calibrate`, and got no task")?;
    end_with_the_caller();
    if let Some(time_left) = time_left {
        end_after(time_left);
    }
    let mut text = serde_json::to_string(&report(&device, &task)?)?;
    text.push('\n');
    std::io::stdout().write_all(text.as_bytes()).context("cannot write the report")?;
    Ok(exit::DONE)
}

/// Compiles kernels for a GPU backend of another process until that has enough.
///
/// # Errors
///
/// When that process cannot be read from or written to.
pub fn serve_compiler() -> anyhow::Result<u8> {
    fused_kernels::gpu::compile_worker::run().context("cannot serve as a compile worker")?;
    Ok(exit::DONE)
}

fn report(device: &Device, task: &Task) -> anyhow::Result<Report> {
    if matches!(task, Task::Survey) {
        return Ok(Report::Survey(device.survey()));
    }
    let mut opened = match device.open() {
        Ok(opened) => opened,
        Err(error) if device.gpu.is_some() => return Ok(Report::NoDevice(exit::message(&error))),
        Err(error) => return Err(error),
    };
    match (task, &opened) {
        (Task::Identify, Opened::Gpu(gpu)) => Ok(identified(gpu)),
        _ => Ok(launch_on(opened.backend(), task)),
    }
}

fn identified(gpu: &fused_kernels::gpu::Gpu) -> Report {
    match gpu.free_memory() {
        Ok(free_memory) => {
            Report::Identified(Box::new(FoundGpu { observed: gpu.observed(), free_memory }))
        }
        Err(error) => Report::NoDevice(error.to_string()),
    }
}

/// Ends this process when its input is closed.
fn end_with_the_caller() {
    std::thread::spawn(|| {
        // Blocks without using a processor; the caller writes nothing more.
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        std::process::exit(i32::from(exit::INTERRUPTED));
    });
}

/// Ends this process when its time is up, in the middle of whatever it does.
fn end_after(time_left: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(time_left);
        std::process::exit(i32::from(exit::INTERRUPTED));
    });
}
