//! How the numbers of tensors are stored. Kernels compute in f32 whatever it is.

use std::fmt::Debug;

use fusion_cost_model::DType;
use pulp::{Arch, Simd};

use super::lanes::LaneMask;
#[cfg(all(target_arch = "aarch64", not(miri)))]
use super::neon;
use super::nontemporal;
use super::strip::{Cut, Strip};

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// How the numbers of a tensor are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    F32,
    Bf16,
    F16,
    /// Unsigned 8-bit integers.
    U8,
    /// Signed ones.
    I8,
}

impl Stored {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
            Self::U8 | Self::I8 => 1,
        }
    }
}

/// A number as it lies in memory.
///
/// What a kernel reads is widened to f32, which is exact, and what it leaves is rounded once, to the
/// nearest and to even in the middle. Between the ops of one kernel, numbers are f32.
pub(crate) trait Element:
    Copy + Debug + Default + PartialEq + Send + Sync + 'static
{
    /// The dtype of problems whose tensors they are.
    const DTYPE: DType;

    /// How a tensor of them is stored.
    const STORED: Stored;

    /// What lies between the ops of a chain, and what pointwise ops read besides: sums of products of
    /// 8-bit numbers are f32.
    type Between: Element;

    /// How many of them a cache line has; tensors begin at one.
    const LINE: usize = LINE_BYTES / size_of::<Self>();

    /// The number.
    fn widen(self) -> f32;

    /// The nearest one to a number.
    fn narrow(number: f32) -> Self;

    /// The same place where these are f32: results can then wait there unrounded.
    fn as_f32(place: *mut Self) -> Option<*mut f32>;

    /// Reads a number into all lanes of a vector.
    ///
    /// # Safety
    ///
    /// `source` must be valid for a read of it.
    #[inline(always)]
    unsafe fn splat<S: Simd>(simd: S, source: *const Self) -> S::f32s {
        // Without the checks of a build with debug assertions: in the loop of a micro-kernel their branches
        // would push the sums out of the registers.
        // SAFETY: the caller's guarantee.
        simd.splat_f32s(unsafe { source.read_unaligned() }.widen())
    }

    /// Reads a vector.
    ///
    /// # Safety
    ///
    /// `source` must be valid for reads of a vector of numbers.
    unsafe fn load<S: Simd>(simd: S, source: *const Self) -> S::f32s;

    /// Reads the first lanes; the others are zero.
    ///
    /// # Safety
    ///
    /// `source` must be valid for reads of them.
    unsafe fn load_some<S: Simd>(simd: S, source: *const Self, lanes: LaneMask<S>) -> S::f32s;

    /// Writes a vector.
    ///
    /// # Safety
    ///
    /// `target` must be valid for writes of a vector of numbers.
    unsafe fn store<S: Simd>(simd: S, target: *mut Self, v: S::f32s);

    /// Writes the first lanes.
    ///
    /// # Safety
    ///
    /// `target` must be valid for writes of them.
    unsafe fn store_some<S: Simd>(simd: S, target: *mut Self, lanes: LaneMask<S>, v: S::f32s);

    /// Writes a vector around the caches.
    ///
    /// # Safety
    ///
    /// As for [`nontemporal::store`], for a vector of these numbers.
    unsafe fn stream<S: Simd>(simd: S, target: *mut Self, v: S::f32s);
}

/// A number that products have on their left.
pub(crate) trait Left: Element {
    /// What they are multiplied with.
    type Weight: Element;

    /// Computes a strip by the instructions that its panel was packed for.
    ///
    /// # Safety
    ///
    /// As for [`Strip::compute`]; the panel must be cut in this way.
    unsafe fn compute(strip: Strip<Self>, arch: Arch, cut: Cut);
}

/// Numbers of one kind throughout a chain.
pub(crate) trait Uniform: Left<Weight = Self, Between = Self> {}

impl<E: Left<Weight = E, Between = E>> Uniform for E {}

/// Reads the first numbers one by one; the other lanes are zero.
///
/// # Safety
///
/// `source` must be valid for reads of `count` numbers, at most as many as a vector has.
#[inline(always)]
pub(super) unsafe fn load_each<S: Simd, E: Element>(
    simd: S,
    source: *const E,
    count: usize,
) -> S::f32s {
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    if size_of::<S::f32s>() == neon::VECTOR_BYTES {
        // SAFETY: both are vectors of 16 bytes; the rest is the caller's guarantee.
        return unsafe { std::mem::transmute_copy(&neon::load_first(source, count)) };
    }
    let mut v = simd.splat_f32s(0.0);
    let numbers = (&raw mut v).cast::<f32>();
    let mut lane = 0;
    while lane < count {
        // SAFETY: the caller's guarantee; a vector consists of its numbers.
        unsafe { numbers.add(lane).write(source.add(lane).read().widen()) };
        lane += 1;
    }
    v
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
    const STORED: Stored = Stored::F32;
    type Between = Self;

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn narrow(number: f32) -> Self {
        number
    }

    #[inline(always)]
    fn as_f32(place: *mut Self) -> Option<*mut f32> {
        Some(place)
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(_: S, source: *const Self) -> S::f32s {
        // SAFETY: the caller's guarantee; unaligned is allowed.
        unsafe { source.cast::<S::f32s>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_some<S: Simd>(simd: S, source: *const Self, lanes: LaneMask<S>) -> S::f32s {
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        if size_of::<S::f32s>() == neon::VECTOR_BYTES {
            // SAFETY: both are vectors of 16 bytes; the rest is the caller's guarantee.
            return unsafe { std::mem::transmute_copy(&neon::load_first(source, lanes.count)) };
        }
        // SAFETY: the caller's guarantee.
        unsafe { simd.mask_load_ptr_f32s(lanes.memory, source) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(_: S, target: *mut Self, v: S::f32s) {
        // SAFETY: the caller's guarantee; unaligned is allowed.
        unsafe { target.cast::<S::f32s>().write_unaligned(v) };
    }

    #[inline(always)]
    unsafe fn store_some<S: Simd>(simd: S, target: *mut Self, lanes: LaneMask<S>, v: S::f32s) {
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        if size_of::<S::f32s>() == neon::VECTOR_BYTES {
            // SAFETY: as for `load_some`.
            return unsafe {
                neon::store_first(target, lanes.count, std::mem::transmute_copy(&v));
            };
        }
        // SAFETY: the caller's guarantee.
        unsafe { simd.mask_store_ptr_f32s(lanes.memory, target, v) };
    }

    #[inline(always)]
    unsafe fn stream<S: Simd>(_: S, target: *mut Self, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { nontemporal::store::<S>(target, v) };
    }
}

impl Left for f32 {
    type Weight = Self;

    unsafe fn compute(strip: Strip<Self>, arch: Arch, _: Cut) {
        // SAFETY: the caller's guarantee.
        unsafe { strip.compute(arch) };
    }
}
