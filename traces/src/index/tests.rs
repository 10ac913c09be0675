//! What is not an index is not read as one, even if its checksums are right.

use super::layout::{self, Header, Section};
use super::{Checksums, Damage, Unfit, read_bytes, to_bytes};
use crate::{Options, Trace};

/// From one changed byte to the next. Miri takes a second for an index, and is not there to see
/// whether each byte counts.
const STRIDE: usize = if cfg!(miri) { 499 } else { 1 };

/// Rows in all tables, names of one and of more bytes, two lanes and two threads.
const TEXT: &str = r#"{"deviceProperties": [{"id": 0, "name": "NVIDIA H100", "warpSize": 32}],
  "distributedInfo": {"rank": 3}, "traceName": 7, "trace_id": {"a": "b"}, "roctracer_version": "x",
  "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2,
   "args": {"device": 0, "stream": 7, "correlation": 5, "External id": 9, "graph node id": 4}},
  {"ph": "X", "cat": "gpu_memset", "name": "Memset é漢", "pid": 0, "tid": 8, "ts": 2, "dur": "3"},
  {"ph": "X", "cat": "gpu_memcpy", "name": "", "pid": 0, "tid": 8, "ts": 3, "dur": -1},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 0.001,
   "dur": 1, "args": {"correlation": 5, "External id": 9}},
  {"ph": "X", "cat": "user_annotation", "name": "step", "pid": 1, "tid": 2, "ts": 0, "dur": 9},
  {"ph": "X", "cat": "gpu_user_annotation", "name": "step", "pid": 0, "tid": 7, "ts": 0, "dur": 9},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": "x", "dur": 9},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 0, "dur": 9,
   "args": {"External id": 99999999999999999999, "Input Dims": [[2, 3], []],
            "Input type": ["float", "Scalar"], "Concrete Inputs": ["", "4"]}},
  {"ph": "X", "cat": "python_function", "name": "f(x)", "pid": 1, "tid": "t", "ts": 1e1, "dur": 9},
  {"ph": "M", "name": "process_name"}
]} trailing"#;

fn trace() -> Trace {
    Trace::from_json(TEXT.as_bytes(), &Options::default()).unwrap()
}

/// An index in its parts.
struct Parts {
    header: Header,
    sections: Vec<Section>,
    /// The content of each section.
    contents: Vec<Vec<u8>>,
}

impl Parts {
    fn new() -> Self {
        let bytes = to_bytes(&trace()).unwrap();
        let (head, rest) = bytes.split_at(size_of::<Header>());
        let header: Header = bytemuck::pod_read_unaligned(head);
        let entries = rest.chunks_exact(size_of::<Section>()).take(header.sections as usize);
        let sections: Vec<Section> = entries.map(bytemuck::pod_read_unaligned).collect();
        let content =
            |section: &Section| bytes[section.offset as usize..][..section.bytes as usize].to_vec();
        Self { header, contents: sections.iter().map(content).collect(), sections }
    }

    fn place(&self, name: &str) -> usize {
        let is_it = |section: &Section| section.name == layout::label(name);
        self.sections.iter().position(is_it).unwrap_or_else(|| panic!("no {name}"))
    }

    fn content(&mut self, name: &str) -> &mut Vec<u8> {
        let place = self.place(name);
        &mut self.contents[place]
    }

    /// Puts each section where it belongs, with the right checksum.
    fn arrange(&mut self) {
        self.header.sections = self.sections.len() as u32;
        let mut end = layout::first_section(self.sections.len()).unwrap() as u64;
        for (section, content) in self.sections.iter_mut().zip(&self.contents) {
            section.offset = end.next_multiple_of(layout::ALIGNMENT as u64);
            section.bytes = content.len() as u64;
            section.checksum = layout::checksum(content);
            end = section.offset + section.bytes;
        }
        self.header.bytes = end;
    }

    /// The file with its entries as they are, and the right checksum of the header.
    fn file(&self) -> Vec<u8> {
        let mut header = self.header;
        header.checksum = layout::header_checksum(&header, &self.sections);
        let mut bytes = bytemuck::bytes_of(&header).to_vec();
        bytes.extend_from_slice(bytemuck::cast_slice(&self.sections));
        for content in &self.contents {
            bytes.resize(bytes.len().next_multiple_of(layout::ALIGNMENT), 0);
            bytes.extend_from_slice(content);
        }
        bytes
    }
}

fn read(bytes: &[u8]) -> Result<Trace, Unfit> {
    read_bytes(bytes, Checksums::Verified)
}

/// What is wrong with an index after a change, with all checksums right.
fn after(change: impl FnOnce(&mut Parts)) -> Unfit {
    let mut parts = Parts::new();
    change(&mut parts);
    parts.arrange();
    read(&parts.file()).unwrap_err()
}

/// The same without new places for the sections.
fn in_place(change: impl FnOnce(&mut Parts)) -> Unfit {
    let mut parts = Parts::new();
    change(&mut parts);
    read(&parts.file()).unwrap_err()
}

fn values(section: &str) -> Unfit {
    Damage::Values { section: section.to_owned() }.into()
}

