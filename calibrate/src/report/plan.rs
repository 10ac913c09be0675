//! What would be measured.

use std::time::Duration;

use cli_support::units::{counted, gibibytes, mebibytes};
use cli_support::width::Width;

use crate::machine::preflight::Needs;
use crate::measure::Procedure;
use crate::plan::Plan;

/// What a process takes in a standard run, its start included: 1690 processes took 400 s on two
/// cores. One of a problem whose run takes longer than 10 ms takes longer.
const SECONDS_PER_PROCESS: f64 = 0.25;

/// What starting a runtime takes in addition: a second or two for an interpreter and its libraries,
/// and several seconds where it compiles.
const SECONDS_PER_RUNTIME: f64 = 2.0;

/// Below this, GiB with one decimal are 0.0 or 0.1.
const TENTH_OF_A_GIB: u64 = (1 << 30) / 10;

/// The problems, how many processes they take, and about how long.
#[must_use]
pub fn plan(
    plan: &Plan,
    controls: usize,
    procedure: &Procedure,
    spread: Duration,
    needs: &Needs,
    width: Width,
) -> String {
    let subjects = plan.subjects.len();
    let mut text = String::new();
    for subject in &plan.subjects {
        text += &format!("{subject}\n");
    }
    text.push('\n');
    for skipped in &plan.skipped {
        text += &width.wrap("- ", &format!("not measured: {}", skipped.reason), 2);
    }
    let processes = |each: u32| (subjects + controls) as u64 * u64::from(each);
    let of_runtimes = plan.subjects.iter().filter(|one| one.implementation.runtime().is_some());
    #[expect(clippy::cast_precision_loss, reason = "minutes")]
    let share_of_runtimes = of_runtimes.count() as f64 / subjects.max(1) as f64;
    let seconds_each = SECONDS_PER_PROCESS + share_of_runtimes * SECONDS_PER_RUNTIME;
    let minutes = |each: u32| {
        #[expect(clippy::cast_precision_loss, reason = "minutes")]
        let seconds = (processes(each) as f64 * seconds_each).max(spread.as_secs_f64());
        match seconds {
            ..90.0 => format!("{seconds:.0} s"),
            _ => format!("{:.0} min", seconds / 60.0),
        }
    };
    let Procedure { processes: planned, more_processes: more, .. } = *procedure;
    // Waiting between the processes can take longer than both.
    let or_more = match minutes(more) {
        same if same == minutes(planned) => String::new(),
        longer => format!(", or {longer} if all stay undecided and get {more}"),
    };
    let each = if planned == 1 { "process" } else { "processes" };
    text += &width.wrap(
        "",
        &format!(
            "{} (sizes: {}) and {}; {planned} {each} each, {} together: about {}{or_more}; slow \
             problems take longer. The largest needs {}. Nothing was measured.",
            counted(subjects, "record"),
            plan.shapes,
            counted(controls, "A/A run"),
            processes(planned),
            minutes(planned),
            memory(needs.memory_bytes),
        ),
        0,
    );
    text
}

/// In the unit that suits it.
fn memory(bytes: u64) -> String {
    if bytes < TENTH_OF_A_GIB { mebibytes(bytes) } else { gibibytes(bytes) }
}
