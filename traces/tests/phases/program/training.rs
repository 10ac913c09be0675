//! Steps of training, and passes forward whose gradients are not computed.

use super::{AUTOGRAD, FLASH, HIDDEN, LAYERS, MAIN, Phase, Program, VOCABULARY};

/// Names of kernels of both vendors: those of NVIDIA and of AMD.
const FLASH_BACKWARD: [&str; 2] =
    ["flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "bwd_kernel_dk_dv"];
const ADAM: [&str; 2] =
    ["multi_tensor_apply_kernel_FusedAdamMathFunctor", "multi_tensor_apply_kernel_fused_adam_hip"];

/// How layers are computed once more in the backward pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Checkpoint {
    None,
    /// By a function with a node of its own.
    Function,
    /// By a hook of Python, which was recorded.
    Hook,
    /// By a hook that was not recorded.
    Unseen,
}

impl Program {
    /// A step of training, with what is of no phase: loading inputs, and clipping gradients.
    pub(crate) fn train(&mut self, checkpoint: Checkpoint) {
        self.op(MAIN, ("aten::copy_", "", "", ""), &["Memcpy_like_copy_kernel"], 2000, None);
        self.gradients(checkpoint);
        self.small(MAIN, "aten::_foreach_norm", "multi_tensor_apply_lp_norm", None);
        self.around("user_annotation", "Optimizer.step#AdamW.step", MAIN, Self::adam);
        self.host_ns = self.host_ns.max(self.device_ns);
    }

    /// A step of training that adds up the gradients of several passes.
    pub(crate) fn accumulate(&mut self, passes: usize) {
        self.accumulate_with(passes, Some("AdamW"));
    }

    /// The same by another optimizer, or by one that nothing marks.
    pub(crate) fn accumulate_with(&mut self, passes: usize, optimizer: Option<&str>) {
        (0..passes).for_each(|_| self.gradients(Checkpoint::None));
        match optimizer {
            Some(name) => {
                let mark = format!("Optimizer.step#{name}.step");
                self.around("user_annotation", &mark, MAIN, Self::adam);
            }
            None => self.adam(),
        }
        self.host_ns = self.host_ns.max(self.device_ns);
    }

    /// A step that the profiler marks, of several passes, and an optimizer that nothing marks.
    pub(crate) fn marked_step(&mut self, number: usize, passes: usize) {
        self.around("user_annotation", &format!("ProfilerStep#{number}"), MAIN, |program| {
            (0..passes).for_each(|_| program.gradients(Checkpoint::None));
            program.adam();
        });
        self.host_ns = self.host_ns.max(self.device_ns);
    }

    /// A step of training that the optimizer runs: it is called with a closure.
    pub(crate) fn train_in_closure(&mut self) {
        self.around("user_annotation", "Optimizer.step#AdamW.step", MAIN, |program| {
            program.gradients(Checkpoint::None);
            program.small(MAIN, "aten::_foreach_norm", "multi_tensor_apply_lp_norm", None);
            program.adam();
        });
        self.host_ns = self.host_ns.max(self.device_ns);
    }

    /// A pass forward that no gradients are computed of.
    pub(crate) fn evaluate(&mut self) {
        self.look_up(None);
        (0..LAYERS).for_each(|_| self.train_forward(MAIN, None, false));
        self.small(MAIN, "aten::argmax", "reduce_kernel_ArgMaxOps", None);
        self.host_ns = self.host_ns.max(self.device_ns);
    }

    /// The passes forward and backward of a step of training.
    fn gradients(&mut self, checkpoint: Checkpoint) {
        use Phase::{Backward, Forward, Optimizer};
        self.with_gradient();
        self.look_up(Some(Forward));
        for _ in 0..LAYERS {
            self.train_forward(MAIN, Some(Forward), true);
        }
        self.with_gradient();
        self.small(MAIN, "aten::nll_loss", "nll_loss_forward_reduce_cuda_kernel_2d", Some(Forward));
        self.around("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad", MAIN, |program| {
            program.small(MAIN, "aten::zero_", "FillFunctor", Some(Optimizer));
        });
        self.node("NllLossBackward0", |program| {
            program.small(AUTOGRAD, "aten::nll_loss_backward", "nll_loss_backward", Some(Backward));
        });
        for _ in 0..LAYERS {
            self.train_backward(checkpoint);
        }
        self.node("EmbeddingBackward0", |program| {
            let op = "aten::embedding_dense_backward";
            program.small(AUTOGRAD, op, "embedding_backward_feature_kernel", Some(Backward));
        });
        self.node("torch::autograd::AccumulateGrad", |program| {
            program.small(AUTOGRAD, "aten::add_", "elementwise_add_kernel", Some(Backward));
        });
    }

