//! What a device reaches, held against its data sheet.

use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::hardware::HardwareSpec;
use fusion_cost_model::{Backend, Clock, DType};

use super::{Finding, Request, Status, processes};
use crate::machine::{AUTO, Machine};
use crate::run::Target;
use crate::stop::Stop;
use crate::worker::{CeilingsTask, NoAnswer, Workers as _};

/// What all of them are called.
pub(super) const NAME: &str = "timings";

/// More of the data sheet than this is not a speed: the clock or the data sheet is wrong.
const MOST: f64 = 1.05;
/// Less than this share is worth a look: of a limited, shared or slowed-down device.
const LEAST: f64 = 0.3;

/// Measures three things in a process of its own: arithmetic, memory, and the launch of a kernel.
///
/// # Errors
///
/// When no process can be started.
pub(super) fn measure(
    request: &Request,
    target: &Target,
    stop: &Stop,
) -> anyhow::Result<Vec<Finding>> {
    let clock = if target.device.backend == Backend::Cpu { Clock::Host } else { Clock::Device };
    let task = CeilingsTask { dtype: DType::F32, clock, rounds: 1, core: None };
    let ceilings = match processes(request, target, stop)?.ceilings(task, None) {
        Ok(Some(report)) => report.ceilings,
        Ok(None) | Err(NoAnswer::Stopped) => return Ok(Vec::new()),
        Err(error @ NoAnswer::NotStarted(_)) => return Err(error.into()),
        Err(error) => {
            return Ok(vec![Finding::new(NAME, Status::Failed, vec![error.to_string()])]);
        }
    };
    let machine = Machine::identify(AUTO, target.observe())?;
    let sheet = machine.has_data_sheet().then(|| machine.spec(&[]));
    Ok(findings(&ceilings, sheet.as_ref()))
}

fn findings(ceilings: &Ceilings, sheet: Option<&HardwareSpec>) -> Vec<Finding> {
    let peak = sheet.and_then(|sheet| sheet.peak_gflops(DType::F32));
    let bandwidth = sheet.map(|sheet| sheet.memory.bandwidth_gb_per_s);
    // The largest working set, which no cache holds.
    let memory = ceilings.bandwidth.last().map_or(0.0, |point| point.gb_per_s);
    let launch = format!("{:.2} us", ceilings.launch_us);
    vec![
        against("arithmetic, f32", ceilings.peak_gflops, "GFLOP/s", peak),
        against("memory", memory, "GB/s", bandwidth),
        Finding::new("launch of a kernel", Status::Passed, vec![launch]),
    ]
}

fn against(name: &str, measured: f64, unit: &str, sheet: Option<f64>) -> Finding {
    let Some(sheet) = sheet else {
        let found = format!("{measured:.0} {unit}; there is no data sheet of this machine");
        return Finding::new(name, Status::Passed, vec![found]);
    };
    let share = measured / sheet;
    let found = format!("{measured:.0} {unit}, {:.0} % of its data sheet", 100.0 * share);
    let (status, why) = match share {
        share if share > MOST => (Status::Failed, "; the clock or the data sheet is wrong"),
        share if share < LEAST => (Status::Noted, "; is the device shared, limited or hot?"),
        _ => (Status::Passed, ""),
    };
    Finding::new(name, status, vec![found + why])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_data_sheet_fails_and_much_less_is_noted() {
        for (measured, status) in [
            (90.0, Status::Passed),
            (104.0, Status::Passed),
            (110.0, Status::Failed),
            (20.0, Status::Noted),
        ] {
            let finding = against("memory", measured, "GB/s", Some(100.0));
            assert_eq!(finding.status, status, "{finding:?}");
            assert!(finding.found[0].contains(&format!("{measured} %")), "{finding:?}");
        }
        assert!(against("memory", 1.0, "GB/s", None).found[0].contains("no data sheet"));
    }
}
