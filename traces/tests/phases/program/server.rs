//! A server in the style of vLLM: each step runs the prompts and the tokens of some sequences
//! together, writes the keys and values of all of them into pages, and predicts one token of each
//! sequence. Nothing is marked.

use kernel_traces::Vendor;
use kernel_traces::segment::Phase;

use super::{HIDDEN, LAYERS, MAIN, Program, VOCABULARY};

/// What a step runs, by the number of tokens of each sequence.
#[derive(Debug, Clone)]
pub(crate) struct Batch(pub(crate) Vec<u64>);

impl Batch {
    /// A number of sequences of a token each.
    pub(crate) fn decode(sequences: usize) -> Self {
        Self(vec![1; sequences])
    }

    pub(crate) fn prompts(lengths: &[u64]) -> Self {
        Self(lengths.to_vec())
    }

    pub(crate) fn mixed(lengths: &[u64], decoded: usize) -> Self {
        Self([lengths, &vec![1; decoded]].concat())
    }

    fn tokens(&self) -> u64 {
        self.0.iter().sum()
    }

    fn sequences(&self) -> u64 {
        self.0.len() as u64
    }

    /// The truth.
    pub(crate) fn phase(&self) -> Option<Phase> {
        let decoded = self.0.iter().filter(|tokens| **tokens == 1).count();
        Some(match decoded {
            0 => Phase::Prefill,
            _ if decoded == self.0.len() => Phase::Decode,
            _ => Phase::Mixed,
        })
    }
}

/// How a server calls its attention, and what of that the profiler shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernels {
    /// An operator of a library, with a table of pages and the longest sequence as inputs.
    Library,
    /// An operator of the server, which shows the number of tokens.
    Server,
    /// The same, and everything between two attentions is replayed as a graph.
    Pieces,
    /// Kernels that have other names where all sequences have one token.
    TwoNames,
}

impl Kernels {
    pub(crate) const ALL: [Self; 4] = [Self::Library, Self::Server, Self::Pieces, Self::TwoNames];
}

impl Program {
    /// A step of the server.
    pub(crate) fn step(&mut self, kernels: Kernels, batch: &Batch) {
        self.step_with(kernels, batch, batch.sequences());
    }

