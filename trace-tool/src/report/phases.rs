//! The phases of steps.

use cli_support::tables::{right, styled};
use cli_support::units::milliseconds;
use comfy_table::{Cell, Table};
use kernel_traces::PhaseTime;

use super::{percent, time};

/// A row for each phase, with the classes that take most of its time.
pub(super) fn table(phases: &[PhaseTime]) -> Table {
    let mut table = styled();
    table.set_header([
        "phase",
        "steps",
        "kernels",
        "total",
        "share",
        "mean of a step",
        "most of it",
    ]);
    for phase in phases {
        let most: Vec<String> = phase
            .by_class
            .iter()
            .take(3)
            .map(|class| format!("{} {:.0} %", class.name, 100.0 * class.share))
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let mean = (phase.steps > 0)
            .then(|| milliseconds(phase.times.total_ns as f64 / 1e6 / phase.steps as f64));
        table.add_row([
            Cell::new(phase.phase.map_or("(none)", |phase| phase.name())),
            right(phase.steps.to_string()),
            right(phase.times.count.to_string()),
            right(time(phase.times.total_ns)),
            right(percent(phase.share)),
            right(mean.unwrap_or_else(|| "-".to_owned())),
            Cell::new(most.join(", ")),
        ]);
    }
    table
}
