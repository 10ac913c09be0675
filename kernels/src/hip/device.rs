//! The runtime library and the devices it lists.

use std::ffi::{c_char, c_int};
use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use super::raw::{
    Hip, hipDevice_t, hipDeviceAttribute_t, hipDeviceAttributeClockRate,
    hipDeviceAttributeL2CacheSize, hipDeviceAttributeMaxSharedMemoryPerBlock,
    hipDeviceAttributeMultiprocessorCount, hipDeviceAttributeWallClockRate, hipDeviceProp_tR0000,
    hipDeviceProp_tR0600,
};
use crate::gpu::library::{call, text_of};
use crate::gpu::listing::{self, Listed, NoRuntime, Runtime as _};
use crate::gpu::search::{Search, Wanted};
use crate::gpu::{Architecture, Counters, DeviceError, LibrarySummary};

const RUNTIME: Wanted<'static> = Wanted {
    what: "AMD's HIP runtime",
    names: &[
        "libamdhip64.so.8",
        "libamdhip64.so.7",
        "libamdhip64.so.6",
        "libamdhip64.so.5",
        "libamdhip64.so",
    ],
    advice: "install ROCm 5.2 or later, or name the folder of the library",
};

/// HIP's runtime library, initialised.
#[derive(Debug, Clone)]
pub(super) struct Runtime {
    pub(super) hip: Hip,
    /// The file of the library.
    pub(super) path: PathBuf,
    /// The version of HIP.
    pub(super) version: String,
    /// The version of the kernel's driver, where it shows one.
    pub(super) kernel_driver: Option<String>,
}

/// What only AMD's devices have.
#[derive(Debug, Clone)]
pub(super) struct HipDevice {
    pub(super) ordinal: c_int,
    /// The architecture, such as `gfx942:sramecc+:xnack-`.
    pub(super) reported: String,
    /// How fast its own time goes; 0 where HIP does not say so.
    pub(super) ticks_khz: u32,
}

impl Listed<HipDevice> {
    /// The instruction set; `None` for one that there are no kernels for.
    pub(super) fn architecture(&self) -> Option<Architecture> {
        Architecture::of_gfx(&self.own.reported)
    }

    /// What to say if there is none.
    pub(super) fn unknown(&self) -> String {
        format!("there are no kernels for {} ({})", self.own.reported, self.name)
    }

    /// What kernels of `port.h` read of clocks; `None` where that has nothing for the architecture,
    /// whose counters are shorter or not of one processor, or HIP does not say how fast time goes.
    pub(super) fn counters(&self) -> Option<Counters> {
        let name = self.own.reported.split(':').next().unwrap_or_default();
        // Of a compute unit within its die, and of 16 dies.
        let places = match name {
            "gfx908" | "gfx90a" => 1 << 8,
            "gfx940" | "gfx941" | "gfx942" | "gfx950" => 1 << 12,
            _ => return None,
        };
        let ticks_khz = self.own.ticks_khz;
        (ticks_khz > 0).then_some(Counters { places, ticks_khz })
    }

    /// Bytes that push everything else out of all its caches. HIP only reports the L2. What lies
    /// behind it is from AMD's specifications of the chips, of the largest product of each.
    pub(super) fn last_level_bytes(&self) -> u64 {
        let name = self.own.reported.split(':').next().unwrap_or_default();
        let mebibytes = match name {
            "gfx940" | "gfx941" | "gfx942" | "gfx950" => 256,
            "gfx1030" => 128,
            "gfx1031" | "gfx1100" => 96,
            "gfx1101" | "gfx1201" => 64,
            "gfx1032" | "gfx1102" | "gfx1151" | "gfx1200" => 32,
            "gfx1034" => 16,
            _ => 0,
        };
        self.l2_bytes.max(mebibytes << 20)
    }
}

impl listing::Runtime for Runtime {
    const LISTS: &'static str = "the runtime";

    fn library(&self) -> LibrarySummary {
        LibrarySummary {
            name: "HIP runtime",
            version: self.version.clone(),
            path: self.path.clone(),
        }
    }

