//! `calibrate report --index [FILE...]`: a page that lists calibrations.

use std::io::Write as _;
use std::path::{Component, Path, PathBuf, absolute};

use cli_support::input;
use cli_support::output::{Destination, Target};
use cli_support::say;
use fusion_cost_model::MeasuredFile;
use fusion_cost_model::compare::Side;

use crate::cli::ReportArgs;
use crate::exit::{self, UsageError};
use crate::profiles;
use crate::report::html::{IndexPage, IndexRow, Part};

/// Writes a page that lists the files that were named, or those that are built in.
///
/// # Errors
///
/// When a file cannot be read or written, or no file has the target that is asked for.
pub(super) fn index(args: &ReportArgs, target: Option<Target>) -> anyhow::Result<u8> {
    let page = target.as_ref().map_or_else(|| PathBuf::from("index.html"), |at| at.path().into());
    let folder = absolute(page)?.parent().map(Path::to_owned).unwrap_or_default();
    let mut rows = Vec::new();
    let mut machines = Machines::default();
    for file in &args.files {
        let link = link(&folder, &absolute(Target::place_of(file))?);
        let loaded = MeasuredFile::load(input::expect(file))?;
        let of_file = rows_of(file.display().to_string(), loaded, args, &mut machines);
        if of_file.is_empty() {
            say!("note: {} has no records of the target, and is not on the page", file.display());
        }
        rows.extend(of_file.into_iter().map(|row| row.linked(link.clone())));
    }
    if args.files.is_empty() {
        for (stem, text) in profiles::calibrations() {
            let loaded = MeasuredFile::from_toml(text)?;
            rows.extend(rows_of(format!("{stem}.toml"), loaded, args, &mut machines));
        }
    }
    if rows.is_empty() {
        let message =
            "no file has records of that target; leave --target out to see which there are";
        return Err(UsageError(message.to_owned()).into());
    }
    let page = IndexPage { rows, machines: machines.0.len(), threshold: args.threshold };
    let mut out = Destination::new(target)?;
    out.write_all(page.html().as_bytes())?;
    out.finish()?;
    Ok(exit::DONE)
}

/// A side of each machine.
#[derive(Default)]
struct Machines(Vec<Side>);

impl Machines {
    fn see(&mut self, side: Side) {
        let is_it = |known: &Side| {
            known.facts().machine == side.facts().machine && known.is_of_same_machine(&side)
        };
        if !self.0.iter().any(is_it) {
            self.0.push(side);
        }
    }
}

fn rows_of(
    name: String,
    loaded: MeasuredFile,
    args: &ReportArgs,
    machines: &mut Machines,
) -> Vec<IndexRow> {
    let asked = args.target.unwrap_or_default();
    match loaded {
        MeasuredFile::Imported(profile) => {
            let side = Side::of_imported("A", name, &profile);
            if !asked.are_of(&side.facts().target) {
                return Vec::new();
            }
            let row = IndexRow::of_imported(&side, &profile);
            machines.see(side);
            vec![row]
        }
        MeasuredFile::Calibration(calibration) => {
            let files = [(name, *calibration)];
            let parts = Part::all_of(&files, asked);
            if let Some(part) = parts.first() {
                machines.see(Side::of("A", "", &files[0].1, part.target()));
            }
            parts.iter().map(|part| IndexRow::of(part, args.threshold)).collect()
        }
    }
}

/// The way from a folder to a file, as a link of a page; `None` where there is none, as to another
/// drive. Both are absolute.
fn link(folder: &Path, file: &Path) -> Option<String> {
    let (from, to): (Vec<_>, Vec<_>) = (folder.components().collect(), file.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    if common == 0 {
        return None;
    }
    let up = from[common..].iter().map(|_| "..".to_owned());
    let down = to[common..].iter().map(|one| match one {
        Component::Normal(name) => escaped(name.to_string_lossy().as_bytes()),
        other => other.as_os_str().to_string_lossy().into_owned(),
    });
    // A name with a colon would be a scheme.
    Some(std::iter::once(".".to_owned()).chain(up).chain(down).collect::<Vec<_>>().join("/"))
}

/// What a link may not hold, by the number of each byte.
fn escaped(name: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: &u8| match *byte {
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    name.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_lead_from_the_page_to_the_file() {
        let link = |folder: &str, file: &str| link(Path::new(folder), Path::new(file)).unwrap();
        assert_eq!(link("/a/b", "/a/b/x.toml"), "./x.toml");
        assert_eq!(link("/a/b", "/a/c/x.toml"), "./../c/x.toml");
        assert_eq!(link("/", "/c/x.toml"), "./c/x.toml");
        assert_eq!(
            link("/a", "/a/50 % \"x\"?#:ü.toml"),
            "./50%20%25%20%22x%22%3F%23%3A%C3%BC.toml"
        );
    }
}
