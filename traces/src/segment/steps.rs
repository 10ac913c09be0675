//! Which step, and which phase, each kernel belongs to.
//!
//! Never by the time at which it ran: a kernel runs when the device gets to it, which may be in
//! the middle of the host's next step. The time that counts is that of the call that launched it.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::marks::{MarkKind, Phase, step_mark};
use super::order::StreamOrder;
use super::phases::{Derived, PhaseFinding};
use super::windows::{Window, Windows};
use crate::launched::NONE;
use crate::{NameId, Trace};

/// A step that the program marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What it is called.
    pub name: NameId,
    /// Who marked it.
    pub kind: MarkKind,
    /// What it does, where its mark or the marks in it say so.
    pub phase: Option<Phase>,
    /// When it began on the host, in nanoseconds since the zero of the trace.
    pub start_ns: i64,
    /// How long it took on the host, in nanoseconds.
    pub duration_ns: u64,
}

/// How a kernel came to its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Assignment {
    /// The call that launched it lies in the mark.
    Launch,
    /// The trace has no such call, and its operator lies in the mark.
    Operator,
    /// It has neither, and ran in the mark's copy on its stream.
    DeviceMark,
    /// It has none of these, and ran between two kernels of the step on its stream, which runs
    /// kernels in the order of their launches.
    StreamOrder,
    /// It was launched outside of all marks.
    Outside,
    /// Nothing says which.
    Unknown,
}

/// How many kernels came to their steps in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Assignments {
    /// By [`Assignment::Launch`].
    pub launch: u64,
    /// By [`Assignment::Operator`].
    pub operator: u64,
    /// By [`Assignment::DeviceMark`].
    pub device_mark: u64,
    /// By [`Assignment::StreamOrder`].
    pub stream_order: u64,
    /// [`Assignment::Outside`].
    pub outside: u64,
    /// [`Assignment::Unknown`].
    pub unknown: u64,
}

/// The steps of a trace, and which kernels belong to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steps {
    /// In the order of the host.
    pub list: Vec<Step>,
    /// How kernels came to their steps.
    pub assignments: Assignments,
    /// What shows the phases of kernels, where no mark does; empty where marks do.
    pub findings: Vec<PhaseFinding>,
    of_kernel: Vec<u32>,
    phase_of_kernel: Vec<Option<Phase>>,
}

impl Steps {
    /// The step of a kernel, as an index into `list`.
    #[must_use]
    pub fn step(&self, kernel: usize) -> Option<usize> {
        let step = *self.of_kernel.get(kernel)?;
        (step != NONE).then_some(step as usize)
    }

    /// The phase of a kernel.
    #[must_use]
    pub fn phase(&self, kernel: usize) -> Option<Phase> {
        self.phase_of_kernel.get(kernel).copied().flatten()
    }

    /// Whether any step, or any kernel, has a phase.
    #[must_use]
    pub fn have_phases(&self) -> bool {
        self.are_derived() || self.list.iter().any(|step| step.phase.is_some())
    }

    /// Whether the phases are not those of marks.
    #[must_use]
    pub fn are_derived(&self) -> bool {
        !self.findings.is_empty()
    }

    /// How many steps are of a phase as a whole; where no mark tells phases, how often it ran.
    #[must_use]
    pub fn runs(&self, phase: Option<Phase>) -> usize {
        if self.are_derived() {
            let of_phase = self.findings.iter().filter(|found| Some(found.phase) == phase);
            return of_phase.map(|found| found.runs).sum();
        }
        self.list.iter().filter(|step| step.phase == phase).count()
    }

    /// Takes what was found where no mark tells phases.
    pub(super) fn take(&mut self, derived: Derived) {
        let Derived { phases, findings } = derived;
        (self.phase_of_kernel, self.findings) = (phases, findings);
    }

    /// Reads the marks and puts the kernels into them.
    pub(super) fn of(trace: &Trace, launches: &[u32], order: &StreamOrder) -> Self {
        let marks = Marks::of(trace);
        if marks.steps.is_empty() {
            return Self::default();
        }
        let mut placing = Placing {
            trace,
            marks: &marks,
            steps: vec![NONE; trace.kernels.len()],
            phases: vec![None; trace.kernels.len()],
            how: vec![Assignment::Unknown; trace.kernels.len()],
        };
        placing.by_launches(launches);
        placing.by_operators();
        placing.by_device_marks();
        placing.by_stream_order(order);
        let mut assignments = Assignments::default();
        for how in &placing.how {
            *assignments.count_mut(*how) += 1;
        }
        let (of_kernel, phase_of_kernel) = (placing.steps, placing.phases);
        let findings = Vec::new();
        Self { list: marks.steps, assignments, findings, of_kernel, phase_of_kernel }
    }
}