    /// The version of the kernel's driver; else that of HIP, which always is there.
    fn driver_version(&self) -> String {
        match &self.kernel_driver {
            Some(version) => format!("amdgpu {version}"),
            None => format!("HIP {}", self.version),
        }
    }

    fn count(&self) -> Result<u32, DeviceError> {
        let mut count: c_int = 0;
        // SAFETY: the pointer is that of a number.
        unsafe { call!(self.hip, hipGetDeviceCount(&raw mut count)) }?;
        Ok(u32::try_from(count).unwrap_or_default())
    }
}

impl Runtime {
    /// Finds the library and starts it.
    pub(super) fn start(search: &Search, root: &Path) -> Result<Self, NoRuntime> {
        let found = search
            .open(&RUNTIME, Hip::resolve)
            .map_err(|missing| NoRuntime::Missing(Box::new(missing)))?;
        let hip = found.table;
        let kernel_driver = fs::read_to_string(root.join("sys/module/amdgpu/version")).ok();
        let runtime = Self {
            hip,
            path: found.library.file("hipInit"),
            version: version_of(&hip),
            kernel_driver: kernel_driver.map(|text| text.trim().to_owned()),
        };
        // SAFETY: the call takes no pointers.
        match unsafe { call!(hip, hipInit(0)) } {
            Ok(()) => Ok(runtime),
            Err(error) => {
                Err(NoRuntime::Failed { library: runtime.library(), error: Box::new(error) })
            }
        }
    }

    /// The properties of a device.
    pub(super) fn describe(&self, index: u32) -> Result<Listed<HipDevice>, DeviceError> {
        let ordinal = c_int::try_from(index).unwrap_or(c_int::MAX);
        let mut device: hipDevice_t = 0;
        // SAFETY: the pointer is that of a device.
        unsafe { call!(self.hip, hipDeviceGet(&raw mut device, ordinal)) }?;
        let mut memory_bytes = 0_usize;
        // SAFETY: the pointer is that of a number.
        unsafe { call!(self.hip, hipDeviceTotalMem(&raw mut memory_bytes, device)) }?;
        let ask = |attribute| self.attribute(ordinal, attribute);
        let mut name = [0_u8; 256];
        let bytes = name.as_mut_ptr().cast::<c_char>();
        // SAFETY: the call writes a C string of at most that many bytes.
        unsafe { call!(self.hip, hipDeviceGetName(bytes, 255, device)) }?;
        let mut bus_id = [0_u8; 64];
        let bytes = bus_id.as_mut_ptr().cast::<c_char>();
        // SAFETY: the call writes a C string of at most that many bytes.
        unsafe { call!(self.hip, hipDeviceGetPCIBusId(bytes, 63, ordinal)) }?;
        Ok(Listed {
            own: HipDevice {
                ordinal,
                reported: self.reported_architecture(ordinal)?,
                ticks_khz: ask(hipDeviceAttributeWallClockRate).unwrap_or_default(),
            },
            name: text_of(&name),
            memory_bytes: memory_bytes as u64,
            processors: ask(hipDeviceAttributeMultiprocessorCount)?,
            shared_bytes_per_block: ask(hipDeviceAttributeMaxSharedMemoryPerBlock)?,
            l2_bytes: ask(hipDeviceAttributeL2CacheSize)?.into(),
            clock_mhz: ask(hipDeviceAttributeClockRate)? / 1000,
            bus_id: text_of(&bus_id).to_ascii_lowercase(),
        })
    }

    fn attribute(
        &self,
        ordinal: c_int,
        attribute: hipDeviceAttribute_t,
    ) -> Result<u32, DeviceError> {
        let mut value: c_int = 0;
        // SAFETY: the pointer is that of a number.
        unsafe { call!(self.hip, hipDeviceGetAttribute(&raw mut value, attribute, ordinal)) }?;
        Ok(u32::try_from(value).unwrap_or_default())
    }

