//! Kernels that show the ceilings of a device.

use fusion_cost_model::DType;

use super::phase::{Parameters, Phase, THREADS, kernel};
use crate::gpu::architecture::MatrixCore;
use crate::gpu::driver::DeviceFacts;
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::{TensorId, TensorTable};

/// Bytes of a tile of [`triad`] and [`read`]: 16 numbers for each thread.
pub(in crate::gpu) const TILE_BYTES: u64 = 16 * 4 * THREADS as u64;

fn probe(
    name: &str,
    header: &'static str,
    tile: String,
    tiles: u64,
    shared_bytes: u32,
    dtype: DType,
    parameters: Parameters,
) -> KernelPlan {
    let phase = Phase {
        cluster: 1,
        name: name.to_owned(),
        headers: vec![header],
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
    probe("triad", "probes.h", tile, tiles, 0, DType::F32, parameters)
}

/// Reads `tiles` tiles of [`TILE_BYTES`].
pub(in crate::gpu) fn read(from: TensorId, never: TensorId, tiles: u64) -> KernelPlan {
    let mut parameters = Parameters::default();
    let (from, never) = (parameters.read(from), parameters.write(never));
    let tile = format!("probe::read({from}, {never}, tile);");
    probe("read", "probes.h", tile, tiles, 0, DType::F32, parameters)
}

/// Multiplies `repeats` times in each block, with the instructions by which kernels of the device
/// multiply numbers of this dtype. `result` has two f32: the first says how many multiply-adds a warp
/// makes in one repetition.
pub(in crate::gpu) fn multiply(
    result: TensorId,
    repeats: u64,
    dtype: DType,
    device: &DeviceFacts,
) -> KernelPlan {
    let is_wgmma = device.architecture.matrix_core == MatrixCore::Wgmma && dtype != DType::F32;
    // Enough warps to hide every latency. Two warpgroups hide their own, and fill the registers.
    let (kind, header, shared_bytes, blocks_of_a_processor) = if is_wgmma {
        ("multiply_by_wgmma", "hopper/probe.h", WGMMA_SHARED_BYTES, 1)
    } else {
        ("multiply", "probes.h", SHARED_BYTES, 2)
    };
    let blocks = u64::from(device.processors) * blocks_of_a_processor;
    let mut parameters = Parameters::default();
    let result = parameters.pointer("float*", result);
    let repeats = parameters.size(repeats);
    let tile = format!("probe::{kind}<T>({result}, {repeats});");
    probe(&format!("{kind}_{dtype}"), header, tile, blocks, shared_bytes, dtype, parameters)
}

/// More than the operands of any core that has them in registers: 64 rows of 64 f32.
const SHARED_BYTES: u32 = 64 * 64 * 4;

/// Of `wgmma`: 64 rows of A for each warpgroup, and 256 columns of B, of 128 bytes each.
const WGMMA_SHARED_BYTES: u32 = (THREADS / 128 * 64 + 256) * 128;

/// Writes the cycles and the time of every processor into its two words of `stamps`, where a device
/// has counters of both.
pub(in crate::gpu) fn stamp(stamps: TensorId, processors: u32, places: u32) -> KernelPlan {
    /// So many that every processor gets one.
    const BLOCKS_OF_A_PROCESSOR: u64 = 4;
    let mut parameters = Parameters::default();
    let stamps = parameters.pointer("u64*", stamps);
    let count = parameters.size(places.into());
    let tile = format!("probe::stamp({stamps}, {count});");
    let blocks = u64::from(processors) * BLOCKS_OF_A_PROCESSOR;
    probe("stamp", "probes.h", tile, blocks, 0, DType::F32, parameters)
}

/// Does nothing, in one block.
pub(in crate::gpu) fn nothing() -> KernelPlan {
    let tile = "(void)tile;".to_owned();
    probe("nothing", "probes.h", tile, 1, 0, DType::F32, Parameters::default())
}
