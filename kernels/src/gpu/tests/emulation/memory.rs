//! Tensors between pages that cannot be accessed.

use memmap2::MmapMut;

use crate::gpu::tensors::{Role, TensorSpec};

const PAGE: usize = 4096;
/// What results hold before they are written: not a number in any format.
const UNWRITTEN: u8 = 0xFF;
/// What lies around a tensor in its own pages: a number in all formats, since an op gives back what is
/// none as it was.
const CANARY: u8 = 0x5A;
/// What tensors are aligned to. Real ones are aligned to more; so little brings the end of the
/// tensor close to the page that cannot be accessed.
const ALIGNMENT: usize = 16;

/// A tensor. The page behind its last one cannot be accessed, nor can the one before its first.
#[derive(Debug)]
pub(super) struct Tensor {
    pages: MmapMut,
    start: usize,
    bytes: usize,
    role: Role,
}

impl Tensor {
    pub(super) fn new(spec: TensorSpec) -> Self {
        let bytes = usize::try_from(spec.bytes).unwrap();
        let accessible = (bytes + 2 * ALIGNMENT).next_multiple_of(PAGE);
        let mut pages = MmapMut::map_anon(accessible + 2 * PAGE).unwrap();
        let end = PAGE + accessible;
        let start = (end - bytes) / ALIGNMENT * ALIGNMENT;
        pages[PAGE..end].fill(CANARY);
        pages[start..start + bytes].fill(UNWRITTEN);
        for guard in [0, end] {
            // SAFETY: the page is part of the mapping, and no other reference to it exists.
            let status = unsafe {
                libc::mprotect(pages.as_mut_ptr().add(guard).cast(), PAGE, libc::PROT_NONE)
            };
            assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
        }
        Self { pages, start, bytes, role: spec.role }
    }

    pub(super) fn address(&self) -> u64 {
        self.pages[self.start..].as_ptr().addr() as u64
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.pages[self.start..][..self.bytes]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.pages[self.start..][..self.bytes]
    }

    /// Prepares it for a launch; inputs and counters stay as they are.
    pub(super) fn poison(&mut self) {
        if matches!(self.role, Role::Result | Role::Scratch) {
            self.bytes_mut().fill(UNWRITTEN);
        }
    }

    /// How far outside of the tensor something was written.
    pub(super) fn written_outside(&self) -> Option<i64> {
        let end = self.pages.len() - PAGE;
        let written = |at: usize| self.pages[at] != CANARY;
        let before = (PAGE..self.start).rev().find(|&at| written(at));
        let behind = (self.start + self.bytes..end).find(|&at| written(at));
        let distance = |at: usize| at as i64 - self.start as i64;
        before.or(behind).map(distance)
    }

    /// Where an address is from the beginning of the tensor, if it is in or near it.
    pub(super) fn offset_of(&self, address: u64) -> Option<i64> {
        let first = self.pages.as_ptr().addr() as u64;
        let near = first..first + self.pages.len() as u64;
        near.contains(&address).then(|| address as i64 - self.address() as i64)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }
}
