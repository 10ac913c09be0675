//! `calibrate report FILE...`: calibrations as one page, or a page that lists them.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use cli_support::input;
use cli_support::output::{Destination, Target};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::compare::SideTarget;

use super::index::index;
use crate::cli::{ReportArgs, ReportFormat};
use crate::exit::{self, UsageError};
use crate::report::html::{Part, Plot, ReportPage};

/// Each has a letter on the page.
const MOST_FILES: usize = 26;

/// Makes a page of calibrations, or writes its figures.
///
/// # Errors
///
/// When a file cannot be read or written, or has none of the targets.
pub fn report(args: &ReportArgs) -> anyhow::Result<u8> {
    let target = args.file.target()?;
    let mut seen = HashSet::new();
    if let Some(twice) = args.files.iter().find(|file| !seen.insert(Target::place_of(file))) {
        return Err(UsageError(format!("{} is named twice", twice.display())).into());
    }
    if args.index {
        return index(args, target);
    }
    if args.files.len() > MOST_FILES {
        let text = format!(
            "a page has {MOST_FILES} files at most, and {} are named; list them with --index",
            args.files.len()
        );
        return Err(UsageError(text).into());
    }
    let load = |file: &PathBuf| {
        Ok((file.display().to_string(), HardwareCalibration::load(input::expect(file))?))
    };
    let files: Vec<(String, HardwareCalibration)> =
        args.files.iter().map(load).collect::<anyhow::Result<_>>()?;
    let asked = args.target.unwrap_or_default();
    for (name, calibration) in &files {
        let targets: Vec<String> =
            SideTarget::all_of(calibration).iter().map(|(target, _)| target.to_string()).collect();
        if targets.is_empty() {
            return Err(UsageError(format!("{name} has no records; calibrate again")).into());
        }
        if !SideTarget::all_of(calibration).iter().any(|(target, _)| asked.are_of(target)) {
            let has = targets.join(", ");
            return Err(UsageError(format!("{name} has no such target; it has {has}")).into());
        }
    }
    let page = ReportPage { parts: Part::all_of(&files, asked), threshold: args.threshold };
    let plots = match &args.plots {
        Some(folder) => Some(places(args, folder, page.plots())?),
        None => None,
    };
    if args.plots.is_none() || args.file.output.is_some() {
        let mut out = Destination::new(target)?;
        match args.format {
            ReportFormat::Html => out.write_all(page.html().as_bytes())?,
        }
        out.finish()?;
    }
    for (target, plot) in plots.into_iter().flatten() {
        let mut out = Destination::new(Some(target))?;
        out.write_all(plot.svg.as_bytes())?;
        out.finish()?;
    }
    Ok(exit::DONE)
}

/// Where each figure goes: all of them are checked before the first one is written.
fn places(
    args: &ReportArgs,
    folder: &PathBuf,
    plots: Vec<Plot>,
) -> anyhow::Result<Vec<(Target, Plot)>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let place =
        |plot: Plot| Ok((Target::new(&folder.join(&plot.name), args.file.replace())?, plot));
    plots.into_iter().map(place).collect()
}