    /// The name of the architecture, which only the properties have. Those have another layout
    /// from ROCm 6 on, with another function; the old one is still there.
    fn reported_architecture(&self, ordinal: c_int) -> Result<String, DeviceError> {
        if let Some(function) = self.hip.hipGetDevicePropertiesR0600 {
            let mut properties = MaybeUninit::<hipDeviceProp_tR0600>::zeroed();
            // SAFETY: the call writes properties of this layout.
            let code = unsafe { function(properties.as_mut_ptr(), ordinal) };
            self.hip.check("hipGetDevicePropertiesR0600", code)?;
            // SAFETY: zeros are valid properties, and the call wrote others.
            let name = unsafe { properties.assume_init() }.gcnArchName;
            return Ok(text_of(&name.map(|byte| byte.to_ne_bytes()[0])));
        }
        let Some(function) = self.hip.hipGetDeviceProperties else {
            return Err(DeviceError::Unsupported(format!(
                "{} has no function for the properties of devices",
                self.path.display()
            )));
        };
        let mut properties = MaybeUninit::<hipDeviceProp_tR0000>::zeroed();
        // SAFETY: without the other function, this one writes properties of the old layout.
        let code = unsafe { function(properties.as_mut_ptr(), ordinal) };
        self.hip.check("hipGetDeviceProperties", code)?;
        // SAFETY: zeros are valid properties, and the call wrote others.
        let name = unsafe { properties.assume_init() }.gcnArchName;
        Ok(text_of(&name.map(|byte| byte.to_ne_bytes()[0])))
    }
}

/// The version as ROCm names it: a number `50221153` is 5.2.21153.
fn version_of(hip: &Hip) -> String {
    let mut number: c_int = 0;
    // SAFETY: the pointer is that of a number.
    let done = unsafe { call!(hip, hipRuntimeGetVersion(&raw mut number)) };
    match (done, u32::try_from(number)) {
        (Ok(()), Ok(number)) if number > 0 => version_text(number),
        _ => "of unknown version".to_owned(),
    }
}

fn version_text(number: u32) -> String {
    format!("{}.{}.{}", number / 10_000_000, number / 100_000 % 100, number % 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_rocm_names_them() {
        assert_eq!(version_text(50_221_153), "5.2.21153");
        assert_eq!(version_text(60_241_134), "6.2.41134");
        assert_eq!(version_text(70_125_424), "7.1.25424");
    }

    /// What the headers of ROCm 5.2.3 and 6.2.2 say, compiled by a C compiler.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn properties_lie_as_in_the_headers() {
        use std::mem::{offset_of, size_of};
        assert_eq!(size_of::<hipDeviceProp_tR0000>(), 792);
        assert_eq!(offset_of!(hipDeviceProp_tR0000, gcnArchName), 396);
        assert_eq!(size_of::<hipDeviceProp_tR0600>(), 1472);
        assert_eq!(offset_of!(hipDeviceProp_tR0600, gcnArchName), 1160);
    }

    #[test]
    fn what_hip_does_not_report_follows_from_the_architecture() {
        let mut listed = Listed {
            own: HipDevice {
                ordinal: 0,
                reported: "gfx942:sramecc+:xnack-".to_owned(),
                ticks_khz: 100_000,
            },
            name: String::new(),
            memory_bytes: 0,
            processors: 304,
            shared_bytes_per_block: 65536,
            l2_bytes: 4 << 20,
            clock_mhz: 2100,
            bus_id: String::new(),
        };
        assert_eq!(listed.last_level_bytes(), 256 << 20);
        assert_eq!(listed.counters(), Some(Counters { places: 4096, ticks_khz: 100_000 }));
        listed.own.reported = "gfx90a".to_owned();
        assert_eq!(listed.last_level_bytes(), 4 << 20);
        assert_eq!(listed.counters(), Some(Counters { places: 256, ticks_khz: 100_000 }));
        listed.own.ticks_khz = 0;
        assert_eq!(listed.counters(), None);
        listed.own = HipDevice { ordinal: 0, reported: "gfx1100".to_owned(), ticks_khz: 100_000 };
        assert_eq!(listed.counters(), None);
    }
}
