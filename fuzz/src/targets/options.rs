//! What is asked of the program: command lines, files of defaults, and lists of problems.

use std::path::Path;
use std::sync::LazyLock;

use calibrate::cli::{Cli, Defaults, Source};
use calibrate::plan::questions;
use clap::{Command, CommandFactory, FromArgMatches};

use super::{file_with, said_of, text};
use crate::Target;

/// Every value on a command line is read or refused.
pub(super) const COMMAND_LINE: Target = Target {
    name: "command_line",
    seeds: || COMMAND_LINES.map(|words| words.replace(' ', "\n").into()).to_vec(),
    run: |bytes| text(bytes, command_line),
};

/// Words with spaces between them.
const COMMAND_LINES: [&str; 9] = [
    "--fusion linear,conv2d+bias+relu --dtype f32 --threads 2 --shard 2/8 --time-budget 10m",
    "--problem linear_bias/f32/m{64..4096*2}.k{1,8}.n64 --seed 7 --processes 5 --rounds 8",
    "--for m.onnx --dim batch=8 --backend cuda --clock device --device 1 --spread 90s",
    "query a.toml --problem add_relu/f32/m4.n4 --threshold 1.05 --rewrite bn_folded --json",
    "compare a.toml b.toml --target cuda/device/bf16 --target cpu/2 --fail-on-regression 5%",
    "selftest --runs 4 --planted 2% --simulations 0",
    "export a.toml --format csv --output rows.csv",
    "trace compare a.json b.json --phase decode --json",
    "trace validate --scenarios s.yaml --max-wmape 7.5",
];

static COMMAND: LazyLock<Command> = LazyLock::new(Cli::command);

fn command_line(text: &str) -> String {
    let words = std::iter::once("calibrate").chain(text.lines());
    match COMMAND.clone().try_get_matches_from(words) {
        Ok(matches) => match Cli::from_arg_matches(&matches) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        },
        Err(error) => error.kind().to_string(),
    }
}

/// Each default has a key that is known, once, and its line.
pub(super) const DEFAULTS: Target = Target {
    name: "defaults",
    seeds: || vec![FILE.into(), FILE.replace(" = ", "=\t").into()],
    run: |bytes| {
        let path = file_with("config.toml", bytes);
        let config = format!("--config={}", path.display());
        match Defaults::read(&["calibrate".into(), config.into()], &|_| None) {
            Ok(defaults) => {
                let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() + 1;
                let mut keys: Vec<_> = defaults.settings.iter().map(|one| one.key).collect();
                keys.dedup();
                assert_eq!(keys.len(), defaults.settings.len());
                for setting in &defaults.settings {
                    assert!(Defaults::keys().contains(&setting.key));
                    let Source::Line(file, line) = &setting.source else { panic!("{setting:?}") };
                    assert!(*file == path && (1..=lines).contains(line), "{setting:?}");
                }
                String::new()
            }
            Err(error) => said_of(&path, &error.to_string()),
        }
    },
};

/// A default of each kind.
const FILE: &str = "# of this machine\nbackend = \"cpu\"\ncache = \"warm\"\ncode-cache = \"/a\"\n\
    color = \"auto\"\ndevice = 0\ndtype = \"f32\"\ngpu-lib-dir = [\"/a\", \"/b\"]\n\
    hardware = \"auto\"\nkernel-limit = \"30s\"\nprocesses = 5\nprogress = \"log\"\n\
    spread = \"90s\"\nthreads = 2\ntime-budget = '10m'\n";

/// Each line is a problem, or the line that is none is named.
pub(super) const PROBLEM_LIST: Target = Target {
    name: "problem_list",
    seeds: || {
        vec![b"# two\nadd_relu/f32/m4.n4\n\n  linear_bias/f32/m1.k2.n3 \nrelu/bf16/m4.n4\n".into()]
    },
    run: |bytes| {
        let path = file_with("problems.txt", bytes);
        match questions(Path::new(&path), &[]) {
            Ok(found) => {
                let lines = bytes.split(|&byte| byte == b'\n').count();
                assert!((1..=lines).contains(&found.problems.len()) && found.opaque == 0);
                String::new()
            }
            Err(error) => said_of(&path, &error.to_string()),
        }
    },
};
