//! GEMMs of cuBLASLt and hipBLASLt, which have the same functions under two prefixes.
//!
//! The libraries are column-major. Our row-major `Y = X W` is `Yᵀ = Wᵀ Xᵀ` to them: a row-major
//! matrix is its own transpose in columns, so that the first operand is `W` as `n x k`, the second
//! `X` as `k x m`, the result `Y` as `n x m`, none of them transposed, and a bias per feature is one
//! per row of the result, as the epilogues have it.

mod functions;

use std::cell::RefCell;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::rc::Rc;

use fusion_cost_model::DType;

pub(crate) use functions::{Code, Flavour, Functions, Handle};
use functions::{Destroy, HeuristicResult};

use super::driver::{DeviceError, Driver};
use super::vendor::{Epilogue, Gemm, GemmAddresses, GemmLibrary, PreparedGemm};

/// Types of numbers, the same in both libraries.
fn number_type(dtype: DType) -> Option<c_uint> {
    match dtype {
        DType::F32 => Some(0),
        DType::F16 => Some(2),
        DType::Bf16 => Some(14),
        _ => None,
    }
}

/// Epilogues, the same in both libraries.
fn epilogue_number(epilogue: Epilogue) -> c_uint {
    match epilogue {
        Epilogue::None => 1,
        Epilogue::Relu => 2,
        Epilogue::Bias => 4,
        Epilogue::BiasRelu => 6,
        Epilogue::Gelu => 32,
        Epilogue::BiasGelu => 36,
    }
}

/// A handle of a library that is given back when it is dropped.
struct Owned {
    handle: Handle,
    destroy: Destroy,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the library gave the handle, and nothing else owns it.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// A library on the queue of one driver.
pub(crate) struct LtLibrary {
    shared: Rc<Shared>,
    version: String,
}

struct Shared {
    flavour: Flavour,
    functions: Functions,
    handle: Owned,
    driver: Rc<dyn Driver>,
}

impl Shared {
    fn check(&self, function: &'static str, code: Code) -> Result<(), DeviceError> {
        if code == 0 {
            return Ok(());
        }
        Err(DeviceError::Call {
            function,
            code: i64::from(code),
            name: format!("status {code} of {}", self.flavour.name),
            meaning: "see its documentation".to_owned(),
        })
    }

    fn owned(
        &self,
        function: &'static str,
        destroy: Destroy,
        create: impl FnOnce(*mut Handle) -> Code,
    ) -> Result<Owned, DeviceError> {
        let mut handle = ptr::null_mut();
        self.check(function, create(&raw mut handle))?;
        Ok(Owned { handle, destroy })
    }

    /// Sets an attribute of a GEMM.
    fn set<T>(&self, description: &Owned, attribute: c_uint, value: &T) -> Result<(), DeviceError> {
        let set = self.functions.set_description;
        // SAFETY: the attribute has the type `T`, whose bytes are read here.
        let code = unsafe {
            set(description.handle, attribute, ptr::from_ref(value).cast(), size_of::<T>())
        };
        self.check("MatmulDescSetAttribute", code)
    }
}

impl LtLibrary {
    /// A library on the device of a driver, which must be the current one of this thread. Its
    /// version is asked for with the handle that this opens.
    pub(crate) fn new(
        flavour: Flavour,
        functions: Functions,
        version: impl FnOnce(Handle) -> String,
        driver: &Rc<dyn Driver>,
    ) -> Result<Self, DeviceError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the call writes one handle.
        let code = unsafe { (functions.create)(&raw mut handle) };
        if code != 0 {
            return Err(DeviceError::Unsupported(format!(
                "{} cannot be used: its Create gives status {code}",
                flavour.name
            )));
        }
        let version = format!("{} {}", flavour.name, version(handle));
        let handle = Owned { handle, destroy: functions.destroy };
        let shared = Shared { flavour, functions, handle, driver: Rc::clone(driver) };
        Ok(Self { shared: Rc::new(shared), version })
    }
}

impl GemmLibrary for LtLibrary {
    fn version(&self) -> &str {
        &self.version
    }

