//! Reads a list of events on several threads.
//!
//! The list is cut where an event seems to begin, which is seen without knowing what is in a
//! string. Each piece is read on its own and then taken only if the piece before it ended exactly
//! where it begins, so a cut at a wrong place costs time and changes nothing.

use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use super::boundary::event_after;
use super::builder::Builder;
use super::list::{self, Reading, Stopped};
use super::pages::Pages;
use super::repeats::Repeats;
use super::walk::Taker;

/// The size of a piece: many for each thread, so that none waits long for another at the end, and
/// large compared to the cost of looking up names anew in each, and of putting them together.
const PIECE: usize = 4 << 20;

/// That of a large file, which has this many of them or more.
const LARGE_PIECE: usize = 8 << 20;
const PIECES: usize = 64;

/// Pieces for each thread that may be read ahead of the one that is next in the file: enough that
/// a slow thread holds up no other, and a bound for the memory that they take.
const AHEAD: usize = 4;

/// Pieces that memory is taken for ahead: those of a gigabyte or two.
const EXPECTED: usize = 256;

/// What is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'b> {
    /// The bytes, from behind the bracket of a list on.
    pub(super) bytes: &'b [u8],
    /// What they are on.
    pub(super) pages: Pages<'b>,
    pub(super) reading: Reading,
}

struct Piece {
    start: usize,
    end: usize,
    stopped: Stopped,
    builder: Builder,
}

/// Reads a list: how far it came, and why it stopped; at a limit if threads failed to read what
/// follows. `taker` is called after each piece with the number of bytes that are done.
///
/// A thread that has read a piece gives its memory back, so that only the pieces that threads are
/// reading are in memory.
pub(super) fn read(
    part: Part<'_>,
    threads: usize,
    builder: &mut Builder,
    taker: &mut Taker<'_>,
) -> (usize, Stopped) {
    let Part { bytes, pages, reading } = part;
    let size = (bytes.len() / PIECES).clamp(PIECE, LARGE_PIECE);
    let pieces = bytes.len().div_ceil(size).max(1);
    let (order, orders) = channel();
    let mut to_order = 0..pieces;
    for index in to_order.by_ref().take(threads * AHEAD) {
        // There is a receiver.
        let _ = order.send(index);
    }
    let orders = Mutex::new(orders);
    // A thread waits when the putting together lags behind.
    let (send, receive) = sync_channel(threads);
    let keep_frames = builder.keeps_frames();
    // Builders whose rows were taken: the system gives new memory page by page, which takes longer
    // than to write on what was used before.
    let emptied: Mutex<Vec<Builder>> = Mutex::default();
    let mut at = 0;
    let mut stopped = Stopped::Limit;
    thread::scope(|scope| {
        for _ in 0..threads.min(pieces) {
            let (send, orders, emptied) = (send.clone(), &orders, &emptied);
            let work = move || {
                // Waiting for an order holds the lock, as nobody else could get one either.
                let next = || orders.lock().ok()?.recv().ok();
                let mut repeats = Repeats::default();
                while let Some(index) = next() {
                    let used = emptied.lock().ok().and_then(|mut emptied| emptied.pop());
                    let builder = used.unwrap_or_else(|| Builder::new(keep_frames));
                    let builder = builder.of_part(mem::take(&mut repeats));
                    // Nobody may wait for it in vain: who puts the pieces together reads it again.
                    let limits = index * size..((index + 1) * size).min(bytes.len());
                    let read = || piece(bytes, limits, reading, builder);
                    let mut piece = catch_unwind(AssertUnwindSafe(read)).ok().flatten();
                    if let Some(piece) = &mut piece {
                        repeats = piece.builder.take_repeats();
                    }
                    pages.release(index * size..(index + 1) * size);
                    if send.send((index, piece)).is_err() {
                        return;
                    }
                }
            };
            // Without a thread the others do its work, and without any the caller does.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        drop(send);
        // They come in any order and are put together in theirs.
        let mut waiting: Vec<Option<Option<Piece>>> = (0..pieces).map(|_| None).collect();
        let mut index = 0;
        'pieces: for (arrived, piece) in &receive {
            if let Some(place) = waiting.get_mut(arrived) {
                *place = Some(piece);
            }
            while let Some(mut piece) = waiting.get_mut(index).and_then(Option::take) {
                let limits = at..((index + 1) * size).min(bytes.len());
                let before = at;
                let to_come = (pieces - index).min(EXPECTED);
                let mut to = To { builder: &mut *builder, pieces: to_come };
                (at, stopped) = join(bytes, limits, piece.as_mut(), reading, &mut to);
                if let (Some(piece), Ok(mut emptied)) = (piece, emptied.lock()) {
                    emptied.push(piece.builder);
                }
                // What was read again, and the ends of events that begin in the piece before.
                pages.release(before..at);
                index += 1;
                if taker(builder, at as u64).is_break() {
                    stopped = Stopped::Enough;
                }
                if stopped != Stopped::Limit {
                    break 'pieces;
                }
                if let Some(index) = to_order.next() {
                    let _ = order.send(index);
                } else if index == pieces {
                    break 'pieces;
                }
            }
        }
        // The threads end when there are no orders, or the receiver is gone.
        drop((order, receive));
    });
    (at, stopped)
}

/// Reads the events that begin in a piece, if one is seen to.
fn piece(
    bytes: &[u8],
    limits: Range<usize>,
    reading: Reading,
    mut builder: Builder,
) -> Option<Piece> {
    let Range { start: from, end: limit } = limits;
    let start = if from == 0 {
        0
    } else {
        // Looked for only so far, that a file of another layout is not searched to its end by
        // every piece.
        let window = bytes.get(..(limit + PIECE).min(bytes.len()))?;
        event_after(window, from).filter(|&start| start < limit)?
    };
    let reading = Reading { offset: reading.offset + start as u64, ..reading };
    let (used, stopped) = list::read(bytes.get(start..)?, limit - start, reading, &mut builder);
    Some(Piece { start, end: start + used, stopped, builder })
}

/// What pieces are put together in, and how many of them are still to come.
struct To<'b> {
    builder: &'b mut Builder,
    pieces: usize,
}

/// Takes a piece if the events before it, which end where the limits begin, end where it begins; else
/// reads its bytes again.
fn join(
    bytes: &[u8],
    limits: Range<usize>,
    piece: Option<&mut Piece>,
    reading: Reading,
    to: &mut To<'_>,
) -> (usize, Stopped) {
    let (mut at, limit) = (limits.start, limits.end);
    let mut read_to = |at: usize, limit: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        let reading = Reading { offset: reading.offset + at as u64, ..reading };
        let (used, stopped) = list::read(rest, limit.saturating_sub(at), reading, to.builder);
        (at + used, stopped)
    };
    let Some(piece) = piece else { return read_to(at, limit) };
    // An event whose brace is the first byte of a piece is not seen to begin in it.
    if at < piece.start {
        let stopped;
        (at, stopped) = read_to(at, piece.start);
        if stopped != Stopped::Limit {
            return (at, stopped);
        }
    }
    if at != piece.start {
        return read_to(at, limit);
    }
    to.builder.absorb(&mut piece.builder, to.pieces);
    (piece.end, piece.stopped)
}
