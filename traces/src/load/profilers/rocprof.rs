//! The JSON of rocprofv3, AMD's profiler.
//!
//! `rocprofiler-sdk-tool` is a list with an object for each process: `agents` are the devices,
//! `strings` has the names of calls and marks, `kernel_symbols` those of kernels, and
//! `buffer_records` a list for each kind of record. Times are nanoseconds. A dispatch has the
//! `internal` correlation id of the HIP call that made it.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::super::event::{Category, Event};
use super::super::scan::{Cursor, Stop};
use super::events::{OnDevice, Span, copy_name, event, launch};
use super::json::{elements, members, value};
use super::{Extent, Reader};
use crate::Device;

/// The type of an agent that is a GPU.
const GPU: u64 = 2;

/// What one process recorded.
#[derive(Debug, Default)]
struct Process<'t> {
    pid: u64,
    /// The number of each GPU by its handle.
    devices: FxHashMap<u64, i64>,
    /// What records are called, by their kind and operation.
    kinds: Vec<Kind<'t>>,
    /// The texts of marks by the ids of the calls.
    marks: FxHashMap<u64, Cow<'t, str>>,
    kernels: FxHashMap<u64, Cow<'t, str>>,
    /// With where each is in the text.
    records: Vec<(List, Record, Range<usize>)>,
}

/// A list of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Kernels,
    Copies,
    Calls,
    Marks,
}

#[derive(Debug, Deserialize)]
struct Agent<'t> {
    id: Handle,
    #[serde(rename = "type")]
    kind: u64,
    #[serde(default)]
    logical_node_type_id: i64,
    #[serde(default, borrow)]
    name: Cow<'t, str>,
    #[serde(default, borrow)]
    product_name: Cow<'t, str>,
    #[serde(default, borrow)]
    vendor_name: Cow<'t, str>,
    wave_front_size: Option<u64>,
    cu_count: Option<u64>,
    #[serde(default)]
    gfx_target_version: u64,
    #[serde(default)]
    mem_banks: Vec<Bank>,
}

#[derive(Debug, Deserialize)]
struct Bank {
    #[serde(default)]
    size_in_bytes: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Handle {
    handle: u64,
}

#[derive(Debug, Deserialize)]
struct Kind<'t> {
    #[serde(borrow)]
    operations: Vec<Cow<'t, str>>,
}

#[derive(Debug, Deserialize)]
struct Mark<'t> {
    key: u64,
    #[serde(borrow)]
    value: Cow<'t, str>,
}

#[derive(Debug, Deserialize)]
struct Symbol<'t> {
    kernel_id: u64,
    #[serde(default, borrow)]
    formatted_kernel_name: Cow<'t, str>,
    #[serde(default, borrow)]
    kernel_name: Cow<'t, str>,
}