impl Assignments {
    fn count_mut(&mut self, how: Assignment) -> &mut u64 {
        match how {
            Assignment::Launch => &mut self.launch,
            Assignment::Operator => &mut self.operator,
            Assignment::DeviceMark => &mut self.device_mark,
            Assignment::StreamOrder => &mut self.stream_order,
            Assignment::Outside => &mut self.outside,
            Assignment::Unknown => &mut self.unknown,
        }
    }
}

/// The marks of a trace.
struct Marks {
    steps: Vec<Step>,
    /// Steps and the marks in them, by what [`Marks::inner`] says of them.
    host: Windows,
    /// The profiler's copies on the devices.
    device: Windows,
    /// The step and the phase of each window.
    inner: Vec<(u32, Option<Phase>)>,
}

impl Marks {
    /// The marks of serving, or if there are none those of the profiler.
    fn of(trace: &Trace) -> Self {
        let table = &trace.annotations;
        let mut known: FxHashMap<NameId, Option<(MarkKind, Option<Phase>)>> = FxHashMap::default();
        let mut rows = Vec::new();
        for (row, &name) in table.name.iter().enumerate() {
            let mark = *known.entry(name).or_insert_with(|| step_mark(trace.names.text(name)));
            if let Some((kind, phase)) = mark {
                rows.push((row, name, kind, phase));
            }
        }
        let serves = rows.iter().any(|(_, _, kind, _)| *kind != MarkKind::ProfilerStep);
        rows.retain(|(_, _, kind, _)| (*kind == MarkKind::ProfilerStep) != serves);

        let (mut host, mut device) = (Vec::new(), Vec::new());
        for (item, &(row, ..)) in (0_u32..).zip(&rows) {
            let start_ns = table.start_ns.get(row).copied().unwrap_or_default();
            let duration = table.duration_ns.get(row).copied().unwrap_or_default();
            let end_ns = start_ns.saturating_add_unsigned(duration);
            let thread = table.thread.get(row).copied().unwrap_or_default();
            let window = Window { start_ns, end_ns, thread, item };
            let on_device = table.on_device.get(row).copied().unwrap_or_default();
            if on_device { device.push(window) } else { host.push(window) }
        }
        let host_windows = Windows::new(host.clone(), &trace.threads);

        // A mark in another one is not a step of its own.
        host.sort_by_key(|window| (window.start_ns, std::cmp::Reverse(window.end_ns)));
        let mut steps: Vec<Step> = Vec::new();
        let mut step_of = vec![NONE; rows.len()];
        let mut inner = vec![(NONE, None); rows.len()];
        for window in &host {
            let item = window.item as usize;
            let Some(&(row, name, kind, phase)) = rows.get(item) else { continue };
            let holds = |outer: &Window| {
                outer.end_ns >= window.end_ns && host_windows.are_of_one_process(outer, window)
            };
            let around = host_windows.around_where(window.start_ns, holds);
            let outermost = around.map_or(item, |(outermost, _)| outermost.item as usize);
            let outer_step = step_of.get(outermost).copied().filter(|step| *step != NONE);
            let step = outer_step.unwrap_or_else(|| {
                let duration_ns = table.duration_ns.get(row).copied().unwrap_or_default();
                let start_ns = window.start_ns;
                steps.push(Step { name, kind, phase, start_ns, duration_ns });
                u32::try_from(steps.len() - 1).unwrap_or(NONE)
            });
            let outer = steps.get_mut(step as usize);
            let outer_phase = outer.and_then(|outer| {
                outer.phase = outer.phase.or(phase);
                outer.phase
            });
            if let (Some(of), Some(inner)) = (step_of.get_mut(item), inner.get_mut(item)) {
                *of = step;
                *inner = (step, phase.or(outer_phase));
            }
        }
        // A copy belongs to the step of its name, if only one has it.
        let mut by_name: FxHashMap<NameId, u32> = FxHashMap::default();
        for (index, step) in (0_u32..).zip(&steps) {
            by_name.entry(step.name).and_modify(|other| *other = NONE).or_insert(index);
        }
        for window in &device {
            let item = window.item as usize;
            if let (Some(&(_, name, _, phase)), Some(inner)) = (rows.get(item), inner.get_mut(item))
            {
                *inner = (by_name.get(&name).copied().unwrap_or(NONE), phase);
            }
        }
        let device = Windows::new(device, &trace.threads);
        Self { steps, host: host_windows, device, inner }
    }

    /// The step and the phase of a window.
    fn of_window(&self, window: &Window) -> (u32, Option<Phase>) {
        self.inner.get(window.item as usize).copied().unwrap_or((NONE, None))
    }

