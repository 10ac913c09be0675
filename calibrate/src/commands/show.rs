//! `calibrate show FILE`.

use std::io::Write;
use std::path::Path;

use cli_support::width::Width;
use cli_support::{colour, input, plain};
use fusion_cost_model::MeasuredFile;
use fusion_cost_model::calibration::HardwareCalibration;

use crate::cli::ShowArgs;
use crate::{exit, report};

/// Prints a calibration file, or an imported profile.
///
/// # Errors
///
/// When the file cannot be read or is damaged.
pub fn show(args: &ShowArgs) -> anyhow::Result<u8> {
    match MeasuredFile::load(input::expect(&args.file))? {
        MeasuredFile::Calibration(calibration) => print(&calibration, &args.file, args.json)?,
        MeasuredFile::Imported(profile) => {
            let text = if args.json {
                plain::json(&(serde_json::to_string_pretty(&profile)? + "\n")).into_owned()
            } else {
                let page = report::imported(&profile, Width::of_stdout());
                colour::on_stdout(&plain::text(&page)).into_owned()
            };
            std::io::stdout().write_all(text.as_bytes())?;
        }
    }
    Ok(exit::DONE)
}

/// Prints the calibration in a file to stdout; its reader may have closed it.
///
/// # Errors
///
/// When stdout cannot be written for another reason.
pub fn print_if_read(
    calibration: &HardwareCalibration,
    file: &Path,
    json: bool,
) -> anyhow::Result<()> {
    exit::if_read(print(calibration, file, json))
}

/// Prints the calibration in a file to stdout, as tables or as JSON.
///
/// # Errors
///
/// When stdout cannot be written.
pub fn print(calibration: &HardwareCalibration, file: &Path, json: bool) -> anyhow::Result<()> {
    let mut text = if json {
        plain::json(&serde_json::to_string_pretty(calibration)?).into_owned()
    } else {
        let page = report::page(calibration, Some(file), Width::of_stdout());
        colour::on_stdout(&plain::text(&page)).into_owned()
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
