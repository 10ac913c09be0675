//! Launches of compiled kernels, as `launch.h` declares them.

use std::ffi::{CStr, CString, c_char, c_void};

use super::compile::{Kernels, fibers};
use crate::gpu::{Code, LaunchShape};

/// In which order threads run that could all run. A missing barrier shows when a thread that
/// should have waited runs too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Ascending: those that overwrite what later threads have yet to read.
    Forward,
    /// Descending: those that read what earlier threads have yet to write.
    Reverse,
    /// At random, from a seed.
    Shuffled(u32),
}

impl Order {
    fn number(self) -> u64 {
        match self {
            Self::Forward => 0,
            Self::Reverse => 1,
            Self::Shuffled(seed) => 2 + u64::from(seed),
        }
    }
}

/// What a launch must agree with.
#[repr(C)]
struct KernelFacts {
    arguments_bytes: u32,
    threads: u32,
    warp: u32,
    core: *const c_char,
    cluster: u32,
}

#[repr(C)]
struct Launch {
    name: *const c_char,
    entry: unsafe extern "C" fn(*const c_void),
    facts: *const KernelFacts,
    arguments: *const c_void,
    arguments_bytes: u64,
    blocks: u64,
    threads: u32,
    shared_bytes: u32,
    cooperative: u32,
    order: u64,
}

#[repr(C)]
struct Outcome {
    fault_address: u64,
    error: [c_char; 1024],
}

/// Why a launch failed.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Where memory was accessed that is not there.
    pub(crate) fault_address: Option<u64>,
    pub(crate) what: String,
}

impl From<String> for Failed {
    fn from(what: String) -> Self {
        Self { fault_address: None, what }
    }
}

/// The parameters of a kernel, aligned as tensor maps must be.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// Runs a kernel in this thread. Its parameters must be addresses of as much memory as it accesses.
pub(crate) fn launch(
    kernels: &Kernels,
    code: &Code,
    shape: &LaunchShape,
    blocks: u64,
    arguments: &[u8],
    order: Order,
) -> Result<(), Failed> {
    let library = kernels.get(&code.entry)?;
    let symbol = |name: String| CString::new(name).unwrap();
    let name = symbol(code.entry.clone());
    let facts = symbol(format!("port_facts_of_{}", code.entry));
    // SAFETY: `PORT_KERNEL` of host_port.h defines both with these types.
    let (entry, facts) = unsafe {
        (
            library.get::<unsafe extern "C" fn(*const c_void)>(name.as_bytes_with_nul()),
            library.get::<*const KernelFacts>(facts.as_bytes_with_nul()),
        )
    };
    let (entry, facts) = (entry.map_err(|e| e.to_string())?, facts.map_err(|e| e.to_string())?);
    // SAFETY: launch.h declares it so.
    let port_launch = unsafe {
        fibers()
            .get::<unsafe extern "C" fn(*const Launch, *mut Outcome) -> i32>(c"port_launch")
            .unwrap()
    };
    let mut lines = vec![Line([0; 64]); arguments.len().div_ceil(64).max(1)];
    lines.as_flattened_bytes()[..arguments.len()].copy_from_slice(arguments);
    let mut outcome = Outcome { fault_address: 0, error: [0; 1024] };
    let launch = Launch {
        name: name.as_ptr(),
        entry: *entry,
        facts: *facts,
        arguments: lines.as_ptr().cast(),
        arguments_bytes: arguments.len() as u64,
        blocks,
        threads: shape.threads,
        shared_bytes: shape.shared_bytes,
        cooperative: u32::from(shape.cooperative),
        order: order.number(),
    };
    // SAFETY: all pointers are of living things, and kernels are given tensors of the sizes that
    // they were made for; what they access beyond is what this is to find.
    let status = unsafe { port_launch(&raw const launch, &raw mut outcome) };
    if status == 0 {
        return Ok(());
    }
    // SAFETY: it ends with a zero.
    let what = unsafe { CStr::from_ptr(outcome.error.as_ptr()) };
    Err(Failed {
        fault_address: (outcome.fault_address != 0).then_some(outcome.fault_address),
        what: what.to_string_lossy().into_owned(),
    })
}

trait FlattenedBytes {
    fn as_flattened_bytes(&mut self) -> &mut [u8];
}

impl FlattenedBytes for Vec<Line> {
    fn as_flattened_bytes(&mut self) -> &mut [u8] {
        // SAFETY: lines are bytes without gaps.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().cast(), self.len() * 64) }
    }
}
