//! Models: built-in workloads by name, and files of graphs and workloads.

use std::path::Path;

use anyhow::Context;
use cli_support::input;
use fusion_cost_model::{Error, GraphNode};
use model_graphs::{Dims, Error as GraphError, Graph, Segments};

use super::{WORKLOADS, Workload, files, read, workload_names};
use crate::exit::UsageError;

/// The endings of files of models.
const ENDINGS: [&str; 3] = [".onnx", ".json", ".toml"];

/// A model whose layers could run.
#[derive(Debug, Clone)]
pub struct Model {
    /// Its name, or that of its file.
    pub name: String,
    /// What it is; `None` of a graph, which does not say it.
    pub description: Option<String>,
    /// Its nodes.
    pub graph: Graph,
    /// The numbers of its open dimensions.
    pub dims: Dims,
}

/// A model by the name of a built-in workload, or by the path of an ONNX file, the JSON of a graph, or
/// a workload.
///
/// `dims` gives numbers to dimensions that it leaves open, each as `name=number`.
///
/// # Errors
///
/// [`UsageError`] when there is none of that name, with the nearest names, or a dimension is no
/// number or is given twice; another error when the file cannot be read.
pub fn find_model(name: impl AsRef<Path>, dims: &[String]) -> anyhow::Result<Model> {
    let mut model = load(name.as_ref())?;
    let given = given_dims(dims)?;
    model.dims = given.numbers().fold(model.dims, |dims, (name, size)| dims.with(name, size));
    Ok(model)
}

/// The dimensions of a command line, each as `name=number`.
///
/// # Errors
///
/// [`UsageError`] when one has another form, or is given twice.
pub fn given_dims(texts: &[String]) -> Result<Dims, UsageError> {
    let mut all = Dims::default();
    for text in texts {
        let mut one = Dims::default();
        one.set(text).map_err(|error| UsageError(error.to_string()))?;
        for (name, size) in one.numbers() {
            if let Some(first) = all.get(name) {
                return Err(UsageError(format!(
                    "the dimension `{name}` is given twice, as {name}={first} and {name}={size}; \
                     give it once"
                )));
            }
            all = all.with(name, size);
        }
    }
    Ok(all)
}

/// What a graph's error is with these numbers: what the command line has to say is a question of usage,
/// and so are numbers that are too large; what is wrong with a file is not.
pub fn graph_error(error: GraphError, model: &str, dims: &Dims) -> anyhow::Error {
    if error.is_open_dims() || error.is_invalid_dim() {
        return UsageError(error.to_string()).into();
    }
    let given: Vec<String> = dims.numbers().map(|(name, size)| format!("{name}={size}")).collect();
    if error.is_invalid_sizes() && !given.is_empty() {
        let given = given.join(", ");
        let text = format!("{model} with {given}: {error}; give other numbers with --dim");
        return UsageError(text).into();
    }
    anyhow::Error::from(error).context(model.to_owned())
}

fn load(path: &Path) -> anyhow::Result<Model> {
    // A name that is not text is none of those that are built in.
    let name = path.to_string_lossy();
    let lower = name.to_ascii_lowercase();
    let is_file = name.contains(['/', '\\'])
        || ENDINGS.iter().any(|ending| lower.ends_with(ending))
        || path.is_file();
    if !is_file {
        let known = files(&WORKLOADS).into_iter().find(|(stem, _)| *stem == lower);
        let Some((stem, text)) = known else {
            let unknown = Error::unknown_name("workload", &name, workload_names());
            return Err(UsageError(format!(
                "{unknown}; see `calibrate list workloads`, or name an ONNX or JSON file"
            ))
            .into());
        };
        let workload =
            Workload::from_toml(text).with_context(|| format!("profiles/workloads/{stem}.toml"))?;
        return Ok(of_workload(workload));
    }
    if lower.ends_with(".toml") {
        let workload = Workload::from_toml(&read(&name)?)
            .map_err(|error| UsageError(format!("{name}: {error}")))?;
        return Ok(of_workload(workload));
    }
    let graph = Graph::load(input::expect(path))?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Model { name: file_name, description: None, graph, dims: Dims::default() })
}

