//! The worker's side: questions on the standard input, answers on the standard output.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use thiserror::Error;

use super::frame;
use super::message::{self, Message, Question};
use super::note::Notes;

/// The exit code of a worker that leaves before it has answered: that of an interrupted program.
pub const LEFT: u8 = 130;

/// The exit code of a worker that has answered everything.
const DONE: u8 = 0;

/// Why a process cannot serve as a worker.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Its input is none of a worker: most likely a person has started it.
    #[error("this is a worker, which is only started by its own program, and got no question: {0}")]
    NoQuestion(String),
    /// Its output cannot be used.
    #[error("cannot write to the caller of this worker: {0}")]
    Output(#[source] io::Error),
}

/// A question that was asked, which can be of any type.
#[derive(Debug, Clone)]
pub struct Request {
    message: Message,
    notes: Notes,
}

/// An answer, or the reason for which there is none, as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply(Vec<u8>);

impl Request {
    /// The [`Question::NAME`] of the question.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.message.name
    }

    /// Where to say what is being done, until there is an answer.
    #[must_use]
    pub fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// Answers it as a question of this type, and refuses it if it is another one.
    pub fn answer<Q: Question>(&self, answer: impl FnOnce(Q) -> Q::Answer) -> Reply {
        if self.name() != Q::NAME {
            return self.refuse(&format!("the worker takes it for `{}`", Q::NAME));
        }
        match self.message.content::<Q>() {
            Ok(question) => {
                let answer: Result<Q::Answer, String> = Ok(answer(question));
                match message::body(self.name(), &answer) {
                    Ok(body) if frame::fits(&body) => Reply(body),
                    Ok(body) => self.refuse(&format!("its answer has {} bytes", body.len())),
                    Err(reason) => self.refuse(&format!("its answer cannot be sent: {reason}")),
                }
            }
            Err(reason) => self.refuse(&format!("it cannot be read: {reason}")),
        }
    }

    /// Refuses it, as one that this worker has no answer to.
    #[must_use]
    pub fn unknown(&self) -> Reply {
        self.refuse("this worker does not know the question")
    }

    fn refuse(&self, reason: &str) -> Reply {
        let refusal: Result<(), &str> = Err(reason);
        // Texts can always be written.
        Reply(message::body(self.name(), &refusal).unwrap_or_default())
    }
}

/// Serves the caller of this process until that has enough.
///
/// While a question is being answered, the end of the input ends the process at once; see
/// [`leave`]. When there are no more questions, the process ends here without asking any library
/// what it still has to do: a driver whose kernel hangs waits for it at the end of a process.
///
/// # Errors
///
/// [`ServeError`]: why this process cannot be a worker. After it returns, the program must end, and
/// is ended if it does not.
pub fn serve(answer: impl FnMut(&Request) -> Reply) -> Result<Infallible, ServeError> {
    #[cfg(target_os = "linux")]
    {
        end_with_caller();
        super::descendants::adopt();
    }
    match converse(answer) {
        Ok(()) => end(DONE),
        Err(error) => {
            // The program ends now, and nobody may be left to end it by force.
            end_in_time();
            Err(error)
        }
    }
}

/// Has the system end this process with the thread that started it: one that is stopped (SIGSTOP)
/// does not notice the end of its input.
#[cfg(target_os = "linux")]
fn end_with_caller() {
    // SAFETY: it sets a number of this process and touches no memory. Where the system refuses it, the
    // end of the input remains.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

fn converse(mut answer: impl FnMut(&Request) -> Reply) -> Result<(), ServeError> {
    let output = Arc::new(Mutex::new(take_output().map_err(ServeError::Output)?));
    let locked = || output.lock().unwrap_or_else(PoisonError::into_inner);
    let is_busy = Arc::new(AtomicBool::new(false));
    let questions = read_questions(Arc::clone(&is_busy));
    frame::write_greeting(&mut *locked()).map_err(ServeError::Output)?;
    while let Ok(question) = questions.recv() {
        let question = question.map_err(ServeError::NoQuestion)?;
        let Reply(body) = answer(&Request { message: question, notes: Notes::new(&output) });
        if is_leaving() {
            // What it worked with was ended under its hands, which is no finding.
            wait_for_the_end();
        }
        // The caller may close the input as soon as it has the answer.
        is_busy.store(false, Ordering::SeqCst);
        frame::write(&mut *locked(), &body).map_err(ServeError::Output)?;
    }
    Ok(())
}

/// How long what libraries do at the end of a process that cannot be a worker may take.
const TIME_FOR_LIBRARIES: Duration = Duration::from_secs(2);

/// Whether this worker ends, and takes what it has started with it.
static IS_LEAVING: AtomicBool = AtomicBool::new(false);

/// Ends this worker at once, in the middle of whatever it does.
pub fn leave() -> ! {
    IS_LEAVING.store(true, Ordering::SeqCst);
    #[cfg(unix)]
    super::groups::end_all();
    end(LEFT)
}

/// Whether another thread ends this process.
pub(super) fn is_leaving() -> bool {
    IS_LEAVING.load(Ordering::SeqCst)
}

/// Waits while it does.
pub(super) fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

/// Ends this process soon, if a library keeps it from ending by itself.
fn end_in_time() {
    // Without a thread to spare, libraries are trusted.
    let _ = thread::Builder::new().spawn(|| {
        thread::sleep(TIME_FOR_LIBRARIES);
        end(LEFT)
    });
}

/// Ends this process without asking anybody, and on Linux all that it has started.
#[cfg(unix)]
fn end(code: u8) -> ! {
    #[cfg(target_os = "linux")]
    super::descendants::end_own();
    // SAFETY: it takes any number, touches no memory of this process and does not return.
    unsafe { libc::_exit(i32::from(code)) }
}

#[cfg(not(unix))]
fn end(code: u8) -> ! {
    std::process::exit(i32::from(code))
}

/// Reads questions in a thread, which also notices the end of the input while one is answered.
fn read_questions(is_busy: Arc<AtomicBool>) -> Receiver<Result<Message, String>> {
    let (asked, questions) = mpsc::channel();
    let failed = asked.clone();
    let reading = thread::Builder::new().spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            // Blocks without using a processor.
            let question = match frame::read(&mut input) {
                Ok(Some(body)) => Message::of(&body),
                Ok(None) if is_busy.load(Ordering::SeqCst) => leave(),
                Ok(None) => return,
                Err(error) => Err(error.to_string()),
            };
            let is_over = question.is_err();
            is_busy.store(true, Ordering::SeqCst);
            if asked.send(question).is_err() || is_over {
                return;
            }
        }
    });
    if let Err(error) = reading {
        let _ = failed.send(Err(format!("the system has no thread that reads them: {error}")));
    }
    questions
}

/// The standard output, which becomes the standard error for everybody else.
#[cfg(unix)]
fn take_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    nix::unistd::dup2_stdout(io::stderr())?;
    Ok(File::from(output))
}

/// The standard output. What else is printed there ends the conversation.
#[cfg(windows)]
fn take_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}
