//! What a calibration knows of a model, and what to measure next.

use cli_support::units::{milliseconds, percent};
use cli_support::width::Width;
use fusion_cost_model::{Coverage, Covered, Evidence};

use super::estimated::EVIDENCE;

/// Problems that are listed, so that the summary stays in sight.
const MOST_LISTED: usize = 10;

/// The coverage of what `of` names, in a few lines, with what to measure next.
#[must_use]
pub fn coverage(coverage: &Coverage<'_>, of: &str, width: Width) -> String {
    let questions = coverage.questions.len();
    let asked: u64 = coverage.questions.iter().map(|one| u64::from(one.count)).sum();
    let by_evidence = EVIDENCE.into_iter().filter_map(|evidence| {
        let count = coverage.with_evidence(evidence);
        (count > 0).then(|| format!("{count} {evidence}"))
    });
    let by_evidence: Vec<String> = by_evidence.collect();
    #[expect(clippy::cast_precision_loss, reason = "a share of some problems")]
    let known = coverage.known() as f64 / questions.max(1) as f64;
    let open = coverage.decisions() - coverage.safe_decisions();
    let mut lines = vec![
        ("model", format!("{of}: {questions} problems, asked about {asked} times")),
        ("known", format!("{} ({})", percent(known), by_evidence.join(", "))),
        ("decisions", decisions(coverage, open)),
    ];
    if !coverage.to_measure.is_empty() {
        let count = coverage.to_measure.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        lines.push(("to measure", format!("{count} {noun}, the one that matters most first:")));
    }
    let listed = coverage.to_measure.iter().take(MOST_LISTED).map(|point| {
        let lowers = match point.lowers_regret_by_ms {
            0.0 => "so that its time is known".to_owned(),
            ms => format!("lowers the expected loss by {}", milliseconds(ms)),
        };
        ("", format!("{}: {lowers}", point.problem))
    });
    lines.extend(listed);
    if let Some(more @ 1..) = coverage.to_measure.len().checked_sub(MOST_LISTED) {
        lines.push(("", format!("and {more} more")));
    }
    let line = |(name, text): &(&str, String)| width.wrap(&format!("{name:<12}"), text, 12);
    lines.iter().map(line).collect()
}

fn decisions(coverage: &Coverage<'_>, open: usize) -> String {
    let all = coverage.decisions();
    if open == 0 {
        return format!("all {all} are safe");
    }
    let is_open = |covered: &&Covered<'_>| {
        !covered.is_safe && covered.estimate.evidence() == Evidence::Measured
    };
    let measured = coverage.questions.iter().filter(is_open).count();
    let too_close = match measured {
        0 => String::new(),
        count => format!(" ({count} of them measured, and too close to call)"),
    };
    let regret = coverage.expected_regret_ms();
    if regret <= 0.0 {
        return format!("{open} of {all} are unsafe; nothing is known of what they may lose");
    }
    let regret = milliseconds(regret);
    format!("{open} of {all} are unsafe{too_close}; all are expected to lose {regret} together")
}
