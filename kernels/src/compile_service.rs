//! The compile worker's side: the compiler, and its answers.

use std::convert::Infallible;

#[cfg(feature = "hip")]
use hiprtc as compiler;
#[cfg(not(feature = "hip"))]
use unavailable as compiler;

use crate::gpu::compile_worker::{Compile, Open};
use crate::worker::{self, Question, Reply, Request, ServeError};

/// Answers the questions of GPU backends to their compile worker.
#[derive(Debug)]
pub struct CompileService(Result<compiler::Library, String>);

impl Default for CompileService {
    fn default() -> Self {
        Self(Err("the worker was not asked to find its compiler".to_owned()))
    }
}

impl CompileService {
    /// The answer to a question. One of another kind is refused.
    #[must_use]
    pub fn answer(&mut self, request: &Request) -> Reply {
        match request.name() {
            Open::NAME => request.answer(|open: Open| {
                no_core_dumps();
                self.0 = compiler::find(&open);
                self.0.as_ref().map(compiler::describe).map_err(Clone::clone)
            }),
            Compile::NAME => request.answer(|program| compiler::compile(&self.0, &program)),
            _ => request.unknown(),
        }
    }

    /// Makes of this process a worker that answers these questions and no others.
    ///
    /// # Errors
    ///
    /// When the caller of the worker cannot be read from or written to.
    pub fn serve() -> Result<Infallible, ServeError> {
        let mut service = Self::default();
        worker::serve(|request| service.answer(request))
    }
}

/// An abort of the compiler is expected, and its memory of no interest.
fn no_core_dumps() {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, setrlimit};

        // A failure here does no harm.
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    }
}

#[cfg(feature = "hip")]
mod hiprtc {
    use std::path::PathBuf;

    use crate::gpu::compile_worker::{Compilation, Compile, Open, Opened};
    use crate::gpu::search::Search;
    use crate::gpu::{Source, surroundings};
    use crate::hip::{HiprtcLibrary, Outcome};

    pub(super) type Library = HiprtcLibrary;

    pub(super) fn find(open: &Open) -> Result<Library, String> {
        let folders: Vec<PathBuf> = open.folders.iter().map(PathBuf::from).collect();
        let search = Search::rocm(&folders, &surroundings());
        HiprtcLibrary::find(&search).map_err(|missing| missing.to_string())
    }

    pub(super) fn describe(library: &Library) -> Opened {
        Opened { version: library.version.clone(), path: library.path.clone().into() }
    }

    pub(super) fn compile(library: &Result<Library, String>, program: &Compile) -> Compilation {
        let library = match library {
            Ok(library) => library,
            Err(why) => return Compilation::Failed(why.clone()),
        };
        let Compile { name, text, headers, options } = program;
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        match library.compile(&Source { name, text, headers: &headers }, options) {
            Ok(Outcome::Compiled(code)) => Compilation::Code { image: code.image, log: code.log },
            Ok(Outcome::Refused(log)) => Compilation::Refused(log),
            Err(error) => Compilation::Failed(error.to_string()),
        }
    }
}

#[cfg(not(feature = "hip"))]
mod unavailable {
    use crate::gpu::compile_worker::{Compilation, Compile, Open, Opened};

    /// There is none.
    #[derive(Debug)]
    pub(super) enum Library {}

    pub(super) fn find(_: &Open) -> Result<Library, String> {
        Err("this program was built without support for hip devices".to_owned())
    }

    pub(super) fn describe(library: &Library) -> Opened {
        match *library {}
    }

    pub(super) fn compile(library: &Result<Library, String>, _: &Compile) -> Compilation {
        match library {
            Ok(library) => match *library {},
            Err(why) => Compilation::Failed(why.clone()),
        }
    }
}
