//! What is submitted: the kernels of both variants.

use crate::backend::{KernelFacts, Variant};
use crate::gpu::driver::DeviceError;
use crate::gpu::memory::DeviceTensors;

/// A kernel, of the project or of a library, that can be submitted.
pub(crate) trait Launch {
    /// What it is, for the record.
    fn name(&self) -> String;

    /// The same with how it is launched, for messages.
    fn described(&self) -> String {
        self.name()
    }

    /// An error of its launch, or of the device while it alone runs.
    fn failed(&self, error: DeviceError) -> DeviceError {
        DeviceError::Kernel { kernel: self.described(), error: Box::new(error) }
    }

    /// How it was compiled and is launched, where that is known.
    fn facts(&self) -> Option<KernelFacts>;

    /// Looks up where its tensors lie in every set.
    fn locate(&mut self, tensors: &DeviceTensors) -> Result<(), DeviceError>;

    /// Submits it on a set of tensors.
    ///
    /// # Safety
    ///
    /// The tensors must still lie where [`Self::locate`] found them.
    unsafe fn launch(&self, set: usize) -> Result<(), DeviceError>;
}

/// The kernels of each variant in their order.
pub(crate) struct Work {
    pub(crate) unfused: Vec<Box<dyn Launch>>,
    pub(crate) fused: Vec<Box<dyn Launch>>,
}

impl Work {
    pub(crate) fn of(&self, variant: Variant) -> &[Box<dyn Launch>] {
        match variant {
            Variant::Unfused => &self.unfused,
            Variant::Fused => &self.fused,
        }
    }

    pub(crate) fn of_mut(&mut self, variant: Variant) -> &mut [Box<dyn Launch>] {
        match variant {
            Variant::Unfused => &mut self.unfused,
            Variant::Fused => &mut self.fused,
        }
    }
}