    /// The step and the phase of what was launched at a time.
    fn at(&self, time_ns: i64, thread: u32) -> Option<(u32, Option<Phase>)> {
        let (_, innermost) = self.host.around(time_ns, thread)?;
        Some(self.of_window(innermost))
    }
}

/// Puts kernels into steps.
struct Placing<'t> {
    trace: &'t Trace,
    marks: &'t Marks,
    steps: Vec<u32>,
    phases: Vec<Option<Phase>>,
    how: Vec<Assignment>,
}

impl Placing<'_> {
    fn put(&mut self, kernel: usize, place: Option<(u32, Option<Phase>)>, how: Assignment) {
        let (step, phase) = place.unwrap_or((NONE, None));
        if let (Some(to_step), Some(to_phase), Some(to_how)) =
            (self.steps.get_mut(kernel), self.phases.get_mut(kernel), self.how.get_mut(kernel))
        {
            (*to_step, *to_phase, *to_how) = (step, phase, how);
        }
    }

    fn unknown(&self) -> Vec<usize> {
        let rows = self.how.iter().enumerate();
        rows.filter(|(_, how)| **how == Assignment::Unknown).map(|(row, _)| row).collect()
    }

    fn by_launches(&mut self, launches: &[u32]) {
        let table = &self.trace.launches;
        let mut last = (NONE, None);
        for (kernel, &launch) in launches.iter().enumerate() {
            if launch == NONE {
                continue;
            }
            if launch != last.0 {
                let time = table.start_ns.get(launch as usize).copied().unwrap_or_default();
                let thread = table.thread.get(launch as usize).copied().unwrap_or_default();
                last = (launch, self.marks.at(time, thread));
            }
            let how = if last.1.is_some() { Assignment::Launch } else { Assignment::Outside };
            self.put(kernel, last.1, how);
        }
    }

    fn by_operators(&mut self) {
        let id_of = |kernel: usize| {
            self.trace.kernels.external_id.get(kernel).copied().filter(|id| *id != 0)
        };
        let unknown = self.unknown();
        let mut ops: FxHashMap<u64, Option<usize>> =
            unknown.iter().filter_map(|kernel| Some((id_of(*kernel)?, None))).collect();
        if ops.is_empty() {
            return;
        }
        let table = &self.trace.ops;
        for (row, id) in table.external_id.iter().enumerate() {
            if let Some(place) = ops.get_mut(id) {
                *place = Some(row);
            }
        }
        for kernel in unknown {
            let Some(op) = id_of(kernel).and_then(|id| ops.get(&id).copied().flatten()) else {
                continue;
            };
            let time = table.start_ns.get(op).copied().unwrap_or_default();
            let thread = table.thread.get(op).copied().unwrap_or_default();
            let place = self.marks.at(time, thread);
            let how = if place.is_some() { Assignment::Operator } else { Assignment::Outside };
            self.put(kernel, place, how);
        }
    }

    fn by_device_marks(&mut self) {
        if self.marks.device.is_empty() {
            return;
        }
        for kernel in self.unknown() {
            let Some(lane) = self.trace.lane_of(kernel) else { continue };
            let time = self.trace.kernels.start_ns.get(kernel).copied().unwrap_or_default();
            // The profiler writes a device as a process, and its streams as threads.
            let is_here = |window: &Window| {
                self.trace.threads.get(window.thread as usize).is_some_and(|thread| {
                    thread.process.parse() == Ok(lane.device)
                        && thread.thread.parse() == Ok(lane.stream)
                })
            };
            let around = self.marks.device.around_where(time, is_here);
            if let Some((_, innermost)) = around {
                let place = self.marks.of_window(innermost);
                self.put(kernel, Some(place), Assignment::DeviceMark);
            }
        }
    }

    /// A stream runs kernels in the order of their launches, so what lies between two kernels of
    /// a step was launched between them.
    fn by_stream_order(&mut self, order: &StreamOrder) {
        for lane in &order.lanes {
            let rows = order.kernels.get(lane.clone()).unwrap_or_default();
            let mut before: Option<usize> = None;
            let mut between: Vec<usize> = Vec::new();
            for kernel in rows.iter().map(|row| *row as usize) {
                if self.how.get(kernel) == Some(&Assignment::Unknown) {
                    between.push(kernel);
                    continue;
                }
                let place = |kernel: usize| (self.steps.get(kernel), self.phases.get(kernel));
                let same = before.filter(|before| place(*before) == place(kernel));
                let step = self.steps.get(kernel).copied().unwrap_or(NONE);
                let phase = self.phases.get(kernel).copied().flatten();
                if same.is_some() && (step != NONE || phase.is_some()) {
                    for kernel in std::mem::take(&mut between) {
                        self.put(kernel, Some((step, phase)), Assignment::StreamOrder);
                    }
                }
                between.clear();
                before = Some(kernel);
            }
        }
    }
}
