//! Which problem a record of branes-ai/graphs is.
//!
//! A record has the name of its pattern, the shape of its input, and what its flops and bytes were
//! counted as. Sizes that the shape lacks follow from these two; if several would do, the record is
//! left out.

use fusion_cost_model::{AttentionSizes, Chain, ConvSizes, DType, LinearSizes, Problem};

use super::graphs::Fusion;

/// A problem, and what had to be assumed for it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) problem: Problem,
    pub(super) notes: Vec<String>,
}

/// Bytes of an element: the dtype is not recorded, and the bytes of every known record are those of
/// f32.
const F32: u64 = 4;

pub(super) fn problem(fusion: &Fusion) -> Result<Found, String> {
    let name = fusion.fusion_pattern.to_ascii_lowercase();
    let found = match name.as_str() {
        "linear_bias" => linear("linear_bias", fusion),
        "linear_bias_relu" => linear("linear_bias_relu", fusion),
        "linear_bias_gelu" => linear("linear_bias_gelu", fusion),
        "conv2d_relu" => conv(["conv_relu", "conv2d+bias+relu"], fusion),
        "conv2d_bn" => conv(["conv_bn"; 2], fusion),
        "conv2d_bn_relu" => conv(["conv_bn_relu"; 2], fusion),
        "qk_attentionscores" => attention("qk+scale", fusion),
        "qk_softmax" => attention("qk+softmax", fusion),
        "fullattention_sdpa" => attention("attention_head", fusion),
        _ => Err("no pattern here has this name".to_owned()),
    }?;
    // The longest is eleven days.
    let is_time = |ms: f64| ms > 0.0 && ms <= 1e9;
    if is_time(fusion.unfused_latency_ms) && is_time(fusion.fused_latency_ms) {
        Ok(found)
    } else {
        Err("its times are no positive numbers up to 10^9 ms".to_owned())
    }
}

/// Whether two counts of flops are the same: one of them was a rate with a time.
fn is_near(counted: u64, given: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a count of flops")]
    let counted = counted as f64;
    (counted / given - 1.0).abs() < 1e-5
}

fn chain(name: &str) -> Result<Chain, String> {
    name.parse().map_err(|error: fusion_cost_model::Error| error.to_string())
}

/// A shape of N sizes whose products are numbers: with this many elements, the bytes and flops of
/// every filter that is tried have at most 63 bits.
fn shape<const N: usize>(fusion: &Fusion) -> Result<[u64; N], String> {
    const MOST_ELEMENTS: u64 = 1 << 36;
    let shape = &fusion.input_shape;
    let elements = shape.iter().try_fold(1_u64, |all, size| all.checked_mul(*size.max(&1)));
    if elements.is_none_or(|elements| elements > MOST_ELEMENTS) {
        return Err(format!("input_shape {shape:?} has more than 2^36 elements"));
    }
    let wrong = || format!("input_shape {shape:?} does not have {N} sizes");
    shape.as_slice().try_into().map_err(|_| wrong())
}

/// The shape is that of the input and the outputs: `[m, k, n]`.
fn linear(name: &str, fusion: &Fusion) -> Result<Found, String> {
    let [m, k, n] = shape(fusion)?;
    let fused = F32 * (m * k + k * n + n + m * n);
    if fused != fusion.fused_memory_bytes {
        let bytes = fusion.fused_memory_bytes;
        return Err(format!("its {bytes} bytes are not those of f32 at m{m}.k{k}.n{n}, {fused}"));
    }
    let problem = Problem::linear(chain(name)?, DType::F32, LinearSizes { m, k, n });
    let problem = problem.map_err(|error| error.to_string())?;
    Ok(Found { problem, notes: Vec::new() })
}

/// `[batch, length, features]`; heads are not recorded.
fn attention(name: &str, fusion: &Fusion) -> Result<Found, String> {
    let [b, q, d] = shape(fusion)?;
    let sizes = AttentionSizes { b, h: 1, q, kv: q, d, kvh: 1, causal: false };
    let problem = Problem::attention(chain(name)?, DType::F32, sizes);
    let problem = problem.map_err(|error| error.to_string())?;
    let notes = vec![format!("heads are not in the file; {b} batches of one head")];
    Ok(Found { problem, notes })
}

/// `[n, c, h, w]`: filters, stride and padding are derived.
fn conv([plain, with_bias]: [&str; 2], fusion: &Fusion) -> Result<Found, String> {
    let [n, c, h, w] = shape(fusion)?;
    let mut found: Vec<(ConvSizes, bool)> = filters([n, c, h, w], fusion);
    found.dedup_by_key(|(sizes, _)| *sizes);
    let [(sizes, has_bias)] = found[..] else {
        let how_many = if found.is_empty() { "no filter fits" } else { "several filters fit" };
        return Err(format!("the filter is not in the file, and {how_many} its flops and bytes"));
    };
    let ConvSizes { k, r, stride, pad, .. } = sizes;
    let (flops, bytes) = (fusion.flops(), fusion.fused_memory_bytes);
    let mut notes = vec![format!(
        "the filter is not in the file; k{k}.r{r}.s{r}.stride{stride}.pad{pad} follows from its \
         flops ({flops:.0}) and bytes ({bytes})"
    )];
    let name = if has_bias { with_bias } else { plain };
    if name != plain {
        notes.push(format!("its bytes count a bias, so it is {name}"));
    }
    let problem = Problem::conv(chain(name)?, DType::F32, sizes);
    let problem = problem.map_err(|error| error.to_string())?;
    Ok(Found { problem, notes })
}

