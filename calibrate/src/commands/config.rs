//! `calibrate config`: the defaults of this user.

use std::fmt::Write as _;
use std::io::Write as _;

use cli_support::plain;

use crate::cli::Defaults;
use crate::exit;

/// Says which options have other defaults, and where from.
///
/// # Errors
///
/// When stdout cannot be written.
pub fn config(defaults: &Defaults) -> anyhow::Result<u8> {
    std::io::stdout().write_all(plain::text(&page(defaults)).as_bytes())?;
    Ok(exit::DONE)
}

fn page(defaults: &Defaults) -> String {
    let Defaults { file, is_there, settings } = defaults;
    let mut text = match file {
        Some(file) => {
            let name = plain::on_one_line(&file.display().to_string());
            format!("file: {name}{}\n", if *is_there { "" } else { ", which is not there" })
        }
        None => "file: none, as neither XDG_CONFIG_HOME nor HOME is set\n".to_owned(),
    };
    let wide = settings.iter().map(|one| one.key.len()).max().unwrap_or(0);
    for one in settings {
        let values = plain::on_one_line(&one.values.join(", "));
        let source = plain::on_one_line(&one.source.to_string());
        let _ = writeln!(text, "{:<wide$} = {values}  ({source})", one.key);
    }
    if settings.is_empty() {
        text += "nothing is set\n";
    }
    text += "\nThe command line comes first, then a variable such as CALIBRATE_THREADS, then the file. \
             Options that can be set:\n";
    for keys in Defaults::keys().chunks(6) {
        let _ = writeln!(text, "  {}", keys.join(", "));
    }
    text
}
