//! Elementary functions and conversions of kernels, against libraries.

use half::{bf16, f16};

use super::emulation::{Headers, Kernels, Order, compiler, device, launch};
use crate::gpu::{Code, LaunchShape};

/// What some statements, which make `y` of `x`, make of bits.
fn evaluate(name: &str, statements: &str, numbers: &[u32]) -> Vec<u32> {
    let text = format!(
        "#include \"port.h\"\n#include \"number.h\"\n\
         struct Args {{ const u32* numbers; u32* results; i64 count; }};\n\
         PORT_KERNEL({name}, Args, 64) {{\n\
         for (i64 i = port::thread(); i < args.count; i += port::threads()) {{\n\
         const u32 x = args.numbers[i];\nu32 y;\n{statements}\nargs.results[i] = y;\n}}\n}}\n"
    );
    let code = Code { entry: name.to_owned(), text };
    let kernels = Kernels::of([&code], &device("sm_80").architecture, &Headers::shipped());
    let mut results = vec![0_u32; numbers.len()];
    let arguments: Vec<u8> = [numbers.as_ptr().addr(), results.as_mut_ptr().addr(), numbers.len()]
        .into_iter()
        .flat_map(|word| (word as u64).to_ne_bytes())
        .collect();
    let shape = LaunchShape {
        grid: [1, 1, 1],
        threads: 64,
        shared_bytes: 0,
        cooperative: false,
        cluster: 1,
    };
    launch(&kernels, &code, &shape, 1, &arguments, Order::Forward).unwrap();
    results
}

fn function(name: &str, numbers: &[f32]) -> Vec<f32> {
    let bits: Vec<u32> = numbers.iter().map(|x| x.to_bits()).collect();
    let statement = format!("y = port::bits(port::{name}(port::float_of_bits(x)));");
    let results = evaluate(&format!("function_{name}"), &statement, &bits);
    results.into_iter().map(f32::from_bits).collect()
}

fn range(from: f32, to: f32) -> Vec<f32> {
    let steps: u16 = 20_000;
    (0..=steps).map(|i| from + (to - from) * (f32::from(i) / f32::from(steps))).collect()
}

/// Numbers of all sizes and signs, both infinities, NaN, and what lies around the limits of the
/// short formats.
fn numbers() -> Vec<u32> {
    let strided = (0..u32::MAX).step_by(65_521);
    // Around every f16 and bf16, and exactly between it and the next.
    let edges = (0..=u32::from(u16::MAX)).flat_map(|upper| {
        let brain = upper << 16;
        let half = f16::from_bits(upper as u16).to_f32().to_bits();
        [brain, brain | 0x7fff, brain | 0x8000, brain | 0x8001, half, half ^ 0x1000, half ^ 0x1001]
    });
    strided.chain(edges).collect()
}

