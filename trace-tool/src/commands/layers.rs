//! `calibrate trace layers`: steps, phases, layers and the kind of model.

use std::io::Write;

use cli_support::exit::UsageError;
use cli_support::output::Destination;
use kernel_traces::results::{RankLayers, RanksLayers};
use kernel_traces::{Classes, RankFile, Segments};

use super::phase::Wanted;
use super::{open, write_json};
use crate::cli::{LayersFormat, TraceLayersArgs};
use crate::report;

/// Describes the layers of all files.
pub(super) fn layers(args: &TraceLayersArgs) -> anyhow::Result<()> {
    let target = args.out.target()?;
    let mut inputs = open::find(&args.files, args.index.policy(), false)?;
    let files = inputs.files.clone();
    let mut wanted = Wanted::of(&args.phase);
    let mut ranks = Vec::new();
    for file in &files {
        ranks.push(rank(&mut inputs, file, &mut wanted)?);
    }
    wanted.check()?;
    drop(inputs);
    let result = RanksLayers::new(ranks);
    if let Some(wanted) = args.pattern {
        check_pattern(&result, wanted)?;
    }
    let mut out = match args.format() {
        LayersFormat::Csv => args.out.for_csv(target)?,
        _ => Destination::new(target)?,
    };
    match args.format() {
        LayersFormat::Json => write_json(&mut out, &result)?,
        LayersFormat::Csv => out.write_all(&report::trace_layers_csv(&result, args.pattern)?)?,
        LayersFormat::Text => {
            let shown = report::ShownPatterns { only: args.pattern, top: args.top };
            out.write_text(&report::trace_layers(&result, shown))?;
        }
    }
    out.finish()
}

fn rank(
    inputs: &mut open::Inputs,
    file: &RankFile,
    wanted: &mut Wanted,
) -> anyhow::Result<RankLayers> {
    inputs.note_memory(file);
    let trace = inputs.load(file)?;
    let classes = Classes::of(&trace);
    let segments = Segments::of(&trace, &classes);
    wanted.see(&trace, &segments.steps);
    Ok(match wanted.phase() {
        Some(phase) => RankLayers::of_phase(file, &trace, &classes, &segments, phase),
        None => RankLayers::of(file, &trace, &classes, &segments),
    })
}

/// A pattern that no trace has is a mistake.
fn check_pattern(result: &RanksLayers, wanted: usize) -> Result<(), UsageError> {
    let most = result.ranks.iter().map(|rank| rank.patterns.len()).max().unwrap_or(0);
    if wanted < most {
        return Ok(());
    }
    Err(UsageError(match most {
        0 => format!("there is no pattern {wanted}: no layers were found"),
        1 => format!("there is no pattern {wanted}; the only one is 0"),
        _ => format!("there is no pattern {wanted}; they are 0 to {}", most - 1),
    }))
}
