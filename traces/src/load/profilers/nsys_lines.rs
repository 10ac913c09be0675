//! Lines of JSON of NVIDIA's Nsight Systems.
//!
//! The first line has all strings, as `data`; each of the others is an event. Names are numbers of
//! strings, most numbers are written as strings, and times are nanoseconds. A `TraceProcessEvent`
//! is a call on the host, a `CudaEvent` what ran on a device, an `NvtxEvent` a mark. NVIDIA
//! documents the tables of the database (see `nsys_sqlite`) and not these lines, which have the same
//! fields; the form is that of lines that others published.

use std::borrow::Cow;

use serde::Deserialize;

use super::super::event::{Category, Event};
use super::super::scan::Stop;
use super::events::{OnDevice, Span, copy_name, event, launch, without_version};
use super::scalar::Scalar;
use super::{Extent, Reader};

/// A line: one of its members is there.
#[derive(Debug, Deserialize)]
struct Line<'t> {
    #[serde(borrow)]
    data: Option<Vec<Cow<'t, str>>>,
    #[serde(rename = "CudaEvent", borrow)]
    device: Option<DeviceEvent<'t>>,
    #[serde(rename = "TraceProcessEvent", borrow)]
    call: Option<Call<'t>>,
    #[serde(rename = "NvtxEvent", borrow)]
    mark: Option<Mark<'t>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeviceEvent<'t> {
    #[serde(default, borrow)]
    start_ns: Scalar<'t>,
    #[serde(default, borrow)]
    end_ns: Scalar<'t>,
    #[serde(default, borrow)]
    device_id: Scalar<'t>,
    #[serde(default, borrow)]
    stream_id: Scalar<'t>,
    #[serde(default, borrow)]
    correlation_id: Scalar<'t>,
    #[serde(default, borrow)]
    global_pid: Scalar<'t>,
    #[serde(borrow)]
    kernel: Option<Kernel<'t>>,
    #[serde(borrow)]
    memcpy: Option<Copied<'t>>,
    memset: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kernel<'t> {
    #[serde(default, borrow)]
    demangled_name: Scalar<'t>,
    #[serde(default, borrow)]
    short_name: Scalar<'t>,
    #[serde(default, borrow)]
    graph_node_id: Scalar<'t>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Copied<'t> {
    #[serde(default, borrow)]
    copy_kind: Scalar<'t>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call<'t> {
    #[serde(default, borrow)]
    start_ns: Scalar<'t>,
    #[serde(default, borrow)]
    end_ns: Scalar<'t>,
    #[serde(default, borrow)]
    correlation_id: Scalar<'t>,
    #[serde(default, borrow)]
    name: Scalar<'t>,
    #[serde(default, borrow)]
    global_tid: Scalar<'t>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Mark<'t> {
    #[serde(default, borrow)]
    timestamp: Scalar<'t>,
    #[serde(default, borrow)]
    end_timestamp: Scalar<'t>,
    #[serde(default, borrow)]
    text: Scalar<'t>,
    #[serde(default, borrow)]
    text_id: Scalar<'t>,
    #[serde(default, borrow)]
    global_tid: Scalar<'t>,
}

/// Reads a recording.
pub(super) fn read(text: &[u8], reader: &mut Reader<'_>) -> Extent {
    // No line describes the devices.
    if reader.head_only {
        return (0, Ok(()));
    }
    let mut strings: Vec<Cow<'_, str>> = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let end = memchr::memchr(b'\n', rest);
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
        match serde_json::from_slice::<Line<'_>>(line) {
            Ok(line) => {
                let place = at as u64;
                match &line {
                    Line { device: Some(found), .. } => {
                        reader.builder.add(found.event(&strings).as_ref(), place);
                    }
                    Line { call: Some(call), .. } => call.add(&strings, place, reader),
                    Line { mark: Some(mark), .. } => mark.add(&strings, place, reader),
                    Line { data: None, .. } => reader.builder.add(None, place),
                    Line { .. } => {}
                }
                strings.extend(line.data.unwrap_or_default());
            }
            Err(_) if line.trim_ascii().is_empty() => {}
            // The last line, if the file was cut there.
            Err(error) if end.is_none() && error.is_eof() => return (at, Err(Stop::Incomplete)),
            Err(_) => reader.builder.broken(at as u64, line.len() as u64),
        }
        at += line.len() + usize::from(end.is_some());
    }
    (at, Ok(()))
}

/// The text of a name: the string with its number, or the name itself.
fn name<'n>(name: &'n Scalar<'_>, strings: &'n [Cow<'_, str>]) -> Option<&'n str> {
    let number = name.whole().and_then(|number| usize::try_from(number).ok());
    let known = number.and_then(|number| strings.get(number)).map(|text| &**text);
    known.or(match name {
        Scalar::Text(text) => Some(&**text),
        Scalar::None | Scalar::Number(_) => None,
    })
}

/// The process and the thread of a `globalTid` or `globalPid`.
pub(super) fn process_and_thread(global: i64) -> (i64, i64) {
    (global >> 24 & 0xff_ffff, global & 0xff_ffff)
}

/// The id that ties what ran on a device to its call. Those of different processes are equal.
pub(super) fn correlation(id: Option<i64>, global: Option<i64>) -> Option<u64> {
    let id = u64::from(u32::try_from(id.filter(|id| *id != 0)?).ok()?);
    let (process, _) = process_and_thread(global.unwrap_or(0));
    Some(process.cast_unsigned() << 32 | id)
}

/// What PyTorch's profiler calls a copy of that kind, which is one of CUPTI's.
pub(super) fn copy(kind: Option<i64>) -> &'static str {
    match kind {
        Some(1) => copy_name('H', 'D'),
        Some(2) => copy_name('D', 'H'),
        Some(8) => copy_name('D', 'D'),
        Some(9) => copy_name('H', 'H'),
        Some(10) => copy_name('P', 'P'),
        _ => copy_name('?', '?'),
    }
}

impl<'t> DeviceEvent<'t> {
    /// What ran; none of synchronisations and records of events.
    fn event<'n>(&'n self, strings: &'n [Cow<'t, str>]) -> Option<Event<'n>> {
        let span = Span { start: self.start_ns.number(), end: self.end_ns.number() };
        let kind = match (&self.kernel, &self.memcpy, &self.memset) {
            (Some(kernel), ..) => {
                let full = name(&kernel.demangled_name, strings);
                let text = full.or_else(|| name(&kernel.short_name, strings)).unwrap_or_default();
                event(Category::Kernel, text, span)
            }
            (_, Some(Copied { copy_kind }), _) => {
                event(Category::Memcpy, copy(copy_kind.number()), span)
            }
            (.., Some(_)) => event(Category::Memset, "Memset", span),
            _ => return None,
        };
        let place = OnDevice {
            device: self.device_id.number(),
            stream: self.stream_id.number(),
            correlation: correlation(self.correlation_id.number(), self.global_pid.number()),
            graph_node: self.kernel.as_ref().and_then(|kernel| kernel.graph_node_id.whole()),
        };
        Some(Event { args: place.args(), ..kind })
    }
}

