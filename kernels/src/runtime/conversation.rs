//! The conversation with the process of a runtime: a line for each request, a line for each answer.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use super::answer;
use super::error::RuntimeError;
use super::message::{Numbered, Request};
use super::program::{RuntimeProgram, end_group};
use crate::worker::ended;
use crate::worker::memory_kills::MemoryKills;
use crate::worker::standard_error::StandardError;

/// The bytes of an answer at most: the longest ones list kernels.
const MOST_BYTES: usize = 1 << 20;

/// How long it may take to leave when it is asked to.
const TIME_TO_LEAVE: Duration = Duration::from_secs(1);

/// How long the system may take to end a process that closed its output, or was killed.
const TIME_TO_END: Duration = Duration::from_secs(2);

/// A process that answers one request after the other.
#[derive(Debug)]
pub(super) struct Conversation {
    /// `None` when it has ended.
    child: Option<Child>,
    input: ChildStdin,
    output: ChildStdout,
    /// What it has written and nobody has read.
    unread: Vec<u8>,
    standard_error: StandardError,
    /// At its start.
    memory_kills: MemoryKills,
    number: u64,
    /// What it has answered last.
    answered: Option<&'static str>,
}

/// The result of waiting some time for input.
enum Heard {
    Something,
    Nothing,
    End,
}

