//! Which part of a GEMM a block computes at a time.

use fusion_cost_model::DType;

use super::operand::Given;
use super::phase::THREADS;
use crate::gpu::architecture::{Architecture, MatrixCore};
use crate::gpu::driver::DeviceFacts;

/// The template arguments of `GemmTile` in `gemm.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileShape {
    rows: u64,
    cols: u64,
    depth: u64,
    warps: [u64; 2],
    stages: u64,
    core: Core,
}

/// What a tile must know of a core in `matrix_core.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Core {
    name: &'static str,
    rows: u64,
    /// Of a warp's columns, how many parts of them are staged one after the other.
    staged_parts: u64,
    transposes_b: bool,
    /// Padding of rows in shared memory, in bytes.
    padding: u64,
    /// Padding of staged rows, in numbers.
    staging_pad: u64,
    /// Whether copies run while their thread goes on.
    copies_async: bool,
    /// The most buffers. Further ones hide nothing more.
    most_stages: u64,
    /// Multiply-adds that a processor does in a cycle, roughly: what tiles are chosen by.
    rate: u64,
}

impl Core {
    fn of(architecture: &Architecture, dtype: DType) -> Self {
        let copies_async = matches!(architecture.matrix_core, MatrixCore::Mma | MatrixCore::Wgmma);
        let plain = Self {
            name: "MatrixCore",
            rows: u64::from(architecture.warp) / 2,
            staged_parts: 1,
            transposes_b: false,
            padding: 16,
            staging_pad: 4,
            copies_async,
            most_stages: if copies_async { 4 } else { 1 },
            rate: 128,
        };
        if dtype == DType::F32 {
            return plain;
        }
        let matrix = Self { rows: 16, rate: 1024, ..plain };
        match architecture.matrix_core {
            MatrixCore::Plain => plain,
            MatrixCore::Mma | MatrixCore::Wgmma => Self { staging_pad: 8, ..matrix },
            MatrixCore::Mfma => Self { transposes_b: true, padding: 8, ..matrix },
            MatrixCore::Wmma11 | MatrixCore::Wmma12 => Self { transposes_b: true, ..matrix },
        }
    }

    /// The one for large tiles where B is given as rows. What is copied to one of its two buffers is
    /// in registers meanwhile.
    fn wide(architecture: &Architecture, dtype: DType) -> Option<Self> {
        let narrow = Self::of(architecture, dtype);
        let has_wide = architecture.matrix_core == MatrixCore::Mfma && dtype != DType::F32;
        has_wide.then_some(Self {
            name: "WideCore",
            rows: 32,
            staged_parts: 2,
            transposes_b: false,
            padding: 0,
            most_stages: 2,
            ..narrow
        })
    }
}

/// Rows, columns, depth of a step, warps down and across: for matrix cores with warps of 32.
///
/// A warp computes 64 by 64 numbers where there is enough to do: each operand that it loads from
/// shared memory is then used four times. 64 by 32 leaves room for a second block on a processor.
/// Steps along `k` are 64 bytes for large tiles, and longer for small ones, whose warps would
/// otherwise wait at a barrier after every other instruction.
const MATRIX_32: &[[u64; 5]] = &[
    [128, 128, 32, 2, 4],
    [128, 64, 32, 4, 2],
    [64, 128, 32, 2, 4],
    [64, 64, 64, 2, 4],
    [32, 128, 64, 2, 4],
    [32, 64, 64, 2, 4],
    [16, 128, 64, 1, 8],
];
/// As well, where copies need no registers.
const MATRIX_32_LARGE: [u64; 5] = [128, 256, 32, 2, 4];
/// Four warps of 64.
const MATRIX_64: &[[u64; 5]] = &[
    [128, 128, 32, 2, 2],
    [128, 64, 32, 2, 2],
    [64, 128, 32, 2, 2],
    [64, 64, 64, 2, 2],
    [32, 64, 64, 2, 2],
    [32, 32, 64, 2, 2],
    [16, 64, 64, 1, 4],
];
/// The tiles of the wide core, whose results have 32 rows and 64 columns. They come before the
/// others, so that the wide core takes a tile that both cores could have.
const WIDE_64: &[[u64; 5]] = &[[128, 128, 32, 2, 2], [128, 64, 32, 4, 1], [64, 128, 32, 2, 2]];
/// Plain multiply-adds: 8 by 8 numbers for each lane of the largest tile, 4 by 4 of the smallest.
const PLAIN_32: &[[u64; 5]] = &[
    [128, 128, 16, 4, 2],
    [128, 64, 16, 4, 2],
    [64, 128, 16, 4, 2],
    [64, 64, 32, 4, 2],
    [32, 128, 32, 2, 4],
    [16, 256, 16, 1, 8],
];
const PLAIN_64: &[[u64; 5]] = &[
    [128, 128, 16, 2, 2],
    [128, 64, 16, 2, 2],
    [64, 128, 16, 2, 2],
    [64, 64, 32, 2, 2],
    [32, 128, 32, 1, 4],
];

