//! Rounding against the `half` crate, and whole layers in bf16 and f16.

use std::fmt::Debug;

use pulp::WithSimd;

use super::*;
use crate::cpu::conforms::{conforms, cpus};
use crate::cpu::lanes::first_lanes;
use crate::cpu::{Cpu, Vectors};

/// Rounds numbers by whole vectors, and the rest by one that is cut short.
struct Narrow<'a, H>(&'a [f32], &'a mut [H]);

impl<H: Half> WithSimd for Narrow<'_, H> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(numbers, target) = self;
        for (numbers, target) in numbers.chunks(S::F32_LANES).zip(target.chunks_mut(S::F32_LANES)) {
            let lanes = first_lanes(simd, numbers.len());
            // SAFETY: both have that many numbers.
            unsafe {
                let v = f32::load_some(simd, numbers.as_ptr(), lanes);
                if numbers.len() == S::F32_LANES {
                    H::store(simd, target.as_mut_ptr(), v);
                } else {
                    H::store_some(simd, target.as_mut_ptr(), lanes, v);
                }
            }
        }
    }
}

/// The other way round, and each number by itself as a whole vector.
struct Widen<'a, H>(&'a [H], &'a mut [f32]);

impl<H: Half> WithSimd for Widen<'_, H> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(numbers, target) = self;
        for (numbers, target) in numbers.chunks(S::F32_LANES).zip(target.chunks_mut(S::F32_LANES)) {
            let lanes = first_lanes(simd, numbers.len());
            // SAFETY: both have that many numbers, and a vector consists of its numbers.
            unsafe {
                let v = if numbers.len() == S::F32_LANES {
                    H::load(simd, numbers.as_ptr())
                } else {
                    H::load_some(simd, numbers.as_ptr(), lanes)
                };
                f32::store_some(simd, target.as_mut_ptr(), lanes, v);
                for (number, wide) in numbers.iter().zip(target) {
                    let splat = H::splat(simd, number);
                    let lanes =
                        std::slice::from_raw_parts((&raw const splat).cast::<f32>(), S::F32_LANES);
                    assert!(lanes.iter().all(|lane| lane.to_bits() == wide.to_bits()));
                }
            }
        }
    }
}

/// Holds every width against the `half` crate, with which the reference's inputs are rounded: both
/// ways, and nothing is written behind the last number.
pub(in crate::cpu) fn assert_rounds<H: Half + Debug>(
    numbers: &[f32],
    mark: H,
    expected: impl Fn(f32) -> (H, f32),
) {
    for arch in Vectors::all() {
        let mut narrow = vec![mark; numbers.len() + 1];
        arch.dispatch(Narrow(numbers, &mut narrow[..numbers.len()]));
        assert_eq!(narrow[numbers.len()], mark);
        let mut wide = vec![7.0; numbers.len()];
        arch.dispatch(Widen(&narrow[..numbers.len()], &mut wide));
        for ((&x, narrow), wide) in numbers.iter().zip(&narrow).zip(wide) {
            let (half, as_f32) = expected(x);
            assert!(bits(narrow) == bits(&half), "{arch:?}: {x:e} {narrow:?} {half:?}");
            assert_eq!(wide.to_bits(), as_f32.to_bits(), "{arch:?}: {x:e}");
            assert_eq!(wide.to_bits(), narrow.widen().to_bits(), "{arch:?}: {x:e}");
        }
    }
}

/// NaNs differ in these.
fn bits<H: Half>(number: &H) -> u16 {
    // SAFETY: a format of two bytes.
    unsafe { std::ptr::from_ref(number).cast::<u16>().read() }
}

/// Each of the machines that tests go through, with each format.
fn cpus_and_dtypes() -> impl Iterator<Item = (Cpu, &'static str)> {
    ["bf16", "f16"].into_iter().flat_map(|dtype| cpus().map(move |cpu| (cpu, dtype)))
}

/// Whether products of these numbers have instructions, for two at a time.
fn multiplies_pairs(cpu: &Cpu, dtype: &str) -> bool {
    let cuts = &cpu.machine.cuts;
    let cut = if dtype == "f16" { cuts.f16 } else { cuts.bf16 };
    cut.together > 1
}

