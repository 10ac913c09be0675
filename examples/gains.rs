//! A table of gains over a sweep of sizes: what was measured, and what the roofline allows.
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
    let _ = writeln!(text, "{:>11}  {:<22}roofline", "m = k = n", "measured");
    for size in [64, 128, 256, 512, 1024, 2048, 4096] {
        let sizes = LinearSizes { m: size, k: size, n: size };
        let problem = Problem::linear(chain, DType::F32, sizes)?;
        let measured = on.estimate(&problem).speedup().map_or("-".to_owned(), |gain| {
            format!("{:.2} ({:.2} to {:.2})", gain.value, gain.low, gain.high)
        });
        let roofline = on.roofline_speedup(&problem);
        let roofline = roofline.map_or("-".to_owned(), |speedup| format!("{speedup:.2}"));
        let _ = writeln!(text, "{size:>11}  {measured:<22}{roofline}");
    }
    Ok(text)
}
