use fusion_cost_model::hardware::HardwareSpec;

use super::problems::ModelProblems;
use super::*;
use crate::Options;

/// A machine of 1000 GFLOP/s in bf16 and 100 GB/s.
const SPEC: &str = r#"
kind = "hardware"
schema_version = 2
id = "example"
name = "Example"
vendor = "Example"
processor = "gpu"
architecture = "none"
detect = ["Example 1"]
cores = { count = 4, source = "made up" }
memory = { bandwidth_gb_per_s = 100.0, kind = "HBM", source = "made up" }

[[peak]]
dtype = "bf16"
gflops = 1000.0
unit = "matrix"
how = "made up"
source = "made up"
"#;

fn machine() -> HardwareSpec {
    HardwareSpec::from_toml(SPEC).unwrap()
}

/// An operator with its inputs, and the names and durations in microseconds of its kernels.
struct Op<'o> {
    name: &'o str,
    dims: &'o str,
    types: &'o str,
    values: &'o str,
    kernels: &'o [(&'o str, u64)],
}

fn trace(ops: &[Op<'_>]) -> Trace {
    let mut events = Vec::new();
    let mut time = 1000;
    for (id, op) in (1..).zip(ops) {
        let Op { name, dims, types, values, .. } = op;
        events.push(format!(
            "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{name}\", \"pid\": 1, \"tid\": 1, \
             \"ts\": {time}, \"dur\": 5, \"args\": {{\"External id\": {id}, \"Input Dims\": {dims}, \
             \"Input type\": {types}, \"Concrete Inputs\": {values}}}}}"
        ));
        for (kernel, duration) in op.kernels {
            events.push(format!(
                "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{kernel}\", \"pid\": 0, \"tid\": 7, \
                 \"ts\": {time}, \"dur\": {duration}, \"args\": {{\"External id\": {id}, \
                 \"device\": 0, \"stream\": 7}}}}"
            ));
            time += duration;
        }
    }
    let text = format!(
        "{{\"deviceProperties\": [{{\"id\": 0, \"name\": \"Example 1\"}}], \"traceEvents\": [{}]}}",
        events.join(",")
    );
    Trace::from_json(text.as_bytes(), &Options::default()).unwrap()
}

const BF16: &str = r#"["c10::BFloat16", "c10::BFloat16"]"#;

#[test]
fn rates_are_work_over_time_against_the_peaks() {
    // 2 * 1000 * 1000 * 500 FLOPs and 2 * (500,000 + 500,000 + 1,000,000) bytes in 2 ms;
    // a split takes a part.
    let trace = trace(&[
        Op {
            name: "aten::mm",
            dims: "[[1000, 500], [500, 1000]]",
            types: BF16,
            values: r#"["", ""]"#,
            kernels: &[("ampere_bf16_s16816gemm_bf16_128x64", 2000), ("splitKreduce_kernel", 500)],
        },
        Op {
            name: "aten::add",
            dims: "[[1000, 500], [1000, 500], []]",
            types: r#"["c10::BFloat16", "c10::BFloat16", "Scalar"]"#,
            values: r#"["", "", "1"]"#,
            kernels: &[("void at::native::vectorized_elementwise_kernel<4, add>(int)", 40)],
        },
        // Nothing says how much this is.
        Op {
            name: "my::own",
            dims: "[[4]]",
            types: r#"["float"]"#,
            values: r#"[""]"#,
            kernels: &[("mystery", 60)],
        },
    ]);
    let spec = machine();
    assert_eq!(Machine::detected(&trace, std::slice::from_ref(&spec)), Some(&spec));
    assert_eq!(Machine::detected(&trace, &[spec.clone(), spec.clone()]), None);
    let classes = Classes::of(&trace);
    let rates = Rates::of(&trace, &classes, Some(Machine::of(&spec)));
    assert_eq!(rates.total_ns, 2_600_000);
    assert!((rates.known_share - 2040.0 / 2600.0).abs() < 1e-12);
    let of = |class: &str| rates.by_class.iter().find(|rate| rate.class == class).unwrap();
    let gemm = of("GEMM");
    assert_eq!((gemm.flops, gemm.bytes, gemm.dtype), (1e9, 4e6, Some("bf16")));
    assert_eq!((gemm.tflop_per_s, gemm.gb_per_s), (Some(0.5), Some(2.0)));
    assert_eq!((gemm.of_peak, gemm.of_bandwidth), (Some(0.5), Some(0.02)));
    assert_eq!(
        (gemm.intensity, gemm.bound, gemm.of_roofline),
        (Some(250.0), Some(Bound::Compute), Some(0.5))
    );
    // Two inputs are read and one is written; nothing is computed.
    let add = of("ELEMENTWISE");
    assert_eq!((add.bytes, add.gb_per_s), (3e6, Some(75.0)));
    assert_eq!(
        (add.tflop_per_s, add.bound, add.of_roofline),
        (None, Some(Bound::Memory), Some(0.75))
    );
    // What only helps has no work of its own.
    assert_eq!(of("GEMM_EPILOGUE").known_ns, 0);
    let without = Rates::of(&trace, &classes, None);
    let gemm = without.by_class.iter().find(|rate| rate.class == "GEMM").unwrap();
    assert_eq!((gemm.tflop_per_s, gemm.of_peak, gemm.bound), (Some(0.5), None, None));
}

/// 2 * 4 * 8 * 8 * 64 * 64 * 9 FLOPs of a convolution between helpers: the kernel that computes has
/// all of them, in its time alone.
#[test]
fn helpers_of_a_convolution_have_none_of_its_work() {
    let trace = trace(&[Op {
        name: "aten::miopen_convolution",
        dims: "[[4, 64, 8, 8], [64, 64, 3, 3], [], [], [], []]",
        types: r#"["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList", "ScalarList"]"#,
        values: r#"["", "", "", "[1, 1]", "[1, 1]", "[1, 1]"]"#,
        kernels: &[
            ("batched_transpose_32x32_half", 100),
            ("SubTensorOpWithScalar1d", 50),
            ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x64x8_wt64x16x4_me", 25),
            ("batched_transpose_16x32_half", 125),
        ],
    }]);
    let rates = Rates::of(&trace, &Classes::of(&trace), Some(Machine::of(&machine())));
    let flops = f64::from(2 * 4 * 8 * 8 * 64 * 64 * 9);
    let known: Vec<(&str, f64, u64)> = rates
        .by_kernel
        .iter()
        .filter(|rate| rate.known_ns > 0)
        .map(|rate| (rate.name.as_str(), rate.flops, rate.known_ns))
        .collect();
    let [(name, all, 25_000)] = known[..] else { panic!("{known:?}") };
    assert!(name.starts_with("igemm_fwd") && (all - flops).abs() < 1.0, "{known:?}");
    let class = &rates.by_class.iter().find(|rate| rate.known_ns > 0).unwrap();
    let rate = class.tflop_per_s.unwrap();
    assert!((rate - flops / 25_000.0 / 1e3).abs() < 1e-9, "{rate}");
    assert!((rates.known_share - 25.0 / 300.0).abs() < 1e-12);
}

#[test]
fn what_the_vocabulary_has_not_is_left_out_with_the_reason() {
    let three = r#"["float", "float", "float"]"#;
    let trace = trace(&[
        Op {
            name: "aten::cudnn_convolution",
            dims: "[[2, 8, 14, 14], [16, 8, 3, 3], [], [], [], []]",
            types: r#"["float", "float", "ScalarList", "ScalarList", "ScalarList", "Scalar"]"#,
            values: r#"["", "", "[2, 2]", "[1, 1]", "[2, 2]", "1"]"#,
            kernels: &[("cudnn_infer_volta_scudnn_winograd", 40)],
        },
        Op {
            name: "aten::_scaled_dot_product_efficient_attention",
            dims: "[[1, 8, 128, 192], [1, 8, 256, 192], [1, 8, 256, 128]]",
            types: three,
            values: "[]",
            kernels: &[("fmha_cutlassF_f32_aligned_64x128_rf_sm80", 30)],
        },
        Op {
            name: "aten::_grouped_mm",
            dims: "[[4096, 64], [8, 64, 32], [8]]",
            types: r#"["float", "float", "int"]"#,
            values: "[]",
            kernels: &[("moe_gemm", 20)],
        },
        Op {
            name: "aten::baddbmm",
            dims: "[[4, 16, 8], [4, 16, 32], [4, 32, 8]]",
            types: three,
            values: "[]",
            kernels: &[("gemm_f32", 10)],
        },
    ]);
    let found = ModelProblems::of(&trace);
    assert_eq!(found.problems, []);
    let left_out: Vec<(&str, &str)> =
        found.left_out.iter().map(|one| (one.operator.as_str(), one.reason)).collect();
    assert_eq!(
        left_out,
        [
            ("aten::cudnn_convolution", "it is dilated"),
            (
                "aten::_scaled_dot_product_efficient_attention",
                "its values are not as long as its keys"
            ),
            ("aten::_grouped_mm", "groups whose sizes are not recorded"),
            ("aten::baddbmm", "several GEMMs at once"),
        ]
    );
    // What the groups compute is not known either.
    let rates = Rates::of(&trace, &Classes::of(&trace), None);
    assert!(rates.by_kernel.iter().all(|rate| rate.name != "moe_gemm" || rate.known_ns == 0));
}

#[test]
fn operators_become_problems_of_the_vocabulary() {
    let float = r#"["float", "float", "float", "", "", "", "", "", ""]"#;
    let trace = trace(&[
        Op {
            name: "aten::addmm",
            dims: "[[64], [16, 32], [32, 64]]",
            types: float,
            values: "[]",
            kernels: &[("sgemm", 30)],
        },
        Op {
            name: "aten::addmm",
            dims: "[[64], [16, 32], [32, 64]]",
            types: float,
            values: "[]",
            kernels: &[("sgemm", 30)],
        },
        Op {
            name: "aten::mm",
            dims: "[[16, 32], [32, 8]]",
            types: BF16,
            values: "[]",
            kernels: &[("gemm_bf16", 20)],
        },
        Op {
            name: "aten::bmm",
            dims: "[[4, 16, 32], [4, 32, 8]]",
            types: BF16,
            values: "[]",
            kernels: &[("gemm_bf16", 10)],
        },
        Op {
            name: "aten::cudnn_convolution",
            dims: "[[2, 8, 14, 14], [16, 4, 3, 3], [], [], [], []]",
            types: r#"["float", "float", "ScalarList", "ScalarList", "ScalarList", "Scalar"]"#,
            values: r#"["", "", "[1, 1]", "[2, 2]", "[1, 1]", "2"]"#,
            kernels: &[("cudnn_infer_volta_scudnn_winograd", 15)],
        },
        Op {
            name: "aten::_scaled_dot_product_flash_attention",
            dims: "[[1, 8, 128, 64], [1, 2, 256, 64], [1, 2, 256, 64]]",
            types: r#"["c10::Half", "c10::Half", "c10::Half"]"#,
            values: "[]",
            kernels: &[("flash_fwd_kernel", 5)],
        },
    ]);
    let found = ModelProblems::of(&trace);
    let texts: Vec<(&str, u64, u64)> =
        found.problems.iter().map(|one| (one.problem.as_str(), one.calls, one.total_ns)).collect();
    assert_eq!(
        texts,
        [
            ("linear_bias/f32/m16.k32.n64", 2, 60_000),
            ("linear/bf16/m16.k32.n8", 1, 20_000),
            ("conv2d/f32/n2.c8.h14.w14.k16.r3.s3.stride2.pad1.groups2", 1, 15_000),
            ("attention_head/f16/b1.h8.q128.kv256.d64.kvh2", 1, 5000),
        ]
    );
    let [left_out] = found.left_out.as_slice() else { panic!("{:?}", found.left_out) };
    assert_eq!(
        (left_out.operator.as_str(), left_out.reason),
        ("aten::bmm", "several GEMMs at once")
    );
    assert_eq!(super::problems::dtypes(&found.problems), ["f32", "bf16", "f16"]);
    for problem in &found.problems {
        assert_eq!(
            problem.problem.parse::<fusion_cost_model::Problem>().unwrap().to_string(),
            problem.problem
        );
    }
}

#[test]
fn hostile_sizes_give_no_rate_that_is_not_a_number() {
    let all = u64::MAX / 100;
    let dims = format!("[[{all}, {all}], [{all}, {all}]]");
    let trace = trace(&[Op {
        name: "aten::mm",
        dims: &dims,
        types: BF16,
        values: "[]",
        kernels: &[("gemm_bf16", 0), ("gemm_bf16", 3)],
    }]);
    let classes = Classes::of(&trace);
    let rates = Rates::of(&trace, &classes, Some(Machine::of(&machine())));
    for rate in rates.by_class.iter().chain(&rates.by_kernel) {
        let numbers = [rate.tflop_per_s, rate.gb_per_s, rate.of_peak, rate.of_roofline];
        assert!(numbers.iter().flatten().all(|number| number.is_finite()), "{rate:?}");
    }
    assert!(ModelProblems::of(&trace).problems.is_empty());
}
