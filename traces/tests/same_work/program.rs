//! Traces of made-up programs, as the profiler writes them.

use crate::written::{event, trace};

/// A step: sequences, tokens of each, and what marks it.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) batch: u64,
    pub(crate) sequence: u64,
    pub(crate) mark: Mark,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    None,
    Vllm,
}

/// What the operators of a trace say of their inputs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sizes {
    All,
    None,
    Symbols,
    /// Larger than any machine has.
    Huge,
}

/// A program and the device that it runs on.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) layers: u64,
    pub(crate) hidden: u64,
    /// Heads of attention; as many as have a size of 64 if none.
    pub(crate) heads: Option<u64>,
    pub(crate) convolutions: u64,
    pub(crate) joined_qkv: bool,
    /// How many tokens the model knows; zero if it looks up none.
    pub(crate) vocabulary: u64,
    /// How many more GEMMs a layer has, of a size that it has anyway.
    pub(crate) more_gemms: u64,
    /// Whether each GEMM out of attention has an adapter of low rank.
    pub(crate) has_adapters: bool,
    /// Whether the first GEMM behind attention computes the activation.
    pub(crate) fuses_activation: bool,
    /// Whether it is an operator of the framework that does so.
    pub(crate) by_operator: bool,
    /// Whether the operator of GEMMs has the weights first.
    pub(crate) weights_first: bool,
    pub(crate) dtype: &'static str,
    pub(crate) sizes: Sizes,
    pub(crate) steps: Vec<Step>,
    /// Nanoseconds for a token of a decode step, and of others, of each kernel.
    pub(crate) pace: [u64; 2],
    /// How many percent of that kernels of each of the first steps take.
    pub(crate) first_percents: Vec<u64>,
    pub(crate) device: &'static str,
}

pub(crate) const STEP: Step = Step { batch: 4, sequence: 64, mark: Mark::None };

impl Plan {
    pub(crate) fn transformer() -> Self {
        Self {
            layers: 6,
            hidden: 512,
            heads: None,
            convolutions: 0,
            joined_qkv: true,
            vocabulary: 32_000,
            more_gemms: 0,
            has_adapters: false,
            fuses_activation: false,
            by_operator: false,
            weights_first: false,
            dtype: "c10::BFloat16",
            sizes: Sizes::All,
            steps: vec![STEP; 3],
            pace: [40, 40],
            first_percents: Vec::new(),
            device: "NVIDIA H100",
        }
    }

    pub(crate) fn of_images(convolutions: u64, batch: u64) -> Self {
        let step = Step { batch, ..STEP };
        Self { layers: 0, convolutions, steps: vec![step; 3], ..Self::transformer() }
    }

    pub(crate) fn amd(self) -> Self {
        Self { device: "AMD Instinct MI300X", ..self }
    }

    pub(crate) fn steps(self, batch: u64, sequence: u64, mark: Mark) -> Self {
        Self { steps: vec![Step { batch, sequence, mark }; 3], ..self }
    }

    /// The trace, as the profiler writes it.
    pub(crate) fn text(&self) -> String {
        let mut out =
            Writer { text: String::new(), id: 0, host_ns: 1000, device_ns: 5000, plan: self };
        for (number, step) in self.steps.iter().enumerate() {
            out.step(*step, self.first_percents.get(number).copied().unwrap_or(100));
        }
        trace(self.device, &out.text)
    }
}

struct Writer<'p> {
    text: String,
    id: u64,
    host_ns: u64,
    device_ns: u64,
    plan: &'p Plan,
}