    fn prepare(
        &self,
        gemm: &Gemm,
        workspace_bytes: u64,
    ) -> Result<Option<Box<dyn PreparedGemm>>, DeviceError> {
        let Some(number_type) = number_type(gemm.dtype) else { return Ok(None) };
        let shared = &self.shared;
        let Functions {
            create_description,
            destroy_description,
            create_layout,
            destroy_layout,
            create_preference,
            destroy_preference,
            set_preference,
            heuristic,
            ..
        } = shared.functions;
        let flavour = &shared.flavour;
        // Scale factors are f32.
        let description = shared.owned("MatmulDescCreate", destroy_description, |handle| {
            // SAFETY: the call writes one handle.
            unsafe { create_description(handle, flavour.compute_f32, 0) }
        })?;
        shared.set(&description, flavour.desc_epilogue, &epilogue_number(gemm.epilogue))?;
        if gemm.epilogue.has_bias() {
            shared.set(&description, flavour.desc_bias_type, &number_type)?;
            // Only how it is aligned matters for the choice; the true address is set before each
            // launch.
            let somewhere = ptr::without_provenance::<c_void>(256);
            shared.set(&description, flavour.desc_bias_pointer, &somewhere)?;
        }
        let layout = |rows: u64, cols: u64| {
            shared.owned("MatrixLayoutCreate", destroy_layout, |handle| {
                let stride = i64::try_from(rows).unwrap_or(i64::MAX);
                // SAFETY: the call writes one handle.
                unsafe { create_layout(handle, number_type, rows, cols, stride) }
            })
        };
        let Gemm { m, k, n, .. } = *gemm;
        let layouts = [layout(n, k)?, layout(k, m)?, layout(n, m)?];
        let preference = shared.owned("MatmulPreferenceCreate", destroy_preference, |handle| {
            // SAFETY: the call writes one handle.
            unsafe { create_preference(handle) }
        })?;
        let bytes = usize::try_from(workspace_bytes).unwrap_or(usize::MAX);
        // SAFETY: the attribute is a number of eight bytes, which are read here.
        let code = unsafe {
            set_preference(
                preference.handle,
                flavour.pref_workspace,
                ptr::from_ref(&workspace_bytes).cast(),
                size_of::<u64>(),
            )
        };
        shared.check("MatmulPreferenceSetAttribute", code)?;
        let mut algorithm = HeuristicResult([0; 256]);
        let mut count = 0;
        let [a, b, d] = layouts.each_ref().map(|layout| layout.handle);
        // SAFETY: all handles are alive, and there is room for one result.
        let code = unsafe {
            heuristic(
                shared.handle.handle,
                description.handle,
                a,
                b,
                d,
                d,
                preference.handle,
                1,
                &raw mut algorithm,
                &raw mut count,
            )
        };
        // Having no kernel is an answer: an error code, or no result.
        if code != 0 || count < 1 {
            return Ok(None);
        }
        Ok(Some(Box::new(LtGemm {
            shared: Rc::clone(shared),
            description,
            layouts,
            algorithm: RefCell::new(algorithm),
            workspace_bytes: bytes,
            has_bias: gemm.epilogue.has_bias(),
        })))
    }
}

/// A GEMM with the kernel that was chosen for it.
struct LtGemm {
    shared: Rc<Shared>,
    description: Owned,
    layouts: [Owned; 3],
    algorithm: RefCell<HeuristicResult>,
    workspace_bytes: usize,
    has_bias: bool,
}

impl PreparedGemm for LtGemm {
    unsafe fn launch(&self, at: &GemmAddresses) -> Result<(), DeviceError> {
        let shared = &self.shared;
        if let (true, Some(bias)) = (self.has_bias, at.bias) {
            shared.set(&self.description, shared.flavour.desc_bias_pointer, &bias.0)?;
        }
        let [w, x, y] = self.layouts.each_ref().map(|layout| layout.handle);
        let (one, zero) = (1.0_f32, 0.0_f32);
        let pointer = |address: u64| ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        // SAFETY: all handles are alive; the addresses are of tensors of these sizes, and of the
        // workspace, by the caller's guarantee; the library reads the scale factors before it
        // returns.
        let code = unsafe {
            (shared.functions.matmul)(
                shared.handle.handle,
                self.description.handle,
                ptr::from_ref(&one).cast(),
                pointer(at.w.0),
                w,
                pointer(at.x.0),
                x,
                ptr::from_ref(&zero).cast(),
                pointer(at.y.0),
                y,
                pointer(at.y.0),
                y,
                self.algorithm.as_ptr(),
                pointer(at.workspace.0),
                self.workspace_bytes,
                shared.driver.queue(),
            )
        };
        shared.check("Matmul", code)
    }
}
