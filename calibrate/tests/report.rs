//! `calibrate report` as a user meets it, and its page in a browser.

use std::path::Path;

use crate::headless::{Page, between};
use assert_cmd::Command;
use calibrate::report::html::{Part, ReportPage};
use fusion_cost_model::CacheState;
use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, Reason, ReasonCode, Verdict,
};
use fusion_cost_model::compare::TargetParts;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

const COMMITTED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/calibrations/intel-xeon-2-threads.toml");

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

fn committed() -> Vec<(String, HardwareCalibration)> {
    vec![("committed.toml".to_owned(), HardwareCalibration::load(COMMITTED).unwrap())]
}

fn chains(files: &[(String, HardwareCalibration)]) -> Vec<&FusionRecord> {
    let records = files.iter().flat_map(|(_, calibration)| &calibration.records);
    records.filter(|record| !record.problem.chain().is_single()).collect()
}

fn page(files: &[(String, HardwareCalibration)]) -> ReportPage<'_> {
    ReportPage { parts: Part::all_of(files, TargetParts::default()), threshold: 1.2 }
}

fn number(record: &FusionRecord) -> String {
    let FusionRecord { speedup_factor, speedup_low, speedup_high, .. } = record;
    format!("{speedup_factor:.3} [{speedup_low:.3}, {speedup_high:.3}]")
}

/// The number before a sign of per cent.
fn share(text: &str) -> f64 {
    0.01 * text.trim_end_matches('%').parse::<f64>().unwrap()
}

/// The axis of a plot, from two of its ticks: the value at a share.
fn axis(plot: &str) -> impl Fn(f64) -> f64 {
    let ticks: Vec<(f64, f64)> = between(plot, "<text class=\"tick\" ", "</text>")
        .into_iter()
        .map(|tick| {
            let at = share(between(tick, "x=\"", "\"")[0]);
            (at, tick.split('>').next_back().unwrap().parse::<f64>().unwrap().ln())
        })
        .collect();
    let ((at, value), (last_at, last_value)) = (ticks[0], ticks[ticks.len() - 1]);
    move |share| (value + (share - at) / (last_at - at) * (last_value - value)).exp()
}

#[test]
fn what_was_measured_on_a_lower_core_is_listed() {
    let heading = "Measured on a lower core";
    let mut files = committed();
    assert!(!page(&files).html().contains(heading));
    let record = files[0].1.records.iter_mut().find(|record| !record.problem.chain().is_single());
    let record = record.unwrap();
    let text = "measured on mma; wgmma: hung: no answer".to_owned();
    record.reasons.push(Reason { code: ReasonCode::LowerCore, text });
    let line = format!("<code>{}</code>: measured on mma; wgmma: hung: no answer", record.problem);
    let html = page(&files).html();
    assert!(html.contains(heading) && html.contains(&line), "{line}");
}

#[test]
fn what_is_known_of_records_is_on_the_page() {
    let files = committed();
    let html = page(&files).html();
    let mut counts = std::collections::BTreeMap::new();
    for record in &files[0].1.records {
        for reason in &record.reasons {
            *counts.entry(reason.code.name()).or_insert(0) += 1;
        }
    }
    assert!(counts.len() > 2, "{counts:?}");
    for (code, count) in counts {
        let records = if count == 1 { "record" } else { "records" };
        assert!(html.contains(&format!("<b>{code}</b>, {count} {records}")), "{code}, {count}");
    }
    assert!(html.contains("10 to 40 of a problem; 10 to 40 planned"));
}

#[test]
fn what_is_known_of_a_record_says_in_which_state_the_caches_were() {
    let mut files = committed();
    let mut cold = files[0].1.records[0].clone();
    cold.cache_state = CacheState::Cold;
    cold.reasons = vec![Reason { code: ReasonCode::LowerCore, text: "made up".to_owned() }];
    let name = format!("<code>{} cold</code>", cold.problem);
    files[0].1.records.push(cold);
    let html = page(&files).html();
    assert!(html.contains(&format!("<li>{name}</li>")), "{name}");
    assert!(html.contains(&format!("<li>{name}: made up</li>")), "{name}");
}

