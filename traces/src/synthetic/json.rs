//! Spells a trace as the profiler would, or oddly.

use std::io::{self, Write};

use super::{Oddity, Plan};

/// Writes the file around the events, and each event.
pub(super) struct Json<'w, W> {
    plan: &'w Plan,
    out: &'w mut W,
    first: bool,
}

/// An event with a duration.
pub(super) struct Event<'e> {
    pub(super) category: &'e str,
    pub(super) name: &'e [u8],
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    /// What is between the braces of the arguments.
    pub(super) args: &'e str,
}

impl<'w, W: Write> Json<'w, W> {
    pub(super) fn new(plan: &'w Plan, out: &'w mut W) -> Self {
        Self { plan, out, first: true }
    }

    /// What comes before the first event.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        if !self.plan.has(Oddity::BareList) {
            write!(self.out, "{{")?;
            if !self.plan.has(Oddity::MetadataLast) {
                self.metadata()?;
                write!(self.out, ", ")?;
            }
            write!(self.out, "\"traceEvents\": ")?;
            if self.plan.has(Oddity::DictOfLists) {
                write!(self.out, "{{\"0\": ")?;
            }
        }
        write!(self.out, "[")
    }

    /// What comes after the last event.
    pub(super) fn end(&mut self) -> io::Result<()> {
        write!(self.out, "]")?;
        if self.plan.has(Oddity::BareList) {
            return Ok(());
        }
        if self.plan.has(Oddity::DictOfLists) {
            write!(self.out, ", \"1\": []}}")?;
        }
        if self.plan.has(Oddity::MetadataLast) {
            write!(self.out, ", ")?;
            self.metadata()?;
        }
        writeln!(self.out, "}}")
    }

    fn metadata(&mut self) -> io::Result<()> {
        let is_amd = self.plan.is_amd();
        let (name, warp) = if is_amd { ("AMD Instinct MI300X", 64) } else { ("NVIDIA H100", 32) };
        let name = if self.plan.has(Oddity::EmptyNames) { "" } else { name };
        write!(self.out, "\"schemaVersion\": 1, \"deviceProperties\": [")?;
        if !self.plan.has(Oddity::NoDevices) {
            write!(
                self.out,
                "{{\"id\": 0, \"name\": \"{name}\", \"totalGlobalMem\": 206141652992, \
                 \"computeMajor\": 9, \"computeMinor\": 4, \"warpSize\": {warp}, \"numSms\": 304}}"
            )?;
        }
        let version = if is_amd { "roctracer_version" } else { "cupti_version" };
        write!(
            self.out,
            "], \"{version}\": 22, \"with_stack\": {}, \"record_shapes\": 1, \"distributedInfo\": \
             {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}}, \"traceName\": \
             \"data/trace.json\", \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": \
             1751410836000000000",
            u8::from(self.plan.frames > 0),
            self.plan.rank,
            self.plan.world_size
        )
    }

    fn separator(&mut self) -> io::Result<()> {
        let space = if self.plan.has(Oddity::Compact) { "" } else { "\n  " };
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.out, "{comma}{space}")
    }

    fn time(&mut self, ns: u64) -> io::Result<()> {
        let (whole, part) = (ns / 1000, ns % 1000);
        if self.plan.has(Oddity::WholeTimes) {
            write!(self.out, "{whole}")
        } else if self.plan.has(Oddity::StringTimes) {
            write!(self.out, "\"{whole}.{part:03}\"")
        } else if self.plan.has(Oddity::ExponentTimes) {
            write!(self.out, "{ns}e-3")
        } else {
            write!(self.out, "{whole}.{part:03}")
        }
    }

    /// One end of an arrow from a call to what it launched.
    pub(super) fn arrow(
        &mut self,
        end: &str,
        id: u64,
        (process, thread): (u64, u64),
        ns: u64,
    ) -> io::Result<()> {
        self.separator()?;
        let line = if self.plan.has(Oddity::Compact) { "" } else { "\n    " };
        write!(
            self.out,
            "{{{line}\"ph\": \"{end}\", \"id\": {id}, \"pid\": {process}, \"tid\": {thread}, \"ts\": "
        )?;
        self.time(ns)?;
        write!(self.out, ",{line}\"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"{line}}}")
    }

    pub(super) fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.separator()?;
        let Event { name, process, thread, start_ns, duration_ns, args, .. } = *event;
        let category = match event.category {
            other if !self.plan.has(Oddity::Capitalised) => other,
            "cpu_op" => "Operator",
            "kernel" => "Kernel",
            "gpu_memcpy" => "Memcpy",
            "gpu_memset" => "Memset",
            "cuda_runtime" => "Runtime",
            other => other,
        };
        if self.plan.has(Oddity::OtherKeys) {
            write!(
                self.out,
                "{{\"args\": {{{args}, \"nested\": [{{\"name\": \"}}, {{\"}}]}}, \"dur\" : "
            )?;
            self.time(duration_ns)?;
            write!(self.out, ", \"ts\"\t:")?;
            self.time(start_ns)?;
            write!(self.out, ", \"sf\": null, \"name\": \"")?;
            self.out.write_all(name)?;
            return write!(
                self.out,
                "\", \"cat\": \"{category}\", \"tid\": {thread}, \"pid\": {process}, \"ph\": \
                 \"X\" }}"
            );
        }
        let (space, line) = if self.plan.has(Oddity::Compact) { ("", "") } else { (" ", "\n    ") };
        write!(
            self.out,
            "{{{line}\"ph\":{space}\"X\",{space}\"cat\":{space}\"{category}\",{space}\"name\":\
             {space}\""
        )?;
        self.out.write_all(name)?;
        write!(
            self.out,
            "\",{space}\"pid\":{space}{process},{space}\"tid\":{space}{thread},{line}\"ts\":{space}"
        )?;
        self.time(start_ns)?;
        write!(self.out, ",{space}\"dur\":{space}")?;
        self.time(duration_ns)?;
        write!(self.out, ",{line}\"args\":{space}{{{line}{args}{line}}}{line}}}")
    }
}
