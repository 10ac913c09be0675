//! Traces of made-up programs without marks, each kernel with its true phase: here what serves a
//! model, `server` one that runs sequences together, and `training` steps of training.

pub(crate) mod server;
pub(crate) mod training;

use kernel_traces::Vendor;
use kernel_traces::segment::Phase;

use crate::written::{event, trace};

/// The thread of the program, and that of the backward pass.
pub(crate) const MAIN: u64 = 1;
pub(crate) const AUTOGRAD: u64 = 2;

/// A program while it is written.
pub(crate) struct Program {
    pub(crate) vendor: Vendor,
    /// Of each kernel in the order of the file; none for what is of no phase.
    pub(crate) truth: Vec<Option<Phase>>,
    /// Whether the sizes of operators were recorded.
    pub(crate) has_sizes: bool,
    /// Whether a server shows the table of the pages of its sequences.
    pub(crate) has_tables: bool,
    /// How many tokens a server has read of each sequence before.
    pub(crate) cached: u64,
    /// Whether the model predicts tokens.
    pub(crate) has_head: bool,
    /// Whether the profiler numbers gradients; old ones do not.
    pub(crate) has_numbers: bool,
    /// How many tokens a step of training has.
    pub(crate) tokens: u64,
    /// How many times as long as elsewhere GEMMs take.
    pub(crate) slower: u64,
    /// Whether the host launches a pass while the one before runs, and its inputs are fetched then.
    pub(crate) runs_ahead: bool,
    /// The numbers of the gradients that no node has computed yet.
    gradients: Vec<u64>,
    last_gradient: u64,
    /// What the next operator says of its gradient.
    number: String,
    text: String,
    id: u64,
    host_ns: u64,
    device_ns: u64,
    stream: u64,
}

/// How attention is called.
#[derive(Clone, Copy)]
pub(crate) enum Attention {
    /// Batch, query tokens, key tokens, and whether tokens attend to those before them only.
    Plain(u64, u64, u64, bool),
    /// Over pages: tokens, and sequences.
    Pages(u64, u64),
    /// Kernels whose names say what they are for, without sizes.
    Named(&'static [&'static str]),
}

impl Attention {
    fn tokens(self) -> u64 {
        match self {
            Self::Plain(batch, queries, ..) => batch * queries,
            Self::Pages(tokens, _) => tokens,
            Self::Named(_) => 64,
        }
    }
}

/// Names of kernels of both vendors: those of NVIDIA and of AMD.
const GEMM: [&str; 2] = ["nvjet_tst_128x152_64x4_2x1", "Cijk_Alik_Bljk_BBS_BH_MT256x192x64"];
/// For so few rows there are others.
const FEW_ROWS: u64 = 8;
const GEMV: [&str; 2] = ["gemv2T_kernel_val", "wvSplitK_hf_sml_kernel"];
const FLASH: [&str; 2] = ["flash_fwd_kernel", "attn_fwd"];

pub(crate) const LAYERS: u64 = 6;
const HIDDEN: u64 = 512;
const VOCABULARY: u64 = 32_000;

impl Program {
    pub(crate) fn new(vendor: Vendor) -> Self {
        Self {
            vendor,
            truth: Vec::new(),
            has_sizes: true,
            has_tables: true,
            cached: 0,
            has_head: true,
            has_numbers: true,
            tokens: 256,
            slower: 1,
            runs_ahead: false,
            gradients: Vec::new(),
            last_gradient: 0,
            number: String::new(),
            text: String::new(),
            id: 0,
            host_ns: 1000,
            device_ns: 5000,
            stream: 7,
        }
    }

    pub(crate) fn text(&self) -> String {
        let device = match self.vendor {
            Vendor::Amd => "AMD Instinct MI300X",
            _ => "NVIDIA H100",
        };
        trace(device, &self.text)
    }