/// Everything that a reader of the page could take for the file's is the file's.
fn assert_figures(document: &str, files: &[(String, HardwareCalibration)]) {
    let chains = chains(files);
    let plots = between(document, "<ol class=\"forest\"", "</ol>");
    assert_eq!(plots.len(), 3 * files.len());
    let value_at = axis(plots[0]);
    let rows = between(plots[0], "<li class=\"row\">", "</li>");
    assert_eq!(rows.len(), chains.len());
    for record in &chains {
        let (number, verdict) = (number(record), record.verdict);
        let spoken = format!("aria-label=\"{}: {number} {verdict}", record.problem);
        let row = rows.iter().find(|row| row.contains(&spoken));
        let row = row.unwrap_or_else(|| panic!("no row for {spoken}"));
        assert!(row.contains(&format!("<span class=\"number\">{number}</span>")), "{row}");
        let ends = between(row, "<line class=\"whisker\" x1=\"", "\"");
        let point = between(row, "class=\"point ", "y=")[0];
        let point = between(point, "x=\"", "\"")[0];
        let ceiling = between(row, "<line class=\"ceiling\" x1=\"", "\"");
        let drawn = [point, ends[1], ends[2]].into_iter().chain(ceiling.first().copied());
        let figures = [record.speedup_factor, record.speedup_low, record.speedup_high];
        for (drawn, figure) in drawn.zip(figures.into_iter().chain(record.ceiling_speedup)) {
            // Shares are written with two digits, and what is far off stands at the end.
            let off = (value_at(share(drawn)) / figure).ln().abs();
            assert!(off < 2e-3, "{}: {drawn} is not {figure}", record.problem);
        }
        assert_eq!(ceiling.len(), usize::from(record.ceiling_speedup.is_some()));
    }
    let gains: Vec<f64> = between(plots[1], "<span class=\"number\">", " ")
        .into_iter()
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(gains.len() == chains.len() && gains.is_sorted_by(|a, b| a >= b));
    let valid = || chains.iter().filter(|record| record.verdict != Verdict::Invalid);
    let to_ceiling = valid().filter(|record| record.ceiling_speedup.is_some());
    assert_eq!(between(plots[2], "<li class=\"row\">", "</li>").len(), to_ceiling.count());
    let arrows = between(document, "<g class=\"arrow kind-", "</g>");
    let drawn = arrows.iter().filter(|arrow| arrow.contains("unfused"));
    assert_eq!(drawn.count(), valid().filter(|record| record.fused_gflops > 0.0).count());
    for record in &chains {
        let cell = format!(
            "title=\"{}: {} {}\">{:.3}</td>",
            record.problem,
            number(record),
            record.verdict,
            record.speedup_factor
        );
        assert_eq!(document.matches(&cell).count(), 1, "{cell}");
    }
    let strip = between(document, "<div class=\"strip\"", "<p class=\"decisions\"")[0];
    for verdict in [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::Ambiguous] {
        let count = chains.iter().filter(|record| record.verdict == verdict).count();
        assert!(strip.contains(&format!("<b>{count}</b> {verdict}")), "{strip}");
    }
}

#[test]
fn the_figures_of_the_page_are_those_of_the_file() {
    let files = committed();
    let page = page(&files).html();
    assert_figures(&page, &files);
    assert!(page.len() < 1_000_000, "{}", page.len());
    for forbidden in ["http://", "https://", "<script", "<link", "<img", "@import", "javascript:"] {
        assert!(!page.to_lowercase().contains(forbidden), "{forbidden}");
    }
}

#[test]
fn a_browser_shows_the_figures_and_says_nothing_on_its_console() {
    let files = committed();
    let Some(page) = Page::new(&page(&files).html()) else { return };
    assert_figures(&page.document(), &files);
    page.is_shown_at(&[[1280, 2000], [900, 2000], [500, 2000]], &[]);
    page.is_shown_at(&[[1280, 2000]], &["--blink-settings=preferredColorScheme=0"]);
}

