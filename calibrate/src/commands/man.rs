//! `calibrate man`: manual pages, from what the parser knows.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use cli_support::output::{Destination, Replace, Target, begins_with_line};

use crate::cli::{Cli, ManArgs};
use crate::exit;

/// Prints the page of the program, or writes those of all commands into a folder.
///
/// # Errors
///
/// When stdout or the folder cannot be written, or a file there is not a page of this program.
pub fn man(args: &ManArgs) -> anyhow::Result<u8> {
    if let Some(folder) = &args.output {
        let cannot = || format!("cannot write manual pages to {}", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
        write_pages(folder, args.overwrite).with_context(cannot)?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
    }
    Ok(exit::DONE)
}

/// Writes all pages or, where one of them cannot be written, none.
fn write_pages(folder: &Path, overwrite: bool) -> anyhow::Result<()> {
    let made = tempfile::tempdir()?;
    clap_mangen::generate_to(Cli::command(), made.path())?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(made.path())? {
        let entry = entry?;
        let target =
            Target::new(&folder.join(entry.file_name()), Replace::known(overwrite, is_page))?;
        pages.push((fs::read(entry.path())?, target));
    }
    for (page, target) in pages {
        let mut out = Destination::new(Some(target))?;
        out.write_all(&page)?;
        out.finish()?;
    }
    Ok(())
}

/// Whether a file is a page that an earlier version wrote.
fn is_page(path: &Path) -> bool {
    begins_with_line(path, |line| line.starts_with(".TH calibrate"))
}
