//! Loads a trace and prints how fast that was: `cargo run --release --features synthetic
//! --example load -- FILE [THREADS]`. With `--generate FILE [STEPS]` it writes a synthetic one; by
//! default of a gigabyte, with 700,000 kernels among 3 million events.

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::time::Instant;

use kernel_traces::synthetic::{self, Annotation, Launching, Phase, Plan, Timing};
use kernel_traces::{Options, Trace};

/// Steps that make a trace of a gigabyte.
const GIGABYTE_STEPS: u64 = 1400;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--generate", path] => generate(path, GIGABYTE_STEPS),
        ["--generate", path, steps] => generate(path, steps.parse()?),
        [path] => load(path, None),
        [path, threads] => load(path, Some(threads.parse()?)),
        _ => Err("usage: load FILE [THREADS] | load --generate FILE [STEPS]".into()),
    }
}

/// Serving as large traces have it: mostly decode steps, some with new sequences, graphs between
/// attentions, and Python stacks, which are most of the events.
fn generate(path: &str, steps: u64) -> Result<(), Box<dyn Error>> {
    let mut phases = vec![Phase::Decode; 8];
    phases.extend([Phase::Mixed, Phase::Prefill]);
    let plan = Plan {
        layers: 40,
        steps,
        phases,
        launching: Launching::Piecewise,
        timing: Timing::Overlapping,
        annotations: vec![Annotation::VllmDetailed],
        copies: true,
        frames: 5,
        ..Plan::default()
    };
    let truth = synthetic::write(&plan, &mut BufWriter::new(File::create(path)?))?;
    let counts = truth.counts;
    println!("{counts:?}, {} ns busy, {} ns idle", truth.busy_ns, truth.idle_ns);
    Ok(())
}

fn load(path: &str, threads: Option<std::num::NonZero<usize>>) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    Trace::metadata(path)?;
    println!("metadata {:.3} s", start.elapsed().as_secs_f64());
    let options = Options { threads, ..Options::default() };
    let start = Instant::now();
    let trace = Trace::load(path, &options, &mut |_, _| {})?;
    let seconds = start.elapsed().as_secs_f64();
    let classify = Instant::now();
    let classes = kernel_traces::Classes::of(&trace);
    println!("classified in {:.3} s: {:?}", classify.elapsed().as_secs_f64(), classes.get(0).main);
    let gigabytes = trace.bytes as f64 / 1e9;
    println!("{seconds:.3} s, {gigabytes:.3} GB of JSON, {:.2} GB/s", gigabytes / seconds);
    println!(
        "{} events: {} on devices ({:.6} s), {} launches, {} annotations, {} ops, {} frames, {} \
         names",
        trace.events,
        trace.kernels.len(),
        trace.kernels.total_ns() as f64 / 1e9,
        trace.launches.len(),
        trace.annotations.len(),
        trace.ops.len(),
        trace.frames.len(),
        trace.names.len()
    );
    for warning in &trace.warnings {
        println!("{}: {warning}; {}", warning.code(), warning.advice());
    }
    // Only where the system has such a file.
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        for line in status.lines().filter(|line| line.starts_with("RssAnon")) {
            println!("{line}");
        }
    }
    Ok(())
}