    fn of_vendor(&self, names: [&'static str; 2]) -> &'static str {
        names[usize::from(self.vendor == Vendor::Amd)]
    }

    /// An operator that launches kernels, with its inputs as the profiler writes them.
    pub(crate) fn op(
        &mut self,
        thread: u64,
        (name, dims, types, values): (&str, &str, &str, &str),
        kernels: &[&str],
        ns: u64,
        phase: Option<Phase>,
    ) {
        self.id += 1;
        let id = self.id;
        let start = self.host_ns;
        let end = start + 600 + 1000 * kernels.len() as u64;
        let number = std::mem::take(&mut self.number);
        let sizes = match self.has_sizes && !dims.is_empty() {
            true => format!(
                ", \"Input Dims\": {dims}, \"Input type\": {types}, \"Concrete Inputs\": {values}"
            ),
            false => String::new(),
        };
        self.text += &event(
            "cpu_op",
            name,
            (1, thread),
            start..end,
            &format!("\"External id\": {id}{sizes}{number}"),
        );
        for (number, kernel) in (0..).zip(kernels) {
            let at = start + 100 + number * 1000;
            let args = format!("\"External id\": {id}, \"correlation\": {}", id * 100 + number);
            let (category, call) = match self.vendor {
                Vendor::Amd => ("cuda_runtime", "hipLaunchKernel"),
                _ => ("cuda_runtime", "cudaLaunchKernel"),
            };
            self.text += &event(category, call, (1, thread), at..at + 400, &args);
            let from = self.device_ns.max(at + 3000);
            let stream = self.stream;
            let args = format!("\"device\": 0, \"stream\": {stream}, {args}");
            self.text += &event("kernel", kernel, (0, stream), from..from + ns, &args);
            self.device_ns = from + ns + 20;
            self.truth.push(phase);
        }
        self.host_ns = end + 100;
    }

    /// Kernels that a graph replays: they share the launch, and no operator launched them.
    fn graph(&mut self, kernels: &[&str], ns: u64, phase: Option<Phase>) {
        self.id += 1;
        let id = self.id;
        let start = self.host_ns;
        let args = format!("\"correlation\": {}", id * 100);
        let call = match self.vendor {
            Vendor::Amd => "hipGraphLaunch",
            _ => "cudaGraphLaunch",
        };
        self.text += &event("cuda_runtime", call, (1, MAIN), start..start + 900, &args);
        for kernel in kernels {
            let from = self.device_ns.max(start + 3000);
            let args = format!("\"device\": 0, \"stream\": 7, {args}");
            self.text += &event("kernel", kernel, (0, 7), from..from + ns, &args);
            self.device_ns = from + ns + 20;
            self.truth.push(phase);
        }
        self.host_ns = start + 1000;
    }

    /// What contains what `inside` writes.
    pub(crate) fn around(
        &mut self,
        category: &str,
        name: &str,
        thread: u64,
        inside: impl FnOnce(&mut Self),
    ) {
        self.around_with("", category, name, thread, inside);
    }

    fn around_with(
        &mut self,
        args: &str,
        category: &str,
        name: &str,
        thread: u64,
        inside: impl FnOnce(&mut Self),
    ) {
        let start = self.host_ns;
        self.host_ns += 50;
        inside(self);
        self.host_ns += 50;
        let end = self.host_ns;
        let args = format!("\"External id\": 0{args}");
        self.text += &event(category, name, (1, thread), start..end, &args);
        self.host_ns += 50;
    }

    /// The host does something for a while, which a frame shows.
    pub(crate) fn pause(&mut self, frame: &str, ns: u64) {
        self.host_ns = self.host_ns.max(self.device_ns);
        self.around("python_function", frame, MAIN, |program| program.host_ns += ns);
    }

    fn mm(&mut self, thread: u64, sizes: [u64; 3], phase: Option<Phase>) {
        let [m, n, k] = sizes;
        let kernel = self.of_vendor(if m <= FEW_ROWS { GEMV } else { GEMM });
        let dims = format!("[[{m}, {k}], [{k}, {n}]]");
        let ns = self.slower * (m * n * k / 100_000).max(2000);
        self.op(thread, ("aten::mm", &dims, BF16, r#"["", ""]"#), &[kernel], ns, phase);
    }

    fn small(&mut self, thread: u64, name: &str, kernel: &str, phase: Option<Phase>) {
        self.op(thread, (name, "", "", ""), &[kernel], 2500, phase);
    }

    /// A kernel on another stream, which waits for nothing.
    fn beside(&mut self, name: &str, kernel: &str, phase: Option<Phase>) {
        let device_ns = std::mem::take(&mut self.device_ns);
        self.stream = 9;
        self.small(MAIN, name, kernel, phase);
        (self.stream, self.device_ns) = (7, device_ns);
    }

    /// A pass of serving, from looking up tokens to choosing them.
    pub(crate) fn serve(&mut self, attention: Attention, phase: Option<Phase>) {
        let tokens = attention.tokens();
        let sizes = match self.has_sizes {
            true => format!(
                ", \"Input Dims\": [[{VOCABULARY}, {HIDDEN}], [{tokens}]], \
                 \"Input type\": [\"c10::BFloat16\", \"long int\"]"
            ),
            false => String::new(),
        };
        self.around_with(&sizes, "cpu_op", "aten::embedding", MAIN, |program| {
            program.small(MAIN, "aten::index_select", "indexSelectLargeIndex", phase);
        });
        for layer in 0..LAYERS {
            if layer == 1 && self.runs_ahead {
                self.beside("aten::copy_", "fetch_inputs_kernel", phase);
            }
            self.small(MAIN, "_C::rms_norm", "rms_norm_kernel", phase);
            self.mm(MAIN, [tokens, 3 * HIDDEN, HIDDEN], phase);
            self.attention(attention, phase);
            self.mm(MAIN, [tokens, HIDDEN, HIDDEN], phase);
            self.mm(MAIN, [tokens, 4 * HIDDEN, HIDDEN], phase);
            self.small(MAIN, "aten::silu", "act_and_mul_kernel", phase);
            self.mm(MAIN, [tokens, HIDDEN, 4 * HIDDEN], phase);
        }
        self.small(MAIN, "_C::rms_norm", "rms_norm_kernel", phase);
        if self.has_head {
            self.mm(MAIN, [tokens, VOCABULARY, HIDDEN], phase);
        }
        self.small(MAIN, "aten::argmax", "reduce_kernel_ArgMaxOps", phase);
        if !self.runs_ahead {
            self.host_ns = self.host_ns.max(self.device_ns);
        }
    }

    pub(crate) fn loss(&mut self) {
        self.small(MAIN, "aten::nll_loss_forward", "nll_loss_forward_reduce_cuda_kernel_2d", None);
    }

    /// The probabilities of all tokens of the vocabulary, for a number of tokens of text.
    pub(crate) fn score(&mut self, op: &str, tokens: u64, phase: Option<Phase>) {
        let dims = format!("[[{tokens}, {VOCABULARY}], [], []]");
        let op = (op, dims.as_str(), r#"["float", "Scalar", "Scalar"]"#, r#"["", "-1", "False"]"#);
        self.op(MAIN, op, &["softmax_warp_forward"], 3000, phase);
    }

    pub(crate) fn attention(&mut self, attention: Attention, phase: Option<Phase>) {
        let flash = self.of_vendor(FLASH);
        match attention {
            Attention::Plain(batch, queries, keys, is_causal) => {
                let one = |tokens: u64| format!("[{batch}, {tokens}, 8, 64]");
                let dims = format!(
                    "[{}, {}, {}, [], [], [], [], [], []]",
                    one(queries),
                    one(keys),
                    one(keys)
                );
                let types = r#"["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", "Scalar", "Scalar", "Scalar", "Scalar"]"#;
                let is_causal = if is_causal { "True" } else { "False" };
                let values =
                    format!(r#"["", "", "", "", "", "{queries}", "{keys}", "0.", "{is_causal}"]"#);
                let ns = (batch * queries * keys / 10).max(3000);
                let op = ("aten::_flash_attention_forward", dims.as_str(), types, values.as_str());
                self.op(MAIN, op, &[flash], ns, phase);
            }
            Attention::Pages(tokens, sequences) => {
                let dims = format!(
                    "[[{tokens}, 8, 64], [900, 16, 8, 64], [900, 16, 8, 64], [{}], [{sequences}, 64]]",
                    sequences + 1
                );
                let types = r#"["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "int", "int"]"#;
                let op = ("_vllm_fa3_C::fwd", dims.as_str(), types, r#"["", "", "", "", ""]"#);
                self.op(MAIN, op, &[flash], (tokens * 100).max(3000), phase);
            }
            Attention::Named(kernels) => {
                self.op(MAIN, ("vllm::unified_attention", "", "", ""), kernels, 4000, phase);
            }
        }
    }
}

const BF16: &str = r#"["c10::BFloat16", "c10::BFloat16"]"#;