impl TileShape {
    /// The shape with which the device's processors are done first, where the one that has most to
    /// do counts: large tiles load less for each result, small ones are shared more evenly.
    ///
    /// Nothing is split along `k`, in the unfused kernel as in the fused one: a tail must see whole
    /// sums.
    pub(super) fn choose(
        device: &DeviceFacts,
        dtype: DType,
        wide: bool,
        sizes: [u64; 2],
        batches: u64,
    ) -> Self {
        let cost = |shape: &Self| {
            // Bytes from the second-level cache: a processor gets about 64 of them in a cycle.
            let load = (shape.rows + shape.cols) * dtype.bytes() * 1024 / 64;
            let multiply = shape.rows * shape.cols * 1024 / shape.core.rate;
            let each = (shape.tiles(sizes) * batches).div_ceil(u64::from(device.processors.max(1)));
            each * (load + multiply)
        };
        let shapes = Self::all(device, dtype, wide);
        shapes.iter().copied().min_by_key(cost).unwrap_or(shapes[0])
    }

    /// Every shape that the device has room for; with those of the wide core if there is one, and it
    /// may be taken.
    fn all(device: &DeviceFacts, dtype: DType, wide: bool) -> Vec<Self> {
        let architecture = &device.architecture;
        let core = Core::of(architecture, dtype);
        let plain = core.rate == 128;
        let (shapes, large) = match (plain, architecture.warp) {
            (true, 64) => (PLAIN_64, None),
            (true, _) => (PLAIN_32, None),
            (false, 64) => (MATRIX_64, None),
            (false, _) => (MATRIX_32, core.copies_async.then_some(&MATRIX_32_LARGE)),
        };
        let wide = wide.then(|| Core::wide(architecture, dtype)).flatten();
        let of_wide = wide.into_iter().flat_map(|core| WIDE_64.iter().map(move |one| (core, one)));
        let narrow = large.into_iter().chain(shapes).map(|one| (core, one));
        let limit = device.shared_bytes_per_block;
        let fitting = of_wide.chain(narrow).filter_map(|(core, shape)| {
            let &[rows, cols, depth, down, across] = shape;
            (core.most_stages.min(2)..=core.most_stages).rev().find_map(|stages| {
                let shape = Self { rows, cols, depth, warps: [down, across], stages, core };
                let bytes =
                    [Given::Rows, Given::Columns].map(|given| shape.shared_bytes(dtype, given));
                (bytes[0].max(bytes[1]) <= limit).then_some(shape)
            })
        });
        fitting.collect()
    }

    /// Tiles of a matrix.
    pub(super) fn tiles(&self, [m, n]: [u64; 2]) -> u64 {
        m.div_ceil(self.rows) * n.div_ceil(self.cols)
    }

    /// Rows that a warp finishes at a time.
    pub(super) fn staged_rows(architecture: &Architecture, dtype: DType) -> u64 {
        Core::of(architecture, dtype).rows
    }

    /// How many numbers of a row of B are best loaded at once: what is transposed in registers is
    /// taken in squares of four.
    pub(super) const fn widest_rows_of_b(&self, dtype: DType) -> u64 {
        if self.core.transposes_b { 4 } else { 16 / dtype.bytes() }
    }