/// A record of any list.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Record {
    #[serde(default)]
    kind: usize,
    #[serde(default)]
    operation: usize,
    #[serde(default)]
    thread_id: u64,
    correlation_id: Correlation,
    start_timestamp: i64,
    end_timestamp: i64,
    dispatch_info: Option<Dispatch>,
    stream_id: Option<Handle>,
    dst_agent_id: Option<Handle>,
    src_agent_id: Option<Handle>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Correlation {
    internal: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Dispatch {
    agent_id: Handle,
    queue_id: Handle,
    kernel_id: u64,
}

/// Reads a recording.
pub(super) fn read(text: &[u8], reader: &mut Reader<'_>) -> Extent {
    let mut at = Cursor::new(text);
    at.skip_space();
    let end = members(&mut at, |at, key| match key {
        b"rocprofiler-sdk-tool" => elements(at, |at| {
            let mut process = Process::default();
            let end = process.read(at, reader);
            // What is whole counts, wherever the text ends.
            process.finish(reader);
            end
        }),
        _ => at.skip_value(),
    });
    (at.position(), end)
}

impl<'t> Process<'t> {
    fn read(&mut self, at: &mut Cursor<'t>, reader: &mut Reader<'_>) -> Result<(), Stop> {
        members(at, |at, key| match key {
            b"metadata" => members(at, |at, key| match key {
                b"pid" => {
                    self.pid = value(at)?.unwrap_or_default();
                    Ok(())
                }
                _ => at.skip_value(),
            }),
            b"agents" => elements(at, |at| {
                if let Some(agent) = value(at)? {
                    self.add_agent(&agent, reader);
                }
                Ok(())
            }),
            // What follows the agents are events and what these are called.
            _ if reader.head_only && !self.devices.is_empty() => Err(Stop::Odd),
            b"strings" => self.read_strings(at),
            b"kernel_symbols" => elements(at, |at| {
                if let Some(symbol) = value::<Symbol<'t>>(at)? {
                    self.kernels.insert(symbol.kernel_id, symbol.name());
                }
                Ok(())
            }),
            b"buffer_records" => members(at, |at, key| {
                let list = match key {
                    b"kernel_dispatch" => List::Kernels,
                    b"memory_copy" => List::Copies,
                    b"hip_api" => List::Calls,
                    b"marker_api" => List::Marks,
                    _ => return at.skip_value(),
                };
                elements(at, |at| {
                    let start = at.position();
                    let record = value(at)?;
                    let place = start..at.position();
                    match record {
                        Some(record) => self.records.push((list, record, place)),
                        None => reader.builder.broken(place.start as u64, place.len() as u64),
                    }
                    Ok(())
                })
            }),
            _ => at.skip_value(),
        })
    }

    fn read_strings(&mut self, at: &mut Cursor<'t>) -> Result<(), Stop> {
        members(at, |at, key| match key {
            b"buffer_records" => {
                self.kinds = value(at)?.unwrap_or_default();
                Ok(())
            }
            b"marker_api" => elements(at, |at| {
                if let Some(Mark { key, value }) = value(at)? {
                    self.marks.insert(key, value);
                }
                Ok(())
            }),
            _ => at.skip_value(),
        })
    }

    fn add_agent(&mut self, agent: &Agent<'_>, reader: &mut Reader<'_>) {
        if agent.kind != GPU {
            return;
        }
        let id = agent.logical_node_type_id;
        self.devices.insert(agent.id.handle, id);
        // Processes of one machine have the same devices.
        if !reader.metadata.devices.iter().any(|device| device.id == id) {
            reader.metadata.devices.push(agent.device());
        }
    }

    /// Puts the records into columns: only now their names are known wherever the file has them.
    fn finish(self, reader: &mut Reader<'_>) {
        let pid = self.pid.to_string();
        for (list, record, place) in &self.records {
            let thread = record.thread_id.to_string();
            let correlation = record.correlation_id.internal;
            let found = match list {
                List::Kernels => self.kernel(record),
                List::Copies => Some(self.copy(record)),
                List::Calls => Some(event(Category::Launch, self.operation(record), record.span())),
                // The call that ends a range has no text.
                List::Marks => match self.marks.get(&correlation) {
                    Some(text) => Some(event(Category::Annotation, text, record.span())),
                    None => continue,
                },
            };
            let Some(mut found) = found else {
                reader.builder.broken(place.start as u64, place.len() as u64);
                continue;
            };
            if matches!(list, List::Calls | List::Marks) {
                found.process = Cow::Borrowed(pid.as_bytes());
                found.thread = Cow::Borrowed(thread.as_bytes());
                found.args = launch(Some(correlation));
            }
            reader.builder.add(Some(&found), place.start as u64);
        }
    }

    /// A dispatch; none if the record does not say of what.
    fn kernel(&self, record: &Record) -> Option<Event<'_>> {
        let dispatch = record.dispatch_info?;
        let name = self.kernels.get(&dispatch.kernel_id).map_or("", |name| &**name);
        let stream = record.stream_id.unwrap_or(dispatch.queue_id);
        let place = self.place(record, Some(dispatch.agent_id), Some(stream));
        Some(Event { args: place.args(), ..event(Category::Kernel, name, record.span()) })
    }

    fn copy(&self, record: &Record) -> Event<'_> {
        let is_gpu = |agent: &Handle| self.devices.contains_key(&agent.handle);
        let agent = record.dst_agent_id.filter(is_gpu).or(record.src_agent_id);
        let place = self.place(record, agent, record.stream_id);
        let name = copy_of(self.operation(record));
        Event { args: place.args(), ..event(Category::Memcpy, name, record.span()) }
    }

    fn place(&self, record: &Record, agent: Option<Handle>, stream: Option<Handle>) -> OnDevice {
        OnDevice {
            device: agent.and_then(|agent| self.devices.get(&agent.handle).copied()),
            stream: stream.and_then(|stream| i64::try_from(stream.handle).ok()),
            correlation: Some(record.correlation_id.internal),
            graph_node: None,
        }
    }

    /// What the profiler calls what a record is of.
    fn operation(&self, record: &Record) -> &str {
        let kind = self.kinds.get(record.kind);
        kind.and_then(|kind| kind.operations.get(record.operation)).map_or("", |name| &**name)
    }
}

