//! `calibrate man`: manual pages, from what the parser knows.

use std::io::Write;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::{Cli, ManArgs};
use crate::exit;

/// Prints the page of the program, or writes those of all commands into a folder.
///
/// # Errors
///
/// When stdout or the folder cannot be written.
pub fn man(args: &ManArgs) -> anyhow::Result<u8> {
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
            .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
    }
    Ok(exit::DONE)
}
