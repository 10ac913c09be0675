//! A calibration and what follows from it.

use std::path::PathBuf;
use std::sync::Arc;

use fusion_cost_model as fcm;
use fusion_cost_model::calibration::HardwareCalibration;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::on_target::OnTarget;
use crate::target::Target;

/// What a calibration file says, ready to be asked.
#[pyclass(frozen, module = "fusion_cost_model")]
pub(crate) struct FusionCostModel(Arc<fcm::FusionCostModel>);

impl FusionCostModel {
    /// Makes a model, while other threads of Python run.
    fn made(
        py: Python<'_>,
        expecting_hardware: Option<&str>,
        make: impl FnOnce() -> Result<fcm::FusionCostModel, fcm::Error> + Send,
    ) -> PyResult<Self> {
        let model = py.detach(make).and_then(|model| match expecting_hardware {
            Some(name) => model.expecting_hardware(name),
            None => Ok(model),
        });
        model.map(|model| Self(Arc::new(model))).map_err(raise)
    }
}

#[pymethods]
impl FusionCostModel {
    #[staticmethod]
    #[pyo3(signature = (path, *, expecting_hardware=None))]
    fn load(py: Python<'_>, path: PathBuf, expecting_hardware: Option<&str>) -> PyResult<Self> {
        Self::made(py, expecting_hardware, || fcm::FusionCostModel::load(path))
    }

    #[staticmethod]
    #[pyo3(signature = (text, *, expecting_hardware=None))]
    fn from_text(py: Python<'_>, text: &str, expecting_hardware: Option<&str>) -> PyResult<Self> {
        Self::made(py, expecting_hardware, || {
            Ok(fcm::FusionCostModel::new(HardwareCalibration::from_toml(text)?))
        })
    }

    #[getter]
    fn targets(&self) -> Vec<Target> {
        self.0.targets().iter().copied().map(Target).collect()
    }

    #[pyo3(signature = (target, *, state=None))]
    fn on(&self, target: &Target, state: Option<u32>) -> PyResult<OnTarget> {
        OnTarget::new(Arc::clone(&self.0), target.0, state).map_err(raise)
    }

    fn __repr__(&self) -> String {
        let calibration = self.0.calibration();
        let records = calibration.records.len();
        format!("<FusionCostModel of {:?} with {records} records>", calibration.hardware.name)
    }
}
