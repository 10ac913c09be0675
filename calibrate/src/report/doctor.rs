//! The page of an examination.

use std::fmt::Write as _;

use cli_support::width::Width;

use crate::doctor::{Examination, FIRST_WORDS, Finding, Status};

/// A finding as a line, and what goes on below it.
fn finding(finding: &Finding, width: Width) -> String {
    let Finding { name, status, found, seconds } = finding;
    let word = match status {
        Status::Passed => "passed",
        Status::Noted => "noted",
        Status::Missing => "MISSING",
        Status::Failed => "FAILED",
    };
    let time = seconds.map(|seconds| format!(", {seconds:.1} s")).unwrap_or_default();
    let mut text = width.wrap(&format!("  {word:<8}"), &format!("{name}{time}"), 10);
    for line in found {
        text += &width.wrap("          ", line, 12);
    }
    text
}

/// The whole page.
#[must_use]
pub fn page(examination: &Examination, width: Width) -> String {
    let machine = &examination.fingerprint;
    let mut text = format!("{FIRST_WORDS} {}\n", crate::build_info::VERSION);
    let _ = writeln!(text, "{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let _ = writeln!(text, "{}, {} threads", machine.cpu_model, machine.logical_cores);
    for one in &examination.backends {
        let _ = writeln!(text, "\n{}", one.backend);
        for one in &one.findings {
            text += &finding(one, width);
        }
    }
    let count = |status| examination.count(status);
    let end = if examination.is_interrupted { "; interrupted" } else { "" };
    let _ = writeln!(
        text,
        "\n{} passed, {} noted, {} missing, {} failed{end}",
        count(Status::Passed),
        count(Status::Noted),
        count(Status::Missing),
        count(Status::Failed),
    );
    text
}
