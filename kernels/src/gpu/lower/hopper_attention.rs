//! Attention by `wgmma` and TMA of sm_90a.

use std::ops::Range;

use fusion_cost_model::{AttentionSizes, DType};

use super::Builder;
use super::gemm::scale_text;
use super::hopper::THREADS;
use super::phase::{Parameters, Phase};
use crate::gpu::launch::TensorMap;
use crate::gpu::tensors::TensorId;

/// Attention without scores in memory, and without the sums of weights before they are used.
#[derive(Debug, Clone)]
pub(super) struct Attention {
    pub(super) sizes: AttentionSizes,
    pub(super) queries: TensorId,
    pub(super) keys: TensorId,
    pub(super) values: TensorId,
    pub(super) output: TensorId,
    /// What scores are multiplied by.
    pub(super) scale: f32,
    /// Pointwise steps on the output.
    pub(super) on_output: Range<usize>,
}

/// Queries of a tile, 64 for each of two warpgroups.
const QUERIES: u32 = 128;
/// Rows of a box of queries.
const QUERY_BOX: u32 = 64;
/// Keys of a step.
const KEYS: u32 = 128;
/// Stages of keys, and of values.
const STAGES: u32 = 2;
/// Barriers: two of queries, and four for each stage.
const BARRIERS: u32 = 2 + 4 * STAGES;

/// `AttentionMemory::BYTES` of `hopper/attend.h`.
const fn shared_bytes(width: u32) -> u32 {
    (QUERIES + 2 * STAGES * KEYS) * width * 2 + BARRIERS * 8
}

impl Builder<'_> {
    /// Whether attention of these sizes is computed so: heads of 64 or 128 numbers, and both
    /// GEMMs suit `wgmma` alone, which do it where this does.
    pub(super) fn suits_hopper_attention(&self, sizes: &AttentionSizes) -> bool {
        let AttentionSizes { b, h, q, kv, d, .. } = *sizes;
        let suits = |n: u64, k: u64| self.hopper_shape(q, n, k, b * h).is_some();
        matches!(d, 64 | 128)
            && suits(kv, d)
            && suits(d, kv)
            && shared_bytes(d as u32) <= self.device.shared_bytes_per_block
    }

    /// The phase; all phases of its kernel must run with [`THREADS`] threads.
    pub(super) fn hopper_attention(
        &self,
        attention: &Attention,
        parameters: &mut Parameters,
    ) -> Phase {
        let AttentionSizes { b, h, q, kv, d, kvh, causal } = attention.sizes;
        let tiles = tiles(&attention.sizes);
        // Each block does its share of the tiles in one call.
        let blocks = tiles.min(self.device.processors.max(1).into());
        let map = |tensor, heads, rows, box_rows| TensorMap {
            tensor,
            bf16: self.problem.dtype() == DType::Bf16,
            batches: b * heads,
            rows,
            cols: d,
            box_rows,
            box_cols: 64,
        };
        let queries = parameters.map(map(attention.queries, h, q, QUERY_BOX));
        let keys = parameters.map(map(attention.keys, kvh, kv, KEYS));
        let values = parameters.map(map(attention.values, kvh, kv, KEYS));
        let output = parameters.write(attention.output);
        let sharing = parameters.factor(attention.sizes.group());
        let [heads, query_count, key_count, width] =
            [h, q, kv, d].map(|size| parameters.size(size));
        let [tile_count, block_count] = [tiles, blocks].map(|size| parameters.size(size));
        let scale = scale_text(attention.scale, parameters);
        let steps = self.tail_text("on_output", attention.on_output.clone(), parameters);
        Phase {
            cluster: 1,
            name: format!("attention_wgmma_{QUERIES}x{KEYS}x{d}"),
            headers: vec!["hopper/attend.h"],
            definitions: steps.definition,
            tile: format!(
                "{{ const attention::Problem<T> problem = {{nullptr, nullptr, nullptr, {output}, \
                 {heads}, {sharing}, {query_count}, {key_count}, {width}, {scale}}}; \
                 port::hopper::attend<T, {d}, {causal}>({queries}, {keys}, {values}, problem, \
                 {tile_count}, tile, {block_count}, {on_output}); }}",
                on_output = steps.construct,
            ),
            tiles: blocks,
            threads: THREADS,
            shared_bytes: shared_bytes(d as u32),
        }
    }
}

fn tiles(sizes: &AttentionSizes) -> u64 {
    sizes.b * sizes.h * sizes.q.div_ceil(QUERIES.into())
}
