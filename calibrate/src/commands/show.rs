//! `calibrate show FILE`.

use std::io::Write;
use std::path::Path;

use cli_support::plain;
use cli_support::width::Width;
use fusion_cost_model::FileKind;
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::imported::ImportedProfile;

use crate::cli::ShowArgs;
use crate::{exit, report};

/// Prints a calibration file, or an imported profile.
///
/// # Errors
///
/// When the file cannot be read or is damaged.
pub fn show(args: &ShowArgs) -> anyhow::Result<u8> {
    if is_imported(&args.file) {
        let profile = ImportedProfile::load(&args.file)?;
        let text = if args.json {
            plain::json(&(serde_json::to_string_pretty(&profile)? + "\n")).into_owned()
        } else {
            plain::text(&report::imported(&profile, Width::of_stdout())).into_owned()
        };
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(exit::DONE);
    }
    let calibration = HardwareCalibration::load(&args.file)?;
    print(&calibration, &args.file, args.json)?;
    Ok(exit::DONE)
}

/// What cannot be read is no imported profile; the reader of calibrations says why.
fn is_imported(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    FileKind::of(&text) == Some(FileKind::Imported)
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
    match print(calibration, file, json) {
        Err(error) if exit::is_broken_pipe(&error) => Ok(()),
        result => result,
    }
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
        plain::text(&report::page(calibration, Some(file), Width::of_stdout())).into_owned()
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
