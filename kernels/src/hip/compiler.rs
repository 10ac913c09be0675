//! AMD's runtime compiler as the backend sees it: questions to the compile worker.

use std::cell::RefCell;
use std::path::PathBuf;

use crate::gpu::compile_worker::{Compilation, Compile, CompileWorker};
use crate::gpu::compiler_log::first_errors;
use crate::gpu::{Architecture, Compiled, Compiler, DeviceError, GpuOptions, Source};

/// hiprtc, in a process of its own.
#[derive(Debug)]
pub(super) struct HiprtcCompiler {
    worker: RefCell<CompileWorker>,
    version: String,
    /// The version without the compiler's name.
    pub(super) number: String,
    /// The file of the library.
    pub(super) path: PathBuf,
}

impl HiprtcCompiler {
    /// Starts the worker, which finds the library.
    pub(super) fn find(options: &GpuOptions) -> Result<Self, String> {
        let GpuOptions { compile_worker, library_folders, .. } = options;
        Self::of(CompileWorker::new(compile_worker.clone(), library_folders.clone()))
    }

    /// Its compiler.
    pub(super) fn of(mut worker: CompileWorker) -> Result<Self, String> {
        let opened = worker.open().map_err(|how| {
            format!("AMD's runtime compiler hiprtc did not start in a process of its own: {how}")
        })??;
        Ok(Self {
            worker: RefCell::new(worker),
            version: format!("hiprtc {}", opened.version),
            number: opened.version,
            path: opened.path.into(),
        })
    }
}

impl Compiler for HiprtcCompiler {
    fn version(&self) -> &str {
        &self.version
    }

    fn options(&self, architecture: &Architecture) -> Vec<String> {
        let mut options = vec![
            format!("--offload-arch={}", architecture.name),
            "-std=c++17".to_owned(),
            "-O3".to_owned(),
            "-DPORT_HIP".to_owned(),
        ];
        options.extend(architecture.defines());
        options
    }

    fn compile(
        &self,
        source: &Source<'_>,
        architecture: &Architecture,
    ) -> Result<Compiled, DeviceError> {
        let program = Compile {
            name: source.name.to_owned(),
            text: source.text.to_owned(),
            headers: source
                .headers
                .iter()
                .map(|&(name, text)| (name.to_owned(), text.to_owned()))
                .collect(),
            options: self.options(architecture),
        };
        let answer = self.worker.borrow_mut().compile(&program);
        match answer {
            Ok(Compilation::Code { image, log }) => Ok(Compiled { image, log }),
            Ok(Compilation::Refused(log)) => Err(DeviceError::Compile {
                compiler: self.version.clone(),
                kernel: source.name.to_owned(),
                architecture: architecture.name.clone(),
                log: first_errors(&log),
            }),
            Ok(Compilation::Failed(why)) => Err(DeviceError::Unsupported(why)),
            Err(error) => Err(DeviceError::CompilerEnded {
                compiler: self.version.clone(),
                kernel: source.name.to_owned(),
                architecture: architecture.name.clone(),
                how: error.to_string(),
            }),
        }
    }
}
