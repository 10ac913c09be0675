//! `calibrate trace rates`: how fast kernels were, against what the machine can do.

use std::io::Write;
use std::path::Path;

use cli_support::exit::UsageError;
use cli_support::input;
use cli_support::output::Destination;
use fusion_cost_model::hardware::HardwareSpec;
use kernel_traces::rates::{Machine, Rates};
use kernel_traces::results::{RankRates, RanksRates};
use kernel_traces::{Classes, Trace};

use super::phase::Wanted;
use super::{Machines, open, write_json};
use crate::cli::{RatesFormat, TraceRatesArgs};
use crate::report;

/// A data sheet has at most this many bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Says how fast the kernels of all files were.
pub(super) fn rates(args: &TraceRatesArgs, machines: Machines) -> anyhow::Result<()> {
    let target = args.out.target()?;
    let known = machines()?;
    let named = args.hardware.as_deref().map(|name| hardware(name, &known)).transpose()?;
    let mut inputs = open::find(&args.files, args.index.policy(), false)?;
    let files = inputs.files.clone();
    let mut wanted = Wanted::of(&args.phase);
    let mut ranks = Vec::new();
    for file in &files {
        inputs.note_memory(file);
        let trace = inputs.load(file)?;
        let spec = named.as_ref().or_else(|| Machine::detected(&trace, &known));
        if spec.is_none() {
            inputs.note(&format!("note: {}", no_machine(&trace)));
        }
        let classes = Classes::of(&trace);
        let steps = wanted.steps(&trace, &classes);
        let takes = |kernel| wanted.takes(&steps, kernel);
        let rates = Rates::of_some(&trace, &classes, spec.map(Machine::of), takes);
        if rates.known_share == 0.0 {
            inputs.note(
                "note: no kernel's work is known: the trace has no sizes of operators, or replays \
                 graphs; record with record_shapes=True, and without graphs",
            );
        }
        ranks.push(RankRates::new(file, rates));
    }
    drop(inputs);
    wanted.check()?;
    let result = RanksRates::new(ranks);
    let mut out = match args.format() {
        RatesFormat::Csv => args.out.for_csv(target)?,
        _ => Destination::new(target)?,
    };
    match args.format() {
        RatesFormat::Json => write_json(&mut out, &result)?,
        RatesFormat::Csv => out.write_all(&report::trace_rates_csv(&result)?)?,
        RatesFormat::Html => {
            out.write_all(report::trace_rates_html(&result, args.top).as_bytes())?
        }
        RatesFormat::Text => out.write_text(&report::trace_rates(&result, args.top))?,
    }
    out.finish()
}

/// A data sheet by the path of its file, or by a name.
pub(super) fn hardware(name: &str, known: &[HardwareSpec]) -> anyhow::Result<HardwareSpec> {
    if let Some(spec) = known.iter().find(|spec| spec.is_called(name)) {
        return Ok(spec.clone());
    }
    if !name.contains(['/', '\\']) && !name.ends_with(".toml") {
        let ids: Vec<&str> = known.iter().map(|spec| spec.id.as_str()).collect();
        let there = match ids.as_slice() {
            [] => "no data sheet is built in; name a file".to_owned(),
            _ => format!("there are: {}", ids.join(", ")),
        };
        return Err(UsageError(format!("no machine is called {name}; {there}")).into());
    }
    let text = input::text(Path::new(name), MOST_BYTES)
        .map_err(|error| UsageError(format!("cannot read {name}: {error}")))?;
    HardwareSpec::from_toml(&text).map_err(|error| UsageError(format!("{name}: {error}")).into())
}

fn no_machine(trace: &Trace) -> String {
    let name = trace.metadata.devices.first().map_or("", |device| device.name.as_str());
    let which = if name.is_empty() {
        "the trace does not name its device".to_owned()
    } else if name.split_whitespace().any(|word| word == "MIG") {
        format!("{name} is a slice of a GPU, and the data sheets are of whole ones")
    } else {
        format!("no data sheet of {name} is built in")
    };
    format!("{which}: rates are shown without peaks; name a data sheet with --hardware")
}
