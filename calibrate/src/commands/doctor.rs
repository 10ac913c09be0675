//! `calibrate doctor`.

use std::io::{Write as _, stdout};

use cli_support::width::Width;
use cli_support::{plain, say};

use crate::cli::DoctorArgs;
use crate::doctor::{Status, examine};
use crate::stop::Stop;
use crate::{exit, report};

/// Columns of the file.
const FILE_COLUMNS: usize = 100;

/// Examines the backends, prints each finding, and writes all of them into a file.
///
/// # Errors
///
/// When the file cannot be written, or no process can be started.
pub fn doctor(args: &DoctorArgs) -> anyhow::Result<u8> {
    // Before the work begins, which takes minutes.
    let target = args.target()?;
    let stop = Stop::listen()?;
    let mut last = None;
    let examination = examine(&args.request()?, &stop, &mut |backend, finding| {
        if last.replace(backend) != Some(backend) {
            say!("examining {backend}");
        }
        if finding.status == Status::Failed {
            say!("failed: {}", finding.name);
        }
    })?;
    let text = report::doctor::page(&examination, Width::of_stdout());
    exit::if_read(stdout().write_all(plain::text(&text).as_bytes()).map_err(Into::into))?;
    let mut file = target.create()?;
    file.write_all(report::doctor::page(&examination, Width::Columns(FILE_COLUMNS)).as_bytes())?;
    file.finish()?;
    say!("that file is all that a report of a problem needs");
    Ok(if examination.is_interrupted {
        exit::INTERRUPTED
    } else if examination.count(Status::Failed) > 0 {
        exit::FAILURE
    } else if examination.is_missing() {
        exit::NO_DEVICE
    } else {
        exit::DONE
    })
}
