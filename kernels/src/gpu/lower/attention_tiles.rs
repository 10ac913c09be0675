//! Which part of an attention a block computes at a time.

use fusion_cost_model::DType;

use super::operand::vector_width;
use crate::gpu::architecture::{Architecture, MatrixCore};
use crate::gpu::driver::DeviceFacts;

/// What is to be computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// Of all batches.
    pub(super) heads: u64,
    pub(super) queries: u64,
    pub(super) keys: u64,
    /// The head size.
    pub(super) width: u64,
    /// Whether the scores are given.
    pub(super) given: bool,
    /// Whether there are values.
    pub(super) values: bool,
    /// Whether the sums of a row must be known before anything else is done.
    pub(super) exact: bool,
    /// Whether a query sees no key after its own.
    pub(super) causal: bool,
}

/// What a tile must know of `MatrixCore` in `matrix_core.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Core {
    /// Of a GEMM.
    rows: u64,
    cols: u64,
    /// Neighbours in a row that a lane has.
    neighbours: u64,
    /// Whether values are transposed on their way to shared memory.
    transposes: bool,
    /// Whether probabilities go through shared memory to become an operand.
    has_scratch: bool,
    /// Registers of a lane for a row of an operand, times the head size, in 1/64.
    operand_registers: u64,
    /// Keys of a step.
    keys: u64,
    /// The head size up to which a warp has registers for the output of two tiles of queries.
    widest_pair: u64,
    /// The same for one tile.
    widest: u64,
    /// Columns of output, of all tiles, besides which there are registers for the scores of all
    /// keys of a step.
    most_columns: u64,
}

impl Core {
    fn of(architecture: &Architecture, dtype: DType) -> Self {
        let plain = Self {
            rows: u64::from(architecture.warp) / 2,
            cols: 32,
            neighbours: 4,
            transposes: false,
            has_scratch: true,
            operand_registers: 256,
            keys: 32,
            widest_pair: 64,
            most_columns: 64,
            widest: if architecture.warp == 64 { 256 } else { 192 },
        };
        if dtype == DType::F32 {
            return plain;
        }
        let matrix = Self { rows: 16, cols: 16, has_scratch: false, widest: 256, ..plain };
        match architecture.matrix_core {
            MatrixCore::Plain => plain,
            // For sm_80 the compiler finds no registers for two tiles of 128; for sm_90a it does.
            MatrixCore::Mma => {
                Self { neighbours: 2, operand_registers: 16, keys: 64, most_columns: 128, ..matrix }
            }
            MatrixCore::Wgmma => {
                let mma = Self { neighbours: 2, operand_registers: 16, keys: 64, ..matrix };
                Self { widest_pair: 128, most_columns: 128, ..mma }
            }
            MatrixCore::Mfma => Self {
                transposes: true,
                operand_registers: 8,
                keys: 64,
                widest_pair: 128,
                most_columns: 128,
                ..matrix
            },
            MatrixCore::Wmma11 => Self {
                transposes: true,
                neighbours: 1,
                operand_registers: 32,
                widest: 192,
                ..matrix
            },
            MatrixCore::Wmma12 => {
                Self { transposes: true, neighbours: 8, operand_registers: 16, ..matrix }
            }
        }
    }
}

/// The template arguments of `attention::Shape` in `attention.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileShape {
    core: Core,
    number_bytes: u64,
    width: u64,
    keys: u64,
    tiles: u64,
    warps: u64,
    threads: u64,
    vector: u64,
    key_vector: u64,
    pair: u64,
    given: bool,
    values: bool,
    exact: bool,
    in_registers: bool,
    causal: bool,
}

/// Registers that the queries of one tile, or of two, may take.
const QUERY_REGISTERS: [u64; 2] = [32, 16];
/// Threads that copy what one warp needs, where there are few queries.
const FEWEST_THREADS: u64 = 128;

impl TileShape {
    /// The shape with which the device's processors are done first, where the one that has most to
    /// do counts; `None` where no shape fits.
    pub(super) fn choose(
        device: &DeviceFacts,
        dtype: DType,
        work: &Work,
        threads: Option<u32>,
    ) -> Option<Self> {
        if work.width > Core::of(&device.architecture, dtype).widest {
            return None;
        }
        let processors = u64::from(device.processors.max(1));
        let cost = |shape: &Self| {
            let tiles = work.heads * work.queries.div_ceil(shape.queries());
            // Keys and values cost about as much as 32 more queries, and each warp's loads of
            // them from shared memory as much as 8 more rows of its own.
            let rows = shape.queries() + shape.warps * 8 + 32;
            tiles.div_ceil(processors) * rows
        };
        Self::all(device, dtype, work, threads).into_iter().min_by_key(cost)
    }

