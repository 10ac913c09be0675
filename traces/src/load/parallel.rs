//! Reads a list of events on several threads.
//!
//! The list is cut where an event seems to begin, which is seen without knowing what is in a
//! string. Each piece is read on its own and then taken only if the piece before it ended exactly
//! where it begins, so a cut at a wrong place costs time and changes nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use super::boundary::event_after;
use super::builder::Builder;
use super::list::{self, Reading, Stopped};

/// The size of a piece: many for each thread, so that none waits long for another at the end, and
/// large beside the cost of putting their names together.
const PIECE: usize = 4 << 20;

struct Piece {
    start: usize,
    end: usize,
    stopped: Stopped,
    builder: Builder,
}

/// Reads a list from behind its bracket: how far it came, and why it stopped. `progress` takes
/// the number of bytes that are done.
pub(crate) fn read(
    bytes: &[u8],
    threads: usize,
    reading: Reading,
    builder: &mut Builder,
    progress: &mut dyn FnMut(u64),
) -> (usize, Stopped) {
    let pieces = bytes.len().div_ceil(PIECE).max(1);
    let next = AtomicUsize::new(0);
    let give_up = AtomicUsize::new(usize::MAX);
    // A thread waits when the putting together lags behind.
    let (send, receive) = sync_channel(threads);
    let keep_frames = builder.keeps_frames();
    let mut at = 0;
    let mut stopped = Stopped::Limit;
    thread::scope(|scope| {
        for _ in 0..threads.min(pieces) {
            let (send, next, give_up) = (send.clone(), &next, &give_up);
            let work = move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= pieces || index >= give_up.load(Ordering::Relaxed) {
                        return;
                    }
                    let piece = piece(bytes, index, reading, Builder::new(keep_frames));
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
            while let Some(piece) = waiting.get_mut(index).and_then(Option::take) {
                let limit = ((index + 1) * PIECE).min(bytes.len());
                (at, stopped) = join(bytes, at, limit, piece, reading, builder);
                progress(at as u64);
                index += 1;
                if stopped != Stopped::Limit {
                    give_up.store(0, Ordering::Relaxed);
                    break 'pieces;
                }
            }
        }
        drop(receive);
    });
    if stopped == Stopped::Limit {
        // Behind the last piece, or after a thread that did not deliver its own.
        let rest = bytes.get(at..).unwrap_or_default();
        let reading = Reading { offset: reading.offset + at as u64, ..reading };
        let (used, end) = list::read(rest, usize::MAX, reading, builder);
        return (at + used, end);
    }
    (at, stopped)
}

/// Reads the events that begin in a piece, if one is seen to.
fn piece(bytes: &[u8], index: usize, reading: Reading, mut builder: Builder) -> Option<Piece> {
    let (from, limit) = (index * PIECE, ((index + 1) * PIECE).min(bytes.len()));
    let start = if index == 0 {
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

/// Takes a piece if the events before it end where it begins, else reads its bytes again.
fn join(
    bytes: &[u8],
    mut at: usize,
    limit: usize,
    piece: Option<Piece>,
    reading: Reading,
    builder: &mut Builder,
) -> (usize, Stopped) {
    let mut read_to = |at: usize, limit: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        let reading = Reading { offset: reading.offset + at as u64, ..reading };
        let (used, stopped) = list::read(rest, limit.saturating_sub(at), reading, builder);
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
    builder.absorb(piece.builder);
    (piece.end, piece.stopped)
}
