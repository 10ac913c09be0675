//! Where there are no layers, fusions are found in the calls of operators that both sides have.

use crate::loaded::Loaded;
use crate::written::{event, trace};
use kernel_traces::compare::{CompareOptions, Comparison, FusionEvidence, Which};

/// Kernels of an operator, with their usual times in nanoseconds.
type Body = Vec<(&'static str, u64)>;

const MOE_GEMM: &str = "fused_moe_kernel";
const ACT: &str = "act_and_mul_kernel";
const GEMM: &str = "nvjet_tst_128x128_64x4_2x1_v_bz_coopA_TNN";
const ROPE: &str = "rotary_embedding_kernel";
const ATTENTION: &str = "flash_fwd_kernel";

fn moe() -> Body {
    let before = [("router_gemm_kernel", 6000), ("topkGatingSoftmax", 7000)];
    let after = [(MOE_GEMM, 40_000), (ACT, 12_000), (MOE_GEMM, 32_000), ("moe_sum_kernel", 8000)];
    [&before[..], &after].concat()
}

fn attention() -> Body {
    let parts = [(GEMM, 18_000), (ROPE, 8000), (ATTENTION, 25_000), (GEMM, 15_000)];
    parts.to_vec()
}

/// What lies between the calls, in an order that never repeats.
const BETWEEN: [&str; 5] = [
    "elementwise_kernel<CUDAFunctor_add<float> >",
    "permute_2D_lengths_kernel",
    "reduce_kernel<MeanOps>",
    "CatArrayBatchedCopy",
    "ampere_sgemm_128x64_tn",
];

struct Writer {
    text: String,
    random: u64,
    now: u64,
    device: u64,
    correlation: u64,
}

impl Writer {
    /// A number below another one.
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % limit
    }

    fn kernel(&mut self, name: &str, usual_ns: u64) {
        let noise = self.below(21) + 990;
        let duration = usual_ns * noise / 1000;
        self.correlation += 1;
        self.now += 4000;
        let (now, id) = (self.now, self.correlation);
        self.device = self.device.max(now + 3000);
        let launch = format!("\"correlation\": {id}");
        self.text += &event("cuda_runtime", "cudaLaunchKernel", (1, 1), now..now + 1000, &launch);
        let place = format!("{launch}, \"device\": 0, \"stream\": 7");
        let time = self.device..self.device + duration;
        self.text += &event("kernel", name, (0, 7), time, &place);
        self.device += duration + 500;
    }

    fn operator(&mut self, name: &str, body: &Body) {
        let begin = self.now + 1000;
        body.iter().for_each(|(kernel, usual_ns)| self.kernel(kernel, *usual_ns));
        self.now += 3000;
        self.text += &event("cpu_op", name, (1, 1), begin..self.now, "");
    }
}

/// A program that calls two operators over and over, with other things between them.
fn program(moe: &Body, attention: &Body, device: &str, seed: u64) -> String {
    let (now, device_ns) = (1000, 9000);
    let mut out =
        Writer { text: String::new(), random: seed, now, device: device_ns, correlation: 0 };
    for _ in 0..16 {
        for _ in 0..4 + out.below(9) {
            let name = BETWEEN[out.below(BETWEEN.len() as u64) as usize];
            out.kernel(name, 9000);
        }
        out.operator("moe_layer", moe);
        for _ in 0..3 + out.below(5) {
            let name = BETWEEN[out.below(BETWEEN.len() as u64) as usize];
            out.kernel(name, 9000);
        }
        out.operator("attention", attention);
    }
    trace(device, &out.text)
}

type Finding = (Which, String, Vec<String>);

/// The fusions that are found between two programs, and whether names showed them.
fn found(first: &str, second: &str) -> Vec<(Finding, FusionEvidence)> {
    let [first, second] = [first, second].map(|text| {
        let loaded = Loaded::read(text);
        assert_eq!(loaded.segments.layers.count, 0);
        loaded
    });
    let sides = [first.side("first.json"), second.side("second.json")];
    let comparison = Comparison::of(sides[0], sides[1], &CompareOptions::default()).unwrap();
    assert!(comparison.layers.kinds.is_empty() && comparison.layers.none_because.is_some());
    assert!(comparison.gap.rounding_ns.abs() < 0.1);
    let fusions = comparison.fusions.into_iter();
    fusions.map(|one| ((one.fused_by, one.operation, one.separate), one.by)).collect()
}

/// An operator without one of its kernels, and another one longer by some nanoseconds.
fn without(mut body: Body, name: &str, longer: usize, ns: u64) -> Body {
    body.retain(|(kernel, _)| *kernel != name);
    body[longer].1 += ns;
    body
}

/// Some pairs of programs on devices of the vendors, in both orders.
fn check(changed: (&Body, &Body), expected: Option<(&str, &[&str])>, by: FusionEvidence) {
    for seed in 1..7 {
        let devices = [["NVIDIA H100", "NVIDIA H100"], ["NVIDIA H100", "AMD Instinct MI300X"]];
        let [one, other] = devices[seed as usize % 2];
        let fused = program(changed.0, changed.1, one, seed);
        let separate = program(&moe(), &attention(), other, seed + 100);
        for (who, pair) in
            [(Which::First, [&fused, &separate]), (Which::Second, [&separate, &fused])]
        {
            let expected: Vec<(Finding, FusionEvidence)> = expected
                .iter()
                .map(|(operation, parts)| {
                    let parts = parts.iter().map(|part| (*part).to_owned()).collect();
                    ((who, (*operation).to_owned(), parts), by)
                })
                .collect();
            assert_eq!(found(pair[0], pair[1]), expected, "seed {seed}");
        }
    }
}

#[test]
fn what_an_operator_lacks_is_fused_if_its_neighbour_takes_longer() {
    let act = Some(("ACT+MOE_GEMM", &["MOE_GEMM", "ACT+MUL"][..]));
    // By three quarters of the activation, and by a twentieth.
    for ns in [9000, 600] {
        let moe = without(moe(), ACT, 2, ns);
        check((&moe, &attention()), act, FusionEvidence::Absence);
    }
    let rope = Some(("ROPE+GEMM", &["GEMM", "ROPE"][..]));
    let attention = without(attention(), ROPE, 0, 2000);
    check((&moe(), &attention), rope, FusionEvidence::Absence);
}

#[test]
fn names_show_fusions_in_operators() {
    let mut moe = moe();
    moe.retain(|(kernel, _)| *kernel != ACT);
    moe[2] = ("_matmul_ogs_NNT_bf16xbf16xmxfp4_64x128x128x1_swiglu", 46_000);
    let act = Some(("ACT+MOE_GEMM", &["MOE_GEMM", "ACT+MUL"][..]));
    check((&moe, &attention()), act, FusionEvidence::Name);
}

#[test]
fn what_is_only_missing_is_no_fusion() {
    let lacks = without(moe(), ACT, 2, 0);
    check((&lacks, &attention()), None, FusionEvidence::Absence);
    let lacks = without(attention(), ROPE, 0, 0);
    check((&moe(), &lacks), None, FusionEvidence::Absence);
    // Not what is done elsewhere either, though the neighbour takes longer for another reason.
    let lacks = without(moe(), ACT, 2, 6000);
    let mut elsewhere = attention();
    elsewhere.push((ACT, 12_000));
    check((&lacks, &elsewhere), None, FusionEvidence::Absence);
    // Nothing differs, or a kernel takes twice as long.
    check((&moe(), &attention()), None, FusionEvidence::Absence);
    let slow = without(moe(), "", 2, 40_000);
    check((&slow, &attention()), None, FusionEvidence::Absence);
}