impl Conversation {
    /// Starts the program of a runtime.
    pub(super) fn start(
        program: &RuntimeProgram,
        threads: usize,
        processors: Option<&[u32]>,
    ) -> Result<Self, RuntimeError> {
        let not_started = |source| RuntimeError::Start { program: program.executable(), source };
        let memory_kills = MemoryKills::until_now();
        let mut child = program.start(threads, processors).map_err(not_started)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(not_started(io::Error::other("it has no standard streams")));
        };
        let standard_error = StandardError::read(errors).map_err(|error| {
            end_group(&mut child);
            let _ = child.wait();
            not_started(error)
        })?;
        Ok(Self {
            child: Some(child),
            input,
            output,
            unread: Vec::new(),
            standard_error,
            memory_kills,
            number: 0,
            answered: None,
        })
    }

    /// The number of its process; `None` when it has ended.
    pub(super) fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its answer to a request. After an error that is not its own word, the process has ended.
    pub(super) fn ask<R: Request>(&mut self, request: &R) -> Result<R::Answer, RuntimeError> {
        self.ask_within(request, R::LIMIT)
    }

    /// The same with another limit.
    pub(super) fn ask_within<R: Request>(
        &mut self,
        request: &R,
        limit: Duration,
    ) -> Result<R::Answer, RuntimeError> {
        self.ended_by_errors(|conversation| {
            conversation.listen(R::NAME)?;
            let [number] = conversation.send([request])?;
            conversation.answer::<R>(number, limit)
        })
    }

    /// Its answers to two requests that are sent together, so that it need not wait between them. Each
    /// has the moment at which it was read.
    pub(super) fn ask_in_a_row<R: Request>(
        &mut self,
        requests: [&R; 2],
    ) -> Result<[(R::Answer, Instant); 2], RuntimeError> {
        self.ended_by_errors(|conversation| {
            conversation.listen(R::NAME)?;
            let [one, other] = requests;
            let numbers = conversation.send([one, other])?;
            let mut answer = |number| {
                let answer = conversation.answer::<R>(number, R::LIMIT);
                let now = Instant::now();
                match answer {
                    Err(error) if !is_its_word(&error) => Err(error),
                    answer => Ok((answer, now)),
                }
            };
            // Even where the first one fails, it answers the other.
            let [(first, between), (second, behind)] = [answer(numbers[0])?, answer(numbers[1])?];
            Ok([(first?, between), (second?, behind)])
        })
    }

    /// Talks with it, and ends it after an error that is not its own word.
    fn ended_by_errors<T>(
        &mut self,
        talk: impl FnOnce(&mut Self) -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        if self.child.is_none() {
            return Err(RuntimeError::Gone);
        }
        let answer = talk(self);
        if answer.as_ref().is_err_and(|error| !is_its_word(error)) {
            self.end();
        }
        answer
    }

    /// Hears whether it does anything before it is asked.
    fn listen(&mut self, step: &'static str) -> Result<(), RuntimeError> {
        let heard =
            if self.unread.is_empty() { self.hear(Duration::ZERO) } else { Ok(Heard::Something) };
        match (heard, self.answered) {
            (Ok(Heard::Something), before) => {
                let reason = match before {
                    Some(before) => format!("it wrote more behind its answer to `{before}`"),
                    None => "it wrote without being asked".to_owned(),
                };
                Err(RuntimeError::OutOfTurn { step, reason })
            }
            (Ok(Heard::End), Some(before)) => Err(self.ended_behind(before, step)),
            _ => Ok(()),
        }
    }

    /// Sends requests at once, and returns their numbers.
    fn send<R: Request, const COUNT: usize>(
        &mut self,
        requests: [&R; COUNT],
    ) -> Result<[u64; COUNT], RuntimeError> {
        let (mut lines, mut numbers) = (Vec::new(), [0; COUNT]);
        for (request, number) in requests.into_iter().zip(&mut numbers) {
            self.number += 1;
            *number = self.number;
            let line = Numbered { n: self.number, name: R::NAME, request };
            serde_json::to_writer(&mut lines, &line)
                .map_err(|error| RuntimeError::Tensors(io::Error::other(error)))?;
            lines.push(b'\n');
        }
        // It fails when the process has ended, which reading finds out.
        let _ = self.input.write_all(&lines).and_then(|()| self.input.flush());
        Ok(numbers)
    }

    /// Its answer to the request with a number.
    fn answer<R: Request>(
        &mut self,
        number: u64,
        limit: Duration,
    ) -> Result<R::Answer, RuntimeError> {
        let answer = self.line(R::NAME, limit)?;
        let answer = answer::read(&answer, R::NAME, number);
        self.answered = Some(R::NAME);
        answer
    }

    /// How it ended between an answer and the next request.
    fn ended_behind(&mut self, before: &str, step: &'static str) -> RuntimeError {
        match self.ended(step) {
            RuntimeError::Ended { how, .. } => {
                let how = format!("{how}, behind its answer to `{before}`");
                RuntimeError::Ended { step, how }
            }
            other => other,
        }
    }

    /// One line of what it writes.
    fn line(&mut self, step: &'static str, limit: Duration) -> Result<Vec<u8>, RuntimeError> {
        let until = Instant::now() + limit;
        let mut looked_at = 0;
        loop {
            if let Some(end) = self.unread[looked_at..].iter().position(|byte| *byte == b'\n') {
                let rest = self.unread.split_off(looked_at + end + 1);
                let mut line = std::mem::replace(&mut self.unread, rest);
                line.pop();
                return Ok(line);
            }
            if self.unread.len() > MOST_BYTES {
                return Err(RuntimeError::TooLong { step, most_bytes: MOST_BYTES });
            }
            looked_at = self.unread.len();
            match self.hear(until.saturating_duration_since(Instant::now())) {
                Ok(Heard::Something) => {}
                Ok(Heard::Nothing) => return Err(RuntimeError::TimeLimit { step, limit }),
                Ok(Heard::End) | Err(_) => return Err(self.ended(step)),
            }
        }
    }

    /// Reads what it writes within some time.
    fn hear(&mut self, within: Duration) -> io::Result<Heard> {
        use std::io::Read;

        if !can_be_read(&self.output, within)? {
            return Ok(Heard::Nothing);
        }
        let mut part = [0; 1 << 14];
        let count = self.output.read(&mut part)?;
        self.unread.extend_from_slice(&part[..count]);
        Ok(if count == 0 { Heard::End } else { Heard::Something })
    }

    /// How it ended, after its output was closed.
    fn ended(&mut self, step: &'static str) -> RuntimeError {
        // What it has started goes before it is waited for: then its number may be another's.
        let status = self.child.as_mut().filter(|child| ends(child, TIME_TO_END));
        let status = status.and_then(|child| {
            end_group(child);
            wait(child, TIME_TO_END)
        });
        let how = match status {
            Some(status) => {
                let last_words = self.standard_error.after_the_end();
                let (words, is_truncated) = (without_trace(&last_words), !self.unread.is_empty());
                ended::how(status, words, is_truncated, self.memory_kills)
            }
            None => "its process closed its output without an answer, and was killed".to_owned(),
        };
        RuntimeError::Ended { step, how }
    }

    /// Ends it with all that it has started.
    fn end(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        end_group(&mut child);
        if wait(&mut child, TIME_TO_END).is_none() {
            // One that a driver holds in the system's kernel is waited for by nobody else.
            let _ = std::thread::Builder::new().spawn(move || child.wait());
        }
    }
}

impl Drop for Conversation {
    /// Has it leave, and ends what is left of it and of all that it started.
    fn drop(&mut self) {
        if self.child.is_some() {
            let _ = self.input.write_all(b"{\"n\":0,\"do\":\"end\"}\n");
            let until = Instant::now() + TIME_TO_LEAVE;
            let left = || until.saturating_duration_since(Instant::now());
            // What it still writes is read, so that it does not wait for a reader, but no longer than
            // that: one may never stop writing.
            while !left().is_zero() && matches!(self.hear(left()), Ok(Heard::Something)) {
                self.unread.clear();
            }
            self.end();
        }
    }
}

