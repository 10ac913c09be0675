//! What a CPU kernel is, and how it addresses its tensors.

use super::pool::Pool;
use super::tensors::{TensorId, Tensors};

/// One kernel: a pass over tensors on all threads of the pool, prepared for one problem.
pub(crate) trait Kernel: Send {
    /// What it computes and how, for the record.
    fn name(&self) -> String;

    /// Looks up where its tensors lie: after every new layout, and before a run on another set.
    fn locate(&mut self, tensors: &Tensors);

    /// Runs it once.
    ///
    /// # Safety
    ///
    /// The tensors must still lie where [`Self::locate`] found them, and no other kernel may run
    /// on them.
    unsafe fn run(&self, pool: &Pool);
}

/// A tensor and its address in the current layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Located<E = f32> {
    id: TensorId,
    data: *mut E,
}

// SAFETY: a kernel gives each of its threads disjoint parts of a tensor to write; that is part of
// the argument wherever one is accessed.
unsafe impl<E> Sync for Located<E> {}
// SAFETY: as above.
unsafe impl<E> Send for Located<E> {}

impl<E> From<TensorId> for Located<E> {
    fn from(id: TensorId) -> Self {
        Self { id, data: std::ptr::null_mut() }
    }
}

impl<E> Located<E> {
    /// No tensor.
    pub(crate) const NOWHERE: Self = Self { id: TensorId::NONE, data: std::ptr::null_mut() };

    /// Numbers at an address that no layout changes.
    pub(crate) fn at_address(data: *mut E) -> Self {
        Self { id: TensorId::NONE, data }
    }

    /// The same tensor with its numbers in another format.
    pub(crate) const fn stored_as<O>(self) -> Located<O> {
        Located { id: self.id, data: self.data.cast() }
    }

    /// Whether it is the same tensor.
    pub(crate) fn is(self, other: Self) -> bool {
        self.id == other.id
    }

    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        if self.id != TensorId::NONE {
            self.data = tensors.pointer(self.id).cast();
        }
    }

    /// The address of an element.
    pub(crate) fn at(self, index: usize) -> *mut E {
        self.data.wrapping_add(index)
    }
}