#[test]
fn functions_are_good_to_a_few_units_in_the_last_place() {
    if compiler().is_none() {
        return;
    }
    type Case = (&'static str, (f32, f32), fn(f64) -> f64);
    let cases: [Case; 7] = [
        ("exp", (-87.0, 88.7), libm::exp),
        ("exp2", (-125.0, 127.9), libm::exp2),
        ("tanh", (-10.0, 10.0), libm::tanh),
        ("tanh", (-1e-3, 1e-3), libm::tanh),
        ("erf", (-6.0, 6.0), libm::erf),
        ("rsqrt", (1e-6, 1e6), |x| 1.0 / x.sqrt()),
        ("recip", (-1e6, 1e5), |x| 1.0 / x),
    ];
    for (name, (from, to), truth) in cases {
        let numbers = range(from, to);
        for (x, y) in numbers.iter().zip(function(name, &numbers)) {
            let truth = truth(f64::from(*x));
            let error = (f64::from(y) - truth).abs();
            assert!(error <= 5e-7 * truth.abs(), "{name}({x}) = {y}, not {truth}");
        }
    }
}

#[test]
fn functions_have_their_limits_and_keep_nan() {
    if compiler().is_none() {
        return;
    }
    let (big, ends) = (f32::INFINITY, [f32::INFINITY, f32::NEG_INFINITY, 89.0, -200.0, 0.0]);
    assert_eq!(function("exp", &ends), [big, 0.0, big, 0.0, 1.0]);
    for name in ["tanh", "erf"] {
        for (y, expected) in function(name, &ends).into_iter().zip([1.0, -1.0, 1.0, -1.0, 0.0]) {
            assert!((y - expected).abs() < 3e-7, "{name}: {y}");
        }
    }
    for name in ["exp", "exp2", "tanh", "erf", "rsqrt", "recip"] {
        assert!(function(name, &[f32::NAN])[0].is_nan(), "{name}");
    }
    let numbers = [1.0, f32::NAN, -big].map(f32::to_bits);
    for (name, expected) in
        [("max", [2.0, f32::NAN, 2.0]), ("min", [1.0, f32::NAN, -big]), ("max_number", [2.0; 3])]
    {
        for operands in ["2.0f, port::float_of_bits(x)", "port::float_of_bits(x), 2.0f"] {
            let statement = format!("y = port::bits(port::{name}({operands}));");
            let found = evaluate(&format!("function_{name}"), &statement, &numbers);
            for (y, expected) in found.into_iter().map(f32::from_bits).zip(expected) {
                assert!(y == expected || (y.is_nan() && expected.is_nan()), "{name}: {y}");
            }
        }
    }
}

/// Rounding to nearest, ties to even, denormal numbers, infinities and NaN.
#[test]
fn conversions_are_those_of_the_formats() {
    if compiler().is_none() {
        return;
    }
    let numbers = numbers();
    let short = |ctype: &str| {
        let one = format!("y = port::from_float<port::{ctype}>(port::float_of_bits(x)).bits;");
        let pair =
            format!("y = port::pack<port::{ctype}>(port::float_of_bits(x), 1.0f) & 0xffffu;");
        let singles = evaluate(&format!("round_{ctype}"), &one, &numbers);
        assert_eq!(evaluate(&format!("pack_{ctype}"), &pair, &numbers), singles, "{ctype}");
        singles
    };
    for (&x, y) in numbers.iter().zip(short("f16")) {
        let (x, y) = (f32::from_bits(x), f16::from_bits(y as u16));
        let expected = f16::from_f32(x);
        assert!(y.to_bits() == expected.to_bits() || (y.is_nan() && x.is_nan()), "{x}: {y}");
    }
    for (&x, y) in numbers.iter().zip(short("bf16")) {
        // NaN too: it stays the NaN that it is, and becomes a quiet one.
        let expected = bf16::from_f32(f32::from_bits(x)).to_bits();
        assert_eq!(y, u32::from(expected), "{x:08x}");
    }
    let all: Vec<u32> = (0..=u32::from(u16::MAX)).collect();
    let long = |ctype: &str| {
        let statement =
            format!("y = port::bits(port::to_float(port::{ctype}{{static_cast<u16>(x)}}));");
        evaluate(&format!("to_float_{ctype}"), &statement, &all)
    };
    for (&x, y) in all.iter().zip(long("f16")) {
        let (x, y) = (f16::from_bits(x as u16).to_f32(), f32::from_bits(y));
        assert!(x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()), "{x}: {y}");
    }
    for (&x, y) in all.iter().zip(long("bf16")) {
        assert_eq!(x << 16, y);
    }
}

/// All widths of vector accesses, at any multiple of their size.
#[test]
fn vectors_are_loaded_and_stored_whole() {
    if compiler().is_none() {
        return;
    }
    for ctype in ["float", "port::f16", "port::bf16"] {
        for width in [1, 2, 4, 8] {
            let statement = format!(
                "using T = {ctype};\nalignas(16) T from[24], to[24];\n\
                 for (int k = 0; k < 24; ++k) {{ from[k] = port::from_float<T>(k + 1.0f); \
                 to[k] = port::from_float<T>(0.0f); }}\n\
                 float v[{width}];\nport::load<{width}>(from + x * {width}, v);\n\
                 for (float& z : v) z = -z;\nport::store<{width}>(to + x * {width}, v);\ny = 0;\n\
                 for (int k = 0; k < 24; ++k) {{ const bool in = k / {width} == (int)x; \
                 if (port::to_float(to[k]) != (in ? -(k + 1.0f) : 0.0f)) ++y; }}"
            );
            let name = format!("vectors_{}_{width}", ctype.replace(':', "_"));
            assert_eq!(evaluate(&name, &statement, &[0, 1, 2]), [0, 0, 0], "{ctype} {width}");
        }
    }
}
