//! The worker's process, from its parent's side.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::message::{Answer, Question};
use super::{ARGUMENT, GREETING, VARIABLE};

/// How long a question may take. The largest kernels compile in some seconds.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Bytes that a worker may write before its greeting.
const MOST_BEFORE_GREETING: usize = 1 << 20;
/// How much of its last words is shown.
const MOST_LAST_WORDS: usize = 400;

/// The program that is started as the worker with its arguments, if it is not this one.
static COMMAND: Mutex<Option<(PathBuf, Vec<OsString>)>> = Mutex::new(None);

/// Has another program than this one started as the compile worker, with these arguments. It must
/// call [`run`](super::run).
pub fn set_command(program: PathBuf, arguments: Vec<OsString>) {
    *COMMAND.lock().unwrap_or_else(PoisonError::into_inner) = Some((program, arguments));
}

/// How a worker ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended(String);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A worker, which is started when it is needed and again when it has died.
#[derive(Debug)]
pub(crate) struct Worker {
    command: Option<(PathBuf, Vec<OsString>)>,
    folders: Vec<PathBuf>,
    time_limit: Duration,
    running: Option<Running>,
}

impl Worker {
    /// One that looks for its compiler in these folders first.
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        let command = COMMAND.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self { command, folders, time_limit: TIME_LIMIT, running: None }
    }

    /// Starts it, which finds its compiler.
    pub(crate) fn open(&mut self) -> Result<Answer, Ended> {
        self.running = Some(Running::start(self.command.clone())?);
        self.pass(Question::Open { folders: self.folders.clone() })
    }

    /// Its answer to a question. One that ends, or does not answer in time, is started again for
    /// the next question.
    pub(crate) fn ask(&mut self, question: Question) -> Result<Answer, Ended> {
        if self.running.is_none()
            && let answer @ (Answer::Failed(_) | Answer::Refused(_)) = self.open()?
        {
            return Ok(answer);
        }
        self.pass(question)
    }

    fn pass(&mut self, question: Question) -> Result<Answer, Ended> {
        let Some(running) = &mut self.running else {
            return Err(Ended("it was not started".to_owned()));
        };
        let answer = running.pass(question, self.time_limit);
        if answer.is_err() {
            self.running = None;
        }
        answer
    }

    /// One that is another program and has another time limit.
    #[cfg(test)]
    pub(crate) fn of(program: PathBuf, arguments: Vec<OsString>, time_limit: Duration) -> Self {
        Self { command: Some((program, arguments)), folders: Vec::new(), time_limit, running: None }
    }
}

/// A process that serves, with a thread that talks to it, so that the parent can stop waiting.
#[derive(Debug)]
struct Running {
    child: Child,
    questions: Sender<Question>,
    answers: Receiver<io::Result<Answer>>,
    /// What it writes to its standard error.
    words: File,
}

impl Running {
    fn start(command: Option<(PathBuf, Vec<OsString>)>) -> Result<Self, Ended> {
        if std::env::var_os(VARIABLE).is_some() {
            // Or a program that does not know the argument would start itself without end.
            return Err(Ended("a compile worker does not start another one".to_owned()));
        }
        let failed = |error: io::Error| Ended(format!("it cannot be started: {error}"));
        let words = tempfile::tempfile().map_err(failed)?;
        let (program, arguments) = match command {
            Some(command) => command,
            None => (this_program().map_err(failed)?, vec![ARGUMENT.into()]),
        };
        let mut child = Command::new(program)
            .args(arguments)
            .env(VARIABLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(words.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Ended("it has no input or output".to_owned()));
        };
        let (questions, to_ask) = mpsc::channel::<Question>();
        let (answered, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut greeted = greeting(&mut output);
            while let Ok(question) = to_ask.recv() {
                let answer = std::mem::replace(&mut greeted, Ok(()))
                    .and_then(|()| question.write(&mut input))
                    .and_then(|()| Answer::read(&mut output));
                let ends = answer.is_err();
                if answered.send(answer).is_err() || ends {
                    break;
                }
            }
        });
        Ok(Self { child, questions, answers, words })
    }

    fn pass(&mut self, question: Question, time_limit: Duration) -> Result<Answer, Ended> {
        // If the thread is gone, its last answer says why.
        let _ = self.questions.send(question);
        match self.answers.recv_timeout(time_limit) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                let _ = self.child.kill();
                Err(Ended(error.to_string()))
            }
            Ok(Err(error)) => Err(self.end(&error.to_string())),
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                Err(Ended(format!("it gave no answer in {} s", time_limit.as_secs_f64())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.end("it has ended before")),
        }
    }

    /// How it ended, after it has stopped to read or to write.
    fn end(&mut self, error: &str) -> Ended {
        // It is about to end.
        let mut status = None;
        for _ in 0..100 {
            status = self.child.try_wait().ok().flatten();
            if status.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut how = match status {
            Some(status) => status.to_string(),
            None => {
                let _ = self.child.kill();
                error.to_owned()
            }
        };
        if let Some(words) = self.last_words() {
            how = format!("{how}: {words}");
        }
        Ended(how)
    }

    fn last_words(&mut self) -> Option<String> {
        let mut words = Vec::new();
        self.words.seek(SeekFrom::Start(0)).ok()?;
        self.words.read_to_end(&mut words).ok()?;
        let words = String::from_utf8_lossy(&words);
        let words = words.trim();
        // Of stack traces, the beginning says what happened.
        let end = words.char_indices().nth(MOST_LAST_WORDS).map_or(words.len(), |(end, _)| end);
        (!words.is_empty()).then(|| words[..end].to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// On Linux the running program itself, also when its file has been replaced since.
fn this_program() -> io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if cfg!(target_os = "linux") && running.exists() {
        return Ok(running);
    }
    std::env::current_exe()
}

/// Skips everything up to the greeting, and the greeting.
fn greeting(output: &mut impl Read) -> io::Result<()> {
    let mut before = Vec::new();
    let mut byte = [0; 1];
    while !before.ends_with(GREETING) {
        if before.len() > MOST_BEFORE_GREETING {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no compile worker"));
        }
        output.read_exact(&mut byte)?;
        before.push(byte[0]);
    }
    Ok(())
}
