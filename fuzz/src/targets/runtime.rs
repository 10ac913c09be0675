//! Runtimes: the files that name them, and what they answer.

use std::path::Path;

use calibrate::runtimes::RuntimeChoice;
use fused_kernels::runtime::RuntimeError;
use fused_kernels::runtime::answer::{self, Done, Introduction, Ran, Ready};
use fusion_cost_model::RuntimeId;
use serde::de::DeserializeOwned;

use super::{file_with, said_of};
use crate::Target;

/// What is read has a name that records can have, and a command.
pub(super) const RUNTIME: Target = Target {
    name: "runtime",
    seeds: || {
        let numpy = include_str!("../../../calibrate/runtimes/numpy.toml");
        vec![numpy.into(), MINE.into()]
    },
    run: |bytes| {
        let path = file_with("mine.toml", bytes);
        let folder = path.parent().unwrap_or(Path::new("/"));
        let found = RuntimeChoice::find(&path.display().to_string())
            .and_then(|choice| Ok((choice.install(), choice.program(folder)?)));
        match found {
            Ok((_, program)) => {
                assert!(RuntimeId::new(&program.name, "1").is_ok(), "{program:?}");
                assert!(!program.command.is_empty());
                String::new()
            }
            Err(error) => said_of(&path, &format!("{error:#}")),
        }
    },
};

const MINE: &str = "kind = \"runtime\"\nschema_version = 1\nname = \"mine\"\n\
    command = [\"mine.toml\", \"-v\"]\ninstall = '''pip install mine'''\n";

/// A line is the answer to one kind of request at most.
pub(super) const RUNTIME_ANSWER: Target =
    Target { name: "runtime_answer", seeds: || ANSWERS.map(Into::into).to_vec(), run: answer };

/// One of each kind.
const ANSWERS: [&str; 7] = [
    r#"{"n": 1, "name": "numpy", "version": "2.3.1", "device": "cpu", "dtypes": ["f32"],
        "clock": "host", "options": {"blas": "openblas"}}"#,
    r#"{"n": 1, "kernels": {"unfused": ["matmul", "add"], "fused": ["fused"]}, "layouts": true}"#,
    r#"{"n": 1, "ns": 123456789}"#,
    r#"{"n": 1}"#,
    r#"{"n": 1, "error": "out of memory"}"#,
    r#"{"n": 1, "unsupported": "it has no conv2d"}"#,
    r#"{"n": 1, "missing": ["numpy"]}"#,
];

fn answer(line: &[u8]) -> String {
    let answers = [
        said::<Introduction>(line, "hello"),
        said::<Ready>(line, "prepare"),
        said::<Ran>(line, "run"),
        said::<Done>(line, "poison"),
    ];
    assert!(answers.iter().filter(|answer| answer.is_ok()).count() <= 1, "{answers:?}");
    answers.into_iter().filter_map(Result::err).collect()
}

fn said<A: DeserializeOwned>(line: &[u8], step: &'static str) -> Result<(), String> {
    answer::read::<A>(line, step, 1).map(drop).map_err(|error| match error {
        RuntimeError::Unreadable { reason, .. } => reason,
        RuntimeError::OutOfTurn { .. } => "out of turn".to_owned(),
        // A word of its own, of which every one would be new.
        _ => step.to_owned(),
    })
}
