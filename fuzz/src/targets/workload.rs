//! Workloads.

use calibrate::profiles::Workload;
use model_graphs::Dims;

use super::graph::checks;
use super::text;
use crate::Target;

/// Kernels cover the segments of what is read, with the dimensions that it names itself.
pub(super) const WORKLOAD: Target = Target {
    name: "workload",
    seeds: || {
        let block = include_str!("../../../calibrate/profiles/workloads/llama-8b-block.toml");
        vec![SMALL.into(), block.into()]
    },
    run: |bytes| text(bytes, read),
};

const SMALL: &str = r#"kind = "workload"
schema_version = 1
name = "two"
description = "two layers of a residual network"
dtype = "f32"
dims = { batch = 4 }
inputs = [{ name = "x", shape = ["batch", 16] }]

[[blocks]]
name = "layer"
times = 2
weights = { "w" = [16, 16], "b gain shift" = [16] }
nodes = """
# comment
a = Linear(in, w, b)
c = Relu(a)
s = Add(c, in)
r = Reshape(s, [0, -1])
out = LayerNormalization(r, gain, shift) axis=-1
"""
"#;

fn read(text: &str) -> String {
    let workload = match Workload::from_toml(text) {
        Ok(workload) => workload,
        Err(error) => return error.to_string(),
    };
    let dims = workload.dims.iter();
    let dims = dims.fold(Dims::default(), |dims, (name, size)| dims.with(name, *size));
    match workload.graph.segments(&dims) {
        Ok(found) => {
            checks::whole(&found);
            String::new()
        }
        Err(error) => {
            let is_open = error.is_open_dims() || error.is_invalid_dim();
            assert!(is_open || error.is_invalid_graph(), "{error}");
            error.to_string()
        }
    }
}
