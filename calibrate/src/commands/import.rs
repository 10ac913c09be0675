//! `calibrate import FILE.json`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use cli_support::output::{Destination, Replace, Target, begins_with_line};
use cli_support::plain;
use cli_support::width::Width;
use fusion_cost_model::FileKind;

use crate::cli::ImportArgs;
use crate::{exit, import, report};

/// Imports a profile of another calibrator.
///
/// # Errors
///
/// When the file cannot be read, or nothing of it can be imported.
pub fn import(args: &ImportArgs) -> anyhow::Result<u8> {
    let target = |path: &Path| Target::new(path, Replace::known(args.overwrite, is_imported));
    let named = args.output.as_deref().map(target).transpose()?;
    let profile = import::import(&args.file)?;
    let usual = || target(&PathBuf::from(format!("imported-{}.toml", profile.machine.id)));
    let mut out = Destination::new(Some(named.map_or_else(usual, Ok)?))?;
    out.write_all(profile.to_toml()?.as_bytes())?;
    out.finish()?;
    let page = report::imported(&profile, Width::of_stdout());
    std::io::stdout().write_all(plain::text(&page).as_bytes())?;
    Ok(exit::DONE)
}

/// Whether a file is an earlier profile, which may be replaced.
fn is_imported(path: &Path) -> bool {
    let kind = format!("kind = \"{}\"", FileKind::Imported.name());
    begins_with_line(path, |line| line == kind)
}
