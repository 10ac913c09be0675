//! The problems that a partitioner of a model asks about.

use std::path::Path;

use cli_support::{exit, input};
use fusion_cost_model::{Problem, possible_kernels};

use crate::exit::UsageError;
use crate::profiles::find_model;

/// The problems that a model raises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions {
    /// The file that they come from, without its folder.
    pub source: String,
    /// Each as often as it is asked.
    pub problems: Vec<Problem>,
    /// Nodes of the model that no problem stands for.
    pub opaque: usize,
}

/// Reads a model, which may be a built-in workload, and lists every kernel that a split of it may
/// have, single ops among them: a split has a cost only when all of its parts have one. Or reads a
/// list of problems, a line each, from a file that ends in `.txt`.
///
/// # Errors
///
/// [`UsageError`] when the file cannot be read, a dimension has no number, or there is no problem
/// in it.
pub fn questions(path: &Path, dims: &[String]) -> Result<Questions, UsageError> {
    let source = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_list = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt"));
    let (problems, opaque) =
        if is_list { (of_list(path, dims)?, 0) } else { of_model(path, dims)? };
    if problems.is_empty() {
        let lacks = if is_list { "problem in it" } else { "op that a kernel is known for" };
        return Err(UsageError(format!("{}: it has no {lacks}", path.display())));
    }
    Ok(Questions { source, problems, opaque })
}

fn of_model(path: &Path, dims: &[String]) -> Result<(Vec<Problem>, usize), UsageError> {
    let wrong = |error: anyhow::Error| UsageError(exit::message(&error));
    let model = find_model(path, dims).map_err(wrong)?;
    let found = model.segments().map_err(wrong)?;
    let nodes = model.graph_nodes(&found).map_err(wrong)?;
    let kernels = possible_kernels(&nodes).map_err(|error| UsageError(error.to_string()))?;
    let all = kernels.iter().flat_map(|one| std::iter::repeat_n(one.problem, one.places));
    Ok((all.collect(), found.opaque().len()))
}

/// The bytes of a list of problems at most: a hundred thousand lines.
const MOST_BYTES: u64 = 10 << 20;

fn of_list(path: &Path, dims: &[String]) -> Result<Vec<Problem>, UsageError> {
    let name = path.display();
    if !dims.is_empty() {
        return Err(UsageError(format!("--dim is for models; {name} is a list of problems")));
    }
    let text = input::text(path, MOST_BYTES)
        .map_err(|error| UsageError(format!("cannot read {name}: {error}")))?;
    let lines = text.lines().map(str::trim).zip(1..);
    let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let read = |(line, number): (&str, u32)| {
        line.parse().map_err(|error| UsageError(format!("{name}, line {number}: {error}")))
    };
    lines.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str, dims: &[&str]) -> Result<Questions, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let dims: Vec<String> = dims.iter().map(|&dim| dim.to_owned()).collect();
        questions(&path, &dims).map_err(|error| error.to_string())
    }

    const GRAPH: &str = r#"{
        "kind": "graph", "schema_version": 1,
        "inputs": [{"name": "x", "dtype": "f32", "shape": ["batch", 64]}],
        "constants": [{"name": "w", "dtype": "f32", "shape": [64, 32]}],
        "nodes": [
            {"op": "MatMul", "inputs": ["x", "w"], "outputs": ["y"]},
            {"op": "Relu", "inputs": ["y"], "outputs": ["z"]}
        ],
        "outputs": ["z"]
    }"#;

    #[test]
    fn a_model_asks_about_every_chain_of_its_ops() {
        let found = read("a.json", GRAPH, &["batch=8"]).unwrap();
        let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
        for expected in ["linear/f32/m8.k64.n32", "linear+relu/f32/m8.k64.n32", "relu/f32/m8.n32"] {
            assert!(problems.iter().any(|one| one == expected), "{expected}: {problems:?}");
        }
        assert_eq!(problems.len(), 3);
        assert_eq!((found.source.as_str(), found.opaque), ("a.json", 0));
        let open = read("a.json", GRAPH, &[]).unwrap_err();
        assert!(open.contains("--dim batch=8"), "{open}");
        let other = read("a.json", GRAPH, &["batch=8", "sequence=3"]).unwrap_err();
        assert!(other.contains("sequence"), "{other}");
    }

    #[test]
    fn what_is_not_there_or_empty_is_said_once() {
        let error = questions(Path::new("no_such_model.onnx"), &[]).unwrap_err().to_string();
        assert_eq!(error.matches("os error").count(), 1, "{error}");
        let error = read("a.txt", "# none\n", &[]).unwrap_err();
        assert!(error.ends_with("a.txt: it has no problem in it"), "{error}");
    }

    #[test]
    fn a_list_has_a_problem_a_line() {
        let found = read("a.txt", "# two\nadd_relu/f32/m4.n4\n\n relu/f32/m4.n4 \n", &[]).unwrap();
        assert_eq!(found.problems.len(), 2);
        let wrong = read("a.txt", "add_relu/f32/m4.n4\nadd_rleu/f32/m4.n4\n", &[]).unwrap_err();
        assert!(wrong.contains("line 2") && wrong.contains("did you mean"), "{wrong}");
        assert!(read("a.txt", "", &["batch=8"]).unwrap_err().contains("--dim is for models"));
        let missing = questions(Path::new("no/such.txt"), &[]).unwrap_err().to_string();
        assert!(missing.contains("cannot read"), "{missing}");
    }
}
