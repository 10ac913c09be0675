//! A table of gains over a sweep of sizes: what was measured, what follows from that, and what the
//! roofline allows.
//!
//! Run it with `cargo run --example gains [calibration file]`.

use std::fmt::Write;

use fusion_cost_model::{Chain, DType, Error, FusionCostModel, LinearSizes, OnTarget, Problem};

fn main() -> Result<(), Error> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "tests/data/example.toml".to_owned());
    let model = FusionCostModel::load(file)?;
    for &target in model.targets() {
        print!("{}", table("linear_bias_relu".parse()?, model.on(target))?);
    }
    Ok(())
}

pub(crate) fn table(chain: Chain, on: OnTarget) -> Result<String, Error> {
    let mut text = format!("{} on {}\n", chain.name(), on.target());
    let _ = writeln!(text, "{:>11}  {:<22}{:<24}ceiling", "m = k = n", "speedup", "evidence");
    for size in [64, 128, 256, 512, 1024, 2048, 4096] {
        let sizes = LinearSizes { m: size, k: size, n: size };
        let problem = Problem::linear(chain, DType::F32, sizes)?;
        let estimate = on.estimate(&problem);
        let speedup = estimate.speedup().map_or("-".to_owned(), |gain| {
            format!("{:.2} ({:.2} to {:.2})", gain.value, gain.low, gain.high)
        });
        let ceiling = on.roofline_speedup(&problem);
        let ceiling = ceiling.map_or("-".to_owned(), |speedup| format!("{speedup:.2}"));
        let evidence = estimate.evidence();
        let _ = writeln!(text, "{size:>11}  {speedup:<22}{evidence:<24}{ceiling}");
    }
    Ok(text)
}
