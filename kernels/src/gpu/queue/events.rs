//! Moments in the queue that belong together.

use std::rc::Rc;

use crate::gpu::driver::{DeviceError, Driver, Event};

/// Events that are given back together.
pub(super) struct Events<'d> {
    driver: &'d Rc<dyn Driver>,
    pub(super) all: Vec<Event>,
}

impl<'d> Events<'d> {
    pub(super) const fn new(driver: &'d Rc<dyn Driver>) -> Self {
        Self { driver, all: Vec::new() }
    }

    pub(super) fn add(&mut self) -> Result<(), DeviceError> {
        self.all.push(self.driver.create_event()?);
        Ok(())
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        for &event in &self.all {
            // SAFETY: it was made by this driver, and nothing else owns it.
            unsafe { self.driver.destroy_event(event) };
        }
    }
}
