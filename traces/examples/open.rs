//! Opens a trace by its index and prints how fast that was: `cargo run --release --example open
//! -- FILE [FOLDER]`, with the index next to the file or in a folder.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use kernel_traces::{IndexPolicy, Options, Trace, index};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, policy) = match arguments.as_slice() {
        [path] => (Path::new(path), IndexPolicy::Beside),
        [path, folder] => (Path::new(path), IndexPolicy::In(folder.into())),
        _ => return Err("usage: open FILE [FOLDER]".into()),
    };
    for _ in 0..4 {
        let start = Instant::now();
        let (trace, used) = Trace::open(path, &Options::default(), &policy, &mut |_, _| {})?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        println!("{milliseconds:.2} ms, {} events, {used:?}", trace.events);
    }
    let report = index::inspect(path, &policy)?;
    println!("{}: {} bytes, {:?}", report.path.display(), report.bytes, report.unfit);
    for section in report.sections {
        println!("{:>12} {:6} {}", section.bytes, section.element, section.name);
    }
    // Only where the system has such a file.
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        for line in status.lines().filter(|line| line.starts_with("Rss")) {
            println!("{line}");
        }
    }
    Ok(())
}
