//! The tensors of a prepared problem, and where they lie in memory.

use memmap2::MmapMut;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A tensor of a prepared problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TensorId(usize);

impl TensorId {
    /// Belongs to no table.
    pub(crate) const NONE: Self = Self(usize::MAX);
}

/// Numbers in a cache line: every tensor starts at one.
const LINE: usize = 16;

/// The largest random gap before a tensor, in cache lines: 64 KiB, so that the tensors meet at
/// every distance modulo the pages and the sets of the first two cache levels.
const MAX_GAP_LINES: usize = 1024;

/// The tensors of a prepared problem: how long each is, and where it lies now.
///
/// One block of memory holds them all. [`Self::shuffle`] draws a new placement, because the
/// placement alone can change the ratio of two kernels by a fifth.
#[derive(Debug)]
pub(crate) struct Tensors {
    lengths: Vec<usize>,
    offsets: Vec<usize>,
    arena: MmapMut,
}

/// The lengths of tensors before there is memory for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TensorTable {
    lengths: Vec<usize>,
}

impl TensorTable {
    /// Adds a tensor of so many numbers.
    pub(crate) fn add(&mut self, length: usize) -> TensorId {
        self.lengths.push(length);
        TensorId(self.lengths.len() - 1)
    }

    /// Bytes of memory for all of them, gaps included.
    pub(crate) fn bytes(&self) -> u64 {
        let lines: u64 =
            self.lengths.iter().map(|&length| (lines(length) + MAX_GAP_LINES) as u64).sum();
        lines * (LINE * size_of::<f32>()) as u64
    }

    /// Allocates the tensors.
    pub(crate) fn allocate(self) -> std::io::Result<Tensors> {
        let bytes = usize::try_from(self.bytes()).map_err(std::io::Error::other)?;
        let arena = MmapMut::map_anon(bytes.max(1))?;
        // Huge pages make a streaming kernel up to a sixth faster and its time steadier. The
        // kernel may refuse; the tensors work all the same.
        #[cfg(target_os = "linux")]
        let _ = arena.advise(memmap2::Advice::HugePage);
        let mut tensors =
            Tensors { offsets: vec![0; self.lengths.len()], lengths: self.lengths, arena };
        tensors.shuffle(0);
        Ok(tensors)
    }
}

fn lines(length: usize) -> usize {
    length.div_ceil(LINE)
}

impl Tensors {
    /// Draws a new placement: the tensors in random order, each after a random gap. Their
    /// contents are lost.
    pub(crate) fn shuffle(&mut self, seed: u64) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..self.lengths.len()).collect();
        order.shuffle(&mut random);
        let mut line = 0;
        for index in order {
            line += random.next_u32() as usize % MAX_GAP_LINES;
            self.offsets[index] = line * LINE;
            line += lines(self.lengths[index]);
        }
    }

    /// The first number of a tensor.
    pub(crate) fn pointer(&self, id: TensorId) -> *mut f32 {
        let base = self.arena.as_ptr().cast_mut().cast::<f32>();
        // Within the arena: the offsets were laid out for its size.
        base.wrapping_add(self.offsets[id.0])
    }

    /// Fills all tensors, and the gaps between them, with a number.
    pub(crate) fn fill(&mut self, value: f32) {
        let bytes = value.to_ne_bytes();
        // The arena is a whole number of cache lines.
        for number in self.arena.chunks_exact_mut(bytes.len()) {
            number.copy_from_slice(&bytes);
        }
    }

    /// The numbers of a tensor.
    pub(crate) fn get(&mut self, id: TensorId) -> &mut [f32] {
        let length = self.lengths[id.0];
        // SAFETY: the tensor lies within the arena, aligned to a line, and all bits are valid
        // numbers; `&mut self` makes the slice the only access.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(id), length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_aligned_and_apart_in_every_layout() {
        let mut table = TensorTable::default();
        let ids: Vec<TensorId> =
            [1, 16, 17, 100_000, 0, 3].into_iter().map(|length| table.add(length)).collect();
        let mut tensors = table.allocate().unwrap();
        let mut layouts = Vec::new();
        for seed in 0..50 {
            tensors.shuffle(seed);
            for (number, &id) in (0_u8..).zip(&ids) {
                tensors.get(id).fill(f32::from(number));
            }
            for (number, &id) in (0_u8..).zip(&ids) {
                assert!(tensors.get(id).iter().all(|&x| x == f32::from(number)));
                assert_eq!(tensors.pointer(id) as usize % 64, 0);
            }
            layouts.push(tensors.offsets.clone());
        }
        layouts.sort();
        layouts.dedup();
        assert_eq!(layouts.len(), 50);
    }
}
