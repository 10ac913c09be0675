//! What must hold of any bytes, for tests with fixed seeds and for the fuzz targets.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::num::NonZero;
use std::sync::LazyLock;

use kernel_traces::classify::classify_with;
use kernel_traces::compare::{CompareOptions, Comparison, Side};
use kernel_traces::synthetic::{
    self, Annotation, Communication, Launching, Model, Oddity, Phase, Plan,
};
use kernel_traces::{Classes, Options, Segments, Summary, Taxonomy, Trace, TraceError, Vendor};

/// Loads a text with both parsers, and looks at what comes of it.
///
/// The fast parser passes over what it does not keep without a look at its spelling, so it may keep
/// an event that the strict one finds broken, and it can distinguish a broken event from a cut one
/// where the strict one cannot. Where the strict one finds neither, they must agree.
pub(crate) fn load(text: &[u8]) {
    let fast = checked(text, false);
    let strict = checked(text, true);
    let has_broken = |trace: &Trace| {
        let codes = ["broken-events", "truncated"];
        trace.warnings.iter().any(|warning| codes.contains(&warning.code()))
    };
    match &strict {
        Ok(trace) if has_broken(trace) => return,
        Err(error) if error.to_string().contains("no complete event") => return,
        _ => {}
    }
    match (fast, strict) {
        (Ok(fast), Ok(strict)) => {
            // Not by `assert_eq`, which would print both.
            assert!(fast == strict, "{:?}, but strictly {:?}", fast.warnings, strict.warnings);
        }
        (Err(fast), Err(strict)) => assert_eq!(fast.to_string(), strict.to_string()),
        (fast, strict) => panic!(
            "{:?}, but strictly {:?}",
            fast.map(|trace| trace.warnings),
            strict.map(|trace| trace.warnings)
        ),
    }
}

fn checked(text: &[u8], strict: bool) -> Result<Trace, TraceError> {
    let result = Trace::from_json(text, &Options { strict, ..Options::default() });
    match &result {
        Ok(trace) => {
            assert!(trace.bytes <= text.len() as u64);
            let rows = trace.kernels.len() as u64 + trace.launches.len() as u64;
            assert!(rows <= trace.events);
            for warning in &trace.warnings {
                assert!(!warning.to_string().is_empty() && !warning.advice().is_empty());
            }
        }
        Err(error) => assert!(error.to_string().contains("is not a profiler trace"), "{error}"),
    }
    result
}

/// Loads a text on several threads, cut at a place: spaces before its first event move the end of a
/// thread's first piece there.
pub(crate) fn load_cut_at(text: &[u8], place: usize) {
    /// The size of a piece. With another one the cut is elsewhere, and what is checked still holds.
    const PIECE: usize = 4 << 20;
    let Some(list) = text.iter().position(|&byte| byte == b'[') else { return };
    let key = b"\"traceEvents\":";
    let named = text.windows(key.len()).position(|window| window == key);
    let list = named
        .and_then(|key| text[key..].iter().position(|&b| b == b'[').map(|at| key + at))
        .unwrap_or(list);
    let (head, events) = text.split_at(list + 1);
    let spaces = PIECE - place.min(events.len()).min(PIECE);
    let padded = [head, &b" ".repeat(spaces), events].concat();
    let load = |threads| {
        let options = Options { threads: NonZero::new(threads), ..Options::default() };
        Trace::from_json(&padded, &options)
    };
    match (load(1), load(2)) {
        (Ok(one), Ok(two)) => {
            assert!(one == two, "{:?}, in pieces {:?}", one.warnings, two.warnings)
        }
        (Err(one), Err(two)) => assert_eq!(one.to_string(), two.to_string()),
        (one, two) => panic!("{:?}, in pieces {:?}", one.is_ok(), two.is_ok()),
    }
}

/// Reads members of the top level that come before the events.
pub(crate) fn metadata(members: &[u8]) {
    let events = b", \"traceEvents\": [{\"ph\": \"M\"}]}";
    let text = [b"{", members, events].concat();
    load(&text);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&text).unwrap();
    let early = Trace::metadata(file.path());
    let whole = Trace::from_json(&text, &Options::default());
    // Without a list of their own, the members end where the events begin.
    let has_list = members.windows(11).any(|window| window == b"traceEvents");
    if let (Ok(whole), false) = (whole, has_list) {
        assert_eq!(early.unwrap(), whole.metadata);
        assert!(!whole.vendor().name().is_empty());
    }
}

