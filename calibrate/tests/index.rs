//! `calibrate report --index` as a user meets it, and its page in a browser.

use std::fs;
use std::path::Path;

use crate::headless::{Page, between};
use assert_cmd::Command;
use fusion_cost_model::Family;
use fusion_cost_model::calibration::{Addition, FusionRecord, HardwareCalibration, Verdict};
use predicates::str::contains;
use tempfile::TempDir;

const CALIBRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/calibrations");

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null").args(["report", "--index"]);
    command
}

/// Two files of one machine, one of a machine whose name is not a name, and an imported profile.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    calibration.save(folder.path().join("a.toml")).unwrap();
    calibration.tool.started_at = "2026-12-24T00:00:00Z".to_owned();
    calibration.save(folder.path().join("50 %.toml")).unwrap();
    calibration.hardware.cores.source = "made up".to_owned();
    calibration.hardware.name = "</td><script>alert(1)</script>".to_owned();
    let mut of_one_thread = calibration.records[0].clone();
    of_one_thread.threads = 1;
    calibration.records.push(of_one_thread);
    let mut ceilings = calibration.ceilings[0].clone();
    ceilings.threads = 1;
    calibration.ceilings.push(ceilings);
    calibration.num_records += 1;
    // A run has one number of threads.
    calibration.additions.push(Addition {
        started_at: "2026-12-24T01:00:00Z".to_owned(),
        shapes: "standard".to_owned(),
        seed: 1,
        quick: false,
        forced: false,
        records: 1,
    });
    calibration.save(folder.path().join("c.toml")).unwrap();
    for name in ["i7-12700k-imported.toml", "intel-xeon-2-threads.toml"] {
        fs::copy(format!("{CALIBRATIONS}/{name}"), folder.path().join(name)).unwrap();
    }
    folder
}

const FILES: [&str; 5] =
    ["a.toml", "50 %.toml", "c.toml", "i7-12700k-imported.toml", "intel-xeon-2-threads.toml"];

