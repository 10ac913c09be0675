//! The trace of a performance model: Chrome's JSON with a process for each model.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{InputWarning, PredictedError, file};
use crate::counted;

/// What a performance model predicts: the operators of one of its trace's processes.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTrace {
    /// Where they are from.
    pub process: Process,
    /// What is to be known of them.
    pub warnings: Vec<InputWarning>,
    /// The operators, in the order of the file.
    pub(super) events: Vec<ModelEvent>,
}

/// A process of a model's trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its number, or whatever the trace has in that place.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// How many events with a duration it has.
    pub events: usize,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = counted(self.events as u64, "event");
        match &self.name {
            Some(name) => write!(f, "`{name}` (pid {}, {events})", self.id),
            None => write!(f, "pid {} ({events})", self.id),
        }
    }
}

/// An operator that the model predicts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelEvent {
    pub(super) name: String,
    pub(super) duration_us: f64,
    /// As the trace has it: names, separated by commas.
    pub(super) kernel_type: Option<String>,
    /// How the time is split over the kernels.
    pub(super) split: Option<Value>,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "traceEvents")]
    events: Vec<RawEvent>,
}

/// Events come in several kinds; nothing is in all of them.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct RawEvent {
    ph: Value,
    name: Value,
    pid: Value,
    dur: Value,
    args: Value,
}

impl ModelTrace {
    /// Reads the operators of a process: of the one whose number or part of whose name is given,
    /// else of the first with `profiling` or `empirical` in its name, else of the only one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a trace, or no process fits.
    pub fn load(path: impl AsRef<Path>, process: Option<&str>) -> Result<Self, PredictedError> {
        let path = path.as_ref();
        Self::from_json(&file::read(path)?, path, process)
    }

    /// The same from the bytes of a file.
    ///
    /// # Errors
    ///
    /// When they are not a trace, or no process fits.
    pub fn from_json(
        json: &[u8],
        path: impl AsRef<Path>,
        process: Option<&str>,
    ) -> Result<Self, PredictedError> {
        let path = path.as_ref();
        let events = events(json)
            .map_err(|reason| PredictedError::NotAModelTrace { path: path.to_owned(), reason })?;
        let mut warnings = Vec::new();
        let process = choose(&processes(&events), path, process, &mut warnings)?;
        let of_process = |event: &RawEvent| is_complete(event) && id(&event.pid) == process.id;
        let mut bad = None;
        let events = events.into_iter().filter(of_process).map(|event| event.read(&mut bad));
        let events = events.collect();
        warnings
            .extend(bad.map(|(count, first)| InputWarning::BadPredictedDurations { count, first }));
        Ok(Self { process, warnings, events })
    }
}

impl RawEvent {
    /// The operator; one without a duration is counted in `bad`.
    fn read(mut self, bad: &mut Option<(u64, String)>) -> ModelEvent {
        let name = scalar(&self.name).unwrap_or_default();
        let duration_us = number(&self.dur).unwrap_or_else(|| {
            bad.get_or_insert_with(|| (0, name.clone())).0 += 1;
            0.0
        });
        let kernel_type = self.args.get("kernel_type").and_then(scalar);
        let split = self.args.get_mut("sub_kernel_durations").map(Value::take);
        ModelEvent { name, duration_us, kernel_type, split }
    }
}

fn events(json: &[u8]) -> Result<Vec<RawEvent>, String> {
    let is_list = json.trim_ascii_start().starts_with(b"[");
    let events = if is_list {
        serde_json::from_slice(json)
    } else {
        serde_json::from_slice(json).map(|file: File| file.events)
    };
    events.map_err(|error| {
        if json.trim_ascii().is_empty() { "it is empty".to_owned() } else { error.to_string() }
    })
}

fn is_complete(event: &RawEvent) -> bool {
    event.ph == "X"
}

/// The processes with events or with a name: first those with a name, in the order of the names.
fn processes(events: &[RawEvent]) -> Vec<Process> {
    let mut processes: Vec<Process> = Vec::new();
    let is_name = |event: &&RawEvent| event.ph == "M" && event.name == "process_name";
    for event in events.iter().filter(is_name) {
        let process = of_id(&mut processes, id(&event.pid));
        let name = event.args.get("name").and_then(Value::as_str).map(str::to_owned);
        process.name = process.name.take().or(name);
    }
    for event in events.iter().filter(|event| is_complete(event)) {
        of_id(&mut processes, id(&event.pid)).events += 1;
    }
    processes
}

/// The process with an id, which may be new.
fn of_id(processes: &mut Vec<Process>, id: String) -> &mut Process {
    let known = processes.iter().position(|process| process.id == id);
    let index = known.unwrap_or(processes.len());
    if known.is_none() {
        processes.push(Process { id, name: None, events: 0 });
    }
    &mut processes[index]
}

fn choose(
    processes: &[Process],
    path: &Path,
    wanted: Option<&str>,
    warnings: &mut Vec<InputWarning>,
) -> Result<Process, PredictedError> {
    let path = path.to_owned();
    let found: Vec<&Process> = processes.iter().filter(|process| process.events > 0).collect();
    let owned = || found.iter().copied().cloned().collect();
    let named = |part: &str| {
        let part = part.to_lowercase();
        let fits = |process: &Process| {
            process.name.as_ref().is_some_and(|name| name.to_lowercase().contains(&part))
        };
        found.iter().copied().filter(|process| fits(process)).collect::<Vec<_>>()
    };
    if found.is_empty() {
        return Err(PredictedError::NoEvents { path });
    }
    if let Some(wanted) = wanted {
        if let Some(process) = found.iter().find(|process| process.id == wanted) {
            return Ok((*process).clone());
        }
        return match named(wanted)[..] {
            [process] => Ok(process.clone()),
            ref fitting => Err(PredictedError::NoSuchProcess {
                path,
                wanted: wanted.to_owned(),
                is_ambiguous: !fitting.is_empty(),
                found: owned(),
            }),
        };
    }
    let is_model = |process: &&&Process| {
        let name = process.name.as_deref().unwrap_or_default().to_lowercase();
        name.contains("profiling") || name.contains("empirical")
    };
    let fitting: Vec<&Process> = found.iter().filter(is_model).copied().collect();
    match (&fitting[..], &found[..]) {
        ([process], _) => Ok((*process).clone()),
        ([taken, others @ ..], _) => {
            let others = others.iter().map(ToString::to_string).collect();
            warnings.push(InputWarning::SeveralProcesses { taken: taken.to_string(), others });
            Ok((*taken).clone())
        }
        ([], [only]) => {
            warnings.push(InputWarning::ProcessByDefault { process: only.to_string() });
            Ok((*only).clone())
        }
        _ => Err(PredictedError::NoProcess { path, found: owned() }),
    }
}

/// The number of a process as text.
fn id(pid: &Value) -> String {
    scalar(pid).unwrap_or_else(|| "?".to_owned())
}

/// A text, a number or a truth value as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        // As the exporter's language prints it; the other one means that there is nothing.
        Value::Bool(true) => Some("True".to_owned()),
        _ => None,
    }
}

/// A duration in microseconds.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        number => number.as_f64(),
    };
    number.filter(|number| number.is_finite() && *number >= 0.0)
}
