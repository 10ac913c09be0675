//! Loads a trace and prints how fast that was: `cargo run --release --features synthetic
//! --example load -- FILE [THREADS]`. With `--stream FILE` it reads one in parts and prints the memory
//! that this took. With `--generate FILE [STEPS]` it writes a synthetic one; by default of a
//! gigabyte, with 700,000 kernels among 3 million events.

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::time::Instant;

use kernel_traces::synthetic::{self, Annotation, Launching, Phase, Plan, Timing};
use kernel_traces::{NameClasses, Options, Taxonomy, Totals, Trace};

/// Steps that make a trace of a gigabyte.
const GIGABYTE_STEPS: u64 = 1400;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--generate", path] => generate(path, GIGABYTE_STEPS),
        ["--generate", path, steps] => generate(path, steps.parse()?),
        ["--stream", path] => stream(path),
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
    println!("{} kB of anonymous memory", anonymous_kb().unwrap_or_default());
    Ok(())
}

fn stream(path: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut totals = Totals::new(Taxonomy::Classes);
    let mut classes = NameClasses::default();
    let mut most_kb = 0;
    let mut add = |part: &Trace| {
        totals.add(part, &classes.of(part));
        most_kb = most_kb.max(anonymous_kb().unwrap_or_default());
        ControlFlow::Continue(())
    };
    let streamed = Trace::stream(path, &Options::default(), &mut add, &mut |_, _| {})?;
    let seconds = start.elapsed().as_secs_f64();
    let gigabytes = streamed.bytes as f64 / 1e9;
    println!("{seconds:.3} s, {gigabytes:.3} GB of JSON, {:.2} GB/s", gigabytes / seconds);
    let summary = totals.summary();
    println!("{} events, {} on devices", streamed.events, summary.kernels);
    println!("{most_kb} kB of anonymous memory at most");
    Ok(())
}

/// Only where the system reports it.
fn anonymous_kb() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