/// Compares a trace with itself, and with another one in both orders.
fn compare(trace: &Trace, classes: &Classes) {
    static OTHER: LazyLock<(Trace, Classes, Segments)> = LazyLock::new(|| {
        let plan = Plan { phases: vec![Phase::Decode], vendor: Vendor::Amd, ..Plan::default() };
        let (text, _) = synthetic::text(&plan).unwrap();
        let trace = Trace::from_json(&text, &Options::default()).unwrap();
        let classes = Classes::of(&trace);
        let segments = Segments::of(&trace, &classes);
        (trace, classes, segments)
    });
    let segments = Segments::of(trace, classes);
    let own = Side { trace, classes, segments: &segments, name: "own" };
    let (trace, classes, segments) = &*OTHER;
    let other = Side { trace, classes, segments, name: "other" };
    let adds_up = |first: Side<'_>, second: Side<'_>| {
        let found = Comparison::of(first, second, &CompareOptions::default()).ok()?;
        let codes: Vec<&str> = found.warnings.iter().map(|warning| warning.code).collect();
        assert!(!codes.contains(&"parts-do-not-add-up"), "{:?}", found.gap);
        for (side, of) in [(&found.first, 0), (&found.second, 1)] {
            let amounts = found
                .gap
                .causes
                .iter()
                .map(|cause| [cause.part.first_amount, cause.part.second_amount][of]);
            let sums = amounts.fold((0, 0), |sum, one| (sum.0 + one.count, sum.1 + one.own_ns));
            assert_eq!(sums, (side.kernels, side.busy_ns));
        }
        Some(found)
    };
    let Some(same) = adds_up(own, own) else { return };
    assert_eq!(same.gap.gap_ns, 0.0);
    assert!(same.gap.causes.iter().all(|cause| cause.part.gap_ns == 0.0));
    assert_eq!((same.fusions.len(), same.implementation.len()), (0, 0));
    let (one, back) = (adds_up(own, other), adds_up(other, own));
    let (one, back) = (one.unwrap(), back.unwrap());
    assert_eq!(one.gap.gap_ns, -back.gap.gap_ns);
    assert_eq!(one.fusions.len(), back.fusions.len());
    let names = |found: &Comparison| {
        let name = |name: &str| {
            // Without names of devices, sides are called by their place.
            name.replace(&found.first.label, "one").replace(&found.second.label, "other")
        };
        let names = found.gap.causes.iter();
        let mut names: Vec<String> = names.map(|cause| name(&cause.name)).collect();
        names.sort();
        names
    };
    let back = Comparison { first: back.second.clone(), second: back.first.clone(), ..back };
    assert_eq!(names(&one), names(&back));
}

/// Sums up what can be loaded, and finds steps and layers in it.
pub(crate) fn summarise(text: &[u8]) {
    if let Ok(trace) = Trace::from_json(text, &Options::default()) {
        analyse(&trace);
    }
}

/// Sums up a trace, finds steps and layers in it, and compares it.
pub(crate) fn analyse(trace: &Trace) {
    let classes = Classes::of(trace);
    compare(trace, &classes);
    for kernel in 0..trace.kernels.len() {
        assert!(!classes.get(kernel).label().is_empty());
    }
    for taxonomy in [Taxonomy::Classes, Taxonomy::Legacy] {
        let summary = Summary::of(trace, taxonomy);
        assert_eq!(summary.kernels, trace.kernels.len());
        assert!(summary.busy_ns <= summary.span_ns);
    }
    let Segments { steps, layers, .. } = Segments::of(trace, &classes);
    let found = &steps.assignments;
    let placed = found.launch + found.operator + found.device_mark + found.stream_order;
    let all = placed + found.outside + found.unknown;
    assert_eq!(all, if steps.list.is_empty() { 0 } else { trace.kernels.len() as u64 });
    assert_eq!(layers.list.is_empty(), layers.none_because.is_some());
    let counts = layers.patterns.iter().map(|pattern| pattern.count);
    assert_eq!(layers.list.len(), counts.sum::<usize>());
    for (index, layer) in layers.list.iter().enumerate() {
        assert!(layer.number < layers.count.max(layers.list.len() as u32));
        let kernels = layers.kernels(layer);
        assert_eq!(layers.patterns[layer.pattern as usize].classes.len(), kernels.len());
        assert!(kernels.iter().all(|kernel| layers.layer(*kernel as usize) == Some(index)));
        assert!(layers.passes[layer.pass as usize].layers.contains(&index));
    }
}

/// Classifies a kernel; operators and frames are names from the same hand.
pub(crate) fn classify(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\n');
    let name = parts.next().unwrap_or_default();
    let (op, frame) = (parts.next(), parts.next());
    let by_name = classify_with(name, None, None);
    for (op, frame) in [(op, None), (None, frame), (op, frame)] {
        let found = classify_with(name, op, frame);
        assert!(found.parts().contains(found.main));
        assert!(!found.label().is_empty());
    }
    assert_eq!(classify_with(name, None, None), by_name, "a name has one class");
}

