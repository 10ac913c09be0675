//! The compile worker: a process of its own for a runtime compiler that may end the process.
//!
//! AMD's compiler aborts on some architectures that it does not know, and crashes on some programs.
//! So the same program is started again with [`ARGUMENT`], calls [`run`], and compiles what it is
//! asked to until its input ends. If it dies, its parent reports how, and starts another one for
//! the next question.

mod message;
mod process;

use std::io::{self, Read, Write};

pub(crate) use message::{Answer, Question};
pub(crate) use process::Worker;
pub use process::set_command;

/// The argument with which a program is started as a worker.
pub const ARGUMENT: &str = "compile-worker";

/// Says that a process is a worker, which must not start others.
const VARIABLE: &str = "CALIBRATE_COMPILE_WORKER";

/// What a worker writes first. Whatever comes before it, such as messages of libraries, is not for
/// the parent.
const GREETING: &[u8] = b"\0compile worker 1\n";

/// Serves the parent on the process's input and output until the input ends.
///
/// Libraries that write to the standard output would disturb the conversation, so that it becomes
/// the standard error for everybody else.
///
/// # Errors
///
/// When the parent cannot be read from or written to.
pub fn run() -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        // SAFETY: the call takes two descriptors of this process, and leaves both open.
        if unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // An abort is expected, and its memory of no interest.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call reads one `rlimit`. That it may fail does no harm.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
        serve(io::stdin().lock(), std::fs::File::from(output))
    }
    #[cfg(not(unix))]
    serve(io::stdin().lock(), io::stdout().lock())
}

/// Answers questions until there are no more.
///
/// # Errors
///
/// When a question cannot be read, or an answer not be written.
pub fn serve(mut questions: impl Read, mut answers: impl Write) -> io::Result<()> {
    answers.write_all(GREETING)?;
    answers.flush()?;
    let mut compiler = Err("the worker was not asked to find its compiler".to_owned());
    while let Some(question) = Question::read(&mut questions)? {
        let answer = match question {
            Question::Open { folders } => {
                compiler = opened::open(&folders);
                opened::describe(&compiler)
            }
            Question::Compile { .. } => opened::compile(&compiler, &question),
        };
        answer.write(&mut answers)?;
    }
    Ok(())
}

#[cfg(feature = "hip")]
mod opened {
    use std::path::PathBuf;

    use super::{Answer, Question};
    use crate::gpu::Source;
    use crate::gpu::devices::surroundings;
    use crate::gpu::search::Search;
    use crate::hip::{HiprtcLibrary, Outcome};

    pub(super) fn open(folders: &[PathBuf]) -> Result<HiprtcLibrary, String> {
        let search = Search::rocm(folders, &surroundings());
        HiprtcLibrary::find(&search).map_err(|missing| missing.to_string())
    }

    pub(super) fn describe(compiler: &Result<HiprtcLibrary, String>) -> Answer {
        match compiler {
            Ok(compiler) => {
                Answer::Opened { version: compiler.version.clone(), path: compiler.path.clone() }
            }
            Err(why) => Answer::Failed(why.clone()),
        }
    }

    pub(super) fn compile(compiler: &Result<HiprtcLibrary, String>, question: &Question) -> Answer {
        let Question::Compile { name, text, headers, options } = question else {
            return Answer::Failed("nothing was asked for".to_owned());
        };
        let compiler = match compiler {
            Ok(compiler) => compiler,
            Err(why) => return Answer::Failed(why.clone()),
        };
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        match compiler.compile(&Source { name, text, headers: &headers }, options) {
            Ok(Outcome::Compiled(compiled)) => {
                Answer::Compiled { image: compiled.image, log: compiled.log }
            }
            Ok(Outcome::Refused(log)) => Answer::Refused(log),
            Err(error) => Answer::Failed(error.to_string()),
        }
    }
}

#[cfg(not(feature = "hip"))]
mod opened {
    use std::path::PathBuf;

    use super::{Answer, Question};

    pub(super) fn open(_folders: &[PathBuf]) -> Result<(), String> {
        Err("this program was built without support for hip devices".to_owned())
    }

    pub(super) fn describe(compiler: &Result<(), String>) -> Answer {
        compile(compiler, &Question::Open { folders: Vec::new() })
    }

    pub(super) fn compile(compiler: &Result<(), String>, _question: &Question) -> Answer {
        Answer::Failed(compiler.as_ref().err().cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