fn misplaced(section: &str) -> Unfit {
    Damage::Place { section: section.to_owned() }.into()
}

#[test]
fn a_trace_comes_back() {
    let trace = trace();
    assert!(trace.warnings.len() >= 4, "{:?}", trace.warnings);
    assert_eq!((trace.lanes.len(), trace.threads.len()), (2, 3));
    let bytes = to_bytes(&trace).unwrap();
    let mut back = read(&bytes).unwrap();
    assert_eq!(back, trace);
    assert_eq!(read_bytes(&bytes, Checksums::Ignored).unwrap(), trace);
    assert_eq!(back.names.intern("Memset é漢".as_bytes()).0, 1);
    let empty = Trace::default();
    assert_eq!(read(&to_bytes(&empty).unwrap()).unwrap(), empty);
    // What the helpers of the tests below make is an index.
    let mut parts = Parts::new();
    assert_eq!(parts.file(), bytes);
    parts.arrange();
    assert_eq!(parts.file(), bytes);
}

#[test]
fn every_changed_byte_is_seen() {
    let whole = to_bytes(&trace()).unwrap();
    for at in (0..whole.len()).step_by(STRIDE) {
        for change in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            assert!(read(&bytes).is_err(), "byte {at} ^ {change}");
        }
    }
}

#[test]
fn every_other_length_is_seen() {
    let whole = to_bytes(&trace()).unwrap();
    for length in (0..whole.len()).step_by(STRIDE) {
        assert!(read(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
    }
    for more in [1, 64, 4096] {
        let mut bytes = whole.clone();
        bytes.resize(whole.len() + more, 0);
        assert!(read(&bytes).is_err(), "{more} more bytes");
    }
}

/// What the checksums would find must be harmless without them.
#[test]
fn changed_bytes_are_harmless_without_checksums() {
    let whole = to_bytes(&trace()).unwrap();
    let mut accepted = 0;
    for at in (0..whole.len()).step_by(STRIDE) {
        for value in [0, 1, 3, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let Ok(trace) = read_bytes(&bytes, Checksums::Ignored) else { continue };
            accepted += 1;
            let (names, threads) = (trace.names.len(), trace.threads.len());
            assert!(trace.kernels.name.iter().all(|name| (name.0 as usize) < names));
            assert!(trace.frames.thread.iter().all(|&thread| (thread as usize) < threads));
            assert!((0..trace.kernels.len()).all(|row| trace.lane_of(row).is_some()));
            assert_eq!(trace.kernels.work.len(), trace.kernels.len());
        }
    }
    assert!(accepted > 1000 / STRIDE, "{accepted} changes of values");
}

#[test]
fn other_versions() {
    assert_eq!(in_place(|parts| parts.header.format += 1), Unfit::OtherVersion);
    assert_eq!(in_place(|parts| parts.header.reader ^= 1), Unfit::OtherVersion);
    assert_eq!(in_place(|parts| parts.header.magic[7] = 1), Damage::Header.into());
}

#[test]
fn sections_that_are_not_where_they_belong() {
    let second = misplaced("names.text");
    assert_eq!(in_place(|parts| parts.sections[1].offset += 64), second);
    assert_eq!(in_place(|parts| parts.sections[1].offset -= 64), second);
    assert_eq!(in_place(|parts| parts.sections[1].offset += 1), second);
    assert_eq!(in_place(|parts| parts.sections[1].offset = 0), second);
    assert_eq!(in_place(|parts| parts.sections[1].offset = u64::MAX), second);
    assert_eq!(in_place(|parts| parts.sections[1].bytes = u64::MAX), second);
    assert_eq!(in_place(|parts| parts.sections[1].bytes = 1 << 40), second);
    let last = Parts::new().sections.len() - 1;
    assert_eq!(in_place(|parts| parts.sections[last].bytes += 4), misplaced("Frames.thread"));
    assert_eq!(in_place(|parts| parts.sections[last].bytes -= 4), Damage::Header.into());
    assert_eq!(in_place(|parts| parts.header.bytes += 1), Damage::Header.into());
    assert_eq!(in_place(|parts| parts.header.sections = u32::MAX), Damage::Header.into());
    assert_eq!(in_place(|parts| parts.header.sections -= 1), Damage::Header.into());
}

/// A section may not follow more zeros than it needs to be aligned.
#[test]
fn sections_with_other_gaps() {
    for gap in [1, 4, 64, 4096] {
        let mut parts = Parts::new();
        let last = parts.sections.len() - 1;
        let start = parts.sections[last].offset as usize;
        parts.sections[last].offset += gap as u64;
        parts.header.bytes += gap as u64;
        let mut bytes = parts.file();
        bytes.splice(start..start, vec![0; gap]);
        assert_eq!(read(&bytes).unwrap_err(), misplaced("Frames.thread"), "{gap}");
    }
}

#[test]
fn other_sections() {
    let remove = |name: &'static str| {
        after(|parts| {
            let place = parts.place(name);
            parts.sections.remove(place);
            parts.contents.remove(place);
        })
    };
    assert_eq!(remove("description"), misplaced("description"));
    assert_eq!(remove("names.end"), misplaced("names.end"));
    assert_eq!(remove("Kernels.work"), misplaced("Kernels.work"));
    assert_eq!(remove("Frames.thread"), misplaced("Frames.thread"));
    let added = after(|parts| {
        parts.sections.push(parts.sections[0]);
        parts.contents.push(Vec::new());
    });
    assert_eq!(added, misplaced("description"));
    let swapped = after(|parts| {
        let (a, b) = (parts.place("Ops.start_ns"), parts.place("Ops.duration_ns"));
        parts.sections.swap(a, b);
        parts.contents.swap(a, b);
    });
    assert_eq!(swapped, misplaced("Ops.start_ns"));
    let typed = after(|parts| {
        let place = parts.place("Ops.start_ns");
        parts.sections[place].element = layout::label("u64");
    });
    assert_eq!(typed, misplaced("Ops.start_ns"));
    let none = in_place(|parts| {
        parts.sections.clear();
        parts.contents.clear();
        parts.header.sections = 0;
        parts.header.bytes = size_of::<Header>() as u64;
    });
    assert_eq!(none, misplaced("description"));
}

#[test]
fn impossible_values() {
    for name in ["Kernels.name", "Launches.name", "Annotations.name", "Ops.name", "Frames.name"] {
        let names = trace().names.len() as u32;
        let wrong = after(|parts| parts.content(name)[..4].copy_from_slice(&names.to_le_bytes()));
        assert_eq!(wrong, values(name));
    }
    for name in ["Kernels.lane", "Launches.thread", "Annotations.thread", "Ops.thread", "Ops.shape"]
    {
        let wrong = after(|parts| parts.content(name)[..4].copy_from_slice(&3_u32.to_le_bytes()));
        assert_eq!(wrong, values(name));
    }
    assert_eq!(after(|parts| parts.content("Frames.thread")[3] = 0x80), values("Frames.thread"));
    assert_eq!(after(|parts| parts.content("Kernels.work")[0] = 3), values("Kernels.work"));
    let on_device = "Annotations.on_device";
    assert_eq!(after(|parts| parts.content(on_device)[0] = 2), values(on_device));
    // A row less or more than the other columns, and half of one.
    for name in ["Kernels.graph_node", "Kernels.start_ns", "Ops.external_id"] {
        let table = name.split('.').next().unwrap();
        assert_eq!(after(|parts| parts.content(name).truncate(0)), values(table));
        let longer = after(|parts| parts.content(name).extend_from_slice(&[0; 8]));
        assert_eq!(longer, values(table));
        assert_eq!(after(|parts| parts.content(name).extend_from_slice(&[0; 4])), values(name));
    }
}

#[test]
fn impossible_names() {
    let end = "names.end";
    let text = "names.text";
    assert_eq!(after(|parts| parts.content(text)[0] = 0xff), values(text));
    // Within a character, behind the end, before its start, and not to the end.
    let inside = after(|parts| parts.content(end)[8] -= 1);
    assert_eq!(inside, values(end));
    assert_eq!(after(|parts| parts.content(end)[7] = 0x80), values(end));
    assert_eq!(after(|parts| parts.content(end)[0] = 100), values(end));
    assert_eq!(after(|parts| parts.content(end)[8] = 0), values(end));
    assert_eq!(after(|parts| parts.content(text).push(b'x')), values(end));
    let fewer = after(|parts| {
        let length = parts.content(end).len() - 8;
        parts.content(end).truncate(length);
    });
    assert_eq!(fewer, values(end));
}

#[test]
fn an_impossible_description() {
    let description = "description";
    assert_eq!(after(|parts| parts.content(description).truncate(10)), values(description));
    assert_eq!(after(|parts| parts.content(description)[0] = b'['), values(description));
    assert_eq!(after(|parts| parts.content(description).clear()), values(description));
    let deep = after(|parts| *parts.content(description) = vec![b'['; 100_000]);
    assert_eq!(deep, values(description));
    // Fewer threads than the rows refer to.
    let fewer = after(|parts| {
        let content = String::from_utf8(parts.content(description).clone()).unwrap();
        let (before, rest) = content.split_once("\"threads\":[").unwrap();
        let (_, behind) = rest.split_once(']').unwrap();
        *parts.content(description) = format!("{before}\"threads\":[]{behind}").into_bytes();
    });
    assert_eq!(fewer, values("Launches.thread"));
}

/// The indexes of before are used as long as the version of the parser is the same.
#[test]
fn a_parser_that_reads_otherwise_has_another_version() {
    let trace = trace();
    let mut text = serde_json::to_vec(&(
        &trace.metadata,
        &trace.warnings,
        &trace.threads,
        &trace.lanes,
        (trace.events, trace.bytes),
    ))
    .unwrap();
    let parts = Parts::new();
    for (section, content) in parts.sections.iter().zip(&parts.contents).skip(1) {
        text.extend_from_slice(&section.name);
        text.extend_from_slice(content);
    }
    assert_eq!(
        (layout::PARSER, layout::checksum(&text)),
        (5, 5_534_791_721_811_849_621),
        "if the loader gives something else now, raise the version of the parser"
    );
}
