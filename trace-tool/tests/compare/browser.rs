//! The page in a browser that shows nothing on a screen.
//!
//! Which one: the environment variable `CHROMIUM`, else the first of some names on the path. With
//! `CALIBRATE_NEEDS_BROWSER` set, none is a failure.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kernel_traces::compare::Comparison;
use tempfile::TempDir;
use trace_tool::report::trace_compare_html;

use super::{example, page};

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn browser() -> Option<PathBuf> {
    let on_path = || {
        let path = env::var_os("PATH")?;
        let folders: Vec<PathBuf> = env::split_paths(&path).collect();
        let found = NAMES.iter().flat_map(|name| folders.iter().map(move |one| one.join(name)));
        found.into_iter().find(|file| file.is_file())
    };
    let browser = env::var_os("CHROMIUM").map(PathBuf::from).or_else(on_path);
    if browser.is_none() {
        assert!(
            env::var_os("CALIBRATE_NEEDS_BROWSER").is_none(),
            "no browser: install chromium, or name one with CHROMIUM"
        );
        eprintln!("SKIPPED: there is no browser; install chromium, or name one with CHROMIUM");
    }
    browser
}

fn run(browser: &Path, folder: &TempDir, args: &[&str]) -> Output {
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let page = format!("file://{}", folder.path().join("page.html").display());
    let always = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--enable-logging=stderr",
    ];
    let output = Command::new(browser).args(always).args(args).args([profile, page]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The document as the browser understands it; nothing may be said on its console.
fn document(comparison: &Comparison, browser: &Path) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let html = trace_compare_html(example::report(comparison));
    fs::write(folder.path().join("page.html"), html).unwrap();
    let output = run(browser, &folder, &["--dump-dom"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
    (folder, String::from_utf8(output.stdout).unwrap())
}

/// The parts of a text between two marks.
fn between<'t>(text: &'t str, from: &str, to: &str) -> Vec<&'t str> {
    text.split(from).skip(1).filter_map(|part| part.split(to).next()).collect()
}

#[test]
fn a_browser_shows_what_the_comparison_says() {
    let Some(browser) = browser() else { return };
    let comparison = example::comparison();
    let (folder, document) = document(&comparison, &browser);
    let waterfall = between(&document, "<ol class=\"waterfall\"", "</ol>")[0];
    let names = between(waterfall, "<span class=\"name\">", "</span>");
    let mut expected = vec!["MI300X"];
    expected.extend(comparison.gap.causes.iter().map(|cause| cause.name.as_str()));
    expected.push("H100");
    assert_eq!(names, expected);
    assert_eq!(between(waterfall, "<rect class=\"bar ", ">").len(), expected.len());
    let spoken = between(waterfall, "role=\"img\" aria-label=\"", "\"");
    assert_eq!(spoken[1], "GEMM: gate_up: +2.53 ms, MI300X takes longer, 148 % of the gap");
    let sentences = between(&document, "<ol class=\"causes\">", "</ol>")[0];
    let sentences = between(sentences, "<li>", "</li>");
    let expected: Vec<&str> =
        comparison.gap.causes.iter().map(|cause| cause.sentence.as_str()).collect();
    assert_eq!(sentences, expected);

    let kinds = between(&document, "<details", "</details>");
    assert_eq!(kinds.len(), 2);
    assert!(kinds[0].starts_with(" open") && !kinds[1].starts_with(" open"));
    for (kind, shown) in comparison.layers.kinds.iter().zip(&kinds) {
        let bodies = between(shown, "<tbody>", "</tbody>");
        assert_eq!(between(bodies[0], "<tr", "</tr>").len(), kind.slots.len());
        // A bar for each kernel, and a mark for each side without one.
        let slots = kind.slots.iter().flat_map(|slot| [&slot.first, &slot.second]);
        let kernels = slots.filter(|kernel| kernel.is_some()).count();
        assert_eq!(between(bodies[0], "<rect class=\"bar ", ">").len(), kernels);
        let absent = between(bodies[0], "<text class=\"absent\"", "</text>");
        assert_eq!(absent.len(), 2 * kind.slots.len() - kernels);
    }
    assert_eq!(between(&document, "<article class=\"finding\" id=\"fusion-1\"", ">").len(), 1);
    assert!(document.contains("href=\"#fusion-1\""));

    for (name, size) in [("wide", "--window-size=1280,2000"), ("narrow", "--window-size=420,2000")]
    {
        let image = folder.path().join(format!("{name}.png"));
        run(&browser, &folder, &[size, &format!("--screenshot={}", image.display())]);
        let image = fs::read(image).unwrap();
        assert!(image.starts_with(b"\x89PNG") && image.len() > 20_000, "{name}: {}", image.len());
    }
}

#[test]
fn a_browser_runs_nothing_that_a_name_says() {
    let Some(browser) = browser() else { return };
    let (_folder, document) = document(&page::hostile(), &browser);
    assert!(!document.contains("<script") && !document.contains("<img"));
    assert!(!document.contains("<title>broken"));
    // Everything behind the names is still there.
    assert_eq!(between(&document, "<section id=\"", "\"").last(), Some(&"reading"));
    assert!(document.trim_end().ends_with("</html>"));
}
