//! How to ask for one record of a page.

use std::path::Path;

use cli_support::shell;
use cli_support::width::Width;
use fusion_cost_model::calibration::FusionRecord;
use fusion_cost_model::{Backend, CacheState, Implementation};

/// An example, with the shortest name, as a line for a shell.
pub(super) fn how_to_ask(records: &[FusionRecord], file: &Path, width: Width) -> String {
    let Some(record) = records.iter().min_by_key(|record| record.problem.to_string().len()) else {
        return String::new();
    };
    let command = format!("calibrate query {}", shell::file(file));
    let options = format!("--problem {}{}", record.problem, options(record));
    let how = "To ask for one problem, join its heading and its sizes with a slash:";
    let mut text = format!("\n{}", width.wrap("", how, 0));
    let whole = format!("  {command} {options}\n");
    if width.holds(whole.chars().count() - 1) {
        return text + &whole;
    }
    text += &format!("  {command} \\\n    {options}\n");
    text
}

/// The options that tell the record's target from that of a CPU with warm caches.
fn options(record: &FusionRecord) -> String {
    let mut options = String::new();
    if record.backend != Backend::Cpu {
        options += &format!(" --backend {} --clock {}", record.backend, record.clock);
    }
    if record.implementation != Implementation::Native {
        options += &format!(" --implementation {}", record.implementation);
    }
    if let Some(rewrite) = record.rewrite {
        options += &format!(" --rewrite {rewrite}");
    }
    if record.cache_state == CacheState::Cold {
        options += " --cache cold";
    }
    options
}
