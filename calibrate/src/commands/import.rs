//! `calibrate import FILE.json`.

use std::io::Write as _;
use std::path::PathBuf;

use cli_support::output::{self, Destination};
use cli_support::width::Width;

use crate::cli::ImportArgs;
use crate::{exit, import, report};

/// Imports a profile of another calibrator.
///
/// # Errors
///
/// When the file cannot be read, or nothing of it can be imported.
pub fn import(args: &ImportArgs) -> anyhow::Result<u8> {
    if let Some(path) = &args.output {
        output::check_writable(path)?;
    }
    let profile = import::import(&args.file)?;
    let default = || PathBuf::from(format!("imported-{}.toml", profile.machine.id));
    let path = args.output.clone().unwrap_or_else(default);
    let mut out = Destination::new(Some(&path))?;
    out.write_all(profile.to_toml()?.as_bytes())?;
    out.finish()?;
    let page = report::imported(&profile, Width::of_stdout());
    std::io::stdout().write_all(page.as_bytes())?;
    Ok(exit::DONE)
}
