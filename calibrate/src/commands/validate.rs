//! `calibrate validate FILE`.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use cli_support::input;
use cli_support::sheet::Sheet;
use cli_support::width::Width;
use fusion_cost_model::{FusionCostModel, LeaveOut, Policy, WhenUnknown};

use super::target;
use super::written::{Formats, write};
use crate::cli::{LeaveOutName, ValidateArgs};
use crate::exit;
use crate::report::validation::{Question, Validation};

/// Tests how well the records of a calibration estimate each other.
///
/// # Errors
///
/// When the file cannot be read, or has no records of the target.
pub fn validate(args: &ValidateArgs) -> anyhow::Result<u8> {
    let output = args.output.target()?;
    let model = FusionCostModel::load(input::expect(&args.file))?;
    let target = target::with_records(&args.target, &model)?;
    let policy = Policy::new(WhenUnknown::Roofline).with_threshold(args.threshold);
    let leave_out = LeaveOut::from(args.leave_out);
    let trials = saying("estimating each record from the others", || {
        model.on(target).validate(leave_out, &policy)
    })?;
    let question = Question {
        file: args.file.display().to_string(),
        target: target.to_string(),
        leave_out: match args.leave_out {
            LeaveOutName::Shape => "shape",
            LeaveOutName::Problem => "problem",
        },
        threshold: args.threshold,
        max_regret: args.max_regret,
    };
    let validation = Validation::of(question, &trials, &policy);
    exit::if_read(write(&validation, &args.output, output))?;
    Ok(match (args.max_regret, validation.exceeds()) {
        (None, _) | (_, Some(false)) => exit::DONE,
        (_, Some(true)) => {
            cli_support::say!("regression: {}", validation.excess());
            exit::FOUND
        }
        (Some(_), None) => {
            cli_support::say!(
                "error: the file has nothing to decide, so there is no regret to judge"
            );
            exit::FAILURE
        }
    })
}

/// Does something, and says what if that takes more than two seconds.
fn saying<T>(what: &str, does: impl FnOnce() -> T) -> T {
    let (done, ends) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let says = move || {
            if ends.recv_timeout(Duration::from_secs(2)) == Err(RecvTimeoutError::Timeout) {
                cli_support::say!("{what}");
            }
        };
        // Where the system has no more threads, it is done without a word.
        let _ = thread::Builder::new().spawn_scoped(scope, says);
        let answer = does();
        drop(done);
        answer
    })
}

impl Formats for Validation {
    fn text(&self, width: Width) -> String {
        Self::text(self, width)
    }

    fn sheet(&self) -> Sheet {
        Self::sheet(self)
    }
}
