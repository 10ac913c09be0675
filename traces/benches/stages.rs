//! What each stage of loading a trace costs, as a table in Markdown.
//!
//! `cargo bench -p kernel-traces --features synthetic --bench stages -- FILE [RUNS]`, and with a
//! compressed copy `FILE.gz` next to it also for that; without a file, for a synthetic trace of
//! 50 MB. Every run is a process of its own, so that none finds memory that another left behind.
//! The page cache is warm: the file is read once before. Times on Linux only.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use kernel_traces::compare::{CompareOptions, Comparison, Side};
use kernel_traces::synthetic::{self, Oddity, Plan};
use kernel_traces::{Classes, IndexPolicy, Options, Segments, Summary, Taxonomy, Trace, index};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Something that is measured.
struct Stage {
    name: &'static str,
    file: What,
    run: fn(&Path) -> Outcome<Figures>,
}

/// What a stage reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Plain,
    Compressed,
    /// Not the whole file, so that bytes in a second would say nothing.
    Part,
}

const STAGES: [Stage; 13] = [
    Stage {
        name: "read the file, 1 MiB at a time",
        file: What::Plain,
        run: |path| measured(|| read(path)),
    },
    Stage {
        name: "metadata",
        file: What::Part,
        run: |path| measured(|| Ok(Trace::metadata(path)?)),
    },
    Stage {
        name: "load, 1 thread",
        file: What::Plain,
        run: |path| measured(|| load(path, NonZero::new(1))),
    },
    Stage {
        name: "load, all threads",
        file: What::Plain,
        run: |path| measured(|| load(path, None)),
    },
    Stage { name: "classify", file: What::Part, run: classify },
    Stage { name: "load and classify, all threads", file: What::Plain, run: load_and_classify },
    Stage { name: "load and classify, gzip", file: What::Compressed, run: load_and_classify },
    Stage {
        name: "load, classify and write the index",
        file: What::Plain,
        run: |path| {
            let folder = tempfile::tempdir()?;
            measured(|| open_and_classify(path, &IndexPolicy::In(folder.path().to_owned())))
        },
    },
    Stage {
        name: "from the index",
        file: What::Part,
        run: |path| measured(|| open(path, &IndexPolicy::Beside)),
    },
    Stage {
        name: "from the index, and classify",
        file: What::Part,
        run: |path| measured(|| open_and_classify(path, &IndexPolicy::Beside)),
    },
    Stage { name: "steps and layers", file: What::Part, run: segments },
    Stage { name: "summary", file: What::Part, run: summary },
    Stage { name: "compare with itself", file: What::Part, run: compare },
];

/// How often a stage is run unless the command line says otherwise.
const RUNS: usize = 7;

/// Steps of the synthetic trace.
const STEPS: u64 = 150;

/// How often the memory is looked at.
const MEMORY_PERIOD: Duration = Duration::from_millis(5);

/// What one run of a stage took.
#[derive(Debug, Clone, Copy)]
struct Figures {
    wall_s: f64,
    cpu_s: f64,
    /// The most memory outside of mapped files that was observed.
    anonymous_mb: f64,
    /// The most memory of the process, with what was mapped, since it began.
    resident_mb: f64,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--stage", name, path] => {
            let known = STAGES.iter().find(|stage| stage.name == *name);
            let run = known.ok_or("no such stage")?.run;
            let Figures { wall_s, cpu_s, anonymous_mb, resident_mb } = run(Path::new(path))?;
            println!("{wall_s} {cpu_s} {anonymous_mb} {resident_mb}");
            Ok(())
        }
        [] => {
            let folder = tempfile::tempdir()?;
            table(&generate(folder.path())?, RUNS)
        }
        [path] => table(Path::new(path), RUNS),
        [path, runs] => table(Path::new(path), runs.parse::<NonZero<usize>>()?.get()),
        _ => Err("usage: stages [FILE [RUNS]]".into()),
    }
}

/// Writes a synthetic trace, and a compressed copy.
fn generate(folder: &Path) -> Outcome<PathBuf> {
    let path = folder.join("trace.json");
    let plan = Plan { layers: 40, steps: STEPS, oddities: vec![Oddity::Graphs], ..Plan::default() };
    synthetic::write(&plan, &mut BufWriter::new(File::create(&path)?))?;
    let mut packed = GzEncoder::new(File::create(compressed(&path))?, Compression::default());
    io::copy(&mut File::open(&path)?, &mut packed)?;
    packed.finish()?.flush()?;
    Ok(path)
}

fn compressed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    name.into()
}

