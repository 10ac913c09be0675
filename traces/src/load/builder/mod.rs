//! Puts events into columns.
//!
//! Parts of a file are read each by its own builder and then put together (`parts`); what was wrong
//! with events becomes a few warnings (`tallies`).

mod parts;
mod tallies;

use rustc_hash::FxHashMap;

use super::event::{Category, Event, Field, Inputs};
use super::fast::NumberAt;
use super::messages;
use super::repeats::Repeats;
use super::row::{References, Row, has_bad_id};
use super::shapes::Interner;
use super::strays::LONGEST_NS;
use crate::{DeviceWork, EventForm, Lane, Thread, Trace};
use tallies::Tallies;

/// The thread of an event, as the file writes it.
#[derive(Debug, Default)]
struct LastThread {
    process: Vec<u8>,
    thread: Vec<u8>,
    id: Option<u32>,
}

/// A trace, or a part of one, that is being read.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    trace: Trace,
    thread_ids: FxHashMap<Box<[u8]>, u32>,
    lane_ids: FxHashMap<Lane, u32>,
    /// The thread of the last event, which the next one mostly has too.
    last_thread: LastThread,
    /// The same for streams.
    last_lane: Option<(Lane, u32)>,
    shapes: Interner,
    messages: Interner,
    repeats: Repeats,
    keep_frames: bool,
    form: EventForm,
    /// Whether rows that were given away had kernels.
    gave_kernels: bool,
    /// Calls of the runtimes of XPUs and of MTIA devices.
    other_devices: [u64; 2],
    tallies: Tallies,
}

impl Builder {
    pub(crate) fn new(keep_frames: bool) -> Self {
        Self { keep_frames, ..Self::default() }
    }

    /// Says what the events are in the file, for warnings.
    pub(super) fn set_form(&mut self, form: EventForm) {
        self.form = form;
    }

