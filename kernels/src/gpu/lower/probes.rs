//! Kernels that show the ceilings of a device.

use fusion_cost_model::DType;

use super::phase::{Parameters, Phase, THREADS, kernel};
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::{TensorId, TensorTable};

/// Bytes of a tile of [`triad`] and [`read`]: 16 numbers for each thread.
pub(in crate::gpu) const TILE_BYTES: u64 = 16 * 4 * THREADS as u64;

fn probe(
    name: &str,
    tile: String,
    tiles: u64,
    shared_bytes: u32,
    dtype: DType,
    parameters: Parameters,
) -> KernelPlan {
    let phase = Phase {
        name: name.to_owned(),
        headers: vec!["probes.h"],
        definitions: String::new(),
        tile,
        tiles,
        threads: THREADS,
        shared_bytes,
    };
    // One phase needs no counters, so that nothing is added to this table.
    kernel(vec![phase], parameters, dtype, &mut TensorTable::default())
}

/// `a = b + c` on `tiles` tiles of [`TILE_BYTES`].
pub(in crate::gpu) fn triad([a, b, c]: [TensorId; 3], tiles: u64) -> KernelPlan {
    let mut parameters = Parameters::default();
    let (a, b, c) = (parameters.write(a), parameters.read(b), parameters.read(c));
    let tile = format!("probe::triad({a}, {b}, {c}, tile);");
    probe("triad", tile, tiles, 0, DType::F32, parameters)
}

/// Reads `tiles` tiles of [`TILE_BYTES`].
pub(in crate::gpu) fn read(from: TensorId, never: TensorId, tiles: u64) -> KernelPlan {
    let mut parameters = Parameters::default();
    let (from, never) = (parameters.read(from), parameters.write(never));
    let tile = format!("probe::read({from}, {never}, tile);");
    probe("read", tile, tiles, 0, DType::F32, parameters)
}

/// Multiplies in registers, `repeats` times in each of `blocks` blocks. `result` has two f32: the
/// first says how many multiply-adds a warp makes in one repetition.
pub(in crate::gpu) fn multiply(
    result: TensorId,
    blocks: u64,
    repeats: u64,
    dtype: DType,
) -> KernelPlan {
    /// More than any core's operands have: 64 rows of 64 f32.
    const SHARED_BYTES: u32 = 64 * 64 * 4;
    let mut parameters = Parameters::default();
    let result = parameters.pointer("float*", result);
    let repeats = parameters.size(repeats);
    let tile = format!("probe::multiply<T>({result}, {repeats});");
    let name = format!("multiply_{dtype}");
    probe(&name, tile, blocks, SHARED_BYTES, dtype, parameters)
}

/// Does nothing, in one block.
pub(in crate::gpu) fn nothing() -> KernelPlan {
    probe("nothing", "(void)tile;".to_owned(), 1, 0, DType::F32, Parameters::default())
}
