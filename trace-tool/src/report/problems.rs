//! The problems of a trace as a set of sizes, which `calibrate --shapes` measures.

use std::fmt::Write;
use std::path::Path;

use kernel_traces::rates::problems::{ModelProblem, ModelProblems, dtypes};

use super::{counted, percent, share, time};

/// The version of the format of sets of sizes.
const SCHEMA_VERSION: u32 = 2;

/// The set, with an entry for each chain: that with the longest kernels first.
#[must_use]
pub fn trace_problems(found: &ModelProblems, file: &Path, top: usize) -> String {
    let shown = found.problems.get(..top.min(found.problems.len())).unwrap_or_default();
    let covered = shown.iter().fold(0_u64, |sum, one| sum.saturating_add(one.total_ns));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = one_line(&name);
    let mut text = format!(
        "# What a model ran: {} of the {} of kernels in {name}.\n# Dtypes, that with most time first: {}.\n",
        share(covered, found.total_ns),
        time(found.total_ns),
        dtypes(shown).join(", "),
    );
    if let Some(more @ 1..) = found.problems.len().checked_sub(shown.len()) {
        let _ = writeln!(text, "# Left out: {}.", counted(more as u64, "shorter problem"));
    }
    for one in &found.left_out {
        let (operator, calls) = (one_line(&one.operator), counted(one.calls, "call"));
        let _ = writeln!(
            text,
            "# Not here: {operator}, {}: {calls}, {}.",
            one.reason,
            time(one.total_ns)
        );
    }
    let set = toml::Value::String(name.split('.').next().unwrap_or_default().to_lowercase());
    let description = toml::Value::String(format!("What a model ran, from {name}"));
    let _ = write!(
        text,
        "kind = \"shapes\"\nschema_version = {SCHEMA_VERSION}\nname = {set}\ndescription = {description}\n"
    );
    let mut chains: Vec<&str> = Vec::new();
    for problem in shown {
        if !chains.contains(&problem.chain.as_str()) {
            chains.push(&problem.chain);
        }
    }
    for chain in chains {
        // In a set, `linear` is the family; the op by itself is called `matmul` there.
        let name = if chain == "linear" { "matmul" } else { chain };
        let _ = write!(text, "\n[[shapes]]\nfusion = [\"{name}\"]\nsizes = [\n");
        for line in lines(shown, chain) {
            let _ = writeln!(text, "  {line}");
        }
        text.push_str("]\n");
    }
    text
}

/// The sizes of a chain, each once, with what they stand for.
fn lines(problems: &[ModelProblem], chain: &str) -> Vec<String> {
    let mut of_chain: Vec<(&str, u64, f64, Vec<&str>)> = Vec::new();
    for problem in problems.iter().filter(|problem| problem.chain == chain) {
        match of_chain.iter_mut().find(|(sizes, ..)| *sizes == problem.sizes) {
            // The same sizes in another dtype.
            Some((_, calls, share, dtypes)) => {
                *calls += problem.calls;
                *share += problem.share;
                dtypes.push(problem.dtype);
            }
            None => {
                let dtypes = vec![problem.dtype];
                of_chain.push((&problem.sizes, problem.calls, problem.share, dtypes));
            }
        }
    }
    let line = |(sizes, calls, share, dtypes): (&str, u64, f64, Vec<&str>)| {
        format!("\"{sizes}\", # {calls}x, {} of the time, {}", percent(share), dtypes.join(", "))
    };
    of_chain.into_iter().map(line).collect()
}

/// A name that stays within its comment.
fn one_line(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