/// Runs every stage and prints what it took.
fn table(path: &Path, runs: usize) -> Outcome<()> {
    let trace = load(path, None)?;
    println!(
        "{:.3} GB of JSON, {} events, {} kernels; {} processors; {runs} runs each, best and \
         median; page cache warm\n",
        trace.bytes as f64 / 1e9,
        trace.events,
        trace.kernels.len(),
        thread::available_parallelism()?
    );
    // For the stages that read it.
    let index = index::build(path, &Options::default(), &IndexPolicy::Beside, &mut |_, _| {})?;
    println!("| stage | GB/s | wall s | median | CPU s | median | anonymous MB | resident MB |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for Stage { name, file, .. } in STAGES {
        let path = if file == What::Compressed { compressed(path) } else { path.to_owned() };
        if !path.is_file() {
            println!("| {name} | no such file | | | | | | |");
            continue;
        }
        read(&path)?;
        let figures = (0..runs).map(|_| run(name, &path)).collect::<Outcome<Vec<_>>>()?;
        let sorted = |of: fn(&Figures) -> f64| {
            let mut sorted: Vec<f64> = figures.iter().map(of).collect();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        let (wall, cpu) = (sorted(|it| it.wall_s), sorted(|it| it.cpu_s));
        let (anonymous, resident) = (sorted(|it| it.anonymous_mb), sorted(|it| it.resident_mb));
        let middle = runs / 2;
        let rate = match file {
            What::Part => String::new(),
            What::Plain | What::Compressed => format!("{:.2}", trace.bytes as f64 / 1e9 / wall[0]),
        };
        println!(
            "| {name} | {rate} | {:.3} | {:.3} | {:.2} | {:.2} | {:.0} | {:.0} |",
            wall[0],
            wall[middle],
            cpu[0],
            cpu[middle],
            anonymous[runs - 1],
            resident[runs - 1]
        );
    }
    Ok(fs::remove_file(index)?)
}

/// Runs a stage in a process of its own.
fn run(name: &str, path: &Path) -> Outcome<Figures> {
    let output =
        Command::new(std::env::current_exe()?).args(["--stage", name]).arg(path).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    let [wall_s, cpu_s, anonymous_mb, resident_mb] = numbers[..] else {
        return Err("no figures".into());
    };
    Ok(Figures { wall_s, cpu_s, anonymous_mb, resident_mb })
}

/// What something takes, without giving back the memory of its result.
fn measured<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<Figures> {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most: f64 = 0.0;
            while !is_done.load(Ordering::Relaxed) {
                most = most.max(memory_mb("RssAnon:").unwrap_or(f64::NAN));
                thread::park_timeout(MEMORY_PERIOD);
            }
            most
        });
        let (start, cpu_before) = (Instant::now(), cpu_s());
        let result = work();
        let wall_s = start.elapsed().as_secs_f64();
        let cpu_s = cpu_s().zip(cpu_before).map_or(f64::NAN, |(after, before)| after - before);
        let at_end = memory_mb("RssAnon:").unwrap_or(f64::NAN);
        let resident_mb = memory_mb("VmHWM:").unwrap_or(f64::NAN);
        is_done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        let most = watch.join().map_err(|_| "the memory could not be watched")?;
        let anonymous_mb = most.max(at_end);
        result.map(|_| Figures { wall_s, cpu_s, anonymous_mb, resident_mb })
    })
}

/// The processor time of this process, which the system counts in hundredths of a second.
fn cpu_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name before may have anything in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = |index| fields.split_whitespace().nth(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// A figure of the system's about the memory of this process.
fn memory_mb(key: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0 / 1e6)
}

fn read(path: &Path) -> Outcome<()> {
    let mut file = File::open(path)?;
    let mut block = vec![0; 1 << 20];
    while file.read(&mut block)? > 0 {}
    Ok(())
}

fn load(path: &Path, threads: Option<NonZero<usize>>) -> Outcome<Trace> {
    Ok(Trace::load(path, &Options { threads, ..Options::default() }, &mut |_, _| {})?)
}

fn open(path: &Path, policy: &IndexPolicy) -> Outcome<Trace> {
    Ok(Trace::open(path, &Options::default(), policy, &mut |_, _| {})?.0)
}

fn open_and_classify(path: &Path, policy: &IndexPolicy) -> Outcome<(Trace, Classes)> {
    let trace = open(path, policy)?;
    let classes = Classes::of(&trace);
    Ok((trace, classes))
}

fn segments(path: &Path) -> Outcome<Figures> {
    let (trace, classes) = open_and_classify(path, &IndexPolicy::Beside)?;
    measured(|| Ok(Segments::of(&trace, &classes)))
}

fn summary(path: &Path) -> Outcome<Figures> {
    let (trace, classes) = open_and_classify(path, &IndexPolicy::Beside)?;
    measured(|| Ok(Summary::with(&trace, &classes, Taxonomy::Classes)))
}

fn compare(path: &Path) -> Outcome<Figures> {
    let (trace, classes) = open_and_classify(path, &IndexPolicy::Beside)?;
    let segments = Segments::of(&trace, &classes);
    let side = Side { trace: &trace, classes: &classes, segments: &segments, name: "itself" };
    measured(|| Ok(Comparison::of(side, side, &CompareOptions::default())?))
}

fn classify(path: &Path) -> Outcome<Figures> {
    let trace = load(path, None)?;
    measured(|| Ok(Classes::of(&trace)))
}

fn load_and_classify(path: &Path) -> Outcome<Figures> {
    measured(|| {
        let trace = load(path, None)?;
        let classes = Classes::of(&trace);
        Ok((trace, classes))
    })
}
