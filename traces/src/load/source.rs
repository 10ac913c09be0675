//! Where the bytes of a trace come from: a mapped file, or a stream that is decompressed on
//! another thread.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use flate2::bufread::GzDecoder;
use memmap2::Mmap;

use super::pages::Pages;

/// The size of a block of decompressed bytes: large compared to the cost of handing it over.
const BLOCK: usize = 1 << 20;

/// Blocks that may wait; they are the memory that a compressed file takes.
const WAITING_BLOCKS: usize = 4;

/// The bytes of a trace, from a place on.
pub(crate) struct Feed<'s> {
    source: Source<'s>,
    at: usize,
    /// How many bytes were there before the first one of the source's.
    dropped: u64,
    /// Up to where the memory of a mapped file was given back.
    released: usize,
    /// The file, if it is one that is not compressed.
    path: Option<&'s Path>,
}

enum Source<'s> {
    Whole(&'s [u8]),
    Mapped(&'s Mmap),
    Stream(Stream),
}

struct Stream {
    blocks: Receiver<Result<Vec<u8>, Broken>>,
    /// Used blocks go back.
    empty: SyncSender<Vec<u8>>,
    buffer: Vec<u8>,
    ended: Option<Option<Broken>>,
    /// How many bytes of the file were read.
    read: Arc<AtomicU64>,
}

/// Where decompression came to its end before the file did.
#[derive(Debug)]
struct Broken {
    /// What it says.
    reason: String,
    /// All parts before were whole, and the rest of the file is not a part.
    is_behind: bool,
}

impl<'s> Feed<'s> {
    pub(crate) fn whole(bytes: &'s [u8]) -> Self {
        Self::of(Source::Whole(bytes), None)
    }

    /// The bytes of a file that is mapped.
    pub(crate) fn mapped(map: &'s Mmap, path: &'s Path) -> Self {
        Self::of(Source::Mapped(map), Some(path))
    }

    fn of(source: Source<'s>, path: Option<&'s Path>) -> Self {
        Self { source, at: 0, dropped: 0, released: 0, path }
    }

    /// The decompressed bytes of a file.
    ///
    /// # Errors
    ///
    /// When the system has no thread for it.
    pub(crate) fn gzip(file: File) -> io::Result<Self> {
        let (send, blocks) = sync_channel(WAITING_BLOCKS);
        let (empty, used) = sync_channel(WAITING_BLOCKS + 2);
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { file, read: Arc::clone(&read) };
        // It ends with the file, or when the receiver is gone.
        thread::Builder::new().spawn(move || decompress(counted, &send, &used))?;
        let stream = Stream { blocks, empty, buffer: Vec::new(), ended: None, read };
        Ok(Self::of(Source::Stream(stream), None))
    }

    /// The bytes from here on, as far as they are known.
    pub(crate) fn rest(&self) -> &[u8] {
        let bytes: &[u8] = match &self.source {
            Source::Whole(bytes) => bytes,
            Source::Mapped(map) => map,
            Source::Stream(stream) => stream.buffer.as_slice(),
        };
        bytes.get(self.at..).unwrap_or_default()
    }

    /// The pages that the bytes from here on are on.
    pub(super) fn pages(&self) -> Pages<'s> {
        match self.source {
            Source::Mapped(map) => Pages::of(map, self.at),
            Source::Whole(_) | Source::Stream(_) => Pages::NONE,
        }
    }

    /// Gives back the memory of what lies behind.
    pub(super) fn release(&mut self) {
        if let Source::Mapped(map) = self.source {
            Pages::of(map, 0).release(self.released..self.at);
            self.released = self.at;
        }
    }

    /// The file, if it is one that is not compressed.
    pub(super) fn path(&self) -> Option<&'s Path> {
        self.path
    }

    /// The bytes from here on, if they are all in memory.
    pub(crate) fn whole_rest(&self) -> Option<&'s [u8]> {
        match self.source {
            Source::Whole(bytes) => bytes.get(self.at..),
            Source::Mapped(map) => map.get(self.at..),
            Source::Stream(_) => None,
        }
    }

    /// Whether no more bytes will come than [`Feed::rest`] has.
    pub(crate) fn is_all(&self) -> bool {
        match &self.source {
            Source::Whole(_) | Source::Mapped(_) => true,
            Source::Stream(stream) => stream.ended.is_some(),
        }
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// How many bytes lie before this place in the text.
    pub(crate) fn offset(&self) -> u64 {
        self.dropped + self.at as u64
    }

    /// How many bytes of the file were read.
    pub(crate) fn file_bytes(&self) -> u64 {
        match &self.source {
            Source::Whole(_) | Source::Mapped(_) => self.offset(),
            Source::Stream(stream) => stream.read.load(Ordering::Relaxed),
        }
    }

    /// What the decompression says about an end that came too early.
    pub(crate) fn decompression_error(&self) -> Option<String> {
        match &self.source {
            Source::Whole(_) | Source::Mapped(_) => None,
            Source::Stream(stream) => {
                stream.ended.as_ref()?.as_ref().map(|broken| broken.reason.clone())
            }
        }
    }

    /// Whether it says so only of what follows the end of what was compressed.
    pub(crate) fn is_broken_behind(&self) -> bool {
        let Source::Stream(stream) = &self.source else { return false };
        matches!(&stream.ended, Some(Some(Broken { is_behind: true, .. })))
    }

    /// Makes the rest longer, at least twice as long so that long values are scanned only a few
    /// times; whether it did.
    pub(crate) fn more(&mut self) -> bool {
        let Source::Stream(stream) = &mut self.source else { return false };
        stream.buffer.drain(..self.at);
        self.dropped += self.at as u64;
        self.at = 0;
        let before = stream.buffer.len();
        while stream.ended.is_none() && stream.buffer.len() <= before * 2 {
            match stream.blocks.recv() {
                Ok(Ok(block)) => {
                    stream.buffer.extend_from_slice(&block);
                    // Without room for it, it is not needed any more.
                    let _ = stream.empty.try_send(block);
                }
                Ok(Err(broken)) => stream.ended = Some(Some(broken)),
                Err(_) => stream.ended = Some(None),
            }
        }
        stream.buffer.len() > before
    }

    /// Goes to the end: how many bytes that takes.
    pub(crate) fn drain(&mut self) -> u64 {
        let from = self.offset();
        loop {
            self.advance(self.rest().len());
            if !self.more() {
                return self.offset() - from;
            }
        }
    }
}

struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Decompresses the parts of a file, which follow one another.
struct Parts<R> {
    /// None only while the next part takes the place of the last.
    part: Option<GzDecoder<R>>,
    is_first: bool,
    /// Whether the part has given something.
    has_begun: bool,
}

impl<R: BufRead> Parts<R> {
    fn new(file: R) -> Self {
        Self { part: Some(GzDecoder::new(file)), is_first: true, has_begun: false }
    }

    fn read(&mut self, room: &mut [u8]) -> Result<usize, Broken> {
        loop {
            let Some(part) = &mut self.part else { return Ok(0) };
            let found = match part.read(room) {
                Ok(0) => part.get_mut().fill_buf().map(|rest| (0, rest.is_empty())),
                Ok(bytes) => Ok((bytes, false)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            match found {
                Ok((0, true)) => return Ok(0),
                Ok((0, false)) => {
                    self.part = self.part.take().map(|part| GzDecoder::new(part.into_inner()));
                    (self.is_first, self.has_begun) = (false, false);
                }
                Ok((bytes, _)) => {
                    self.has_begun = true;
                    return Ok(bytes);
                }
                Err(error) => {
                    let is_behind = !self.is_first && !self.has_begun;
                    return Err(Broken { reason: error.to_string(), is_behind });
                }
            }
        }
    }
}

fn decompress(file: Counted, send: &SyncSender<Result<Vec<u8>, Broken>>, used: &Receiver<Vec<u8>>) {
    let mut parts = Parts::new(io::BufReader::with_capacity(BLOCK / 4, file));
    loop {
        let mut block = used.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let mut filled = 0;
        let end = loop {
            let Some(room) = block.get_mut(filled..).filter(|room| !room.is_empty()) else {
                break None;
            };
            match parts.read(room) {
                Ok(0) => break Some(Ok(())),
                Ok(bytes) => filled += bytes,
                Err(broken) => break Some(Err(broken)),
            }
        };
        block.truncate(filled);
        if send.send(Ok(block)).is_err() {
            return;
        }
        match end {
            None => {}
            Some(Ok(())) => return,
            Some(Err(broken)) => {
                // Nobody waiting means that nobody wants to know.
                let _ = send.send(Err(broken));
                return;
            }
        }
    }
}
