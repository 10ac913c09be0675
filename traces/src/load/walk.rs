//! The top level of a trace: metadata, and the events before it or after.

use std::ops::ControlFlow;

use super::Options;
use super::builder::Builder;
use super::list::{self, Reading, Stopped};
use super::parallel::{self, Part};
use super::profilers::{self, Format, Reader};
use super::scan::{Cursor, Stop};
use super::source::Feed;
use super::tail::behind_events;
use crate::{Metadata, Warning};

/// Below this size a list is read before another thread would be awake.
const PARALLEL_BYTES: usize = 4 << 20;

/// Bytes between two calls of the one who takes what is read.
const PART_BYTES: usize = 4 << 20;

/// The same for one who only wants to see an event.
const FIRST_BYTES: usize = 64 << 10;

/// Takes what is read, part by part: the columns with the part just read at their end, and the
/// bytes of the file that are done. It may take the rows away, and may end the reading.
pub(crate) type Taker<'t> = dyn FnMut(&mut Builder, u64) -> ControlFlow<()> + 't;

/// Why reading ended before the trace did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The bytes end too early.
    Truncated,
    /// The text is not a trace.
    NotATrace(String),
    /// The caller has what it wants.
    Enough,
}

/// How much of a trace is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// What comes before the events.
    Head,
    /// The events up to where one is complete. Of the recordings of other profilers, which are read
    /// as a whole, the head.
    FirstEvent,
    Whole,
}

/// Reads a trace.
pub(crate) struct Walk<'w, 's> {
    pub(crate) feed: Feed<'s>,
    pub(crate) builder: Builder,
    pub(crate) metadata: Metadata,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) bad_keys: Vec<String>,
    pub(crate) options: Options,
    /// Whether events have been found.
    pub(crate) has_events: bool,
    pub(crate) wanted: Wanted,
    /// Takes what is read.
    pub(crate) taker: &'w mut Taker<'w>,
}

impl Walk<'_, '_> {
    /// Reads from the first byte to the last.
    pub(crate) fn run(&mut self) -> Result<(), End> {
        while self.feed.rest().len() < 3 && self.feed.more() {}
        if self.feed.rest().starts_with(b"\xef\xbb\xbf") {
            self.feed.advance(3);
        }
        while self.feed.rest().len() < profilers::HEAD && self.feed.more() {}
        if let Some(format) = Format::of(self.feed.rest()) {
            return self.recording(format);
        }
        match self.peek() {
            Ok(b'{') => self.top()?,
            Ok(b'[') => self.events()?,
            Ok(byte) => {
                let found = char::from(byte).escape_default();
                return Err(End::NotATrace(format!("it begins with `{found}`")));
            }
            Err(_) => return Err(End::NotATrace("it is empty".to_owned())),
        }
        if self.peek().is_ok() {
            self.warnings.push(Warning::TrailingData { at: self.feed.offset() });
        }
        Ok(())
    }

    /// The recording of another profiler, all of which is needed before its names are known.
    fn recording(&mut self, format: Format) -> Result<(), End> {
        if self.wanted != Wanted::Whole {
            // What the beginning of a compressed recording does not say may come later.
            loop {
                let _ = self.read_recording(format)?;
                if !self.metadata.devices.is_empty() || !self.feed.more() {
                    return Ok(());
                }
            }
        }
        while self.feed.more() {}
        let (used, end) = self.read_recording(format)?;
        self.feed.advance(used);
        if (self.taker)(&mut self.builder, self.feed.file_bytes()).is_break() {
            return Err(End::Enough);
        }
        match end {
            Ok(()) => Ok(()),
            Err(Stop::Incomplete) => Err(End::Truncated),
            Err(Stop::Odd) => Err(self.not_json()),
        }
    }

    fn read_recording(&mut self, format: Format) -> Result<profilers::Extent, End> {
        let mut reader = Reader {
            builder: &mut self.builder,
            metadata: &mut self.metadata,
            warnings: &mut self.warnings,
            head_only: self.wanted != Wanted::Whole,
        };
        let read = format.read(self.feed.rest(), self.feed.path(), &mut reader);
        self.has_events = read.is_ok();
        read.map_err(End::NotATrace)
    }

    /// The next byte that is not a space.
    fn peek(&mut self) -> Result<u8, End> {
        loop {
            let rest = self.feed.rest();
            let spaces = rest.iter().take_while(|byte| b" \n\r\t".contains(byte)).count();
            let found = rest.get(spaces).copied();
            self.feed.advance(spaces);
            match found {
                Some(byte) => return Ok(byte),
                None if self.feed.more() => {}
                None => return Err(End::Truncated),
            }
        }
    }

