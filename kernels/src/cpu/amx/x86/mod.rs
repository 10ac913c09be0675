//! On x86-64 with Linux.

mod gathered;
mod instructions;
mod permission;
mod rows;
mod strips;
mod tiles;

use self::instructions::Amx;
pub(super) use self::instructions::operations;
pub(super) use self::permission::granted;
pub(crate) use self::tiles::Dot;
use crate::cpu::strip::Strip;

/// # Safety
///
/// As for `amx::compute`.
pub(super) unsafe fn compute<E: Dot>(strip: &Strip<E>) {
    // SAFETY: the caller's guarantee.
    unsafe { strips::compute::<Amx, E>(strip) };
}

#[cfg(test)]
mod tests;