    pub(crate) fn keeps_frames(&self) -> bool {
        self.keep_frames
    }

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        self.trace.events
    }

    /// What was read so far, and was not given away.
    pub(crate) fn rows(&self) -> &Trace {
        &self.trace
    }

    /// Forgets the rows, and keeps what they refer to for those that follow.
    pub(crate) fn clear_rows(&mut self) {
        let trace = &mut self.trace;
        self.gave_kernels |= !trace.kernels.is_empty();
        trace.kernels.clear();
        trace.launches.clear();
        trace.annotations.clear();
        trace.ops.clear();
        trace.frames.clear();
    }

    /// Counts an event, and keeps it if it is one to keep.
    pub(crate) fn add(&mut self, event: Option<&Event<'_>>, at: u64) {
        self.trace.events += 1;
        let Some(event) = event else { return };
        if event.category == Category::Frame && !self.keep_frames {
            return;
        }
        let Field::Is(start_ns) = event.start_ns else {
            self.tallies.bad_times.add(1, at);
            return;
        };
        let duration_ns = duration(event);
        self.tallies.bad_durations.add(u64::from(duration_ns.is_none()), at);
        self.tallies.bad_ids.add(u64::from(has_bad_id(event)), at);
        let references = self.refer(event, at);
        self.push(&Row::of(event, start_ns, duration_ns.unwrap_or(0)), references);
    }

    /// Takes the event with which a text begins, if it is written like an earlier one: how many
    /// bytes it has.
    #[inline]
    pub(super) fn add_repeated(&mut self, text: &[u8], at: u64) -> Option<usize> {
        let found = self.repeats.find(text)?;
        self.trace.events += 1;
        let category = found.row.category;
        if category == Category::Other || category == Category::Frame && !self.keep_frames {
            return Some(found.used);
        }
        let references = match found.references {
            Some(references) => references,
            None => self.refer_anew(found.template, at),
        };
        self.push(&found.row, references);
        Some(found.used)
    }

    /// Learns how the event is written that was added last; none if it is one that is not kept.
    #[inline]
    pub(super) fn learn(&mut self, text: &[u8], event: Option<&Event<'_>>, numbers: &[NumberAt]) {
        let Some(event) = event else { return self.repeats.learn_passed(text, numbers) };
        let (Field::Is(start_ns), Some(duration_ns)) = (event.start_ns, duration(event)) else {
            return;
        };
        if !has_bad_id(event) && event.collective.is_empty() {
            self.repeats.learn(text, event, Row::of(event, start_ns, duration_ns), numbers);
        }
    }

    /// What an event refers to.
    fn refer(&mut self, event: &Event<'_>, at: u64) -> References {
        let name = self.trace.names.intern(&event.name);
        let none = References { name, thread: 0, shape: 0, message: 0, sequence: 0 };
        match event.category {
            Category::Kernel | Category::Memcpy | Category::Memset => {
                let (message, sequence) = self.message(&event.collective);
                References { message, sequence, ..none }
            }
            Category::Launch | Category::XpuLaunch | Category::MtiaLaunch | Category::Frame => {
                References { thread: self.thread(event), ..none }
            }
            Category::Annotation | Category::DeviceAnnotation | Category::Op => {
                let thread = self.thread(event);
                References { thread, shape: self.shape(&event.inputs, at), ..none }
            }
            Category::Other => none,
        }
    }

    /// What the event of a template refers to, which it has not done since the rows before.
    #[inline(never)]
    fn refer_anew(&mut self, template: u32, at: u64) -> References {
        let event = self.repeats.event(template);
        let lost = self.tallies.lost_shapes.count;
        let references = self.refer(&event, at);
        // One of whose shape is not kept is counted each time.
        if self.tallies.lost_shapes.count == lost {
            self.repeats.refer(template, references);
        }
        references
    }

    #[inline]
    fn push(&mut self, row: &Row, references: References) {
        let References { name, thread, shape, message, sequence } = references;
        match row.category {
            Category::Kernel | Category::Memcpy | Category::Memset => {
                let work = match row.category {
                    Category::Memcpy => DeviceWork::Memcpy,
                    Category::Memset => DeviceWork::Memset,
                    _ => DeviceWork::Kernel,
                };
                let lane = self.lane(row.lane);
                let table = &mut self.trace.kernels;
                table.start_ns.push(row.start_ns);
                table.duration_ns.push(row.duration_ns);
                table.name.push(name);
                table.lane.push(lane);
                table.work.push(work);
                table.correlation.push(row.correlation);
                table.external_id.push(row.external_id);
                table.graph_node.push(row.graph_node);
                table.message.push(message);
                table.sequence.push(sequence);
            }
            Category::Launch | Category::XpuLaunch | Category::MtiaLaunch => {
                self.other_devices[0] += u64::from(row.category == Category::XpuLaunch);
                self.other_devices[1] += u64::from(row.category == Category::MtiaLaunch);
                let table = &mut self.trace.launches;
                table.start_ns.push(row.start_ns);
                table.duration_ns.push(row.duration_ns);
                table.name.push(name);
                table.thread.push(thread);
                table.correlation.push(row.correlation);
                table.external_id.push(row.external_id);
            }
            Category::Annotation | Category::DeviceAnnotation => {
                let table = &mut self.trace.annotations;
                table.start_ns.push(row.start_ns);
                table.duration_ns.push(row.duration_ns);
                table.name.push(name);
                table.thread.push(thread);
                table.on_device.push(row.category == Category::DeviceAnnotation);
                table.external_id.push(row.external_id);
                table.shape.push(shape);
            }
            Category::Op => {
                let table = &mut self.trace.ops;
                table.start_ns.push(row.start_ns);
                table.duration_ns.push(row.duration_ns);
                table.name.push(name);
                table.thread.push(thread);
                table.external_id.push(row.external_id);
                table.shape.push(shape);
                table.gradient.push(row.gradient);
            }
            Category::Frame => {
                let table = &mut self.trace.frames;
                table.start_ns.push(row.start_ns);
                table.duration_ns.push(row.duration_ns);
                table.name.push(name);
                table.thread.push(thread);
            }
            Category::Other => {}
        }
    }

    /// The id of what a collective was called with, and its number in its group. Both are 0 if
    /// that is not known, or if there are too many.
    fn message(&mut self, args: &[u8]) -> (u32, u32) {
        if args.is_empty() {
            return (0, 0);
        }
        let Some((message, sequence)) = messages::read(args) else { return (0, 0) };
        let Ok(text) = serde_json::to_string(&message) else { return (0, 0) };
        let id = self.messages.add(&text, &mut self.trace.messages);
        id.map_or((0, 0), |id| (id, sequence))
    }

    /// The id of what an operator was called with.
    fn shape(&mut self, inputs: &Inputs<'_>, at: u64) -> u32 {
        let id = self.shapes.id(inputs, &mut self.trace.shapes);
        self.tallies.lost_shapes.add(u64::from(id.is_none()), at);
        id.unwrap_or(0)
    }

    fn thread(&mut self, event: &Event<'_>) -> u32 {
        let last = &self.last_thread;
        if let Some(id) = last.id
            && *last.process == *event.process
            && *last.thread == *event.thread
        {
            return id;
        }
        let key = thread_key(&event.process, &event.thread);
        let id = match self.thread_ids.get(key.as_slice()) {
            Some(&id) => id,
            None => {
                let id = self.new_thread(
                    String::from_utf8_lossy(&event.process).into_owned(),
                    String::from_utf8_lossy(&event.thread).into_owned(),
                );
                self.thread_ids.insert(key.into(), id);
                id
            }
        };
        let last = &mut self.last_thread;
        last.process.clear();
        last.process.extend_from_slice(&event.process);
        last.thread.clear();
        last.thread.extend_from_slice(&event.thread);
        last.id = Some(id);
        id
    }

    /// The id of a thread by its text, which two spellings that are not UTF-8 may share.
    fn new_thread(&mut self, process: String, thread: String) -> u32 {
        let key = thread_key(process.as_bytes(), thread.as_bytes());
        if let Some(&id) = self.thread_ids.get(key.as_slice()) {
            return id;
        }
        let id = self.trace.threads.len() as u32;
        self.trace.threads.push(Thread { process, thread });
        self.thread_ids.insert(key.into(), id);
        id
    }

    fn lane(&mut self, lane: Lane) -> u32 {
        if let Some((last, id)) = self.last_lane
            && last == lane
        {
            return id;
        }
        let id = *self.lane_ids.entry(lane).or_insert_with(|| {
            self.trace.lanes.push(lane);
            self.trace.lanes.len() as u32 - 1
        });
        self.last_lane = Some((lane, id));
        id
    }

    /// Counts a place where the text is broken.
    pub(crate) fn broken(&mut self, at: u64, bytes: u64) {
        self.tallies.broken.add(1, at);
        self.tallies.broken_bytes += bytes;
    }

    /// Whether there was such a place.
    pub(crate) fn has_broken(&self) -> bool {
        self.tallies.broken.count > 0
    }
}

/// No two threads have the same: a text may have any character, a zero as well.
fn thread_key(process: &[u8], thread: &[u8]) -> Vec<u8> {
    [process.len().to_le_bytes().as_slice(), process, thread].concat()
}

/// How long an event took, if that can be read.
fn duration(event: &Event<'_>) -> Option<u64> {
    match event.duration_ns {
        Field::Is(duration) => u64::try_from(duration).ok().filter(|ns| *ns <= LONGEST_NS),
        Field::Missing | Field::Bad => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, Trace};

    #[test]
    fn zeros_in_texts_join_no_threads() {
        let event = |process, thread| {
            format!(
                r#"{{"ph": "X", "cat": "cpu_op", "name": "a", "pid": "{process}", "tid": "{thread}",
                    "ts": 1, "dur": 1}}"#
            )
        };
        let events = [event("a\\u0000b", "c"), event("a", "b\\u0000c")].join(",");
        let trace =
            Trace::from_json(format!("[{events}]").as_bytes(), &Options::default()).unwrap();
        let thread = |row: usize| trace.threads[trace.ops.thread[row] as usize].process.as_str();
        assert_eq!([thread(0), thread(1)], ["a\0b", "a"]);
    }
}
