//! GEMMs of a vendor's library, with what the library can apply to them in the same kernel.

use std::rc::Rc;

use fusion_cost_model::{DType, Op, Pointwise, Problem};

use super::driver::{Address, DeviceError};
use super::memory::DeviceTensors;
use super::queue::Launch;
use super::tensors::TensorId;
use crate::backend::KernelFacts;

/// What a library applies to a GEMM before it stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Epilogue {
    /// Nothing: the unfused variant, and a linear op by itself.
    None,
    /// ReLU.
    Relu,
    /// The tanh approximation of GELU.
    Gelu,
    /// A bias per column.
    Bias,
    /// A bias and then ReLU.
    BiasRelu,
    /// A bias and then the tanh approximation of GELU.
    BiasGelu,
}

impl Epilogue {
    /// The epilogue that computes all of a chain after its first op, a linear one; `None` where the
    /// libraries have none. Their GELU is the approximation, so that a chain with the exact one is
    /// not theirs.
    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        const BIAS: Op = Op::Pointwise(Pointwise::Bias);
        const RELU: Op = Op::Pointwise(Pointwise::Relu);
        const GELU: Op = Op::Pointwise(Pointwise::GeluTanh);
        match problem.chain().ops() {
            [Op::Linear] => Some(Self::None),
            [Op::Linear, RELU] => Some(Self::Relu),
            [Op::Linear, GELU] => Some(Self::Gelu),
            [Op::Linear, BIAS] => Some(Self::Bias),
            [Op::Linear, BIAS, RELU] => Some(Self::BiasRelu),
            [Op::Linear, BIAS, GELU] => Some(Self::BiasGelu),
            _ => None,
        }
    }

    /// Whether it reads a bias.
    pub(crate) fn has_bias(self) -> bool {
        matches!(self, Self::Bias | Self::BiasRelu | Self::BiasGelu)
    }

    /// The name in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Relu => "+relu",
            Self::Gelu => "+gelu_tanh",
            Self::Bias => "+bias",
            Self::BiasRelu => "+bias+relu",
            Self::BiasGelu => "+bias+gelu_tanh",
        }
    }
}

/// `Y[m, n] = X[m, k] W[k, n]`, all row-major, in one dtype with f32 sums, and what comes
/// after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Gemm {
    pub(crate) dtype: DType,
    pub(crate) m: u64,
    pub(crate) k: u64,
    pub(crate) n: u64,
    pub(crate) epilogue: Epilogue,
}

/// Where the tensors of a GEMM are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GemmAddresses {
    pub(crate) x: Address,
    pub(crate) w: Address,
    pub(crate) bias: Option<Address>,
    pub(crate) y: Address,
    pub(crate) workspace: Address,
}

/// A vendor's GEMM library, on the queue of one driver.
pub(crate) trait GemmLibrary {
    /// Its name and version.
    fn version(&self) -> &str;

    /// The library's choice of a kernel for a GEMM with at most `workspace_bytes` of workspace;
    /// `None` where it has none.
    fn prepare(
        &self,
        gemm: &Gemm,
        workspace_bytes: u64,
    ) -> Result<Option<Box<dyn PreparedGemm>>, DeviceError>;
}

/// A GEMM that the library has chosen a kernel for.
pub(crate) trait PreparedGemm {
    /// Submits it to the driver's queue.
    ///
    /// # Safety
    ///
    /// The addresses must be of tensors of the GEMM's sizes, and of the workspace that it was
    /// prepared with.
    unsafe fn launch(&self, at: &GemmAddresses) -> Result<(), DeviceError>;
}

/// Workspace for a library's kernels: what PyTorch gives cuBLASLt on Hopper.
pub(crate) const WORKSPACE_BYTES: u64 = 32 << 20;

/// The tensors of a GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GemmTensors {
    pub(crate) x: TensorId,
    pub(crate) w: TensorId,
    pub(crate) bias: Option<TensorId>,
    pub(crate) y: TensorId,
    pub(crate) workspace: TensorId,
}

/// A library's GEMM among the launches of a variant.
pub(crate) struct LocatedGemm {
    library: Rc<dyn GemmLibrary>,
    gemm: Gemm,
    prepared: Box<dyn PreparedGemm>,
    tensors: GemmTensors,
    /// For each set, where the tensors lie now.
    addresses: Vec<GemmAddresses>,
}

impl LocatedGemm {
    /// A GEMM on some tensors; `None` where the library has no kernel for it.
    pub(crate) fn new(
        library: &Rc<dyn GemmLibrary>,
        gemm: Gemm,
        tensors: GemmTensors,
    ) -> Result<Option<Self>, DeviceError> {
        let prepared = library.prepare(&gemm, WORKSPACE_BYTES)?;
        Ok(prepared.map(|prepared| Self {
            library: Rc::clone(library),
            gemm,
            prepared,
            tensors,
            addresses: Vec::new(),
        }))
    }
}

impl Launch for LocatedGemm {
    fn name(&self) -> String {
        let Gemm { dtype, epilogue, .. } = self.gemm;
        format!("{} matmul{} {dtype}", self.library.version(), epilogue.name())
    }

    fn facts(&self) -> Option<KernelFacts> {
        None
    }

    fn locate(&mut self, tensors: &DeviceTensors) -> Result<(), DeviceError> {
        let GemmTensors { x, w, bias, y, workspace } = self.tensors;
        let of_set = |set| {
            let at = |id| tensors.address(set, id);
            let (bias, workspace) = (bias.map(at), at(workspace));
            GemmAddresses { x: at(x), w: at(w), bias, y: at(y), workspace }
        };
        self.addresses = (0..tensors.sets()).map(of_set).collect();
        Ok(())
    }

    unsafe fn launch(&self, set: usize) -> Result<(), DeviceError> {
        // SAFETY: the tensors were added for this GEMM, and are where `locate` found them, by
        // the caller's guarantee.
        unsafe { self.prepared.launch(&self.addresses[set]) }.map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_library_computes_is_its_own() {
        for (chain, expected) in [
            ("linear", Some(Epilogue::None)),
            ("linear_bias", Some(Epilogue::Bias)),
            ("linear_bias_relu", Some(Epilogue::BiasRelu)),
            ("linear+bias+gelu_tanh", Some(Epilogue::BiasGelu)),
            ("linear+gelu_tanh", Some(Epilogue::Gelu)),
            ("linear+relu", Some(Epilogue::Relu)),
            // The exact GELU is not the library's.
            ("linear_bias_gelu", None),
            ("linear_bias_relu_dropout", None),
            ("linear+relu+bias", None),
        ] {
            let problem: Problem = format!("{chain}/bf16/m8.k8.n8").parse().unwrap();
            assert_eq!(Epilogue::of(&problem), expected, "{chain}");
        }
        for text in ["mlp/bf16/m8.k8.n8.o8", "conv_relu/f16/n1.c3.h8.w8.k4.r3.s3"] {
            assert_eq!(Epilogue::of(&text.parse().unwrap()), None, "{text}");
        }
    }
}