    /// Every shape that the device has room for.
    fn all(device: &DeviceFacts, dtype: DType, work: &Work, threads: Option<u32>) -> Vec<Self> {
        let core = Core::of(&device.architecture, dtype);
        let warp = u64::from(device.architecture.warp);
        let most_warps = threads.map_or(4, |threads| u64::from(threads) / warp).min(8);
        let mut shapes = Vec::new();
        for warps in [8, 4, 2, 1].into_iter().filter(|warps| *warps <= most_warps) {
            for tiles in [2, 1] {
                let shape = Self::of(core, dtype, work, warps, tiles, warp, threads);
                shapes.extend(shape.within(device.shared_bytes_per_block));
            }
        }
        shapes
    }

    fn of(
        core: Core,
        dtype: DType,
        work: &Work,
        warps: u64,
        tiles: u64,
        warp: u64,
        threads: Option<u32>,
    ) -> Self {
        let width = match work.width {
            ..=16 => core.cols,
            17..=128 => work.width.next_multiple_of(32),
            _ => work.width.next_multiple_of(64),
        };
        // Scores and output of two tiles, or of one wide one, fill the registers.
        let most_keys = if tiles * width > core.most_columns {
            (core.keys / 2).max(core.cols)
        } else {
            core.keys
        };
        let key_vector = vector_width(dtype, &[work.keys]);
        let neighbours = core.neighbours.min(1 << work.keys.trailing_zeros().min(3));
        Self {
            core,
            number_bytes: dtype.bytes(),
            width,
            keys: most_keys.min(work.keys.next_multiple_of(core.cols)).max(core.cols),
            tiles,
            warps,
            threads: threads.map_or((warps * warp).max(FEWEST_THREADS), u64::from),
            vector: vector_width(dtype, &[work.width]),
            key_vector,
            pair: neighbours,
            given: work.given,
            values: work.values,
            exact: work.exact,
            causal: work.causal,
            in_registers: tiles * width * core.operand_registers / 64
                <= QUERY_REGISTERS[usize::from(tiles > 1)],
        }
    }

    /// The same with fewer keys in a step if it needs too much shared memory.
    fn within(mut self, limit: u32) -> Option<Self> {
        while self.shared_bytes() > limit {
            if self.keys < 2 * self.core.cols {
                return None;
            }
            self.keys = (self.keys / 2).next_multiple_of(self.core.cols);
        }
        (self.tiles == 1 || self.width <= self.core.widest_pair).then_some(self)
    }

    /// Queries of a block.
    pub(super) const fn queries(&self) -> u64 {
        self.warps * self.tiles * self.core.rows
    }

    /// Threads of a block.
    pub(super) fn threads(&self) -> u32 {
        u32::try_from(self.threads).unwrap_or(u32::MAX)
    }

    /// Bytes of shared memory; `Shape::SHARED_BYTES` of `attention.h`.
    pub(super) fn shared_bytes(&self) -> u32 {
        let Self { core, number_bytes, width, keys, .. } = *self;
        let padding = 16 / number_bytes;
        let query_bytes = self.queries() * (width + padding) * number_bytes;
        let queries_kept = if self.given || self.in_registers { 0 } else { query_bytes };
        let key_numbers =
            if self.given { self.queries() * (keys + padding) } else { keys * (width + padding) };
        let value_numbers = match (self.values, core.transposes) {
            (false, _) => 0,
            (true, false) => keys * (width + padding),
            (true, true) => width * (keys + padding),
        };
        let scratch = if self.values && core.has_scratch { core.cols + padding } else { 0 };
        let scratch_end = queries_kept
            + (key_numbers + value_numbers + self.warps * self.tiles * core.rows * scratch)
                * number_bytes;
        let stage_cols = if core.has_scratch { core.cols } else { 64 };
        let stage = self.warps * core.rows * (stage_cols + 4) * 4;
        let stage_end = if self.values { stage } else { scratch_end + stage };
        let queries_end = if self.given { 0 } else { query_bytes };
        u32::try_from(scratch_end.max(stage_end).max(queries_end)).unwrap_or(u32::MAX)
    }

    /// What it is, in letters, digits and underscores.
    pub(super) fn name(&self) -> String {
        format!("{}x{}_keys{}", self.queries(), self.width, self.keys)
    }

    /// The type in C++.
    pub(super) fn text(&self) -> String {
        let Self { width, keys, tiles, warps, threads, vector, key_vector, pair, .. } = self;
        let Self { given, values, exact, in_registers, causal, .. } = self;
        format!(
            "attention::Shape<T, {width}, {keys}, {tiles}, {warps}, {threads}, {vector}, \
             {key_vector}, {pair}, {given}, {values}, {exact}, {in_registers}, {causal}>"
        )
    }
}
