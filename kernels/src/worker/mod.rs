//! Workers: this program, started again to answer questions in a process of its own.
//!
//! Some code must not run in the process that needs its answer: a driver in a bad state ends or
//! blocks the process that calls it, a compiler aborts on a program that it does not like, and a
//! measurement wants the fresh addresses of a fresh process. Such code runs in a *worker*. Its
//! *caller* starts it, asks it typed [`Question`]s, and gets an answer or a [`WorkerError`] that
//! says what became of it. This page is the whole protocol.
//!
//! # Starting
//!
//! A [`Program`] says what to start. Usually that is the running program itself with the argument
//! [`ARGUMENT`], and its `main` then calls [`serve`]. On Unix a worker leads a process group of its
//! own, so that Ctrl-C in a terminal reaches only the caller, which decides what becomes of the
//! worker. A worker may start a worker (the one that measures on an AMD GPU starts the one that
//! compiles), and no deeper: a program that does not know the argument would start itself for ever.
//!
//! # What goes over the pipes
//!
//! The caller writes to the worker's standard input and reads its standard output.
//!
//! 1. The worker writes a greeting: a zero byte, `calibrate worker protocol`, a space, the version
//!    in decimal digits, a line feed. The caller skips whatever comes before it, since loaders and
//!    test harnesses print, but only 1 MiB of it. Another version ends the conversation.
//! 2. The caller writes a question, the worker answers it, and so on. Each is one *frame*: the
//!    length of its body in eight bytes, little-endian and at most 1 GiB, and the body. The limit
//!    also distinguishes a frame from text: no eight letters are a length below it.
//! 3. A body is two values of `MessagePack`: the name of the question, and its content. The content
//!    of a question is the [`Question`] itself, that of an answer a `Result`: `Ok` with a
//!    [`Question::Answer`], or `Err` with the reason for which the worker refuses the question.
//!    Structs are maps with the names of their fields, and bytes are bytes (`serde_bytes`).
//! 4. Before its answer the worker may write *notes*, frames with the name `note`: what it is doing
//!    from now on, and how long that may take by itself. They are not answers. The caller keeps the
//!    last one, to say what was being done when the worker died or was killed.
//! 5. The answer carries the name of its question, so that an answer to another question is an
//!    error and never taken for this one's.
//!
//! From the greeting on, only the protocol writes to that pipe: for everybody else in the worker,
//! libraries in C included, the standard output is the standard error.
//!
//! # Who ends when
//!
//! - The caller keeps the worker's input open as long as it wants an answer. When the input ends,
//!   the worker leaves at once, in the middle of whatever it does. So Ctrl-C only has to close the
//!   [`Input`], and a caller that is killed leaves no worker behind.
//! - [`Worker::ask`] takes a time limit. When it is over, or that of a note, the worker is killed. A
//!   driver can hold a
//!   process in the system's kernel so that even then it does not end: the error says so, and the
//!   caller goes on without waiting for it.
//! - A worker that is stopped (SIGSTOP) cannot leave: who asked it is called when the input is
//!   closed, and kills it after 5 s. A worker ends without asking any library what it has left to
//!   do (`_exit`): a driver would wait for a kernel that hangs. On Linux the system kills a worker
//!   when the thread that started it ends, which also reaches one that is stopped.
//! - [`Worker::finish`] closes the input and waits until the process is gone, so that it disturbs
//!   nothing that comes after it. One that does not leave in 5 s is killed.
//! - On Linux all that a worker has started ends with it, also what has left its process group or has
//!   outlived the process that started it: a worker adopts such orphans, and it or its caller ends
//!   them before it. Only a worker that somebody else kills leaves them.
//! - A worker that dies is an error with its signal or exit status and with what it last wrote to
//!   its standard error, which is read all the time and never makes the worker wait.

#[cfg(target_os = "linux")]
pub(crate) mod descendants;
pub(crate) mod ended;
mod error;
mod frame;
#[cfg(unix)]
pub(crate) mod groups;
mod input;
pub(crate) mod memory_kills;
mod message;
mod note;
mod process;
mod program;
mod service;
pub(crate) mod standard_error;

/// What goes over the pipes, as bytes, for tests of the protocol.
pub mod wire {
    pub use super::frame::{NoGreeting, read, read_greeting, write, write_greeting};
    pub use super::message::{Message, body};
}

pub use error::WorkerError;
pub use input::Input;
pub use message::Question;
pub use note::{Note, Notes};
pub use process::Worker;
pub use program::Program;
pub use service::{LEFT, Reply, Request, ServeError, leave, serve};

/// The argument with which a program is started as a worker.
pub const ARGUMENT: &str = "worker";

/// The version of the protocol: of the greeting, the frames and their encoding.
const VERSION: u32 = 2;

#[cfg(test)]
pub(crate) use program::is_worker;

#[cfg(test)]
mod tests;
