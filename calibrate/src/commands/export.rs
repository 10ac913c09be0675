//! `calibrate export FILE...`: records as rows for other programs.

use std::io::{IsTerminal as _, Write as _, stdout};

use cli_support::input;
use cli_support::output::Destination;
use cli_support::say;
use fusion_cost_model::calibration::HardwareCalibration;

use crate::cli::{ExportArgs, ExportFormat};
use crate::exit::{self, UsageError};
use crate::export::{self, Rows};

/// Writes the records of calibrations.
///
/// # Errors
///
/// When a file cannot be read or written, or there are no records.
pub fn export(args: &ExportArgs) -> anyhow::Result<u8> {
    let target = args.file.target()?;
    let format = args.format();
    if format == ExportFormat::Parquet {
        check_parquet(target.is_none() && stdout().is_terminal())?;
    }
    let mut files = Vec::new();
    for file in &args.files {
        files.push((file.display().to_string(), HardwareCalibration::load(input::expect(file))?));
    }
    if files.iter().all(|(_, calibration)| calibration.records.is_empty()) {
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let what = "no records; calibrate again";
        return Err(UsageError(format!("{}: {what}", names.join(", "))).into());
    }
    for (name, _) in files.iter().filter(|(_, calibration)| calibration.records.is_empty()) {
        say!("note: {name} has no records");
    }
    let rows = Rows::of(&files)?;
    let mut out = match format {
        ExportFormat::Csv => Destination::for_csv(target, args.raw_cells)?,
        ExportFormat::Jsonl | ExportFormat::Parquet => Destination::new(target)?,
    };
    match format {
        ExportFormat::Csv => out.write_all(&export::csv(&rows)?)?,
        ExportFormat::Jsonl => out.write_all(export::json_lines(&rows).as_bytes())?,
        ExportFormat::Parquet => out.write_all(&parquet(&rows)?)?,
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// The error of a program that was built without Parquet.
const WITHOUT_PARQUET: &str = "this program was built without Parquet; build it with --features \
                               parquet, or write --format csv or jsonl";

fn check_parquet(is_for_a_terminal: bool) -> Result<(), UsageError> {
    if !cfg!(feature = "parquet") {
        return Err(UsageError(WITHOUT_PARQUET.to_owned()));
    }
    if is_for_a_terminal {
        let message = "Parquet is not for a terminal; name a file with --output";
        return Err(UsageError(message.to_owned()));
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn parquet(rows: &Rows) -> anyhow::Result<Vec<u8>> {
    export::parquet(rows)
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Rows) -> anyhow::Result<Vec<u8>> {
    Err(UsageError(WITHOUT_PARQUET.to_owned()).into())
}
