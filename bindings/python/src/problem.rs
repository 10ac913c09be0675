//! Problems: a chain of ops, a dtype and sizes.

use fusion_cost_model as fcm;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raise;

/// A chain of ops, the dtype of its tensors, and its sizes.
#[pyclass(frozen, eq, hash, module = "fusion_cost_model")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Problem(pub(crate) fcm::Problem);

fn parsed(chain: &str, dtype: &str) -> Result<(fcm::Chain, fcm::DType), fcm::Error> {
    Ok((chain.parse()?, dtype.parse()?))
}

fn sized(
    chain: &str,
    dtype: &str,
    of_sizes: impl FnOnce(fcm::Chain, fcm::DType) -> Result<fcm::Problem, fcm::Error>,
) -> PyResult<Problem> {
    let problem = parsed(chain, dtype).and_then(|(chain, dtype)| of_sizes(chain, dtype));
    problem.map(Problem).map_err(raise)
}

#[pymethods]
impl Problem {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        text.parse().map(Self).map_err(raise)
    }

    #[staticmethod]
    #[pyo3(signature = (chain, dtype, *, m, n))]
    fn rows(chain: &str, dtype: &str, m: u64, n: u64) -> PyResult<Self> {
        let sizes = fcm::RowsSizes { m, n };
        sized(chain, dtype, |chain, dtype| fcm::Problem::rows(chain, dtype, sizes))
    }

    #[staticmethod]
    #[pyo3(signature = (chain, dtype, *, m, k, n))]
    fn linear(chain: &str, dtype: &str, m: u64, k: u64, n: u64) -> PyResult<Self> {
        let sizes = fcm::LinearSizes { m, k, n };
        sized(chain, dtype, |chain, dtype| fcm::Problem::linear(chain, dtype, sizes))
    }

    #[staticmethod]
    #[pyo3(signature = (chain, dtype, *, m, k, n, o))]
    fn mlp(chain: &str, dtype: &str, m: u64, k: u64, n: u64, o: u64) -> PyResult<Self> {
        let sizes = fcm::MlpSizes { m, k, n, o };
        sized(chain, dtype, |chain, dtype| fcm::Problem::mlp(chain, dtype, sizes))
    }

    #[staticmethod]
    #[pyo3(signature = (chain, dtype, *, n, c, h, w, k, r, s, stride=1, pad=0, groups=1))]
    #[expect(clippy::too_many_arguments, reason = "all of them are keywords")]
    fn conv(
        chain: &str,
        dtype: &str,
        n: u64,
        c: u64,
        h: u64,
        w: u64,
        k: u64,
        r: u64,
        s: u64,
        stride: u64,
        pad: u64,
        groups: u64,
    ) -> PyResult<Self> {
        let sizes = fcm::ConvSizes { n, c, h, w, k, r, s, stride, pad, groups };
        sized(chain, dtype, |chain, dtype| fcm::Problem::conv(chain, dtype, sizes))
    }

    #[staticmethod]
    #[pyo3(signature = (
        chain, dtype, *, n, c, h, w, k, r, s, stride=1, pad=0, groups=1,
        pool, pool_stride=None, pool_pad=0,
    ))]
    #[expect(clippy::too_many_arguments, reason = "all of them are keywords")]
    fn conv_pool(
        chain: &str,
        dtype: &str,
        n: u64,
        c: u64,
        h: u64,
        w: u64,
        k: u64,
        r: u64,
        s: u64,
        stride: u64,
        pad: u64,
        groups: u64,
        pool: u64,
        pool_stride: Option<u64>,
        pool_pad: u64,
    ) -> PyResult<Self> {
        let sizes = fcm::ConvSizes { n, c, h, w, k, r, s, stride, pad, groups };
        let pool =
            fcm::PoolWindow { size: pool, stride: pool_stride.unwrap_or(pool), pad: pool_pad };
        sized(chain, dtype, |chain, dtype| fcm::Problem::conv_pool(chain, dtype, sizes, pool))
    }

    #[staticmethod]
    #[pyo3(signature = (chain, dtype, *, b, h, q, d, kv=None, kvh=None, causal=false))]
    #[expect(clippy::too_many_arguments, reason = "all of them are keywords")]
    fn attention(
        chain: &str,
        dtype: &str,
        b: u64,
        h: u64,
        q: u64,
        d: u64,
        kv: Option<u64>,
        kvh: Option<u64>,
        causal: bool,
    ) -> PyResult<Self> {
        let (kv, kvh) = (kv.unwrap_or(q), kvh.unwrap_or(h));
        let sizes = fcm::AttentionSizes { b, h, q, kv, d, kvh, causal };
        sized(chain, dtype, |chain, dtype| fcm::Problem::attention(chain, dtype, sizes))
    }

    #[staticmethod]
    #[pyo3(signature = (chain, dtype, *, b, h, q, d, features, kv=None, kvh=None, causal=false))]
    #[expect(clippy::too_many_arguments, reason = "all of them are keywords")]
    fn multihead_linear(
        chain: &str,
        dtype: &str,
        b: u64,
        h: u64,
        q: u64,
        d: u64,
        features: u64,
        kv: Option<u64>,
        kvh: Option<u64>,
        causal: bool,
    ) -> PyResult<Self> {
        let (kv, kvh) = (kv.unwrap_or(q), kvh.unwrap_or(h));
        let sizes = fcm::AttentionSizes { b, h, q, kv, d, kvh, causal };
        sized(chain, dtype, |chain, dtype| {
            fcm::Problem::multihead_linear(chain, dtype, sizes, features)
        })
    }

    fn join(&self, next: &Self) -> PyResult<Self> {
        self.0.join(&next.0).map(Self).map_err(raise)
    }

    #[getter]
    fn ops(&self) -> Vec<&'static str> {
        self.0.chain().ops().iter().map(|op| op.name()).collect()
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype().name()
    }

    #[getter]
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sizes = PyDict::new(py);
        for (key, value) in self.0.sizes().iter() {
            sizes.set_item(key.key, value)?;
        }
        Ok(sizes)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Problem(\"{}\")", self.0)
    }
}
