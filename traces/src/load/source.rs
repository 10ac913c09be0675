//! Where the bytes of a trace come from: a mapped file, or a stream that is decompressed on
//! another thread, if there is one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
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
    blocks: Blocks,
    buffer: Vec<u8>,
    ended: Option<Option<Broken>>,
    /// How many bytes of the file were read.
    read: Arc<AtomicU64>,
}

/// Who decompresses.
enum Blocks {
    /// A thread.
    OfThread {
        blocks: Receiver<Result<Vec<u8>, Broken>>,
        /// Used blocks go back.
        empty: SyncSender<Vec<u8>>,
    },
    /// Whoever needs the bytes.
    Here { parts: Box<Parts<BufReader<Counted>>>, block: Vec<u8> },
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
    pub(crate) fn gzip(file: File) -> Self {
        let (send, blocks) = sync_channel(WAITING_BLOCKS);
        let (empty, used) = sync_channel(WAITING_BLOCKS + 2);
        let (hand_over, handed_over) = sync_channel(1);
        // It ends with the file, or when the receiver is gone.
        let work = move || {
            if let Ok(parts) = handed_over.recv() {
                decompress(parts, &send, &used);
            }
        };
        if thread::Builder::new().spawn(work).is_err() {
            return Self::gzip_here(file);
        }
        let (parts, read) = Parts::of(file);
        // The thread waits for it.
        let _ = hand_over.send(parts);
        Self::stream(Blocks::OfThread { blocks, empty }, read)
    }

    /// The same without a thread.
    fn gzip_here(file: File) -> Self {
        let (parts, read) = Parts::of(file);
        Self::stream(Blocks::Here { parts: Box::new(parts), block: Vec::new() }, read)
    }

    fn stream(blocks: Blocks, read: Arc<AtomicU64>) -> Self {
        let stream = Stream { blocks, buffer: Vec::new(), ended: None, read };
        Self::of(Source::Stream(stream), None)
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
            match &mut stream.blocks {
                Blocks::OfThread { blocks, empty } => match blocks.recv() {
                    Ok(Ok(block)) => {
                        stream.buffer.extend_from_slice(&block);
                        // Without room for it, it is not needed any more.
                        let _ = empty.try_send(block);
                    }
                    Ok(Err(broken)) => stream.ended = Some(Some(broken)),
                    Err(_) => stream.ended = Some(None),
                },
                Blocks::Here { parts, block } => {
                    stream.ended = parts.fill(block).map(Result::err);
                    stream.buffer.extend_from_slice(block);
                }
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

impl Parts<BufReader<Counted>> {
    /// Of a file, and how many bytes of it are read.
    fn of(file: File) -> (Self, Arc<AtomicU64>) {
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { file, read: Arc::clone(&read) };
        (Self::new(BufReader::with_capacity(BLOCK / 4, counted)), read)
    }
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

    /// Puts the next bytes into a block: a whole one, or what there is up to the end and how that is.
    fn fill(&mut self, block: &mut Vec<u8>) -> Option<Result<(), Broken>> {
        block.resize(BLOCK, 0);
        let mut filled = 0;
        let end = loop {
            let Some(room) = block.get_mut(filled..).filter(|room| !room.is_empty()) else {
                break None;
            };
            match self.read(room) {
                Ok(0) => break Some(Ok(())),
                Ok(bytes) => filled += bytes,
                Err(broken) => break Some(Err(broken)),
            }
        };
        block.truncate(filled);
        end
    }
}

fn decompress(
    mut parts: Parts<impl BufRead>,
    send: &SyncSender<Result<Vec<u8>, Broken>>,
    used: &Receiver<Vec<u8>>,
) {
    loop {
        let mut block = used.try_recv().unwrap_or_default();
        let end = parts.fill(&mut block);
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// All bytes, what is said of the end, and how many bytes of the file were read.
    fn all_of(mut feed: Feed<'_>) -> (Vec<u8>, Option<String>, bool, u64) {
        let mut bytes = Vec::new();
        loop {
            bytes.extend_from_slice(feed.rest());
            feed.advance(feed.rest().len());
            if !feed.more() {
                let said = feed.decompression_error();
                return (bytes, said, feed.is_broken_behind(), feed.file_bytes());
            }
        }
    }

    #[test]
    fn without_a_thread_the_same_bytes_come() {
        let text: Vec<u8> = (0..3 * BLOCK + 77).map(|index| (index * index % 251) as u8).collect();
        let two = [compressed(&text), compressed(b"more")].concat();
        let behind = [&two[..], b"no part"].concat();
        let file = tempfile::NamedTempFile::new().unwrap();
        for (bytes, whole) in [
            (&two[..], Some([&text[..], b"more"].concat())),
            (&behind, Some([&text[..], b"more"].concat())),
            (&two[..two.len() / 2], None),
            (&compressed(b""), Some(Vec::new())),
            (b"", None),
        ] {
            fs::write(file.path(), bytes).unwrap();
            let open = || File::open(file.path()).unwrap();
            let here = all_of(Feed::gzip_here(open()));
            assert_eq!(here, all_of(Feed::gzip(open())));
            if let Some(whole) = whole {
                assert_eq!(here.0, whole);
            }
        }
    }
}
