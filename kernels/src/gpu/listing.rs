//! Listing a vendor's devices: what is the same for all vendors.

use fusion_cost_model::Core;

use super::architecture::Architecture;
use super::devices::{DeviceSummary, LibrarySummary, Survey, no_such_device};
use super::driver::{DeviceError, DeviceFacts};
use super::search::MissingLibrary;

/// A vendor's runtime that was started.
pub(crate) trait Runtime {
    /// What lists the devices, for messages: `the driver`.
    const LISTS: &'static str;

    /// Its library.
    fn library(&self) -> LibrarySummary;

    /// The version of the driver.
    fn driver_version(&self) -> String;

    /// How many devices there are.
    fn count(&self) -> Result<u32, DeviceError>;
}

/// Why there is no runtime.
#[derive(Debug)]
pub(crate) enum NoRuntime {
    /// Its library is missing.
    Missing(Box<MissingLibrary>),
    /// It does not start.
    Failed {
        /// Its library.
        library: LibrarySummary,
        /// What it says.
        error: Box<DeviceError>,
    },
}

impl From<NoRuntime> for DeviceError {
    fn from(why: NoRuntime) -> Self {
        match why {
            NoRuntime::Missing(missing) => Self::Library(missing),
            NoRuntime::Failed { error, .. } => *error,
        }
    }
}

impl From<NoRuntime> for Survey {
    fn from(why: NoRuntime) -> Self {
        match why {
            NoRuntime::Missing(missing) => Self::Missing(*missing),
            NoRuntime::Failed { library, error } => {
                Self::NoDevice { library, reason: error.to_string() }
            }
        }
    }
}

/// A runtime that lists devices, with their number; else the survey that says why there are none.
pub(crate) fn with_devices<R: Runtime>(
    started: Result<R, NoRuntime>,
) -> Result<(R, u32), Box<Survey>> {
    let runtime = started.map_err(|why| Box::new(Survey::from(why)))?;
    let reason = match runtime.count() {
        Ok(0) => format!("{} lists none", R::LISTS),
        Ok(count) => return Ok((runtime, count)),
        Err(error) => error.to_string(),
    };
    Err(Box::new(Survey::NoDevice { library: runtime.library(), reason }))
}

/// A runtime that has a device of a number.
pub(crate) fn with_device<R: Runtime>(
    started: Result<R, NoRuntime>,
    index: u32,
) -> Result<R, DeviceError> {
    let runtime = started?;
    let count = runtime.count()?;
    if index >= count {
        return Err(no_such_device(index, count));
    }
    Ok(runtime)
}

/// An architecture with kernels of a core; of its best one if none is named.
pub(crate) fn on_core(
    architecture: Architecture,
    core: Option<Core>,
) -> Result<Architecture, DeviceError> {
    let Some(core) = core else { return Ok(architecture) };
    architecture.with_core(core).ok_or_else(|| {
        let cores: Vec<String> = architecture.cores().map(|core| core.to_string()).collect();
        let (name, cores) = (&architecture.name, cores.join(", "));
        DeviceError::Unsupported(format!("{name} has no {core} instructions; it has {cores}"))
    })
}

/// What the runtime says of each device.
pub(crate) fn summaries<R: Runtime>(
    runtime: &R,
    count: u32,
    summary: impl Fn(u32) -> Result<DeviceSummary, DeviceError>,
) -> Vec<DeviceSummary> {
    let broken = |index, error| DeviceSummary::broken(index, runtime.driver_version(), &error);
    (0..count).map(|index| summary(index).unwrap_or_else(|error| broken(index, error))).collect()
}

/// What the runtime says of a device before it is opened.
#[derive(Debug, Clone)]
pub(crate) struct Listed<Vendors> {
    /// What only this vendor's devices have.
    pub(crate) own: Vendors,
    pub(crate) name: String,
    pub(crate) memory_bytes: u64,
    pub(crate) processors: u32,
    pub(crate) shared_bytes_per_block: u32,
    pub(crate) l2_bytes: u64,
    pub(crate) clock_mhz: u32,
    pub(crate) bus_id: String,
}

impl<Vendors> Listed<Vendors> {
    /// As a survey shows it.
    pub(crate) fn summary(
        self,
        index: u32,
        architecture: String,
        unsupported: Option<String>,
        runtime: &impl Runtime,
    ) -> DeviceSummary {
        DeviceSummary {
            index,
            name: self.name,
            architecture,
            memory_bytes: self.memory_bytes,
            processors: self.processors,
            bus_id: self.bus_id,
            driver_version: runtime.driver_version(),
            unsupported,
        }
    }

    /// As kernels are planned for it.
    pub(crate) fn facts(
        self,
        architecture: Architecture,
        last_level_bytes: u64,
        runtime: &impl Runtime,
        runtime_version: String,
    ) -> DeviceFacts {
        DeviceFacts {
            name: self.name,
            architecture,
            processors: self.processors,
            shared_bytes_per_block: self.shared_bytes_per_block,
            l2_bytes: self.l2_bytes,
            last_level_bytes,
            memory_bytes: self.memory_bytes,
            clock_mhz: self.clock_mhz,
            counters: None,
            bus_id: self.bus_id,
            driver_version: runtime.driver_version(),
            runtime_version,
        }
    }
}
