//! The Python interface of `fusion-cost-model`: its types as frozen classes, words as strings, and
//! times as floats. `fusion_cost_model.pyi` has the types and documents them for Python.

mod answer;
mod coverage;
mod errors;
mod model;
mod on_target;
mod partition;
mod policy;
mod problem;
mod target;

use pyo3::prelude::*;

/// What kernel fusion really gains on a machine, for graph partitioners.
#[pymodule(name = "fusion_cost_model")]
fn fusion_cost_model_python(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<answer::Decision>()?;
    module.add_class::<answer::Estimate>()?;
    module.add_class::<answer::Interval>()?;
    module.add_class::<coverage::Coverage>()?;
    module.add_class::<coverage::Covered>()?;
    module.add_class::<coverage::NextPoint>()?;
    module.add_class::<model::FusionCostModel>()?;
    module.add_class::<on_target::OnTarget>()?;
    module.add_class::<partition::Alternative>()?;
    module.add_class::<partition::GraphNode>()?;
    module.add_class::<partition::NodeOps>()?;
    module.add_class::<partition::Partition>()?;
    module.add_class::<partition::Segment>()?;
    module.add_class::<policy::Policy>()?;
    module.add_class::<problem::Problem>()?;
    module.add_class::<target::Target>()?;
    errors::add(module)
}
