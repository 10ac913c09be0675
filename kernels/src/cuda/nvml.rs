//! The clock of a device and why it is low, from NVIDIA's management library.

use std::ffi::CString;
use std::ptr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::functions::{Nvml, NvmlDevice};
use crate::backend::Sensors;
use crate::gpu::library::text_of;
use crate::gpu::search::{Search, Wanted};

const LIBRARY: Wanted<'static> = Wanted {
    what: "NVIDIA's management library",
    names: if cfg!(windows) { &["nvml.dll"] } else { &["libnvidia-ml.so.1", "libnvidia-ml.so"] },
    advice: "it is part of NVIDIA's driver",
};

/// How long the library may take to start: it does in less than a second, unless a driver is stuck.
const START_LIMIT: Duration = Duration::from_secs(4);

/// `NVML_SUCCESS`
const SUCCESS: u32 = 0;
/// `NVML_CLOCK_SM`
const CLOCK_SM: u32 = 1;

/// The management library, initialised.
#[derive(Debug, Clone)]
pub(super) struct Management {
    nvml: Nvml,
}

/// A device of it.
#[derive(Debug, Clone)]
pub(super) struct Monitor {
    nvml: Nvml,
    device: NvmlDevice,
}

impl Management {
    /// `None` where it is not there or does not start in time: everything works without.
    pub(super) fn start(search: &Search) -> Option<Self> {
        let (started, hears) = mpsc::channel();
        let search = search.clone();
        // One that never returns stays behind in its thread, which ends with the process.
        let start = move || {
            let nvml = search.open(&LIBRARY, Nvml::resolve).ok().map(|found| found.table);
            // SAFETY: the call has no preconditions.
            let nvml = nvml.filter(|nvml| unsafe { (nvml.nvmlInit_v2)() } == SUCCESS);
            // Nobody hears of what comes too late.
            let _ = started.send(nvml);
        };
        thread::Builder::new().name("nvml".to_owned()).spawn(start).ok()?;
        let nvml = hears.recv_timeout(START_LIMIT).ok()??;
        Some(Self { nvml })
    }

    /// Such as `550.54.15`.
    pub(super) fn driver_version(&self) -> Option<String> {
        let mut bytes = [0_u8; 96];
        // SAFETY: the call writes a C string of at most that many bytes.
        let code = unsafe { (self.nvml.nvmlSystemGetDriverVersion)(bytes.as_mut_ptr().cast(), 95) };
        let text = text_of(&bytes);
        (code == SUCCESS && !text.is_empty()).then_some(text)
    }

    /// The device at a place on the bus. The numbers of devices are not the same as CUDA's.
    pub(super) fn monitor(&self, bus_id: &str) -> Option<Monitor> {
        let bus_id = CString::new(bus_id).ok()?;
        let mut device = ptr::null_mut();
        // SAFETY: the call reads a C string and writes one handle.
        let code = unsafe {
            (self.nvml.nvmlDeviceGetHandleByPciBusId_v2)(bus_id.as_ptr(), &raw mut device)
        };
        (code == SUCCESS && !device.is_null()).then_some(Monitor { nvml: self.nvml, device })
    }
}

impl Monitor {
    pub(super) fn read(&self) -> Sensors {
        let mut mhz = 0;
        // SAFETY: the device is this library's, and the call writes one number.
        let code =
            unsafe { (self.nvml.nvmlDeviceGetClockInfo)(self.device, CLOCK_SM, &raw mut mhz) };
        Sensors {
            clock_mhz: (code == SUCCESS).then_some(mhz),
            throttle_reasons: self.throttle_reasons(),
            device_clock_mhz: None,
        }
    }

    fn throttle_reasons(&self) -> Option<u64> {
        let function = self
            .nvml
            .nvmlDeviceGetCurrentClocksEventReasons
            .or(self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons)?;
        let mut reasons = 0;
        // SAFETY: the device is this library's, and the call writes one number.
        let code = unsafe { function(self.device, &raw mut reasons) };
        (code == SUCCESS).then_some(reasons)
    }
}
