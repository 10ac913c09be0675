//! A/A runs in which one side has a little more to do: a difference whose size is known.

use std::time::Duration;

use super::series::{AgainstItself, Kind};
use super::{run, subjects};
use crate::run::{Observer, RunSettings};
use crate::stop::Stop;
use crate::worker::{CeilingsReport, CeilingsTask, MeasureAnswer, MeasureTask, NoAnswer, Workers};

/// Short problems, since a sample consists of many runs here: bound by the launch, by arithmetic, by
/// caches, and several kernels.
const CASES: [&str; 4] = [
    "add_relu/f32/m16.n256",
    "linear_bias_relu/f32/m64.k64.n64",
    "sigmoid_mul/f32/m64.n1024",
    "attention_head/f32/b1.h2.q64.d64",
];

/// A planted difference: the first side makes one run more whenever the second has made this many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planted {
    runs: u32,
}

impl Planted {
    /// The difference that is nearest to a share; `None` unless it is between 0.1 % and 50 %.
    #[must_use]
    pub fn of_share(share: f64) -> Option<Self> {
        if !(0.001..=0.5).contains(&share) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "2 to 1000")]
        let runs = share.recip().round() as u32;
        Some(Self { runs })
    }

    /// The true ratio.
    #[must_use]
    pub fn truth(self) -> f64 {
        1.0 + f64::from(self.runs).recip()
    }
}

/// Workers that plant a difference into everything but the controls.
struct Planting<'a> {
    workers: &'a mut dyn Workers,
    planted: Planted,
}

impl Workers for Planting<'_> {
    fn measure(
        &mut self,
        mut task: MeasureTask,
        time_left: Option<Duration>,
    ) -> Result<MeasureAnswer, NoAnswer> {
        // The controls of the run have the number 0.
        task.planted = (task.subject.repetition > 0).then_some(self.planted.runs);
        self.workers.measure(task, time_left)
    }

    fn ceilings(
        &mut self,
        task: CeilingsTask,
        time_left: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer> {
        self.workers.ceilings(task, time_left)
    }
}

/// Makes A/A runs with a planted difference.
///
/// # Errors
///
/// When no worker can be started, or one fails.
pub fn measure_planted(
    workers: &mut dyn Workers,
    settings: RunSettings,
    planted: Planted,
    runs: u32,
    stop: &Stop,
    observer: Box<dyn Observer>,
) -> anyhow::Result<AgainstItself> {
    let subjects = subjects(&CASES, Kind::Planted, runs)?;
    let mut workers = Planting { workers, planted };
    let outcome = run(&mut workers, settings, &subjects, stop, observer)?;
    Ok(AgainstItself::of(Kind::Planted, planted.truth(), &CASES, &settings, &outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planted_share_is_that_of_whole_runs() {
        let truth = |share| Planted::of_share(share).map(Planted::truth);
        assert_eq!(truth(0.02), Some(1.02));
        assert_eq!(truth(0.5), Some(1.5));
        assert_eq!(truth(0.03), Some(1.0 + 1.0 / 33.0));
        assert_eq!([0.0, -0.02, 0.6, f64::NAN].map(truth), [None; 4]);
    }
}