/// Every number of rows that a micro-kernel takes, odd and even depths of one part and of several,
/// panels that are whole and not, and stages that need whole rows.
#[test]
fn linear_layers_conform_on_all_vectors() {
    for (mut cpu, dtype) in cpus_and_dtypes() {
        let in_pairs = multiplies_pairs(&cpu, dtype);
        for (m, k, n) in [
            (1, 1, 1),
            (1, 1031, 130),
            (2, 513, 64),
            (3, 512, 63),
            (4, 17, 129),
            (5, 2, 16),
            (6, 67, 17),
            (7, 1025, 31),
            (33, 9, 5),
            (200, 33, 96),
            (131, 257, 81),
            (700, 3, 65),
        ] {
            let chains = ["linear", "linear_bias_relu", "linear+bias+gelu+add+layer_norm+softmax"];
            for chain in chains {
                let text = format!("{chain}/{dtype}/m{m}.k{k}.n{n}");
                let [unfused, _] = conforms(&mut cpu, &text);
                assert_eq!(unfused[0].contains("pairs"), in_pairs, "{text}: {unfused:?}");
            }
        }
        conforms(&mut cpu, &format!("mlp/{dtype}/m205.k35.n67.o33"));
        conforms(
            &mut cpu,
            &format!("linear+rms_norm+silu+linear+dropout+softmax+relu/{dtype}/m9.k33.n21.o7"),
        );
    }
}

/// Windows of one run and of several, of odd and even lengths, with padding and strides, before a pool
/// whose tile is f32, and of groups, which are not multiplied in pairs.
#[test]
fn convolutions_conform_on_all_vectors() {
    for (mut cpu, dtype) in cpus_and_dtypes() {
        let in_pairs = multiplies_pairs(&cpu, dtype);
        for size in [
            "n1.c1.h5.w4.k2.r1.s1",
            "n1.c5.h6.w7.k17.r1.s1",
            "n2.c3.h13.w10.k65.r3.s3.pad1",
            "n1.c3.h17.w19.k64.r7.s7.stride2.pad3",
            "n1.c2.h9.w9.k131.r3.s5.pad1",
            "n1.c64.h7.w7.k70.r3.s3.stride2.pad1",
            "n1.c131.h6.w5.k33.r3.s3.pad1",
        ] {
            for chain in ["conv2d", "conv_bn_relu", "conv+bias+gelu+add"] {
                let text = format!("{chain}/{dtype}/{size}");
                let [unfused, _] = conforms(&mut cpu, &text);
                assert_eq!(unfused[0].contains("pairs"), in_pairs, "{text}: {unfused:?}");
            }
        }
        conforms(&mut cpu, &format!("conv_bn_relu_maxpool/{dtype}/n1.c3.h20.w18.k70.r3.s3.pad1"));
        conforms(&mut cpu, &format!("conv_relu/{dtype}/n1.c6.h9.w8.k10.r3.s3.pad1.groups2"));
    }
}

/// Odd and even numbers of queries, keys and features, more of these than a panel has, masks, heads that
/// share keys and that are joined, each product by itself, given scores and stages between, and what is
/// not multiplied in pairs: few queries, and keys of an odd length.
#[test]
fn attention_conforms_on_all_vectors() {
    for (mut cpu, dtype) in cpus_and_dtypes() {
        let in_pairs = multiplies_pairs(&cpu, dtype);
        for (size, is_even) in [
            ("b1.h2.q8.kv9.d2", true),
            ("b1.h3.q77.d40", true),
            ("b2.h2.q33.kv70.d132", true),
            ("b1.h4.q29.kv150.d64.kvh2", true),
            ("b1.h2.q41.kv41.d16.causal1", true),
            ("b1.h2.q7.kv20.d6", false),
            ("b1.h2.q19.kv21.d15", false),
        ] {
            for chain in [
                "attention_head",
                "attention_scores",
                "attention_output",
                "qk+scale+gelu+softmax+pv",
                "softmax+pv",
                "pv",
                "qk",
            ] {
                if size.contains("causal") && ["pv", "qk"].contains(&chain) {
                    continue; // A mask needs a softmax.
                }
                let text = format!("{chain}/{dtype}/{size}");
                let [unfused, fused] = conforms(&mut cpu, &text);
                if chain == "attention_head" {
                    let is_said = |names: &[String]| names.iter().any(|one| one.contains("pairs"));
                    assert_eq!(is_said(&fused), in_pairs && is_even, "{text}: {fused:?}");
                    assert_eq!(is_said(&unfused), in_pairs && is_even, "{text}: {unfused:?}");
                }
            }
        }
        conforms(&mut cpu, &format!("multihead_linear/{dtype}/b2.h3.q11.kv23.d4.n9"));
        conforms(&mut cpu, &format!("multihead_linear/{dtype}/b1.h4.q30.kv31.d8.kvh2.n70"));
        conforms(&mut cpu, &format!("attention_head/{dtype}/b2.h4.q1.kv2049.d64.kvh2"));
    }
}
