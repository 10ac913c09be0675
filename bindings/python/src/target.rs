//! Where a problem would run.

use fusion_cost_model as fcm;
use pyo3::prelude::*;

use crate::errors::{InvalidQuestionError, by_name, raise};

const CACHE_STATES: &[(&str, fcm::CacheState)] =
    &[("warm", fcm::CacheState::Warm), ("cold", fcm::CacheState::Cold)];

/// Where a problem would run, and what its time would be.
#[pyclass(frozen, eq, hash, module = "fusion_cost_model")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Target(pub(crate) fcm::Target);

#[pymethods]
impl Target {
    #[new]
    #[pyo3(signature = (backend, *, threads=1, clock=None, cache_state="warm", implementation="native"))]
    fn new(
        backend: &str,
        threads: u32,
        clock: Option<&str>,
        cache_state: &str,
        implementation: &str,
    ) -> PyResult<Self> {
        let backend: fcm::Backend = backend.parse().map_err(raise)?;
        let clock = match clock {
            Some(clock) => clock.parse().map_err(raise)?,
            None if backend == fcm::Backend::Cpu => fcm::Clock::Host,
            None => {
                return Err(InvalidQuestionError::new_err(
                    "a GPU has two clocks; pass clock=\"device\" or clock=\"launch-inclusive\"",
                ));
            }
        };
        Ok(Self(
            fcm::Target::gpu(backend, clock)
                .with_threads(threads)
                .with_cache_state(by_name("cache state", cache_state, CACHE_STATES)?)
                .with_implementation(implementation.parse().map_err(raise)?),
        ))
    }

    #[getter]
    fn backend(&self) -> &'static str {
        self.0.backend.name()
    }

    #[getter]
    fn threads(&self) -> u32 {
        self.0.threads
    }

    #[getter]
    fn clock(&self) -> &'static str {
        self.0.clock.name()
    }

    #[getter]
    fn cache_state(&self) -> &'static str {
        self.0.cache_state.name()
    }

    #[getter]
    fn implementation(&self) -> &str {
        self.0.implementation.name()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let fcm::Target { backend, threads, cache_state, clock, implementation, .. } = self.0;
        format!(
            "Target({:?}, threads={threads}, clock={:?}, cache_state={:?}, implementation={:?})",
            backend.name(),
            clock.name(),
            cache_state.name(),
            implementation.name()
        )
    }
}