fn of_workload(Workload { name, description, dims, graph }: Workload) -> Model {
    let dims = dims.iter().fold(Dims::default(), |dims, (name, size)| dims.with(name, *size));
    Model { name, description: Some(description), graph, dims }
}

impl Model {
    /// Its segments at these dimensions.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when a dimension has no number, a number is for none, or sizes cannot be with
    /// the numbers; another error when its shapes contradict each other.
    pub fn segments(&self) -> anyhow::Result<Segments> {
        self.graph.segments(&self.dims).map_err(|error| graph_error(error, &self.name, &self.dims))
    }

    /// The nodes of its segments, for a cost model.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when sizes cannot be with the numbers of its dimensions; another error when an op
    /// cannot be a kernel.
    pub fn graph_nodes(&self, found: &Segments) -> anyhow::Result<Vec<GraphNode>> {
        found.graph_nodes().map_err(|error| graph_error(error, &self.name, &self.dims))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model_graphs::synthetic;

    use super::*;

    /// The ops of a model that are kernels, each with how often it is there.
    fn ops(model: &Model) -> BTreeMap<String, usize> {
        let mut ops = BTreeMap::new();
        for node in model.segments().unwrap().graph_nodes().unwrap() {
            *ops.entry(node.problem.to_string()).or_default() += 1;
        }
        ops
    }

    fn onnx(bytes: Vec<u8>, dims: Dims) -> Model {
        let graph = Graph::from_onnx(bytes).unwrap();
        Model { name: String::new(), description: None, graph, dims }
    }

    #[test]
    fn every_workload_is_whole() {
        assert_eq!(workload_names(), ["bert-base", "llama-8b-block", "resnet50"]);
        for name in workload_names() {
            let model = find_model(name, &[]).unwrap();
            assert_eq!(model.name, name);
            assert!(model.description.is_some_and(|text| !text.is_empty()));
            assert!(find_model(name, &["batch=3".to_owned()]).unwrap().segments().is_ok());
        }
    }

    #[test]
    fn resnet_has_the_ops_of_its_export() {
        let exported = onnx(synthetic::resnet50(), Dims::default().with("batch", 2));
        assert_eq!(ops(&find_model("resnet50", &["batch=2".to_owned()]).unwrap()), ops(&exported));
    }

    #[test]
    fn bert_has_the_ops_of_its_export_but_for_its_mask_and_its_ends() {
        let dims = Dims::default().with("batch", 1).with("sequence", 128);
        let (exported, own) =
            (ops(&onnx(synthetic::bert_base(), dims)), ops(&find_model("bert-base", &[]).unwrap()));
        for (op, count) in &own {
            // The embedding of the export has sums of its own.
            assert!(exported.get(op).is_some_and(|all| all >= count), "{op}");
        }
        let others: Vec<&String> = exported.keys().filter(|op| !own.contains_key(*op)).collect();
        assert!(own.len() >= 8 && others.len() <= 8, "{others:?}");
    }

    #[test]
    fn what_is_no_model_says_why() {
        let error = |name: &str, dims: &[&str]| {
            let dims: Vec<String> = dims.iter().map(|&dim| dim.to_owned()).collect();
            let nodes = find_model(name, &dims)
                .and_then(|model| model.segments().and_then(|found| model.graph_nodes(&found)));
            format!("{:#}", nodes.unwrap_err())
        };
        assert!(error("resnet", &[]).contains("`resnet50`"));
        assert!(error("bert-base", &["tokens=3"]).contains("tokens"));
        assert!(error("bert-base", &["batch"]).contains("expected name=number"));
        let twice = error("bert-base", &["batch=1", "sequence=8", " batch = 3"]);
        assert!(twice.contains("`batch` is given twice, as batch=1 and batch=3"), "{twice}");
        // More elements than can be counted, and more rows than a problem has.
        let both = ["batch=4294967295", "sequence=4294967295"];
        for dims in [&both[..], &["batch=1000000000"]] {
            let message = error("bert-base", dims);
            assert!(message.starts_with(&format!("bert-base with {}", dims[0])), "{message}");
            assert!(!message.contains("not a valid graph"), "{message}");
        }
        assert!(error("no/such.onnx", &[]).contains("cannot read no/such.onnx"));
        assert!(error("no-such.toml", &[]).contains("cannot read no-such.toml"));
    }
}