fn page(folder: &Path) -> String {
    let output = calibrate(folder).args(FILES).assert().success().stderr("");
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

fn rows(page: &str) -> Vec<&str> {
    let body = between(page, "<tbody>", "</tbody>")[0];
    between(body, "<tr>", "</tr>")
}

fn numbers(row: &str) -> Vec<&str> {
    let cells = row.split("<td class=\"number").skip(1);
    cells.map(|cell| cell.split_once('>').unwrap().1.split("</td>").next().unwrap()).collect()
}

/// The figures of a row are those of the file.
fn assert_figures(row: &str, calibration: &HardwareCalibration) {
    let chain = |record: &&FusionRecord| !record.problem.chain().is_single();
    let chains: Vec<&FusionRecord> = calibration.records.iter().filter(chain).collect();
    let count = |is: &dyn Fn(&FusionRecord) -> bool| {
        chains.iter().filter(|record| is(record)).count().to_string()
    };
    let mut expected = Vec::new();
    for family in Family::ALL {
        let of_family = |record: &&&FusionRecord| {
            Family::of(record.problem.chain().form()) == family
                && record.verdict != Verdict::Invalid
                && record.rewrite.is_none()
        };
        let logs: Vec<f64> =
            chains.iter().filter(of_family).map(|record| record.speedup_factor.ln()).collect();
        if !logs.is_empty() {
            let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
            expected.push(format!("{mean:.3}"));
        }
    }
    expected.push(chains.len().to_string());
    for verdict in
        [Verdict::Faster, Verdict::Same, Verdict::Ambiguous, Verdict::Slower, Verdict::Invalid]
    {
        expected.push(count(&|record| record.verdict == verdict));
    }
    expected.push(count(&|one| one.verdict != Verdict::Invalid && one.speedup_low >= 1.0));
    let numbers = numbers(row);
    assert_eq!(numbers[..expected.len()], expected, "{row}");
    let peak: f64 = numbers[expected.len()].parse().unwrap();
    let ceilings = calibration.ceilings.iter().map(|one| one.ceilings.peak_gflops);
    assert!(ceilings.into_iter().any(|known| (peak / known - 1.0).abs() < 0.01), "{peak}");
}

#[test]
fn machines_of_one_name_are_counted_apart() {
    let folder = folder();
    let mut other = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    other.fingerprint.cpu_family_model_stepping = Some("6/1/1".to_owned());
    other.save(folder.path().join("other.toml")).unwrap();
    for (files, expected) in [
        (["a.toml", "50 %.toml"], "2 calibrations of 1 machine<"),
        (["a.toml", "other.toml"], "2 calibrations of 2 machines<"),
    ] {
        calibrate(folder.path()).args(files).assert().success().stdout(contains(expected));
    }
}

#[test]
fn a_row_for_each_target_has_the_figures_of_its_file() {
    let folder = folder();
    let page = page(folder.path());
    let rows = rows(&page);
    assert_eq!(rows.len(), 6);
    assert!(page.contains("5 calibrations of 3 machines"), "{}", &page[..3000]);
    let load = |name: &str| HardwareCalibration::load(folder.path().join(name)).unwrap();
    for name in ["a.toml", "50 %.toml", "intel-xeon-2-threads.toml"] {
        let row = rows.iter().find(|row| row.contains(&format!(">{name}<"))).unwrap();
        assert_figures(row, &load(name));
    }
    // The latest run of a machine is the first.
    let place = |name: &str| rows.iter().position(|row| row.contains(&format!(">{name}<")));
    assert!(place("50 %.toml") < place("a.toml"));
    let imported = rows.iter().find(|row| row.contains("i7-12700k-imported.toml")).unwrap();
    assert!(imported.contains("no intervals") && imported.contains("2025-11-05"), "{imported}");
    assert!(imported.contains("PyTorch 2.7.1+cu126, imported"), "{imported}");
    for name in FILES {
        let link = format!("href=\"./{}\"", name.replace(' ', "%20").replace("%.", "%25."));
        assert!(page.contains(&link), "{link}");
    }
    for forbidden in ["http://", "https://", "<script", "<link", "<img", "@import", "javascript:"] {
        assert!(!page.to_lowercase().contains(forbidden), "{forbidden}");
    }
}

#[test]
fn a_browser_shows_the_index_and_says_nothing_on_its_console() {
    let folder = folder();
    let html = page(folder.path());
    let Some(page) = Page::new(&html) else { return };
    let document = page.document();
    let text = |page: &str| -> Vec<String> {
        rows(page).iter().flat_map(|row| numbers(row)).map(str::to_owned).collect()
    };
    assert_eq!(text(&document), text(&html));
    page.is_shown_at(&[[1280, 900], [900, 900], [500, 900]], &[]);
    page.is_shown_at(&[[1280, 900]], &["--blink-settings=preferredColorScheme=0"]);
}

#[test]
fn without_files_the_built_in_ones_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let index = |args: &[&str]| calibrate(folder.path()).args(args).assert();
    let all = fs::read_dir(CALIBRATIONS).unwrap().count();
    let output = index(&[]).success().stderr("");
    let page = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(rows(&page).len() >= all && !page.contains("href="));
    assert!(page.contains("intel-xeon-2-threads.toml"));
    index(&["-o", "index.html"]).success().stdout("").stderr(contains("wrote index.html"));
    index(&["-o", "index.html"]).code(2).stderr(contains("--overwrite"));
    index(&["--plots", "x"]).code(2).stderr(contains("cannot be used with"));
    index(&["--target", "cuda"]).code(2).stderr(contains("no file has records of that target"));
    index(&["no.toml"]).code(1).stdout("").stderr(contains("cannot read no.toml"));
}

#[test]
fn a_page_of_figures_wants_files_and_not_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..27).map(|index| format!("{index}.toml")).collect();
    let report = |args: &[String]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
        command.current_dir(folder.path()).arg("report").args(args).assert()
    };
    report(&[]).code(2).stderr(contains("<FILE>..."));
    report(&names).code(2).stderr(contains("26 files at most, and 27 are named"));
}