    /// Looks up the tokens of a step of training.
    fn look_up(&mut self, phase: Option<Phase>) {
        let sequence = self.tokens / 4;
        let number = std::mem::take(&mut self.number);
        let sizes = match self.has_sizes {
            true => format!(
                "{number}, \"Input Dims\": [[{VOCABULARY}, {HIDDEN}], [4, {sequence}]], \
                 \"Input type\": [\"c10::BFloat16\", \"long int\"]"
            ),
            false => number,
        };
        // As the framework does it: another operator launches the kernel.
        self.around_with(&sizes, "cpu_op", "aten::embedding", MAIN, |program| {
            program.small(MAIN, "aten::index_select", "indexSelectLargeIndex", phase);
        });
    }

    fn adam(&mut self) {
        let adam = self.of_vendor(ADAM);
        self.small(MAIN, "aten::_fused_adamw_", adam, Some(Phase::Optimizer));
        self.small(MAIN, "aten::_fused_adamw_", adam, Some(Phase::Optimizer));
    }

    /// The next operator has a gradient.
    fn with_gradient(&mut self) {
        if self.has_numbers {
            self.last_gradient += 1;
            self.gradients.push(self.last_gradient);
            self.number = format!(", \"Sequence number\": {}", self.last_gradient);
        }
    }

    fn train_forward(&mut self, thread: u64, phase: Option<Phase>, has_gradients: bool) {
        let number = |program: &mut Self| {
            if has_gradients {
                program.with_gradient();
            }
        };
        self.around("cpu_op", "aten::layer_norm", thread, |program| {
            number(program);
            program.small(thread, "aten::native_layer_norm", "layer_norm_kernel", phase);
        });
        self.around("cpu_op", "aten::linear", thread, |program| {
            number(program);
            program.mm(thread, [program.tokens, HIDDEN, HIDDEN], phase);
        });
        let heads = "[[4, 8, 64, 64], [4, 8, 64, 64], [4, 8, 64, 64]]";
        let flash = self.of_vendor(FLASH);
        let op = ("aten::_flash_attention_forward", heads, "[]", "[]");
        self.op(thread, op, &[flash], 4000, phase);
        number(self);
        self.small(thread, "aten::gelu", "gelu_kernel", phase);
        self.around("cpu_op", "aten::linear", thread, |program| {
            number(program);
            program.mm(thread, [program.tokens, HIDDEN, HIDDEN], phase);
        });
    }

    fn train_backward(&mut self, checkpoint: Checkpoint) {
        let (recompute, backward) = (Some(Phase::Recompute), Some(Phase::Backward));
        let again = |program: &mut Self| program.train_forward(AUTOGRAD, recompute, false);
        let gradients = |program: &mut Self| {
            let flash = "ScaledDotProductFlashAttentionBackward0";
            for node in
                ["MmBackward0", "GeluBackward0", flash, "MmBackward0", "NativeLayerNormBackward0"]
            {
                program.node(node, |program| match node {
                    "GeluBackward0" => {
                        program.small(
                            AUTOGRAD,
                            "aten::gelu_backward",
                            "GeluBackwardKernel",
                            backward,
                        );
                    }
                    node if node == flash => program.small(
                        AUTOGRAD,
                        "aten::_flash_attention_backward",
                        program.of_vendor(FLASH_BACKWARD),
                        backward,
                    ),
                    "MmBackward0" => {
                        program.mm(AUTOGRAD, [program.tokens, HIDDEN, HIDDEN], backward);
                        program.mm(AUTOGRAD, [HIDDEN, HIDDEN, program.tokens], backward);
                    }
                    _ => program.small(
                        AUTOGRAD,
                        "aten::native_layer_norm_backward",
                        "layer_norm_grad_input_kernel",
                        backward,
                    ),
                });
            }
        };
        match checkpoint {
            Checkpoint::None => gradients(self),
            Checkpoint::Function => self.node("CheckpointFunctionBackward", |program| {
                again(program);
                gradients(program);
            }),
            Checkpoint::Hook => {
                let hook = "torch/utils/checkpoint.py(1129): unpack_hook";
                self.node("MulBackward0", |program| {
                    program.around("python_function", hook, AUTOGRAD, again);
                    program.small(AUTOGRAD, "aten::mul", "elementwise_mul_kernel", backward);
                });
                gradients(self);
            }
            Checkpoint::Unseen => {
                self.node("MulBackward0", |program| {
                    again(program);
                    program.small(AUTOGRAD, "aten::mul", "elementwise_mul_kernel", backward);
                });
                gradients(self);
            }
        }
    }

    fn node(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        let without =
            ["MulBackward0", "CheckpointFunctionBackward", "torch::autograd::AccumulateGrad"];
        let has_number = !without.contains(&name) && !name.starts_with("ScaledDotProduct");
        let number = self.gradients.pop_if(|_| has_number);
        let args = number.map_or_else(String::new, |one| format!(", \"Sequence number\": {one}"));
        let engine = format!("autograd::engine::evaluate_function: {name}");
        self.around_with(&args, "cpu_op", &engine, AUTOGRAD, |program| {
            program.around_with(&args, "cpu_op", name, AUTOGRAD, inside);
        });
    }
}
