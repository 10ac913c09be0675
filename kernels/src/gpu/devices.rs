//! The GPUs and their libraries on a machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fusion_cost_model::{Backend, Core};

use super::driver::{Compiler, DeviceError, Driver};
use super::search::{MissingLibrary, Surroundings};
use crate::worker::Program;

/// Where a GPU's libraries are looked for, and where compiled kernels are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuOptions {
    /// Folders that come before all others in the search for libraries.
    pub library_folders: Vec<PathBuf>,
    /// The folder of compiled kernels; `None` for the user's cache folder.
    pub cache_folder: Option<PathBuf>,
    /// The matrix instructions that kernels are written with; `None` for the best that the device
    /// has.
    pub core: Option<Core>,
    /// The program whose worker compiles for AMD's GPUs, in a [`CompileService`]; `None` for this
    /// program with the argument [`worker::ARGUMENT`](crate::worker::ARGUMENT).
    ///
    /// [`CompileService`]: crate::CompileService
    pub compile_worker: Option<Program>,
}

/// A backend's devices and libraries on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Survey {
    /// The driver lists devices.
    Found(Inventory),
    /// The driver's library is not there, or cannot be used.
    Missing(MissingLibrary),
    /// The library is there, but there is no device to use.
    NoDevice {
        /// The library.
        library: LibrarySummary,
        /// What the driver says.
        reason: String,
    },
    /// The backend is not one of a GPU, or was left out when the program was built.
    NotBuilt(Backend),
}

/// The devices of a backend with the libraries that they are used through.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inventory {
    /// In the driver's order, which is that of their indices.
    pub devices: Vec<DeviceSummary>,
    /// The driver's library.
    pub driver: LibrarySummary,
    /// The runtime compiler, or why there is none.
    pub compiler: Result<LibrarySummary, String>,
    /// The vendor's GEMM library, or why there is none.
    pub gemm_library: Result<LibrarySummary, String>,
}

/// A library that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibrarySummary {
    /// What it is: `NVRTC`.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// Its file.
    pub path: PathBuf,
}

/// A device that the driver lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceSummary {
    /// Its number, counted from 0 in the driver's order.
    pub index: u32,
    /// The name that it reports.
    pub name: String,
    /// Its instruction set: `sm_90a`, `gfx942`.
    pub architecture: String,
    /// All of its memory.
    pub memory_bytes: u64,
    /// Multiprocessors or compute units.
    pub processors: u32,
    /// Where it is on the bus, as `0000:3b:00.0`.
    pub bus_id: String,
    /// The version of the driver.
    pub driver_version: String,
    /// Why there are no kernels for it; `None` if there are.
    pub unsupported: Option<String>,
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(inventory) => write!(f, "{inventory}"),
            Self::Missing(missing) => write!(f, "{missing}"),
            Self::NoDevice { library, reason } => {
                let advice = match library.name {
                    "CUDA driver" => "see whether nvidia-smi lists the GPU",
                    _ => "see whether the kernel's amdgpu driver is loaded (/dev/kfd)",
                };
                write!(
                    f,
                    "no device: {reason} ({library}); {advice}, and whether this user or \
                     container may use it"
                )
            }
            Self::NotBuilt(Backend::Cpu) => f.write_str("a CPU is not a GPU"),
            Self::NotBuilt(backend) => {
                write!(f, "this program was built without support for {backend} devices")
            }
        }
    }
}

impl fmt::Display for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for device in &self.devices {
            writeln!(f, "{device}")?;
        }
        writeln!(f, "{}", self.driver)?;
        let said = |library: &Result<LibrarySummary, String>| match library {
            Ok(library) => library.to_string(),
            Err(why) => why.clone(),
        };
        writeln!(f, "{}", said(&self.compiler))?;
        write!(f, "{}", said(&self.gemm_library))
    }
}

impl fmt::Display for LibrarySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} in {}", self.name, self.version, self.path.display())
    }
}

impl fmt::Display for DeviceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        let gib = self.memory_bytes as f64 / (1_u64 << 30) as f64;
        write!(
            f,
            "{}: {} ({}, {} processors, {gib:.1} GiB, {}, driver {})",
            self.index,
            self.name,
            self.architecture,
            self.processors,
            self.bus_id,
            self.driver_version
        )?;
        match &self.unsupported {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

impl DeviceSummary {
    /// One that the driver lists and says nothing of.
    pub(crate) fn broken(index: u32, driver_version: String, error: &DeviceError) -> Self {
        Self {
            index,
            name: "a device".to_owned(),
            architecture: "unknown".to_owned(),
            memory_bytes: 0,
            processors: 0,
            bus_id: "unknown".to_owned(),
            driver_version,
            unsupported: Some(error.to_string()),
        }
    }
}

/// A driver and a compiler for a device.
pub(crate) type Opened = (Rc<dyn Driver>, Rc<dyn Compiler>);

/// Those of this process.
pub(crate) fn surroundings() -> Surroundings<'static> {
    Surroundings { variable: &|name| std::env::var_os(name), root: Path::new("/") }
}

/// A number of a device that is not there.
pub(crate) fn no_such_device(index: u32, count: u32) -> DeviceError {
    DeviceError::Unsupported(match count {
        0 => "the driver lists no device".to_owned(),
        1 => format!("there is no device {index}; the only one has the number 0"),
        _ => format!("there is no device {index}; their numbers are 0 to {}", count - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: u32, unsupported: Option<&str>) -> DeviceSummary {
        DeviceSummary {
            index,
            name: "NVIDIA H100".to_owned(),
            architecture: "sm_90a".to_owned(),
            memory_bytes: 80 << 30,
            processors: 132,
            bus_id: "0000:3b:00.0".to_owned(),
            driver_version: "550.54.15".to_owned(),
            unsupported: unsupported.map(str::to_owned),
        }
    }

    #[test]
    fn a_survey_shows_devices_and_libraries_each_in_a_line() {
        let survey = Survey::Found(Inventory {
            devices: vec![device(0, None), device(1, Some("it is too old"))],
            driver: LibrarySummary {
                name: "CUDA driver",
                version: "550.54.15".to_owned(),
                path: "/usr/lib/libcuda.so.1".into(),
            },
            compiler: Err("NVRTC was not found".to_owned()),
            gemm_library: Err("cuBLASLt was not found".to_owned()),
        });
        let line = "NVIDIA H100 (sm_90a, 132 processors, 80.0 GiB, 0000:3b:00.0, driver 550.54.15)";
        assert_eq!(
            survey.to_string(),
            format!(
                "0: {line}\n1: {line}: it is too old\n\
                 CUDA driver 550.54.15 in /usr/lib/libcuda.so.1\n\
                 NVRTC was not found\ncuBLASLt was not found"
            )
        );
    }

    #[test]
    fn a_number_that_no_device_has_is_said_with_those_there_are() {
        assert!(no_such_device(3, 2).to_string().contains("0 to 1"));
        assert!(no_such_device(1, 1).to_string().contains("the only one"));
    }
}