impl Record {
    fn span(&self) -> Span {
        Span { start: Some(self.start_timestamp), end: Some(self.end_timestamp) }
    }
}

impl Agent<'_> {
    fn device(&self) -> Device {
        let name = if self.product_name.is_empty() { &self.name } else { &self.product_name };
        let vendor = &self.vendor_name;
        let name = if vendor.is_empty() || name.contains(&**vendor) {
            name.to_string()
        } else {
            format!("{vendor} {name}")
        };
        let bytes =
            self.mem_banks.iter().fold(0_u64, |sum, bank| sum.saturating_add(bank.size_in_bytes));
        // 90402 is 9.4.2.
        let version = (self.gfx_target_version / 10_000, self.gfx_target_version / 100 % 100);
        Device {
            id: self.logical_node_type_id,
            name,
            memory_bytes: Some(bytes).filter(|bytes| *bytes > 0),
            multiprocessors: self.cu_count,
            warp_size: self.wave_front_size,
            compute_capability: Some(version).filter(|version| *version != (0, 0)),
        }
    }
}

impl<'t> Symbol<'t> {
    fn name(self) -> Cow<'t, str> {
        if !self.formatted_kernel_name.is_empty() {
            return self.formatted_kernel_name;
        }
        let name = self.kernel_name;
        name.strip_suffix(".kd").map(|name| Cow::Owned(name.to_owned())).unwrap_or(name)
    }
}

/// What PyTorch's profiler calls a copy of that kind.
fn copy_of(operation: &str) -> &'static str {
    let ends = operation.strip_prefix("MEMORY_COPY_").and_then(|ends| ends.split_once("_TO_"));
    let side = |end: &str| match end {
        "HOST" => 'H',
        "DEVICE" => 'D',
        _ => '?',
    };
    ends.map_or("Memcpy", |(from, to)| copy_name(side(from), side(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_by_their_operations() {
        assert_eq!(copy_of("MEMORY_COPY_HOST_TO_DEVICE"), "Memcpy HtoD");
        assert_eq!(copy_of("MEMORY_COPY_DEVICE_TO_DEVICE"), "Memcpy DtoD");
        assert_eq!(copy_of("MEMORY_COPY_NONE"), "Memcpy");
        assert_eq!(copy_of(""), "Memcpy");
    }

    #[test]
    fn devices_as_their_agents_describe_them() {
        let agent = r#"{"id": {"handle": 7}, "type": 2, "logical_node_type_id": 1,
            "name": "gfx942", "product_name": "Instinct MI300X", "vendor_name": "AMD",
            "wave_front_size": 64, "cu_count": 304, "gfx_target_version": 90402,
            "mem_banks": [{"size_in_bytes": 100}, {"size_in_bytes": 18446744073709551615}]}"#;
        let device = serde_json::from_str::<Agent<'_>>(agent).unwrap().device();
        assert_eq!((device.id, device.name.as_str()), (1, "AMD Instinct MI300X"));
        assert_eq!(device.compute_capability, Some((9, 4)));
        assert_eq!((device.warp_size, device.multiprocessors), (Some(64), Some(304)));
        assert_eq!(device.memory_bytes, Some(u64::MAX));
    }
}
