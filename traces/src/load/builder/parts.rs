//! Puts the parts of a trace together.

use super::super::repeats::Repeats;
use super::Builder;
use crate::Trace;

impl Builder {
    /// For a part of a trace, whose events may be written like those of the parts before. Its rows
    /// go where those of this builder are, which are forgotten with all that it knows.
    pub(in crate::load) fn of_part(self, repeats: Repeats) -> Self {
        let keep_frames = self.keep_frames;
        let Trace { mut kernels, mut launches, mut annotations, mut ops, mut frames, .. } =
            self.trace;
        kernels.clear();
        launches.clear();
        annotations.clear();
        ops.clear();
        frames.clear();
        let trace = Trace { kernels, launches, annotations, ops, frames, ..Trace::default() };
        Self { trace, keep_frames, repeats, ..Self::default() }
    }

    /// What is known of how events are written, for the next part.
    pub(in crate::load) fn take_repeats(&mut self) -> Repeats {
        let mut repeats = std::mem::take(&mut self.repeats);
        repeats.forget_references();
        repeats
    }

    /// Adds the rows of the part that follows. `parts` is about how many, with this one, are still to
    /// come: there will be memory for all of them.
    pub(crate) fn absorb(&mut self, part: &mut Self, parts: usize) {
        let names = self.trace.names.absorb(&part.trace.names);
        let other = &mut part.trace;
        let threads: Vec<u32> = std::mem::take(&mut other.threads)
            .into_iter()
            .map(|thread| self.new_thread(thread.process, thread.thread))
            .collect();
        let lanes: Vec<u32> = other.lanes.iter().map(|lane| self.lane(*lane)).collect();
        let shapes = self.shapes.absorb(&other.shapes, &mut self.trace.shapes);
        let lost = |column: &[u32]| {
            let is_lost = |id: &&u32| shapes.get(**id as usize).is_some_and(Option::is_none);
            column.iter().filter(is_lost).count() as u64
        };
        let lost = if shapes.iter().all(Option::is_some) {
            0
        } else {
            lost(&other.ops.shape) + lost(&other.annotations.shape)
        };
        let shapes: Vec<u32> = shapes.into_iter().map(Option::unwrap_or_default).collect();
        let messages = self.messages.absorb(&other.messages, &mut self.trace.messages);
        let messages: Vec<u32> = messages.into_iter().map(Option::unwrap_or_default).collect();
        let renumber = |column: &mut [u32], ids: &[u32]| {
            for id in column {
                *id = ids.get(*id as usize).copied().unwrap_or(*id);
            }
        };
        renumber(&mut other.kernels.lane, &lanes);
        renumber(&mut other.kernels.message, &messages);
        for column in [
            &mut other.launches.thread,
            &mut other.annotations.thread,
            &mut other.ops.thread,
            &mut other.frames.thread,
        ] {
            renumber(column, &threads);
        }
        renumber(&mut other.ops.shape, &shapes);
        renumber(&mut other.annotations.shape, &shapes);
        self.trace.kernels.append(&other.kernels, &names, parts);
        self.trace.launches.append(&other.launches, &names, parts);
        self.trace.annotations.append(&other.annotations, &names, parts);
        self.trace.ops.append(&other.ops, &names, parts);
        self.trace.frames.append(&other.frames, &names, parts);
        self.trace.events += other.events;
        for (count, more) in self.other_devices.iter_mut().zip(part.other_devices) {
            *count += more;
        }
        self.tallies.add(&part.tallies);
        self.tallies.lost_shapes.add(lost, 0);
    }
}