    /// Bytes of shared memory; `gemm` of `gemm.h` compares them with what it needs.
    pub(super) fn shared_bytes(&self, dtype: DType, given: Given) -> u32 {
        let Self { rows, cols, depth, warps, stages, core } = *self;
        let pad = core.padding / dtype.bytes();
        let b = match given {
            Given::Rows if !core.transposes_b => depth * (cols + pad),
            Given::Rows | Given::Columns => cols * (depth + pad),
        };
        let buffers = stages * (rows * (depth + pad) + b) * dtype.bytes();
        let staged_cols = cols / warps[1] / core.staged_parts;
        let staging = warps[0] * warps[1] * core.rows * (staged_cols + core.staging_pad) * 4;
        u32::try_from(buffers.max(staging)).unwrap_or(u32::MAX)
    }

    /// What it is, in a kernel's name.
    pub(super) fn name(&self) -> String {
        let Self { rows, cols, depth, core, .. } = self;
        let wide = if core.staged_parts > 1 { "wide_" } else { "" };
        format!("{wide}{rows}x{cols}x{depth}")
    }

    /// Names the shape `Tile`.
    pub(super) fn text(&self, dtype: DType, given: Given) -> String {
        let Self { rows, cols, depth, warps: [down, across], stages, core } = self;
        let (core, shared_bytes) = (core.name, self.shared_bytes(dtype, given));
        format!(
            "using Tile = port::GemmTile<T, port::{core}<T>, {rows}, {cols}, {depth}, {down}, \
             {across}, {stages}, {shared_bytes}>; \
             static_assert(Tile::THREADS == {THREADS}, \"all threads of the block\"); "
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::emulation::device;

    #[test]
    fn every_device_has_shapes_for_all_threads_that_fit() {
        for name in ["sm_75", "sm_80", "sm_90a", "gfx906", "gfx90a", "gfx942", "gfx1100", "gfx1201"]
        {
            let device = device(name);
            for dtype in [DType::F32, DType::F16, DType::Bf16] {
                assert!(TileShape::all(&device, dtype, false).len() >= 5, "{name}, {dtype}");
                for shape in TileShape::all(&device, dtype, true) {
                    let threads =
                        shape.warps[0] * shape.warps[1] * u64::from(device.architecture.warp);
                    assert_eq!(threads, u64::from(THREADS), "{name}, {dtype}: {shape:?}");
                    for given in [Given::Rows, Given::Columns] {
                        let bytes = shape.shared_bytes(dtype, given);
                        assert!(bytes <= device.shared_bytes_per_block, "{name}: {shape:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn large_gemms_have_large_tiles_and_small_ones_many() {
        let device = device("sm_80");
        let choose = |sizes| {
            let shape = TileShape::choose(&device, DType::Bf16, true, sizes, 1);
            [shape.rows, shape.cols]
        };
        assert_eq!(choose([8192, 8192]), [128, 256]);
        assert_eq!(choose([1, 4096]), [32, 64]);
        // A quarter of the processors would have a tile of 128 by 128.
        let [rows, cols] = choose([512, 1024]);
        assert!(rows * cols <= 64 * 128, "{rows} by {cols}");
    }

    /// And two blocks of them have room on a compute unit, with two buffers each.
    #[test]
    fn large_tiles_are_the_wide_cores_where_there_is_one() {
        for (name, dtype, wide, expected) in [
            ("gfx942", DType::Bf16, true, true),
            ("gfx90a", DType::F16, true, true),
            ("gfx942", DType::F16, false, false),
            ("gfx942", DType::F32, true, false),
            ("gfx906", DType::F16, true, false),
            ("gfx1201", DType::F16, true, false),
            ("sm_80", DType::F16, true, false),
        ] {
            let shape = TileShape::choose(&device(name), dtype, wide, [8192, 8192], 1);
            assert_eq!(shape.name().starts_with("wide_"), expected, "{name}, {dtype}: {shape:?}");
            let bytes = shape.shared_bytes(dtype, Given::Rows);
            assert!(!expected || (2 * bytes <= 64 << 10 && shape.stages == 2), "{shape:?}");
        }
        let small = TileShape::choose(&device("gfx942"), DType::F16, true, [16, 64], 1);
        assert!(!small.name().starts_with("wide_"), "{small:?}");
    }
}