/// Where random bytes begin.
pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// So many random bytes, the same ones each time: xorshift.
pub(crate) fn random_bytes(state: &mut u64, count: usize) -> Vec<u8> {
    let byte = |_| {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32) as u8
    };
    (0..count).map(byte).collect()
}

/// Numbers from the bytes of a fuzzer, or from a generator of random ones; zeros when they end.
pub(crate) struct Choices<'b> {
    bytes: &'b [u8],
}

impl<'b> Choices<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A number below a bound; 0 if there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let used = if bound <= 256 { 1 } else { 4 };
        let (now, rest) = self.bytes.split_at(used.min(self.bytes.len()));
        self.bytes = rest;
        let number = now.iter().fold(0_usize, |number, &byte| number << 8 | usize::from(byte));
        number.checked_rem(bound).unwrap_or(0)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A small plan of any kind.
    pub(crate) fn plan(&mut self) -> Plan {
        let oddities = (0..self.below(3)).map(|_| self.one_of(&Oddity::ALL)).collect();
        Plan {
            vendor: self.one_of(&[Vendor::Nvidia, Vendor::Amd]),
            model: self.one_of(&Model::ALL),
            layers: self.below(4) as u64,
            steps: self.below(3) as u64,
            phases: vec![self.one_of(&[Phase::Prefill, Phase::Decode, Phase::Mixed])],
            launching: self.one_of(&Launching::ALL),
            annotations: vec![self.one_of(&Annotation::ALL)],
            communication: self.one_of(&[Communication::None, Communication::OwnStream]),
            copies: self.below(2) == 1,
            frames: self.below(3) as u64,
            oddities,
            ..Plan::default()
        }
    }

    /// Changes, removes or repeats something.
    pub(crate) fn change(&mut self, text: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let at = self.below(text.len());
        match self.below(6) {
            0 => text[at] = self.below(256) as u8,
            1 => text[at] = self.one_of(b"\"\\{}[],: \n"),
            2 => drop(text.drain(at..(at + 1 + self.below(40)).min(text.len()))),
            3 => {
                const WORDS: [&[u8]; 8] =
                    [b"null", b"-1", b"1e999", b"\"", b"\\u12", b"]}", b"{\"ph\":\"X\"},", b"\x00"];
                let word = self.one_of(&WORDS);
                text.splice(at..at, word.iter().copied());
            }
            4 => {
                let from = self.below(text.len());
                let piece = text[from..(from + 1 + self.below(60)).min(text.len())].to_vec();
                text.splice(at..at, piece);
            }
            _ => text[at] ^= 1 << self.below(8),
        }
    }
}

/// A synthetic trace, which is made once for all inputs that ask for it; empty if there is none.
fn synthetic_text(plan: &Plan) -> Vec<u8> {
    /// Inputs that were changed one after the other ask for few of them.
    const MOST: usize = 256;
    thread_local! {
        static MADE: RefCell<HashMap<String, Vec<u8>>> = RefCell::default();
    }
    let make = || synthetic::text(plan).map_or_else(|_| Vec::new(), |(text, _)| text);
    MADE.with_borrow_mut(|made| {
        if made.len() > MOST {
            made.clear();
        }
        made.entry(format!("{plan:?}")).or_insert_with(make).clone()
    })
}

/// A synthetic trace whose events come three times, the last time after changes: by then a reader
/// knows them all.
pub(crate) fn repeated_trace(bytes: &[u8]) -> Vec<u8> {
    let mut choices = Choices::new(bytes);
    let mut plan = choices.plan();
    // The last bracket is the end of the events.
    let elsewhere = [Oddity::BareList, Oddity::DictOfLists, Oddity::MetadataLast];
    plan.oddities.retain(|oddity| !elsewhere.contains(oddity));
    let text = synthetic_text(&plan);
    let key = b"\"traceEvents\": [";
    let start = text.windows(key.len()).position(|window| window == key);
    let end = text.iter().rposition(|&byte| byte == b']');
    let (Some(start), Some(end)) = (start.map(|start| start + key.len()), end) else { return text };
    let (head, events, tail) = (&text[..start], &text[start..end], &text[end..]);
    let mut changed = events.to_vec();
    while !choices.is_empty() && !changed.is_empty() {
        choices.change(&mut changed);
    }
    [head, events, b", ", events, b", ", &changed, tail].concat()
}

/// A synthetic trace after changes, all by the same numbers.
pub(crate) fn changed_trace(bytes: &[u8]) -> Vec<u8> {
    let mut choices = Choices::new(bytes);
    let mut text = synthetic_text(&choices.plan());
    if text.is_empty() {
        return text;
    }
    if choices.below(8) == 0 {
        text.truncate(choices.below(text.len()));
    }
    while !choices.is_empty() && !text.is_empty() {
        choices.change(&mut text);
    }
    text
}
