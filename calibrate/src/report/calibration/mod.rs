//! A calibration as a page: what was measured how, a table for each family, one of all kernels beside
//! each other where there are those of runtimes, and what to know of the records.
//!
//! On a page with a width, a pattern with its dtype is a heading, and a row is named by its sizes.
//! Without one, which is what a pipe gets, each row has the problem's whole name.

mod ask;
mod foot;
mod head;
mod peers;
mod table;

use std::path::Path;

use cli_support::width::Width;
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration};
use fusion_cost_model::{CacheState, Clock, Family, Implementation, Problem, Rewrite};

/// The whole page of a calibration. With the file that it is in, the page says how to ask for one
/// record.
#[must_use]
pub fn page(calibration: &HardwareCalibration, file: Option<&Path>, width: Width) -> String {
    let mut text = head::head(calibration, width);
    let mut implementations: Vec<Implementation> =
        calibration.records.iter().map(|record| record.implementation).collect();
    implementations.sort_unstable();
    implementations.dedup();
    let kinds = Clock::ALL
        .into_iter()
        .flat_map(|clock| implementations.iter().map(move |&one| (clock, one)));
    let rewrites = || std::iter::once(None).chain(Rewrite::ALL.map(Some));
    let tables = kinds.flat_map(|kind| {
        Family::ALL
            .into_iter()
            .flat_map(move |family| rewrites().map(move |rewrite| (kind, family, rewrite)))
    });
    for ((clock, implementation), family, rewrite) in tables {
        let is_of_it = |record: &&FusionRecord| {
            Family::of(record.problem.chain().form()) == family
                && (record.clock, record.implementation) == (clock, implementation)
                && record.rewrite == rewrite
        };
        let records: Vec<&FusionRecord> = calibration.records.iter().filter(is_of_it).collect();
        if !records.is_empty() {
            let rewritten = rewrite.map(|one| format!(", fused as {one}")).unwrap_or_default();
            let title = format!("{family}{}{rewritten}", by(clock, implementation));
            text.push('\n');
            text.push_str(&table::table(&title, &records, width));
        }
    }
    text.push_str(&peers::peers(calibration, &implementations, width));
    text.push('\n');
    text.push_str(&foot::foot(calibration, width));
    if let (Some(file), Width::Columns(_)) = (file, width) {
        text.push_str(&ask::how_to_ask(&calibration.records, file, width));
    }
    text
}

/// What times are by, where that is not a CPU and its kernels.
fn by(clock: Clock, implementation: Implementation) -> String {
    let clock = if clock.is_host() { String::new() } else { format!(", {clock} clock") };
    match implementation {
        Implementation::Native => clock,
        Implementation::Vendor => clock + ", kernels of the vendor's library",
        Implementation::Runtime(id) => {
            format!("{clock}, kernels of {} {}", id.name(), id.version())
        }
    }
}

/// Items by the heading of their problem, which is its chain and its dtype, each with the problem's
/// sizes and the state of the caches. Headings are in the order of the first item of each.
fn by_heading<T>(
    items: impl IntoIterator<Item = ((Problem, CacheState), T)>,
) -> Vec<(String, Vec<(String, T)>)> {
    let mut groups: Vec<(String, Vec<(String, T)>)> = Vec::new();
    for ((problem, cache_state), item) in items {
        let name = problem.to_string();
        let (heading, sizes) = name.rsplit_once('/').unwrap_or(("", &name));
        let sizes = (format!("{sizes}{}", cache_state.mark()), item);
        match groups.iter_mut().find(|(known, _)| known == heading) {
            Some((_, group)) => group.push(sizes),
            None => groups.push((heading.to_owned(), vec![sizes])),
        }
    }
    groups
}