/// Whether an error is what it said itself, and no fault of the conversation.
fn is_its_word(error: &RuntimeError) -> bool {
    matches!(
        error,
        RuntimeError::Missing(_) | RuntimeError::Unsupported(_) | RuntimeError::Failed { .. }
    )
}

/// The error at the end of a trace of Python's, which is what it says; anything else as it is.
fn without_trace(last_words: &str) -> &str {
    match last_words.starts_with("Traceback (most recent call last)") {
        true => last_words.trim_end().lines().next_back().unwrap_or_default(),
        false => last_words,
    }
}

/// Whether a process ends within some time. It is not waited for, so that its number stays its own.
#[cfg(unix)]
fn ends(child: &Child, time: Duration) -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    use nix::unistd::Pid;

    let Ok(process) = i32::try_from(child.id()) else { return false };
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    let until = Instant::now() + time;
    while matches!(waitid(Id::Pid(Pid::from_raw(process)), look), Ok(WaitStatus::StillAlive)) {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

#[cfg(not(unix))]
fn ends(_child: &Child, _time: Duration) -> bool {
    true
}

fn wait(child: &mut Child, time: Duration) -> Option<std::process::ExitStatus> {
    let until = Instant::now() + time;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether something can be read, or the end of it, within some time.
#[cfg(unix)]
fn can_be_read(output: &ChildStdout, within: Duration) -> io::Result<bool> {
    use std::os::fd::AsRawFd;

    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up, so that it does not spin in the last millisecond.
        let milliseconds = left.as_micros().div_ceil(1000);
        let mut polled = libc::pollfd { fd: output.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = i32::try_from(milliseconds).unwrap_or(i32::MAX);
        // SAFETY: it is one description of an open file, which stays in place during the call.
        match unsafe { libc::poll(&raw mut polled, 1, timeout) } {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(not(unix))]
fn can_be_read(_output: &ChildStdout, _within: Duration) -> io::Result<bool> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "runtimes need a Unix system"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::super::describe::Description;
    use super::super::message::Supports;
    use super::*;

    /// What becomes of a request to a shell that does this with it, in a fifth of a second.
    fn asked(script: &str) -> RuntimeError {
        let folder = tempfile::tempdir().unwrap();
        let program = RuntimeProgram {
            name: "shell".to_owned(),
            command: ["sh", "-c", script].map(Into::into).to_vec(),
            folder: folder.path().to_owned(),
            cache: None,
        };
        let problem = &Description::of(&"relu/f32/m3.n4".parse().unwrap());
        let mut conversation = Conversation::start(&program, 1, None).unwrap();
        let mut ask = || {
            let request = Supports { problem };
            conversation.ask_within(&request, Duration::from_millis(200)).map(|_| ())
        };
        let error = ask().unwrap_err();
        if !matches!(error, RuntimeError::Failed { .. }) {
            assert!(matches!(ask(), Err(RuntimeError::Gone)));
        }
        error
    }

    #[test]
    fn one_that_hangs_is_killed_when_its_time_is_over() {
        let began = Instant::now();
        // Neither the end of its input nor a signal that can be caught ends it.
        let error = asked("trap '' TERM; sleep 1000 & wait");
        assert_eq!(error.to_string(), "it gave no answer to `supports` in 0.2 s and was killed");
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn what_is_no_answer_has_its_reason() {
        for (script, reason) in [
            ("read line; echo '[1, 2]'; cat", "cannot be read"),
            ("read line; echo '{\"n\": 1, \"extra\": 2}'; cat", "unknown field `extra`"),
            ("read line; echo '{\"n\": \"1\"}'; cat", "it has n = \"1\", and request 1 was asked"),
            ("read line; echo '{}'; cat", "it has no `n`"),
            ("read line; echo '{\"n\": 1, \"n\": 1}'; cat", "it has `n` twice"),
            (
                "read line; echo '{\"n\": 1, \"a\": [{\"b\": 1, \"b\": 2}]}'; cat",
                "it has `b` twice",
            ),
            (
                "read line; echo '{\"n\": 1, \"error\": \" \"}'; cat",
                "its `supports` failed: it does not say why",
            ),
            ("read line; printf '{\"n\": 1'; exit 3", "ended in the middle of its answer"),
            ("read line; kill -9 $$", "ended by signal 9"),
            (
                "read line; (echo 'Traceback (most recent call last):'; echo '  in x'; echo 'E: no') >&2; exit 1",
                "its process failed: E: no (at",
            ),
            ("exec >&-; sleep 1000", "closed its output"),
            ("read line; echo '{\"n\": 1, \"error\": \"no\"}'; cat", "its `supports` failed: no"),
        ] {
            let found = asked(script).to_string();
            assert!(found.contains(reason), "{script}: {found}");
        }
    }
}