impl Writer<'_> {
    fn step(&mut self, step: Step, percent: u64) {
        let start = self.host_ns;
        let at = self.text.len();
        let Plan { layers, hidden, joined_qkv, vocabulary, .. } = *self.plan;
        let Step { batch, sequence, mark } = step;
        let tokens = batch * sequence;
        let pace = self.plan.pace[usize::from(sequence > 1)];
        let long = tokens * pace * percent / 100;
        let gemm = |n: u64, k: u64| match self.plan.weights_first {
            true => format!("[[{n}, {k}], [{tokens}, {k}]]"),
            false => format!("[[{tokens}, {k}], [{k}, {n}]]"),
        };
        let has_text = layers > 0 && vocabulary > 0;
        if has_text {
            let table = format!("[[{vocabulary}, {hidden}], [{batch}, {sequence}]]");
            self.op(
                "aten::embedding",
                &table,
                "void at::native::vectorized_gather_kernel<16, long>()",
                long / 4,
            );
        }
        for _ in 0..layers {
            self.op(
                "aten::rms_norm",
                &format!("[[{tokens}, {hidden}], [{hidden}]]"),
                "rms_norm_kernel",
                long / 8,
            );
            if joined_qkv {
                self.op("aten::mm", &gemm(3 * hidden, hidden), "nvjet_tst_qkv", 3 * long);
            } else {
                for _ in 0..3 {
                    self.op("aten::mm", &gemm(hidden, hidden), "nvjet_tst_one", long);
                }
            }
            let heads = self.plan.heads.unwrap_or(hidden / 64);
            let one = format!("[{batch}, {sequence}, {heads}, {}]", hidden / heads);
            self.op(
                "aten::_flash_attention_forward",
                &format!("[{one}, {one}, {one}]"),
                "flash_fwd_kernel",
                long,
            );
            self.op("aten::mm", &gemm(hidden, hidden), "nvjet_tst_out", long);
            if self.plan.has_adapters {
                self.op("aten::mm", &gemm(8, hidden), "nvjet_tst_low", long / 16);
                self.op("aten::mm", &gemm(hidden, 8), "nvjet_tst_high", long / 16);
            }
            let fused = self.plan.fuses_activation;
            let up = match fused && !self.plan.by_operator {
                true => "triton_tem_fused_mm_mul_silu_3",
                false => "nvjet_tst_up",
            };
            let sizes = gemm(4 * hidden, hidden);
            let (op, sizes) = match fused && self.plan.by_operator {
                true => ("aten::_addmm_activation", format!("[[{}], {}", 4 * hidden, &sizes[1..])),
                false => ("aten::mm", sizes),
            };
            for _ in 0..=self.plan.more_gemms {
                self.op(op, &sizes, up, 4 * long);
            }
            if !fused {
                self.op(
                    "aten::silu",
                    &format!("[[{tokens}, {}]]", 4 * hidden),
                    "silu_kernel",
                    long / 8,
                );
            }
            self.op("aten::mm", &gemm(hidden, 4 * hidden), "nvjet_tst_down", 4 * long);
        }
        if has_text {
            self.op("aten::mm", &gemm(vocabulary, hidden), "nvjet_tst_head", 8 * long);
        }
        for number in 0..self.plan.convolutions {
            // Deeper models repeat the sizes of shallow ones, and have wider ones as well.
            let channels = 64 << (number / 12);
            let sizes = format!(
                "[[{batch}, {channels}, 28, 28], [{channels}, {channels}, 3, 3], [], [1], [1], [1]]"
            );
            self.op("aten::cudnn_convolution", &sizes, "implicit_convolve_sgemm", long);
            self.op(
                "aten::relu",
                &format!("[[{batch}, {channels}, 28, 28]]"),
                "relu_kernel",
                long / 8,
            );
        }
        if self.plan.convolutions > 0 {
            self.op(
                "aten::addmm",
                &format!("[[1000], [{batch}, 512], [512, 1000]]"),
                "ampere_sgemm",
                long / 4,
            );
        }
        self.host_ns = self.host_ns.max(self.device_ns) + 1000;
        if mark == Mark::Vllm {
            let (prompts, running) = if sequence > 1 { (batch, 0) } else { (0, batch) };
            let name = format!(
                "execute_context_{prompts}({})_generation_{running}({running})",
                prompts * sequence
            );
            let mark = event("user_annotation", &name, (1, 1), start..self.host_ns, "");
            self.text.insert_str(at, &mark);
        }
        self.host_ns += 1000;
    }

    fn op(&mut self, name: &str, dims: &str, kernel: &str, ns: u64) {
        self.id += 1;
        let id = self.id;
        let name = match name {
            "aten::mm" if self.plan.weights_first => "_rocm_C::wvSplitK",
            name => name,
        };
        let inputs = dims.matches('[').count();
        let kinds = vec![format!("\"{}\"", self.plan.dtype); inputs].join(", ");
        let args = match self.plan.sizes {
            Sizes::All => format!(", \"Input type\": [{kinds}], \"Input Dims\": {dims}"),
            Sizes::None => String::new(),
            Sizes::Huge => {
                let huge = of_eighteen_digits(dims);
                format!(", \"Input type\": [{kinds}], \"Input Dims\": {huge}")
            }
            Sizes::Symbols => {
                let symbols = dims.replace(|c: char| c.is_ascii_digit(), "");
                let symbols = symbols.replace("[,", "[\"s0\",").replace(", ]", ", \"s1\"]");
                format!(", \"Input Dims\": {symbols}")
            }
        };
        let host = self.host_ns;
        self.text += &event(
            "cpu_op",
            name,
            (1, 1),
            host..host + 900,
            &format!("\"External id\": {id}{args}"),
        );
        let launch = format!("\"External id\": {id}, \"correlation\": {id}");
        self.text +=
            &event("cuda_runtime", "cudaLaunchKernel", (1, 1), host + 100..host + 500, &launch);
        self.host_ns += 1000;
        let start = self.device_ns.max(self.host_ns);
        let end = start + ns.max(50);
        self.text += &event(
            "kernel",
            kernel,
            (0, 7),
            start..end,
            &format!("\"device\": 0, \"stream\": 7, {launch}"),
        );
        self.device_ns = end + 10;
    }
}

/// Each number with zeros behind it, so that it has 18 digits.
fn of_eighteen_digits(dims: &str) -> String {
    let mut all = String::new();
    let mut digits = 0;
    for letter in dims.chars() {
        if letter.is_ascii_digit() {
            digits += 1;
        } else if digits > 0 {
            all.extend(std::iter::repeat_n('0', 18 - digits));
            digits = 0;
        }
        all.push(letter);
    }
    all
}
