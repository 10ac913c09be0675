//! The driver library and the devices it lists.

use std::ffi::{c_char, c_int};
use std::path::PathBuf;

use cudarc::driver::sys::{CUdevice, CUdevice_attribute as Attribute};

use super::functions::Cuda;
use super::nvml::Management;
use crate::gpu::library::{call, text_of};
use crate::gpu::listing::{self, Listed, NoRuntime};
use crate::gpu::search::{Search, Wanted};
use crate::gpu::{Architecture, DeviceError, LibrarySummary};

const DRIVER: Wanted<'static> = Wanted {
    what: "the CUDA driver",
    names: if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] },
    advice: "install NVIDIA's driver (R470 or later), or name the folder of the library",
};

/// What the library is, in surveys.
const NAME: &str = "CUDA driver";

/// CUDA's driver library, initialised.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    pub(super) cuda: Cuda,
    pub(super) management: Option<Management>,
    /// The file of the library.
    pub(crate) path: PathBuf,
    /// The CUDA version that the driver implements, as major and minor.
    pub(crate) version: (u32, u32),
}

/// What only NVIDIA's devices have.
#[derive(Debug, Clone)]
pub(crate) struct CudaDevice {
    pub(super) device: CUdevice,
    /// The compute capability.
    pub(super) capability: (u32, u32),
}

impl Listed<CudaDevice> {
    /// The instruction set; `None` for one that is too old.
    pub(crate) fn architecture(&self) -> Option<Architecture> {
        let (major, minor) = self.own.capability;
        Architecture::of_compute_capability(major, minor)
    }

    /// What to say if there is none.
    pub(crate) fn too_old(&self) -> String {
        let (major, minor) = self.own.capability;
        format!(
            "{} has compute capability {major}.{minor}, and 7.5 is the least that there are \
             kernels for",
            self.name
        )
    }
}

impl listing::Runtime for Runtime {
    const LISTS: &'static str = "the driver";

    fn library(&self) -> LibrarySummary {
        LibrarySummary { name: NAME, version: self.driver_version(), path: self.path.clone() }
    }

    /// The version of NVIDIA's driver, where its management library reports it; else that of the
    /// CUDA interface.
    fn driver_version(&self) -> String {
        let reported = self.management.as_ref().and_then(Management::driver_version);
        reported.unwrap_or_else(|| self.interface_version())
    }

    fn count(&self) -> Result<u32, DeviceError> {
        let mut count: c_int = 0;
        // SAFETY: the pointer is that of a number.
        unsafe { call!(self.cuda, cuDeviceGetCount(&raw mut count)) }?;
        Ok(u32::try_from(count).unwrap_or_default())
    }
}

impl Runtime {
    /// Finds the library and starts it.
    pub(crate) fn start(search: &Search) -> Result<Self, NoRuntime> {
        let found = search
            .open(&DRIVER, Cuda::resolve)
            .map_err(|missing| NoRuntime::Missing(Box::new(missing)))?;
        let cuda = found.table;
        let path = found.library.file("cuInit");
        let failed = |error| NoRuntime::Failed {
            library: LibrarySummary {
                name: NAME,
                version: "of unknown version".to_owned(),
                path: path.clone(),
            },
            error: Box::new(error),
        };
        // SAFETY: the call takes no pointers.
        unsafe { call!(cuda, cuInit(0)) }.map_err(failed)?;
        let mut version = 0;
        // SAFETY: the pointer is that of a number.
        unsafe { call!(cuda, cuDriverGetVersion(&raw mut version)) }.map_err(failed)?;
        let version = u32::try_from(version).unwrap_or_default();
        Ok(Self {
            cuda,
            management: Management::start(search),
            path,
            version: (version / 1000, version % 1000 / 10),
        })
    }

    /// The version of the CUDA interface.
    pub(crate) fn interface_version(&self) -> String {
        format!("CUDA {}.{}", self.version.0, self.version.1)
    }

    /// The properties of a device.
    pub(crate) fn describe(&self, index: u32) -> Result<Listed<CudaDevice>, DeviceError> {
        let mut device: CUdevice = 0;
        let ordinal = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the pointer is that of a device.
        unsafe { call!(self.cuda, cuDeviceGet(&raw mut device, ordinal)) }?;
        let mut memory_bytes = 0_usize;
        // SAFETY: the pointer is that of a number.
        unsafe { call!(self.cuda, cuDeviceTotalMem_v2(&raw mut memory_bytes, device)) }?;
        let ask = |attribute| self.attribute(device, attribute);
        let most = ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
            .max(ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?);
        Ok(Listed {
            own: CudaDevice {
                device,
                capability: (
                    ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                    ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
                ),
            },
            name: self.text(self.cuda.cuDeviceGetName, "cuDeviceGetName", device)?,
            memory_bytes: memory_bytes as u64,
            processors: ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            shared_bytes_per_block: most,
            l2_bytes: ask(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            clock_mhz: ask(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1000,
            bus_id: self
                .text(self.cuda.cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", device)?
                .to_ascii_lowercase(),
        })
    }

    fn attribute(&self, device: CUdevice, attribute: Attribute) -> Result<u32, DeviceError> {
        let mut value: c_int = 0;
        // SAFETY: the pointer is that of a number.
        unsafe {
            call!(self.cuda, cuDeviceGetAttribute(&raw mut value, attribute as u32, device))
        }?;
        Ok(u32::try_from(value).unwrap_or_default())
    }

    fn text(
        &self,
        function: unsafe extern "C" fn(*mut c_char, c_int, CUdevice) -> u32,
        name: &'static str,
        device: CUdevice,
    ) -> Result<String, DeviceError> {
        let mut bytes = [0_u8; 256];
        // SAFETY: the call writes a C string of at most that many bytes.
        let code = unsafe { function(bytes.as_mut_ptr().cast(), 255, device) };
        self.cuda.check(name, code)?;
        Ok(text_of(&bytes))
    }
}