    /// Scans from here on, with more bytes where they are needed: how many bytes it takes.
    fn scan(
        &mut self,
        mut step: impl FnMut(&mut Cursor<'_>) -> Result<(), Stop>,
    ) -> Result<Result<usize, Stop>, End> {
        loop {
            let mut cursor = Cursor::new(self.feed.rest());
            match step(&mut cursor) {
                Ok(()) => return Ok(Ok(cursor.position())),
                Err(Stop::Incomplete) if self.feed.more() => {}
                Err(Stop::Incomplete) => return Err(End::Truncated),
                Err(Stop::Odd) => return Ok(Err(Stop::Odd)),
            }
        }
    }

    /// Takes in what stands behind the events without reading them, as far as it can be found.
    pub(crate) fn tail(&mut self) {
        if let Some(tail) = self.feed.whole_rest().and_then(behind_events) {
            self.feed = Feed::whole(tail);
            // Loading the trace reports what is wrong there.
            let _ = self.top();
        }
    }

    /// The members of the top level, behind its brace or another bracket.
    fn top(&mut self) -> Result<(), End> {
        self.feed.advance(1);
        loop {
            match self.peek()? {
                b'}' => {
                    self.feed.advance(1);
                    return Ok(());
                }
                b',' => self.feed.advance(1),
                b'"' => self.member()?,
                _ => return Err(self.not_json()),
            }
        }
    }

    fn not_json(&self) -> End {
        End::NotATrace(format!("it is no JSON at byte {}", self.feed.offset()))
    }

    /// Goes past a key and its colon.
    fn key(&mut self) -> Result<String, End> {
        let mut key = String::new();
        let used = self.scan(|cursor| {
            key = String::from_utf8_lossy(cursor.string()?.0).into_owned();
            cursor.skip_space();
            cursor.expect(b':')
        })?;
        self.feed.advance(used.map_err(|_| self.not_json())?);
        Ok(key)
    }

    fn member(&mut self) -> Result<(), End> {
        let key = self.key()?;
        let first = self.peek()?;
        if key == "traceEvents" && (first == b'[' || first == b'{') {
            if self.wanted == Wanted::Head {
                return Err(End::Enough);
            }
            return if first == b'[' { self.events() } else { self.lists() };
        }
        // A number at the very end of a truncated file is not seen to be cut.
        let used = self.scan(|cursor| {
            cursor.skip_value()?;
            cursor.peek().map(drop)
        })?;
        let used = used.map_err(|_| self.not_json())?;
        let value = self.feed.rest().get(..used).unwrap_or_default();
        if !self.metadata.set(&key, value) {
            self.bad_keys.push(key);
        }
        self.feed.advance(used);
        Ok(())
    }

    /// Several lists of events under keys of their own.
    fn lists(&mut self) -> Result<(), End> {
        self.feed.advance(1);
        self.has_events = true;
        loop {
            match self.peek()? {
                b'}' => {
                    self.feed.advance(1);
                    return Ok(());
                }
                b',' => self.feed.advance(1),
                b'"' => {
                    self.key()?;
                    if self.peek()? == b'[' {
                        self.events()?;
                    } else {
                        let used = self.scan(|cursor| cursor.skip_value())?;
                        self.feed.advance(used.map_err(|_| self.not_json())?);
                    }
                }
                _ => return Err(self.not_json()),
            }
        }
    }

    /// A list of events.
    fn events(&mut self) -> Result<(), End> {
        if self.wanted == Wanted::Head {
            return Err(End::Enough);
        }
        self.feed.advance(1);
        self.has_events = true;
        let threads = self.options.threads();
        let is_whole = self.wanted == Wanted::Whole;
        let part_bytes = if is_whole { PART_BYTES } else { FIRST_BYTES };
        if let Some(bytes) = self.feed.whole_rest()
            && bytes.len() > PARALLEL_BYTES
            && is_whole
            && threads > 1
        {
            let before = self.feed.offset();
            let reading = self.reading();
            let taker = &mut *self.taker;
            let part = Part { bytes, pages: self.feed.pages(), reading };
            let (used, stopped) =
                parallel::read(part, threads, &mut self.builder, &mut |builder, done| {
                    taker(builder, before + done)
                });
            self.feed.advance(used);
            self.feed.release();
            match stopped {
                // What no thread read is read here.
                Stopped::Limit => {}
                _ => return self.stopped(stopped),
            }
        }
        loop {
            let reading = self.reading();
            let rest = self.feed.rest();
            let (used, stopped) = list::read(rest, part_bytes, reading, &mut self.builder);
            self.feed.advance(used);
            self.feed.release();
            let flow = (self.taker)(&mut self.builder, self.feed.file_bytes());
            if flow.is_break() {
                return Err(End::Enough);
            }
            match stopped {
                Stopped::Limit => {}
                Stopped::NeedsMore => {
                    // At the end there is no more, and the next round knows it.
                    self.feed.more();
                }
                _ => return self.stopped(stopped),
            }
        }
    }

    fn reading(&self) -> Reading {
        Reading {
            is_all: self.feed.is_all(),
            strict: self.options.strict,
            offset: self.feed.offset(),
        }
    }

    fn stopped(&self, stopped: Stopped) -> Result<(), End> {
        match stopped {
            Stopped::ListEnd => Ok(()),
            Stopped::Enough => Err(End::Enough),
            _ => Err(End::Truncated),
        }
    }
}
