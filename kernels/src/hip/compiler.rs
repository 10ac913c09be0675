//! AMD's runtime compiler as the backend sees it: questions to the compile worker.

use std::cell::RefCell;
use std::path::PathBuf;

use crate::gpu::compile_worker::{Answer, Question, Worker};
use crate::gpu::compiler_log::first_errors;
use crate::gpu::{Architecture, Compiled, Compiler, DeviceError, Source};

/// hiprtc, in a process of its own.
#[derive(Debug)]
pub(super) struct HiprtcCompiler {
    worker: RefCell<Worker>,
    version: String,
    /// The version without the compiler's name.
    pub(super) number: String,
    /// The file of the library.
    pub(super) path: PathBuf,
}

impl HiprtcCompiler {
    /// Starts the worker, which finds the library.
    pub(super) fn find(library_folders: &[PathBuf]) -> Result<Self, String> {
        Self::of(Worker::new(library_folders.to_vec()))
    }

    /// Its compiler.
    pub(super) fn of(mut worker: Worker) -> Result<Self, String> {
        let answer = worker.open().map_err(|how| {
            format!("AMD's runtime compiler hiprtc did not start in a process of its own: {how}")
        })?;
        match answer {
            Answer::Opened { version, path } => Ok(Self {
                worker: RefCell::new(worker),
                version: format!("hiprtc {version}"),
                number: version,
                path,
            }),
            Answer::Failed(why) => Err(why),
            Answer::Compiled { .. } | Answer::Refused(_) => {
                Err("the compile worker answers something else".to_owned())
            }
        }
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
        let question = Question::Compile {
            name: source.name.to_owned(),
            text: source.text.to_owned(),
            headers: source
                .headers
                .iter()
                .map(|&(name, text)| (name.to_owned(), text.to_owned()))
                .collect(),
            options: self.options(architecture),
        };
        let ended = |how: String| DeviceError::CompilerEnded {
            compiler: self.version.clone(),
            kernel: source.name.to_owned(),
            architecture: architecture.name.clone(),
            how,
        };
        let answer = self.worker.borrow_mut().ask(question);
        match answer.map_err(|how| ended(how.to_string()))? {
            Answer::Compiled { image, log } => Ok(Compiled { image, log }),
            Answer::Refused(log) => Err(DeviceError::Compile {
                compiler: self.version.clone(),
                kernel: source.name.to_owned(),
                architecture: architecture.name.clone(),
                log: first_errors(&log),
            }),
            Answer::Failed(why) => Err(DeviceError::Unsupported(why)),
            Answer::Opened { .. } => Err(ended("it answered something else".to_owned())),
        }
    }
}
