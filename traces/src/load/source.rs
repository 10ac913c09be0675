//! Where the bytes of a trace come from: a mapped file, or a stream that is decompressed on
//! another thread.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use flate2::read::MultiGzDecoder;

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
}

enum Source<'s> {
    Whole(&'s [u8]),
    Stream(Stream),
}

struct Stream {
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Used blocks go back.
    empty: SyncSender<Vec<u8>>,
    buffer: Vec<u8>,
    ended: Option<Option<String>>,
    /// How many bytes of the file were read.
    read: Arc<AtomicU64>,
}

impl<'s> Feed<'s> {
    pub(crate) fn whole(bytes: &'s [u8]) -> Self {
        Self { source: Source::Whole(bytes), at: 0, dropped: 0 }
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
        Ok(Self { source: Source::Stream(stream), at: 0, dropped: 0 })
    }

    /// The bytes from here on, as far as they are known.
    pub(crate) fn rest(&self) -> &[u8] {
        let bytes = match &self.source {
            Source::Whole(bytes) => bytes,
            Source::Stream(stream) => stream.buffer.as_slice(),
        };
        bytes.get(self.at..).unwrap_or_default()
    }

    /// The bytes from here on, if they are all in memory.
    pub(crate) fn whole_rest(&self) -> Option<&'s [u8]> {
        match self.source {
            Source::Whole(bytes) => bytes.get(self.at..),
            Source::Stream(_) => None,
        }
    }

    /// Whether no more bytes will come than [`Feed::rest`] has.
    pub(crate) fn is_all(&self) -> bool {
        match &self.source {
            Source::Whole(_) => true,
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
            Source::Whole(_) => self.offset(),
            Source::Stream(stream) => stream.read.load(Ordering::Relaxed),
        }
    }

    /// What the decompression says about an end that came too early.
    pub(crate) fn decompression_error(&self) -> Option<String> {
        match &self.source {
            Source::Whole(_) => None,
            Source::Stream(stream) => stream.ended.clone().flatten(),
        }
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
                Ok(Err(error)) => stream.ended = Some(Some(error.to_string())),
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

fn decompress(file: Counted, send: &SyncSender<io::Result<Vec<u8>>>, used: &Receiver<Vec<u8>>) {
    let mut decoder = MultiGzDecoder::new(io::BufReader::with_capacity(BLOCK / 4, file));
    loop {
        let mut block = used.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let mut filled = 0;
        let end = loop {
            let Some(room) = block.get_mut(filled..).filter(|room| !room.is_empty()) else {
                break None;
            };
            match decoder.read(room) {
                Ok(0) => break Some(Ok(())),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(Err(error)),
            }
        };
        block.truncate(filled);
        if send.send(Ok(block)).is_err() {
            return;
        }
        match end {
            None => {}
            Some(Ok(())) => return,
            Some(Err(error)) => {
                // Nobody waiting means that nobody wants to know.
                let _ = send.send(Err(error));
                return;
            }
        }
    }
}
