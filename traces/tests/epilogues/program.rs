//! Traces of made-up models whose layers are lists of operators, as the profiler writes them.

use crate::written::{event, trace};

/// An operator that launches one kernel.
#[derive(Clone)]
pub(crate) struct Op {
    /// The innermost operator, and what stands around it.
    pub(crate) name: &'static str,
    pub(crate) outer: Option<&'static str>,
    /// The sizes of its inputs, as the profiler writes them.
    pub(crate) sizes: String,
    /// Their values, where some matter.
    pub(crate) values: &'static str,
    pub(crate) kernel: &'static str,
    pub(crate) ns: u64,
}

const ROWS: u64 = 1024;
pub(crate) const HIDDEN: u64 = 512;
pub(crate) const WIDE: u64 = 4 * HIDDEN;

/// How long a kernel takes to read and write this many numbers.
const fn moves(numbers: u64) -> u64 {
    2000 + numbers / 500
}

pub(crate) const CLAMP: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)";
pub(crate) const GELU: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)";
pub(crate) const SILU: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)";
const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)";
const MUL: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)";
pub(crate) const TRITON_SWIGLU: &str = "triton_poi_fused_mul_silu_4";
const SWIGLU: &str = "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)";
const NORM: &str = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)";
const ADD_NORM: &str = "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, float, int, int)";
const FLASH: &str = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64, 4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)";

impl Op {
    fn of(name: &'static str, sizes: String, kernel: &'static str, ns: u64) -> Self {
        Self { name, outer: None, sizes, values: "", kernel, ns }
    }

    /// A GEMM without a bias, of `width` columns out of `depth`.
    pub(crate) fn mm(width: u64, depth: u64) -> Self {
        let sizes = format!("[[{ROWS}, {depth}], [{depth}, {width}]]");
        let kernel = match (width / 512) % 3 {
            0 => "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT",
            1 => "nvjet_tst_192x152_64x4_1x1_v_bz_coopA_TNT",
            _ => "nvjet_tst_128x64_64x8_2x1_v_bz_coopA_TNT",
        };
        let op = Self::of("aten::mm", sizes, kernel, 3000 + ROWS * width * depth / 60_000);
        op.inside("aten::linear")
    }

    /// A GEMM with a bias.
    pub(crate) fn addmm(width: u64, depth: u64) -> Self {
        let op = Self::mm(width, depth);
        let sizes = format!("[[{width}], {}", &op.sizes[1..]);
        Self { name: "aten::addmm", sizes, ..op }
    }

    /// A GEMM whose operator computes a bias and an activation as well.
    pub(crate) fn addmm_activation(width: u64, depth: u64) -> Self {
        Self { name: "aten::_addmm_activation", outer: None, ..Self::addmm(width, depth) }
    }

    /// The same, where the trace says which activation that is.
    pub(crate) fn with_activation(self, is_gelu: bool) -> Self {
        let sizes = format!("{}, [], [], []]", &self.sizes[..self.sizes.len() - 1]);
        let values = match is_gelu {
            true => r#"["", "", "", "1", "1", "True"]"#,
            false => r#"["", "", "", "1", "1", "False"]"#,
        };
        Self { sizes, values, ..self }
    }

    /// An activation in a kernel of its own.
    pub(crate) fn act(kernel: &'static str, width: u64) -> Self {
        let (name, outer) = match kernel {
            CLAMP => ("aten::clamp_min", Some("aten::relu")),
            SILU => ("aten::silu", None),
            _ => ("aten::gelu", None),
        };
        let sizes = format!("[[{ROWS}, {width}], []]");
        Self { outer, ..Self::of(name, sizes, kernel, moves(2 * ROWS * width)) }
    }

    pub(crate) fn swiglu(width: u64) -> Self {
        let sizes = format!("[[{ROWS}, {width}], [{ROWS}, {}]]", 2 * width);
        Self::of("_C::silu_and_mul", sizes, SWIGLU, moves(3 * ROWS * width))
    }

    /// Two matrices are multiplied, as by a gate.
    pub(crate) fn gate(width: u64) -> Self {
        let sizes = format!("[[{ROWS}, {width}], [{ROWS}, {width}]]");
        Self::of("aten::mul", sizes, MUL, moves(3 * ROWS * width))
    }

    /// A row is added to each row.
    pub(crate) fn bias(width: u64) -> Self {
        let sizes = format!("[[{ROWS}, {width}], [{width}], []]");
        Self::of("aten::add_", sizes, ADD, moves(2 * ROWS * width))
    }

    pub(crate) fn residual() -> Self {
        let sizes = format!("[[{ROWS}, {HIDDEN}], [{ROWS}, {HIDDEN}], []]");
        Self::of("aten::add", sizes, ADD, moves(3 * ROWS * HIDDEN))
    }

    pub(crate) fn norm() -> Self {
        let sizes = format!("[[{ROWS}, {HIDDEN}], [], [{HIDDEN}], [{HIDDEN}], []]");
        Self::of("aten::native_layer_norm", sizes, NORM, moves(2 * ROWS * HIDDEN))
    }

    pub(crate) fn add_norm() -> Self {
        let sizes = format!("[[{ROWS}, {HIDDEN}], [{ROWS}, {HIDDEN}], [{HIDDEN}], []]");
        Self::of("_C::fused_add_rms_norm", sizes, ADD_NORM, moves(4 * ROWS * HIDDEN))
    }

