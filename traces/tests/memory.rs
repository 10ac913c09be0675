//! What a load takes of the memory: what is kept, and not the file.

#![cfg(target_os = "linux")]

use std::env;
use std::fs::{self, File};
use std::io::BufWriter;
use std::num::NonZero;
use std::process::Command;

use kernel_traces::synthetic::{self, Plan};
use kernel_traces::{Options, Trace};

/// Set in the process that loads: the file, and how many threads load it.
const FILE: &str = "KERNEL_TRACES_TEST_FILE";
const THREADS: &str = "KERNEL_TRACES_TEST_THREADS";

/// The most memory that this process had, with what was mapped.
fn most_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
}

/// The process that loads, since the memory of one belongs to all of its tests.
fn load(file: &str) {
    let threads = NonZero::new(env::var(THREADS).unwrap().parse().unwrap());
    let before = most_bytes();
    let options = Options { threads, ..Options::default() };
    let trace = Trace::load(file, &options, &mut |_, _| {}).unwrap();
    println!("took {} {}", most_bytes() - before, trace.kernels.len());
}

#[test]
fn a_load_takes_much_less_than_the_file() {
    if let Ok(file) = env::var(FILE) {
        return load(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let plan = Plan { layers: 40, steps: 120, frames: 5, ..Plan::default() };
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let truth = synthetic::write(&plan, &mut out).unwrap();
    drop(out);
    let size = fs::metadata(&path).unwrap().len();
    assert!(size > 60 << 20, "{size} bytes are too few to tell");
    for threads in ["1", "2"] {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "memory::a_load_takes_much_less_than_the_file", "--nocapture"]);
        let output = child.env(FILE, &path).env(THREADS, threads).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let figures = text.lines().find_map(|line| line.split("took ").nth(1)).unwrap();
        let (bytes, kernels) = figures.split_once(' ').unwrap();
        assert_eq!(kernels.parse::<u64>().unwrap(), truth.counts.kernels);
        let bytes: u64 = bytes.parse().unwrap();
        // What is kept is about a tenth, and the threads hold some pieces of 4 MiB.
        assert!(bytes < size / 2, "{threads} threads took {bytes} of {size} bytes");
    }
}
