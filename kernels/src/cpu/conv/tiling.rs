//! How the output of a convolution is cut into tiles.

use fusion_cost_model::kernel::PoolSizes;

use super::super::element::Element;
use super::shape::{Core, Shape};

/// Output channels are not split below this for the sake of more threads.
const MIN_CHANNELS: usize = 64;

/// How the output is cut into tiles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiling {
    /// Rows of the final image (after the pool) in the largest tile; others have one less.
    pub(super) rows: usize,
    /// Tiles per image.
    pub(super) blocks: usize,
    /// Ranges of output channels.
    pub(super) channel_ranges: usize,
}

impl Tiling {
    /// Tiles whose input and result take at most `cache_bytes`, for this many threads. The result counts
    /// as f32, which its sums are.
    pub(crate) fn new<E: Element>(
        shape: &Shape,
        pool: Option<&PoolSizes>,
        cache_bytes: usize,
        threads: usize,
    ) -> Self {
        let final_h = pool.map_or(shape.out_h, |pool| pool.out_h() as usize);
        let input = match shape.core() {
            Core::Gathered => shape.out_w * shape.depth(),
            Core::Direct | Core::Depthwise => shape.stride * shape.padded_row(),
        };
        let result = shape.out_w * shape.out_channels;
        let row_bytes = input * size_of::<E>() + result * size_of::<f32>();
        let fitting = (cache_bytes / row_bytes.max(1)).max(1);
        let rows = match pool {
            None => fitting,
            // Rows of the convolution that this many pooled rows need.
            Some(pool) => (fitting.saturating_sub(pool.window as usize) / pool.stride as usize) + 1,
        };
        // As even as the threads: a last tile of half the size would keep the others waiting.
        let least = final_h.div_ceil(rows);
        let wanted = if shape.images >= threads { 1 } else { threads.div_ceil(shape.images) };
        let mut blocks = least.next_multiple_of(wanted).min(final_h);
        let mut channel_ranges = 1;
        if shape.images * least < threads
            && shape.groups == 1
            && shape.out_channels / threads >= MIN_CHANNELS
        {
            // Few large tiles with many filters: each thread reads only its own filters.
            blocks = least;
            channel_ranges = threads;
        }
        Self { rows: final_h.div_ceil(blocks), blocks, channel_ranges }
    }

    pub(super) fn len(&self, images: usize) -> usize {
        images * self.blocks * self.channel_ranges
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Problem;

    use super::super::super::gemm::share;
    use super::*;

    /// Rows of the final images that each thread computes.
    fn rows_of_threads(problem: &str, cache_bytes: usize, threads: usize) -> Vec<usize> {
        let problem: Problem = problem.parse().unwrap();
        let shape = Shape::from(problem.sizes().conv().unwrap());
        let pool = problem.sizes().pool();
        let tiling = Tiling::new::<f32>(&shape, pool.as_ref(), cache_bytes, threads);
        let final_h = pool.map_or(shape.out_h, |pool| pool.out_h() as usize);
        let rows = |thread| {
            let tiles = share(tiling.len(shape.images), thread, threads);
            tiles.map(|tile| share(final_h, tile % tiling.blocks, tiling.blocks).len()).sum()
        };
        (0..threads).map(rows).collect()
    }

    #[test]
    fn threads_get_equal_work() {
        for (cache_bytes, threads, size) in each_machine([64 << 10, 256 << 10, 1 << 20]) {
            let sizes = format!("n1.c64.h{size}.w{size}.k64.r3.s3.pad1");
            for (chain, final_h) in [("conv_bn_relu", size), ("conv_bn_relu_maxpool", size / 2)] {
                let rows = rows_of_threads(&format!("{chain}/f32/{sizes}"), cache_bytes, threads);
                assert_eq!(rows.iter().sum::<usize>(), final_h, "{chain} {sizes}, {threads}");
                let most = rows.iter().max().unwrap();
                assert!(most - rows.iter().min().unwrap() <= 1, "{chain} {sizes}: {rows:?}");
            }
        }
    }

    fn each_machine(caches: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
        let threads = [1, 2, 3, 4, 7].into_iter();
        let pairs = threads.flat_map(|threads| [14, 28, 31, 56, 112].map(|size| (threads, size)));
        pairs.flat_map(move |(threads, size)| caches.map(|bytes| (bytes, threads, size)))
    }
}
