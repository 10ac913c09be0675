//! The compile worker: a process of its own for a runtime compiler that may end the process.
//!
//! AMD's compiler aborts on some architectures that it does not know, and crashes on some programs.
//! So it runs in a [worker](crate::worker), which is asked to find it (`Open`) and then to compile
//! (`Compile`). If the worker dies, the [`CompileWorker`] says how, and starts another one for the
//! next question. A program that uses AMD's GPUs answers both in a
//! [`CompileService`](crate::CompileService).

mod question;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use question::{Compilation, Compile, Open, Opened};

use crate::worker::{Program, Question, Worker, WorkerError};

/// How long a question may take. The largest kernels compile in some seconds.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A worker that compiles, which is started when it is needed and again when it has died.
#[derive(Debug)]
pub(crate) struct CompileWorker {
    /// `None` for this program.
    program: Option<Program>,
    folders: Vec<PathBuf>,
    time_limit: Duration,
    running: Option<Worker>,
}

impl CompileWorker {
    /// One that looks for its compiler in these folders first.
    pub(crate) fn new(program: Option<Program>, folders: Vec<PathBuf>) -> Self {
        Self { program, folders, time_limit: TIME_LIMIT, running: None }
    }

    /// Starts it, which finds its compiler. The inner error is that there is none.
    pub(crate) fn open(&mut self) -> Result<Result<Opened, String>, WorkerError> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => Program::this().map_err(WorkerError::Start)?,
        };
        self.running = Some(Worker::start(&program)?);
        let folders = self.folders.iter().map(|folder| folder.clone().into()).collect();
        self.ask(&Open { folders })
    }

    /// What becomes of a program.
    pub(crate) fn compile(&mut self, program: &Compile) -> Result<Compilation, WorkerError> {
        if self.running.is_none()
            && let Err(missing) = self.open()?
        {
            return Ok(Compilation::Failed(missing));
        }
        self.ask(program)
    }

    fn ask<Q: Question>(&mut self, question: &Q) -> Result<Q::Answer, WorkerError> {
        let answer = match &mut self.running {
            Some(running) => running.ask(question, Some(self.time_limit)),
            None => Err(WorkerError::Ended("its process was not started".to_owned())),
        };
        if answer.is_err() {
            self.running = None;
        }
        answer
    }
}

#[cfg(test)]
mod tests;