    pub(crate) fn attention() -> Self {
        let one = format!("[1, {ROWS}, 8, 64]");
        Self::of("aten::_flash_attention_forward", format!("[{one}, {one}, {one}]"), FLASH, 24_000)
    }

    pub(crate) fn inside(self, outer: &'static str) -> Self {
        Self { outer: Some(outer), ..self }
    }

    pub(crate) fn called(self, name: &'static str) -> Self {
        Self { name, outer: None, ..self }
    }

    pub(crate) fn by(self, kernel: &'static str) -> Self {
        Self { kernel, ..self }
    }

    pub(crate) fn longer_by(self, ns: u64) -> Self {
        Self { ns: self.ns + ns, ..self }
    }
}

/// A layer of a transformer: what follows attention, and the feed-forward part.
pub(crate) fn layer(out: &[Op], feed_forward: &[Op]) -> Vec<Op> {
    let mut ops = vec![Op::norm(), Op::addmm(3 * HIDDEN, HIDDEN), Op::attention()];
    ops.extend_from_slice(out);
    ops.extend_from_slice(feed_forward);
    ops
}

/// A model, and the machine that it runs on.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) layer: Vec<Op>,
    pub(crate) is_amd: bool,
    /// Whether operators were recorded, and their sizes.
    pub(crate) has_operators: bool,
    pub(crate) has_sizes: bool,
    pub(crate) seed: u64,
}

const LAYERS: usize = 6;
const STEPS: usize = 4;

impl Program {
    pub(crate) fn of(layer: Vec<Op>) -> Self {
        Self { layer, is_amd: false, has_operators: true, has_sizes: true, seed: 1 }
    }

    /// The trace, as the profiler writes it.
    pub(crate) fn text(&self) -> String {
        let (text, random) = (String::new(), self.seed);
        let mut out = Writer { text, id: 0, random, host: 1000, device: 9000, program: self };
        let embedding = "void at::native::vectorized_gather_kernel<16, long>()";
        let table = format!("[[32000, {HIDDEN}], [1, {ROWS}]]");
        let embedding = Op::of("aten::embedding", table, embedding, 3000);
        for step in 0..STEPS {
            let (start, at) = (out.host, out.text.len());
            out.host += 100;
            out.op(&embedding);
            for _ in 0..LAYERS {
                self.layer.iter().for_each(|op| out.op(op));
            }
            out.op(&Op::mm(32_000, HIDDEN));
            let name = format!("ProfilerStep#{step}");
            let mark = event("user_annotation", &name, (1, 1), start..out.host, "");
            out.text.insert_str(at, &mark);
            out.host = out.host.max(out.device) + 1000;
        }
        let device = if self.is_amd { "AMD Instinct MI300X" } else { "NVIDIA H100" };
        trace(device, &out.text)
    }
}

struct Writer<'p> {
    text: String,
    id: u64,
    random: u64,
    host: u64,
    device: u64,
    program: &'p Program,
}

impl Writer<'_> {
    /// About how much longer than usual a kernel takes, as a factor: the sum of four numbers that look
    /// random is nearly normal, here with a deviation of one percent.
    fn noise(&mut self) -> f64 {
        let mut one = || {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.random >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
        };
        1.0 + 0.017 * (one() + one() + one() + one())
    }

    fn op(&mut self, op: &Op) {
        self.id += 1;
        let id = self.id;
        let Program { has_operators, has_sizes, is_amd, .. } = *self.program;
        let host = self.host;
        if has_operators {
            // What is called next begins when this one ends, as by a clock of whole microseconds.
            let mut begin = host;
            if let Some(outer) = op.outer {
                let args = format!("\"External id\": {}", id + 1_000_000);
                self.text += &event("cpu_op", outer, (1, 1), host..host + 2000, &args);
                begin += 100;
            }
            let sizes = match (has_sizes, op.values) {
                (true, "") => format!(", \"Input Dims\": {}", op.sizes),
                (true, values) => {
                    format!(", \"Input Dims\": {}, \"Concrete Inputs\": {values}", op.sizes)
                }
                (false, _) => String::new(),
            };
            let args = format!("\"External id\": {id}{sizes}");
            self.text += &event("cpu_op", op.name, (1, 1), begin..host + 1700, &args);
        }
        let launch = match has_operators {
            true => format!("\"External id\": {id}, \"correlation\": {id}"),
            false => format!("\"correlation\": {id}"),
        };
        let call = if is_amd { "hipLaunchKernel" } else { "cudaLaunchKernel" };
        self.text += &event("cuda_runtime", call, (1, 1), host + 300..host + 900, &launch);
        self.host += 2000;
        let start = self.device.max(self.host);
        // The machines of one vendor are alike; those of another have faster memory, by far more
        // than chance, and slower GEMMs.
        let pace = match (is_amd, op.sizes.matches('[').count()) {
            (false, _) => 1.0,
            (true, 3 | 4) => 1.18,
            (true, _) => 0.8,
        };
        let end = start + (op.ns as f64 * pace * self.noise()) as u64;
        let place = format!("\"device\": 0, \"stream\": 7, {launch}");
        let kernel = match op.kernel.starts_with("nvjet") && is_amd {
            true => {
                "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1"
            }
            false => op.kernel,
        };
        self.text += &event("kernel", kernel, (0, 7), start..end, &place);
        self.device = end + 500;
    }
}
