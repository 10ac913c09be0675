//! A page in a browser that shows nothing on a screen.
//!
//! Which one: the environment variable `CHROMIUM`, else the first of some names on the path. With
//! `CALIBRATE_NEEDS_BROWSER` set, none is a failure.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

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

/// A page that a browser can open.
pub(crate) struct Page {
    browser: PathBuf,
    folder: TempDir,
}

impl Page {
    /// The page; `None` without a browser.
    pub(crate) fn new(html: &str) -> Option<Self> {
        let browser = browser()?;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("page.html"), html).unwrap();
        Some(Self { browser, folder })
    }

    fn run(&self, args: &[&str]) -> Output {
        let profile = format!("--user-data-dir={}", self.folder.path().join("profile").display());
        let page = format!("file://{}", self.folder.path().join("page.html").display());
        let always = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--enable-logging=stderr",
        ];
        let mut command = Command::new(&self.browser);
        let output = command.args(always).args(args).args([profile, page]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// The document as the browser understands it; nothing may be said on its console.
    pub(crate) fn document(&self) -> String {
        let output = self.run(&["--dump-dom"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(console.is_empty(), "{console:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Looks at the page in a window of some sizes, bright or dark.
    pub(crate) fn is_shown_at(&self, sizes: &[[u32; 2]], more: &[&str]) {
        for [width, height] in sizes {
            let image = self.folder.path().join(format!("{width}.png"));
            let args = [
                format!("--window-size={width},{height}"),
                format!("--screenshot={}", image.display()),
            ];
            let args: Vec<&str> =
                args.iter().map(String::as_str).chain(more.iter().copied()).collect();
            self.run(&args);
            let image = fs::read(image).unwrap();
            assert!(
                image.starts_with(b"\x89PNG") && image.len() > 20_000,
                "{width}: {}",
                image.len()
            );
        }
    }
}

/// The parts of a text between two marks.
pub(crate) fn between<'t>(text: &'t str, from: &str, to: &str) -> Vec<&'t str> {
    text.split(from).skip(1).filter_map(|part| part.split(to).next()).collect()
}
