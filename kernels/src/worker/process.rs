//! The caller's side: a worker that runs, and what is asked of it.

use std::io::{self, BufReader};
use std::process::{Child, ChildStdout, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::ended;
use super::error::WorkerError;
use super::frame::{self, NoGreeting};
use super::input::Input;
use super::memory_kills::MemoryKills;
use super::message::{self, Message, Question};
use super::note::{self, Note};
use super::program::Program;
use super::standard_error::StandardError;

/// How long a worker may take to leave when its input is closed: a driver has things to give back.
const TIME_TO_LEAVE: Duration = Duration::from_secs(5);

/// How long the system may take to end a process: after it closed its output, or was killed.
const TIME_TO_END: Duration = Duration::from_secs(2);

/// A worker that runs.
#[derive(Debug)]
pub struct Worker {
    /// `None` when it has ended, or is not waited for.
    child: Option<Child>,
    input: Input,
    questions: Sender<Vec<u8>>,
    heard: Receiver<Result<Heard, Silence>>,
    /// What it said last that it was doing, and since when.
    note: Option<(Note, Instant)>,
    standard_error: StandardError,
    /// At its start.
    memory_kills: MemoryKills,
}

/// What a worker wrote.
#[derive(Debug)]
enum Heard {
    Note(Note),
    /// The body of an answer.
    Answer(Vec<u8>),
}

/// Why there is no frame to read.
#[derive(Debug)]
enum Silence {
    /// The pipes are closed: it has ended, or is about to.
    Closed {
        is_truncated: bool,
    },
    /// This side has closed the input: it is to leave.
    CalledOff,
    NotAWorker,
    Version(String),
    NoFrame(String),
}

impl Worker {
    /// Starts a worker.
    ///
    /// # Errors
    ///
    /// [`WorkerError::Start`]. What is wrong with a program that does start, such as that it is no
    /// worker, is the answer to its first question.
    pub fn start(program: &Program) -> Result<Self, WorkerError> {
        let memory_kills = MemoryKills::until_now();
        let mut child = program.start().map_err(WorkerError::Start)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(WorkerError::Start(io::Error::other("it has no standard streams")));
        };
        let (questions, to_ask) = mpsc::channel();
        let (hears, heard) = mpsc::channel();
        let called_off = hears.clone();
        let input = Input::new(input).on_close(move || {
            let _ = called_off.send(Err(Silence::CalledOff));
        });
        let to_write = input.clone();
        // A thread of its own, so that its caller can stop waiting for it. It sleeps while the
        // worker works: whatever it did would disturb a measurement.
        let talks = thread::Builder::new()
            .spawn(move || converse(&to_write, output, to_ask, &hears))
            .and_then(|_| StandardError::read(errors));
        let standard_error = talks.map_err(|error| {
            // Nobody can hear it.
            let _ = child.kill().and_then(|()| child.wait());
            WorkerError::Start(error)
        })?;
        let child = Some(child);
        Ok(Self { child, input, questions, heard, note: None, standard_error, memory_kills })
    }

    /// Its input, for whoever may have to end it.
    #[must_use]
    pub fn input(&self) -> Input {
        self.input.clone()
    }

    /// The number of its process, while it runs.
    #[cfg(test)]
    pub(super) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its answer to a question within `limit`; `None` waits for as long as it takes.
    ///
    /// # Errors
    ///
    /// [`WorkerError`]. After all of them but [`WorkerError::Refused`] and
    /// [`WorkerError::Unsendable`], it has ended.
    pub fn ask<Q: Question>(
        &mut self,
        question: &Q,
        limit: Option<Duration>,
    ) -> Result<Q::Answer, WorkerError> {
        let asked = Q::NAME;
        let body = message::body(asked, question)
            .and_then(|body| frame::fits(&body).then_some(body).ok_or("it is too long".to_owned()))
            .map_err(|reason| WorkerError::Unsendable { asked, reason })?;
        if self.questions.send(body).is_err() {
            return Err(self.ended(false));
        }
        self.note = None;
        match self.wait_for_answer(limit) {
            Ok(Ok(body)) => self.read(asked, &body),
            Ok(Err(Silence::Closed { is_truncated })) => Err(self.ended(is_truncated)),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended(false)),
            Ok(Err(Silence::CalledOff)) => Err(self.called_off()),
            Ok(Err(Silence::NotAWorker)) => Err(self.give_up(WorkerError::NotAWorker)),
            Ok(Err(Silence::Version(version))) => Err(self.give_up(WorkerError::Version(version))),
            Ok(Err(Silence::NoFrame(reason))) => {
                Err(self.give_up(WorkerError::Unreadable { asked, reason }))
            }
            Err(RecvTimeoutError::Timeout) => {
                let (note, since) = self.note.take().unzip();
                let limit_of_note = note.as_ref().and_then(|note| note.limit);
                let is_over = |limit: &Duration| since.is_some_and(|it| it.elapsed() >= *limit);
                let limit_of_note = limit_of_note.filter(is_over);
                let limit = limit_of_note.or(limit).unwrap_or_default();
                let (is_of_note, is_stuck) = (limit_of_note.is_some(), !self.kill());
                Err(WorkerError::TimeLimit { limit, note, is_of_note, is_stuck })
            }
        }
    }

    /// Waits for the body of the answer, within `limit` and within the limits of the notes.
    fn wait_for_answer(
        &mut self,
        limit: Option<Duration>,
    ) -> Result<Result<Vec<u8>, Silence>, RecvTimeoutError> {
        let after = |limit: Option<Duration>| limit.and_then(|one| Instant::now().checked_add(one));
        let whole = after(limit);
        let mut until = whole;
        loop {
            let heard = match until {
                Some(until) => {
                    self.heard.recv_timeout(until.saturating_duration_since(Instant::now()))?
                }
                None => self.heard.recv().map_err(|_| RecvTimeoutError::Disconnected)?,
            };
            match heard {
                Ok(Heard::Answer(body)) => return Ok(Ok(body)),
                Ok(Heard::Note(note)) => {
                    until = [whole, after(note.limit)].into_iter().flatten().min();
                    self.note = Some((note, Instant::now()));
                }
                Err(silence) => return Ok(Err(silence)),
            }
        }
    }

    /// Has it leave, and waits until it is gone. Nothing can be done about one that does not go.
    pub fn finish(mut self) {
        self.input.close();
        if self.wait(TIME_TO_LEAVE).is_none() {
            self.kill();
        }
    }

    fn read<A: DeserializeOwned>(
        &mut self,
        asked: &'static str,
        body: &[u8],
    ) -> Result<A, WorkerError> {
        let unreadable = |reason| WorkerError::Unreadable { asked, reason };
        let message = Message::of(body).map_err(|reason| self.give_up(unreadable(reason)))?;
        if message.name != asked {
            let answered = message.name;
            return Err(self.give_up(WorkerError::OtherAnswer { asked, answered }));
        }
        match message.content::<Result<A, String>>() {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(reason)) => Err(WorkerError::Refused { asked, reason }),
            Err(reason) => Err(self.give_up(unreadable(reason))),
        }
    }

    /// How it ended, after its input was closed. One that is stopped cannot leave.
    fn called_off(&mut self) -> WorkerError {
        if self.child.is_none() {
            return WorkerError::Ended("its process has ended before".to_owned());
        }
        if self.wait(TIME_TO_LEAVE).is_some() {
            return WorkerError::Ended("its process left when it was asked to".to_owned());
        }
        let seconds = TIME_TO_LEAVE.as_secs();
        self.give_up(WorkerError::Ended(format!(
            "its process did not leave in {seconds} s after it was asked to, and was killed"
        )))
    }

    /// How it ended, after its pipes were closed.
    fn ended(&mut self, is_truncated: bool) -> WorkerError {
        if self.child.is_none() {
            return WorkerError::Ended("its process has ended before".to_owned());
        }
        match self.wait(TIME_TO_END) {
            Some(status) => {
                let last_words = self.standard_error.after_the_end();
                let how = ended::how(status, &last_words, is_truncated, self.memory_kills);
                WorkerError::Ended(match &self.note {
                    Some((note, _)) => format!("{how} (while it {})", note.doing),
                    None => how,
                })
            }
            None => self.give_up(WorkerError::Ended(
                "its process closed its output without an answer, and was killed".to_owned(),
            )),
        }
    }

    fn give_up(&mut self, error: WorkerError) -> WorkerError {
        self.kill();
        error
    }

    /// Kills it, and on Linux all that it has started; whether it has ended.
    fn kill(&mut self) -> bool {
        self.input.close();
        if let Some(child) = &mut self.child {
            #[cfg(target_os = "linux")]
            super::descendants::end_those_of(child.id());
            // It fails when the process has ended.
            let _ = child.kill();
        }
        let has_ended = self.child.is_none() || self.wait(TIME_TO_END).is_some();
        // One that a driver holds in the system's kernel is waited for by nobody else.
        if let Some(mut child) = self.child.take() {
            let _ = thread::Builder::new().spawn(move || child.wait());
        }
        has_ended
    }

    /// Its status, if it ends in this time.
    fn wait(&mut self, time: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        let child = self.child.as_mut()?;
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                self.child = None;
                return Some(status);
            }
            if began.elapsed() >= time {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Passes questions to a worker and its answers back, until one side has enough.
fn converse(
    input: &Input,
    output: ChildStdout,
    questions: Receiver<Vec<u8>>,
    heard: &Sender<Result<Heard, Silence>>,
) {
    let mut output = BufReader::new(output);
    let mut greeted = frame::read_greeting(&mut output).map_err(Silence::from);
    while let Ok(question) = questions.recv() {
        let answer = std::mem::replace(&mut greeted, Ok(()))
            .and_then(|()| pass(input, &mut output, &question, heard));
        if answer.is_err() {
            // Whoever has the answer knows that the next question cannot be asked.
            drop(questions);
            let _ = heard.send(answer.map(Heard::Answer));
            return;
        }
        if heard.send(answer.map(Heard::Answer)).is_err() {
            return;
        }
    }
}

fn pass(
    input: &Input,
    output: &mut BufReader<ChildStdout>,
    question: &[u8],
    heard: &Sender<Result<Heard, Silence>>,
) -> Result<Vec<u8>, Silence> {
    input.write(|mut input| frame::write(&mut input, question))?;
    loop {
        let body = frame::read(output)?.ok_or(Silence::Closed { is_truncated: false })?;
        match note::of(&body) {
            // Without anybody to hear it, the question is soon called off.
            Some(Ok(note)) => drop(heard.send(Ok(Heard::Note(note)))),
            Some(Err(reason)) => return Err(Silence::NoFrame(reason)),
            None => return Ok(body),
        }
    }
}

impl From<NoGreeting> for Silence {
    fn from(greeting: NoGreeting) -> Self {
        match greeting {
            // One that writes something else and ends is identified by its status.
            NoGreeting::Unread => Self::Closed { is_truncated: false },
            NoGreeting::Missing => Self::NotAWorker,
            NoGreeting::Version(version) => Self::Version(version),
        }
    }
}

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::NoFrame(error.to_string()),
            kind => Self::Closed { is_truncated: kind == io::ErrorKind::UnexpectedEof },
        }
    }
}