    /// A step of a server that predicts this many tokens.
    pub(crate) fn step_with(&mut self, kernels: Kernels, batch: &Batch, outputs: u64) {
        let phase = batch.phase();
        let tokens = batch.tokens();
        if self.has_tables {
            // The pages of each sequence, as vLLM copies them.
            let pages = format!("[[{0}, 64], [{0}, 64], []]", batch.sequences());
            let types = r#"["int", "int", "Scalar"]"#;
            self.op(MAIN, ("aten::copy_", &pages, types, r#"["", "", "True"]"#), &[], 0, phase);
        }
        let table = format!("[[{VOCABULARY}, {HIDDEN}], [{tokens}]]");
        let types = r#"["c10::BFloat16", "long int"]"#;
        self.op(
            MAIN,
            ("aten::embedding", &table, types, r#"["", ""]"#),
            &["vectorized_gather_kernel"],
            2500,
            phase,
        );
        for _ in 0..LAYERS {
            self.pieces(kernels, &[[tokens, 3 * HIDDEN, HIDDEN]], phase);
            let cache =
                format!("[[{tokens}, 8, 64], [{tokens}, 8, 64], [900, 16, 8, 64], [{tokens}]]");
            let types = r#"["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "long int"]"#;
            self.op(
                MAIN,
                ("_C_cache_ops::reshape_and_cache_flash", &cache, types, r#"["", "", "", ""]"#),
                &["void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(long)"],
                2500,
                phase,
            );
            self.serve_attention(kernels, batch, phase);
            let of_layer = [
                [tokens, HIDDEN, HIDDEN],
                [tokens, 4 * HIDDEN, HIDDEN],
                [tokens, HIDDEN, 4 * HIDDEN],
            ];
            self.pieces(kernels, &of_layer, phase);
        }
        self.small(MAIN, "_C::fused_add_rms_norm", "fused_add_rms_norm_kernel", phase);
        self.mm(MAIN, [outputs, VOCABULARY, HIDDEN], phase);
        self.small(MAIN, "aten::argmax", "reduce_kernel_ArgMaxOps", phase);
        self.host_ns = self.host_ns.max(self.device_ns);
    }

    /// A norm and GEMMs, op by op or as a graph.
    fn pieces(&mut self, kernels: Kernels, sizes: &[[u64; 3]], phase: Option<Phase>) {
        if kernels == Kernels::Pieces {
            let gemm = self.of_vendor(super::GEMM);
            let mut all = vec!["fused_add_rms_norm_kernel"];
            all.extend(sizes.iter().map(|_| gemm));
            let [tokens, ..] = sizes[0];
            self.graph(&all, 3000 + tokens * 40, phase);
            return;
        }
        self.small(MAIN, "_C::fused_add_rms_norm", "fused_add_rms_norm_kernel", phase);
        for sizes in sizes {
            self.mm(MAIN, *sizes, phase);
        }
    }

    fn serve_attention(&mut self, kernels: Kernels, batch: &Batch, phase: Option<Phase>) {
        let (tokens, sequences) = (batch.tokens(), batch.sequences());
        let longest = batch.0.iter().max().copied().unwrap_or(0);
        let cached = self.cached;
        let ns = batch.0.iter().map(|own| own * (own + cached) / 20 + 100).sum::<u64>().max(3000);
        let flash = self.of_vendor(["flash_fwd_kernel", "attn_fwd"]);
        match kernels {
            Kernels::Library => {
                let mut dims = vec!["[]".to_owned(); 15];
                let mut kinds = vec![r#""""#; 15];
                let mut values = vec![r#""""#.to_owned(); 15];
                for (place, of, kind) in [
                    (0, format!("[{tokens}, 8, 64]"), r#""c10::BFloat16""#),
                    (1, "[900, 16, 8, 64]".to_owned(), r#""c10::BFloat16""#),
                    (2, "[900, 16, 8, 64]".to_owned(), r#""c10::BFloat16""#),
                    (6, format!("[{tokens}, 8, 64]"), r#""c10::BFloat16""#),
                    (7, format!("[{}]", sequences + 1), r#""int""#),
                    (11, format!("[{sequences}]"), r#""int""#),
                    (14, format!("[{sequences}, 64]"), r#""int""#),
                ] {
                    (dims[place], kinds[place]) = (of, kind);
                }
                for (place, value) in [(12, longest), (13, longest + cached)] {
                    (kinds[place], values[place]) = (r#""Scalar""#, format!("\"{value}\""));
                }
                let [dims, kinds, values] = [dims.join(", "), kinds.join(", "), values.join(", ")]
                    .map(|all| format!("[{all}]"));
                self.op(MAIN, ("_vllm_fa3_C::fwd", &dims, &kinds, &values), &[flash], ns, phase);
            }
            Kernels::Server | Kernels::Pieces => {
                let one = format!("[{tokens}, 8, 64]");
                let dims = format!("[{one}, {one}, {one}, {one}]");
                let op = "vllm::unified_attention_with_output";
                let types =
                    r#"["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16"]"#;
                let values = r#"["", "", "", ""]"#;
                self.op(MAIN, (op, &dims, types, values), &[flash], ns, phase);
            }
            Kernels::TwoNames => {
                let is_decode = phase == Some(Phase::Decode);
                let names: &[&str] = match (self.vendor, is_decode) {
                    (Vendor::Amd, true) => &[
                        "paged_attention_ll4mi_QKV_mfma16_kernel",
                        "paged_attention_ll4mi_reduce_kernel",
                    ],
                    (Vendor::Amd, false) => &["context_attention_fwd_kernel"],
                    (_, true) => &["flashinfer::BatchDecodeWithPagedKVCacheKernel"],
                    (_, false) => &["flashinfer::BatchPrefillWithPagedKVCacheKernel"],
                };
                // Together they take as long on both vendors.
                let ns = ns / names.len() as u64;
                self.op(MAIN, ("vllm::unified_attention", "", "", ""), names, ns, phase);
            }
        }
    }
}
