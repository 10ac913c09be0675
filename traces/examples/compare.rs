//! Compares two traces and says what the gap comes from.
//!
//! ```text
//! cargo run --release -p kernel-traces --example compare -- a.json.gz b.json.gz
//! ```

use std::error::Error;
use std::time::Instant;

use kernel_traces::compare::{CompareOptions, Comparison, Side};
use kernel_traces::{Classes, IndexPolicy, Options, Segments, Trace};

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [first, second] = &paths[..] else { return Err("two traces are needed".into()) };
    let begin = Instant::now();
    let load = |path: &str| {
        let policy = IndexPolicy::Off;
        let (trace, _) = Trace::open(path, &Options::default(), &policy, &mut |_, _| {})?;
        let classes = Classes::of(&trace);
        let segments = Segments::of(&trace, &classes);
        Ok::<_, kernel_traces::TraceError>((trace, classes, segments))
    };
    let (a, b) = (load(first)?, load(second)?);
    let loaded = begin.elapsed();
    let side = |(trace, classes, segments), name| Side { trace, classes, segments, name };
    let sides = (side((&a.0, &a.1, &a.2), first.as_str()), side((&b.0, &b.1, &b.2), second));
    let found = Comparison::of(sides.0, sides.1, &CompareOptions::default())?;
    println!("{} ns a step against {} ns", found.gap.first_ns, found.gap.second_ns);
    for cause in &found.gap.causes {
        println!("{:>12.0} ns  {}", cause.part.gap_ns, cause.sentence);
    }
    for fusion in &found.fusions {
        println!(
            "fusion: {:?} {} in {}: {}",
            fusion.fused_by,
            fusion.operation,
            fusion.role.name(),
            fusion.evidence
        );
    }
    for warning in &found.warnings {
        println!("{}: {}; {}", warning.code, warning.message, warning.advice);
    }
    for kind in &found.layers.kinds {
        println!("layers {}: {} and {}", kind.numbers, kind.first_layers, kind.second_layers);
        for slot in &kind.slots {
            let of = |side: &Option<kernel_traces::compare::SlotKernel>| {
                side.as_ref()
                    .map_or("-".to_owned(), |side| format!("{} {:.0}", side.class, side.mean_ns))
            };
            println!(
                "  {:<18} {:<28} {:<28} {:?}",
                slot.role.name(),
                of(&slot.first),
                of(&slot.second),
                slot.status
            );
        }
    }
    println!("covered {:.3} {:.3}", found.first.covered_share, found.second.covered_share);
    println!(
        "rounding {} loaded {loaded:?} compared {:?}",
        found.gap.rounding_ns,
        begin.elapsed() - loaded
    );
    Ok(())
}