/// Square filters with the padding that keeps the size, which have these flops and bytes: with up to
/// three flops per output for what follows the convolution, and with up to one number per channel
/// (a bias, or a folded normalisation).
fn filters([n, c, h, w]: [u64; 4], fusion: &Fusion) -> Vec<(ConvSizes, bool)> {
    const MOST_CHANNELS: u64 = 8192;
    let mut found = Vec::new();
    for (r, stride) in [1_u64, 3, 5, 7].into_iter().flat_map(|r| [(r, 1), (r, 2)]) {
        let pad = r / 2;
        let size = |size: u64| (size + 2 * pad).checked_sub(r).map(|rest| rest / stride + 1);
        let Some((out_h, out_w)) = size(h).zip(size(w)) else { continue };
        for k in 1..=MOST_CHANNELS {
            let out = n * k * out_h * out_w;
            let weights = k * c * r * r;
            let bytes = |numbers: u64| F32 * (n * c * h * w + weights + out + numbers * k);
            let counted = fusion.fused_memory_bytes;
            let Some(numbers) = (0..=1).find(|numbers| bytes(*numbers) == counted) else {
                continue;
            };
            let flops = |tail: u64| 2 * out * c * r * r + tail * out;
            if (0..=3).any(|tail| is_near(flops(tail), fusion.flops())) {
                let sizes = ConvSizes { n, c, h, w, k, r, s: r, stride, pad, groups: 1 };
                found.push((sizes, numbers == 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn record(pattern: &str, shape: &[u64], flops: f64, bytes: u64) -> Fusion {
        Fusion {
            fusion_pattern: pattern.to_owned(),
            operators: Vec::new(),
            num_operators: None,
            unfused_latency_ms: 2.0,
            unfused_gflops: flops / 2e6,
            unfused_memory_bytes: 0,
            fused_latency_ms: 1.0,
            fused_gflops: None,
            fused_memory_bytes: bytes,
            speedup_factor: 2.0,
            memory_reduction: None,
            gflops_improvement: None,
            input_shape: shape.to_vec(),
            others: BTreeMap::new(),
        }
    }

    #[test]
    fn filters_follow_from_flops_and_bytes() {
        let conv = record("Conv2d_ReLU", &[4, 128, 28, 28], 924_844_032.0, 3_801_600);
        let found = problem(&conv).unwrap();
        let expected = "conv2d+bias+relu/f32/n4.c128.h28.w28.k128.r3.s3.pad1";
        assert_eq!(found.problem, expected.parse().unwrap());
        assert_eq!(found.notes.len(), 2);
        let normed = record("Conv2d_BN", &[4, 128, 28, 28], 925_646_848.0, 3_801_600);
        let expected = "conv_bn/f32/n4.c128.h28.w28.k128.r3.s3.pad1";
        assert_eq!(problem(&normed).unwrap().problem, expected.parse().unwrap());
        let other = record("Conv2d_BN", &[4, 128, 28, 28], 925_646_848.0, 3_801_601);
        assert!(problem(&other).unwrap_err().contains("no filter fits"));
    }

    #[test]
    fn what_is_no_chain_is_left_out() {
        let of = |pattern, shape: &[u64], bytes| problem(&record(pattern, shape, 1.0, bytes));
        assert!(of("Conv3d", &[1], 1).unwrap_err().contains("no pattern"));
        assert!(of("Linear_Bias", &[1, 2], 1).unwrap_err().contains("3 sizes"));
        assert!(of("Linear_Bias", &[1, 2, 3], 1).unwrap_err().contains("are not those of f32"));
        assert!(of("QK_Softmax", &[4, 256, 64], 1).is_ok());
        for pattern in ["Linear_Bias", "QK_Softmax"] {
            assert!(of(pattern, &[u64::MAX, 1024, 0], 1).unwrap_err().contains("2^36"));
        }
        let largest = [1, 1 << 36, 1, 1];
        assert!(of("Conv2d_ReLU", &largest, u64::MAX).unwrap_err().contains("no filter fits"));
        assert!(of("Conv2d_ReLU", &[2, 1 << 36, 1, 1], 1).unwrap_err().contains("2^36"));
        let timeless = Fusion { fused_latency_ms: 0.0, ..record("QK_Softmax", &[4, 2, 1], 1.0, 1) };
        assert!(problem(&timeless).unwrap_err().contains("times"));
    }
}
