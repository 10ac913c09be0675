//! Runtimes: other people's kernels, behind a protocol.
//!
//! A *runtime* is a program that runs problems with kernels of its own: a framework, a compiler, a
//! library. It is started once for each process that measures, and asked on its standard input. What
//! a time means, whether a result is right and when a sample counts is not its business: the proof,
//! the schedule and the sensors are those of every backend.
//!
//! `describe` puts a problem into words that any language reads, `message` has the requests and
//! `answer` their answers, `conversation` passes them, with a time limit for each, to a `program`,
//! and `interpreter` says which one a script lacks. `prepared` makes a problem of it that can be run,
//! whose result comes in an `output` file. `clock` holds its times against those that went by here,
//! `threads` reads what the system counts for its threads, `processor_time` what these and other
//! processes had of the processors, and `aside` keeps the thread that measures out of their way.
//! docs/adding-a-runtime.md is the protocol.

pub mod answer;
mod aside;
mod backend;
mod clock;
mod conversation;
mod describe;
mod error;
mod interpreter;
mod message;
mod output;
mod prepared;
mod processor_time;
mod program;
mod threads;

pub use answer::Introduction;
pub use backend::Runtime;
pub use error::RuntimeError;
pub use message::PROTOCOL;
pub use program::RuntimeProgram;