impl<'t> Call<'t> {
    fn add(&self, strings: &[Cow<'t, str>], at: u64, reader: &mut Reader<'_>) {
        let text = without_version(name(&self.name, strings).unwrap_or_default());
        let span = Span { start: self.start_ns.number(), end: self.end_ns.number() };
        if !is_cuda(text) {
            return reader.builder.add(None, at);
        }
        let global = self.global_tid.number();
        let (process, thread) = threads(global);
        let found = Event {
            process: Cow::Borrowed(process.as_bytes()),
            thread: Cow::Borrowed(thread.as_bytes()),
            args: launch(correlation(self.correlation_id.number(), global)),
            ..event(Category::Launch, text, span)
        };
        reader.builder.add(Some(&found), at);
    }
}

impl<'t> Mark<'t> {
    fn add(&self, strings: &[Cow<'t, str>], at: u64, reader: &mut Reader<'_>) {
        let text = match &self.text {
            // A text that looks like a number is not the index of a string here.
            Scalar::Text(text) => Some(&**text),
            Scalar::None | Scalar::Number(_) => name(&self.text_id, strings),
        };
        let span = Span { start: self.timestamp.number(), end: self.end_timestamp.number() };
        // Marks without an end or a text are moments, or names of threads and domains.
        let (Some(text), Some(_)) = (text, span.end) else {
            return reader.builder.add(None, at);
        };
        let (process, thread) = threads(self.global_tid.number());
        let found = Event {
            process: Cow::Borrowed(process.as_bytes()),
            thread: Cow::Borrowed(thread.as_bytes()),
            ..event(Category::Annotation, text, span)
        };
        reader.builder.add(Some(&found), at);
    }
}

/// Whether a call is one of CUDA's runtime or driver. Those of the operating system and of other
/// libraries are recorded in the same form.
fn is_cuda(name: &str) -> bool {
    let rest = name.strip_prefix("cu").unwrap_or_default();
    rest.starts_with("da") || rest.starts_with(|first: char| first.is_ascii_uppercase())
}

/// The texts of a process and a thread.
pub(super) fn threads(global: Option<i64>) -> (String, String) {
    let (process, thread) = global.map_or((0, 0), process_and_thread);
    (process.to_string(), thread.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_processes_and_threads() {
        // 0x0001 0a16cf 0a1b18
        assert_eq!(process_and_thread(292_568_055_814_936), (0x0a_16cf, 0x0a_1b18));
        assert_eq!(correlation(Some(745), Some(292_568_055_152_640)), Some(0x0a_16cf << 32 | 745));
        assert_eq!(correlation(Some(0), Some(7)), None);
        assert_eq!(correlation(None, Some(7)), None);
        assert_eq!(correlation(Some(-1), Some(-1)), None);
    }

    #[test]
    fn calls_of_cuda() {
        assert!(is_cuda("cudaLaunchKernel") && is_cuda("cuLaunchKernelEx"));
        assert!(!is_cuda("cublasGemmEx") && !is_cuda("poll") && !is_cuda("cu") && !is_cuda(""));
    }

    #[test]
    fn names_are_numbers_of_strings_or_texts() {
        let strings = [Cow::Borrowed("zero"), Cow::Borrowed("one")];
        let of = |scalar| name(&scalar, &strings).map(str::to_owned);
        assert_eq!(of(Scalar::Text("1".into())).as_deref(), Some("one"));
        assert_eq!(of(Scalar::Number(0)).as_deref(), Some("zero"));
        assert_eq!(of(Scalar::Text("gemm".into())).as_deref(), Some("gemm"));
        assert_eq!(of(Scalar::Number(2)), None);
        assert_eq!(of(Scalar::None), None);
    }
}