#[test]
fn names_are_text_and_parts_are_kept_apart() {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    calibration.hardware.name = "</title><script>alert(1)</script>\u{1b}[2J".to_owned();
    calibration.records[0].verdict = Verdict::Invalid;
    let mut of_one_thread = calibration.records[1].clone();
    of_one_thread.threads = 1;
    calibration.records.push(of_one_thread);
    let files = vec![("<b>.toml".to_owned(), calibration)];
    let page = page(&files);
    assert_eq!(page.parts.len(), 2);
    let html = page.html();
    assert!(!html.contains("<script") && !html.contains('\u{1b}'));
    assert!(html.contains("&lt;b&gt;.toml") && html.contains("class=\"point cross\""));
    assert!(html.contains("A: ") && html.contains("href=\"#chains-b\""));
    // Every name that something refers to is there, and once.
    for name in between(&html, " id=\"", "\"") {
        assert_eq!(html.matches(&format!(" id=\"{name}\"")).count(), 1, "{name}");
    }
    for link in between(&html, "href=\"#", "\"") {
        assert!(html.contains(&format!(" id=\"{link}\"")), "{link}");
    }
}

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null").env_remove("COLUMNS");
    command
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    calibration.save(folder.path().join("a.toml")).unwrap();
    folder
}

#[test]
fn a_page_and_its_figures_are_written() {
    let folder = folder();
    let report = |args: &[&str]| calibrate(folder.path()).arg("report").args(args).assert();
    report(&["a.toml"]).success().stdout(contains("<!DOCTYPE html>")).stderr("");
    report(&["a.toml", "-o", "a.html"]).success().stdout("").stderr(contains("wrote a.html"));
    report(&["a.toml", "-o", "a.html"]).code(2).stderr(contains("--overwrite"));
    report(&["a.toml", "-o", "a.html", "--overwrite"]).success();

    report(&["a.toml", "--plots", "plots"]).success().stdout("");
    let names = ["chains-a.svg", "gains-a.svg", "roofline-a.svg", "ceilings-a.svg"];
    let page = std::fs::read_to_string(folder.path().join("a.html")).unwrap();
    for name in names {
        let file = std::fs::read_to_string(folder.path().join("plots").join(name)).unwrap();
        assert!(file.starts_with("<?xml") && file.trim_end().ends_with("</svg>"), "{name}");
        // What is drawn is what the page has.
        let marks = between(&file, "<title>", "</title>");
        assert!(marks.len() > 3, "{name}: {marks:?}");
        for mark in marks.iter().skip(1) {
            assert!(page.contains(&format!("<title>{mark}</title>")), "{name}: {mark}");
        }
    }
    report(&["a.toml", "--plots", "plots"]).code(2).stderr(contains("--overwrite"));
    report(&["a.toml", "--plots", "plots", "-o", "b.html", "--overwrite"])
        .success()
        .stderr(contains("wrote b.html").and(contains("roofline-a.svg")));
}

#[test]
fn mistakes_are_said_with_what_to_do() {
    let folder = folder();
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/hardware/h200.toml");
    let imported =
        concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/calibrations/i7-12700k-imported.toml");
    for (args, code, message) in [
        (&["no.toml"][..], 1, "cannot read no.toml"),
        (&[machine], 1, "it is a hardware profile, not a calibration"),
        (&[imported], 1, "it is an imported profile, not a calibration"),
        (&["a.toml", "./a.toml"], 2, "./a.toml is named twice"),
        (&["a.toml", "--target", "cuda"], 2, "a.toml has no such target; it has cpu/2/f32/native"),
        (&["a.toml", "--format", "pdf"], 2, "possible values: html"),
        (&["a.toml", "--threshold", "0"], 2, "must be a positive number"),
        (&["a.toml", "-o", "no/x.html"], 2, "the folder no does not exist"),
        (&["a.toml", "--plots", "a.toml"], 1, "cannot make the folder a.toml"),
    ] {
        let mut command = calibrate(folder.path());
        command.arg("report").args(args).assert().code(code).stdout("").stderr(contains(message));
    }
}
