//! `calibrate merge FILE...`: calibrations of parts of a plan as one.

use std::collections::HashSet;
use std::io::Write as _;

use cli_support::input;
use cli_support::output::{Destination, Replace, Target};
use cli_support::say;
use cli_support::units::counted;
use fusion_cost_model::calibration::HardwareCalibration;

use crate::cli::MergeArgs;
use crate::exit::{self, UsageError};
use crate::record::merged;

/// Joins calibrations.
///
/// # Errors
///
/// When a file cannot be read or written, or they cannot be one calibration.
pub fn merge(args: &MergeArgs) -> anyhow::Result<u8> {
    let target = Target::new(&args.output, Replace::if_told(args.overwrite))?;
    let mut seen = HashSet::from([target.path().to_owned()]);
    let mut files = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        if !seen.insert(Target::place_of(file)) {
            let what = "is the output, or is named twice";
            return Err(UsageError(format!("{name} {what}; name each file once")).into());
        }
        files.push((name, HardwareCalibration::load(input::expect(file))?));
    }
    let count = files.len();
    let calibration = merged(files)?;
    let text = calibration.to_toml()?;
    // What could not be read back is not written.
    HardwareCalibration::from_toml(&text)?;
    let mut out = Destination::new(Some(target))?;
    out.write_all(text.as_bytes())?;
    out.finish()?;
    let records = counted(calibration.records.len(), "record");
    say!("{records} of {}", counted(count, "file"));
    Ok(exit::DONE)
}
