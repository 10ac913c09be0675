//! Events that are found by their templates are those that the parser finds.

use proptest::prelude::*;

use super::super::builder::Builder;
use super::super::event::{Category, Field};
use super::super::fast::{Layouts, parse};
use super::super::list::{self, Reading, Stopped};
use super::*;
use crate::{Trace, Warning};

/// Learns a text.
fn learn(repeats: &mut Repeats, text: &str) {
    let padded = format!("{text}, {{\"ph\": \"M\", \"name\": \"an event that follows\"}}");
    let (mut layouts, mut event) = (Layouts::default(), Event::NONE);
    let (is_kept, used) = parse(padded.as_bytes(), &mut layouts, &mut event).unwrap();
    assert_eq!(used, text.len());
    match is_kept {
        true => {
            let row = Row::of(&event, 0, 0);
            repeats.learn(text.as_bytes(), &event, row, &layouts.numbers);
        }
        false => repeats.learn_passed(text.as_bytes(), &layouts.numbers),
    }
}

/// Learns a text that comes twice.
fn learned(repeats: &mut Repeats, text: &str) {
    (0..2).for_each(|_| learn(repeats, text));
}

const KERNEL: &str = r#"{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 12.5,
    "dur": 3, "args": {"queued": 0, "device": 1, "stream": 7, "correlation": 99, "grid": [8, 1],
    "occupancy": 0.5, "nested": {"x": 1, "y": "2", "z": [3]}}}"#;

fn read(repeats: &mut Repeats, text: &str) -> Option<(Row, usize)> {
    let padded = format!("{text}, more of it, so that no number is near the end");
    // The same event after itself.
    repeats.last = [0; 2];
    repeats.follows(0);
    repeats.last = [0; 2];
    repeats.find(padded.as_bytes()).map(|found| (found.row, found.used))
}

/// `KERNEL` with other numbers where they are seldom others.
const VARIED: [(&str, &str); 4] = [
    ("\"queued\": 0", "\"queued\": 3"),
    ("\"device\": 1", "\"device\": 0"),
    ("\"stream\": 7", "\"stream\": 8"),
    ("\"x\": 1", "\"x\": 2"),
];

#[test]
fn numbers_are_text_until_they_vary() {
    for (from, to) in VARIED {
        let mut repeats = Repeats::default();
        learned(&mut repeats, KERNEL);
        let varied = KERNEL.replacen(from, to, 1);
        assert_eq!(read(&mut repeats, &varied), None, "{to}");
        learn(&mut repeats, &varied);
        for text in [KERNEL, &varied, &KERNEL.replacen(from, &format!("{from}4"), 1)] {
            let (row, used) = read(&mut repeats, text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(used, text.len());
            let is_device_0 = text.contains("\"device\": 0");
            assert_eq!(row.lane.device == 0, is_device_0, "{text}");
        }
        // The others are still what they were.
        for (from, to) in VARIED.into_iter().filter(|(other, _)| *other != from) {
            assert_eq!(read(&mut repeats, &KERNEL.replacen(from, to, 1)), None, "{to}");
        }
        assert_eq!(repeats.templates.len(), 1);
    }
}

const ARROW: &str =
    r#"{"ph": "s", "id": 12, "pid": 3, "tid": 7, "ts": 12.5, "cat": "ac2g", "name": "ac2g"}"#;

#[test]
fn arrows_are_passed_over() {
    let used = |repeats: &mut Repeats, text: &str| {
        let padded = format!("{text}, more of it, so that no number is near the end");
        let found = repeats.find(padded.as_bytes())?;
        assert_eq!(found.row.category, Category::Other);
        Some(found.used)
    };
    for arrow in [ARROW, &ARROW.replace(' ', "")] {
        let mut repeats = Repeats::default();
        let other = arrow.replacen("12", "4321", 1).replacen("12.5", "99.125", 1);
        learned(&mut repeats, arrow);
        assert_eq!(used(&mut repeats, arrow), Some(arrow.len()));
        assert_eq!(used(&mut repeats, &other), None);
        learn(&mut repeats, &other);
        assert_eq!(used(&mut repeats, &other), Some(other.len()), "{other}");
        let longer = arrow.replacen("12.5", "1751410836000.12345", 1).replacen("12", "5", 1);
        assert_eq!(used(&mut repeats, &longer), Some(longer.len()), "{longer}");
        for (from, to) in [("\"s\"", "\"f\""), ("12", "-12"), ("12", "\"12\""), ("ac2g", "fwd")] {
            assert_eq!(
                used(&mut repeats, &other.replacen("4321", "12", 1).replacen(from, to, 1)),
                None
            );
        }
        for cut in 0..arrow.len() {
            assert!(repeats.find(&arrow.as_bytes()[..cut]).is_none(), "{cut}");
        }
    }
    // Those of more kinds than are tried come and go.
    let mut repeats = Repeats::default();
    for kind in 0..3 * MOST_PASSED {
        learned(&mut repeats, &ARROW.replacen("\"s\"", &format!("\"{kind}\""), 1));
        assert!(repeats.passed.len() <= MOST_PASSED);
    }
}

#[test]
fn numbers_of_members_may_be_others() {
    let mut repeats = Repeats::default();
    learned(&mut repeats, KERNEL);
    let vary = |text: String, (from, to): (&str, &str)| text.replacen(from, to, 1);
    learn(&mut repeats, &VARIED.into_iter().fold(KERNEL.to_owned(), vary));
    let (row, used) = read(&mut repeats, KERNEL).unwrap();
    assert_eq!((row.start_ns, row.duration_ns, used), (12_500, 3000, KERNEL.len()));
    assert_eq!((row.lane.device, row.lane.stream, row.correlation), (1, 7, 99));
    for (from, to) in [
        ("12.5", "1751410836000.125"),
        ("\"dur\": 3", "\"dur\": 123456789.001"),
        ("\"device\": 1", "\"device\": 12"),
        ("\"stream\": 7", "\"stream\": 0"),
        ("99", "123456789012345678"),
        ("\"queued\": 0", "\"queued\": 12345678901234567890"),
        ("\"x\": 1", "\"x\": 17"),
        // The parser reads these as numbers as well.
        ("99", "\"99\""),
    ] {
        let text = KERNEL.replacen(from, to, 1);
        let (row, used) = read(&mut repeats, &text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(used, text.len());
        let mut event = Event::NONE;
        let padded = format!("{text}, {{\"ph\": \"M\", \"name\": \"an event that follows\"}}");
        parse(padded.as_bytes(), &mut Layouts::default(), &mut event).unwrap();
        let times = (event.start_ns, event.duration_ns);
        let (Field::Is(start), Field::Is(duration)) = times else { panic!("{times:?}") };
        assert_eq!(row, Row::of(&event, start, duration.cast_unsigned()), "{text}");
    }
}

#[test]
fn whatever_else_is_another_event() {
    let mut repeats = Repeats::default();
    learned(&mut repeats, KERNEL);
    for (from, to) in [
        ("\"k\"", "\"l\""),
        ("12.5", "1e3"),
        ("12.5", "12.3456"),
        ("12.5", "-12"),
        ("99", "099"),
        ("99", "1234567890123456789"),
        ("99", "99.0"),
        ("\"queued\": 0", "\"queued\": -1"),
        ("\"queued\": 0", "\"queued\": null"),
        ("[8, 1]", "[9, 1]"),
        ("0.5", "0.75"),
        ("\"y\": \"2\"", "\"y\": \"3\""),
        ("[3]", "[4]"),
        ("}}}", "}}, \"dur\": 3}"),
        ("\"ts\": ", "\"ts\":"),
    ] {
        let text = KERNEL.replacen(from, to, 1);
        assert_ne!(text, KERNEL);
        assert_eq!(read(&mut repeats, &text), None, "{text}");
    }
    for cut in 0..KERNEL.len() {
        repeats.last = [0; 2];
        assert!(repeats.find(&KERNEL.as_bytes()[..cut]).is_none(), "{cut}");
    }
}

/// What stands before the phase was read like that of any event.
#[test]
fn numbers_before_the_phase_are_of_the_plain_form() {
    let arrow = r#"{"ts": 12.5, "args": {"correlation": 7}, "ph": "s", "name": "ac2g"}"#;
    for other in [("12.5", ".5"), ("12.5", "012.5"), ("7", "07"), ("7", "x")] {
        let times = (0..6).map(|at| arrow.replacen("12.5", &format!("{at}.5"), 1));
        let mut events: Vec<String> = times.collect();
        events.push(arrow.replacen(other.0, other.1, 1));
        let [alone, found] = [(1, false), (events.len(), true)].map(|(part, remembers)| {
            let mut trace = trace(&events, part, remembers);
            (take_codes(&mut trace), trace.events)
        });
        assert!(alone.0.contains(&"broken-events") && alone.1 == 6, "{other:?}: {alone:?}");
        assert_eq!(found, alone, "{other:?}");
    }
}

#[test]
fn memory_is_bounded() {
    let mut repeats = Repeats::default();
    for name in 0..3 * MOST {
        learned(&mut repeats, &KERNEL.replacen("\"k\"", &format!("\"{name}\""), 1));
        assert!(repeats.templates.len() <= MOST && repeats.bytes <= MOST_BYTES);
    }
    let mut repeats = Repeats::default();
    for name in 0..600 {
        let long = format!("\"{name} {}\"", "x".repeat(LONGEST / 2));
        learned(&mut repeats, &KERNEL.replacen("\"k\"", &long, 1));
        assert!(repeats.bytes <= MOST_BYTES);
    }
    assert!(!repeats.templates.is_empty());
    let mut repeats = Repeats::default();
    learned(&mut repeats, &KERNEL.replacen("\"k\"", &format!("\"{}\"", "x".repeat(LONGEST)), 1));
    assert!(repeats.templates.is_empty());
}

/// Texts that an event is put together from, few enough that they repeat, or nearly.
fn event() -> impl Strategy<Value = String> {
    let one_of = |texts: &'static [&'static str]| prop::sample::select(texts);
    let number = || {
        prop_oneof![
            8 => (0..1000_u32).prop_map(|number| number.to_string()),
            1 => one_of(&["007", "-3", "1.25", "1e3", "\"8\"", "null", "\"x\"", "[1]",
                "99999999999999999999", "0", "\"\\u0031\""]).prop_map(str::to_owned),
        ]
    };
    let kind = one_of(&["kernel", "cpu_op", "python_function", "cuda_runtime", "gpu_memset"]);
    let name = one_of(&["a", "b", "c\\\"d"]);
    let dims = one_of(&["", "\"Input Dims\": [[2, 3]], ", "\"Input Dims\": [[4, 3]], "]);
    let args = one_of(&["device", "stream", "queued", "graph node id", "Collective name"]);
    let numbers = (number(), number(), number(), number(), number());
    let phase = one_of(&["X", "X", "X", "s", "f"]);
    (kind, name, dims, args, numbers, phase).prop_map(|(kind, name, dims, args, numbers, phase)| {
        let (tid, ts, dur, id, other) = numbers;
        if phase == "s" {
            return format!(
                "{{\"ph\": \"s\", \"id\": {id}, \"pid\": 3, \"tid\": {tid}, \"ts\": {ts}, \
                 \"cat\": \"ac2g\", \"name\": \"{name}\"}}"
            );
        }
        if phase == "f" {
            return format!(
                "{{\"ts\": {ts}, \"args\": {{\"{args}\": {other}}}, \"id\": {id}, \"ph\": \"f\", \
                 \"tid\": {tid}}}"
            );
        }
        format!(
            "{{\"ph\": \"X\", \"cat\": \"{kind}\", \"name\": \"{name}\", \"pid\": 3, \"tid\": {tid}, \
             \"ts\": {ts}, \"dur\": {dur}, \"args\": {{{dims}\"External id\": {id}, \
             \"{args}\": {other}, \"correlation\": {id}}}}}"
        )
    })
}

/// What comes of some events in parts: with what is known of the parts before, or without.
fn trace(events: &[String], part: usize, remembers: bool) -> Trace {
    let mut whole = Builder::new(true);
    let mut repeats = Repeats::default();
    for events in events.chunks(part) {
        let text = format!("{}]", events.join(", "));
        let known = if remembers { repeats } else { Repeats::default() };
        let mut builder = Builder::new(true).of_part(known);
        let reading = Reading { is_all: true, strict: false, offset: 0 };
        let end = list::read(text.as_bytes(), usize::MAX, reading, &mut builder);
        assert_eq!(end, (text.len(), Stopped::ListEnd));
        repeats = builder.take_repeats();
        whole.absorb(&mut builder, 1);
    }
    whole.finish()
}

/// The warnings without the places, which are those in a part.
fn take_codes(trace: &mut Trace) -> Vec<&'static str> {
    std::mem::take(&mut trace.warnings).iter().map(Warning::code).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn templates_make_no_difference(
        distinct in prop::collection::vec(event(), 1..6),
        others in prop::collection::vec((0..60_usize, event()), 0..8),
        part in 1..40_usize,
    ) {
        // The same events in the same order, with some others.
        let mut events: Vec<String> = distinct.iter().cycle().take(60).cloned().collect();
        for (at, other) in others {
            events[at] = other;
        }
        // One at a time, nothing is known of any before.
        let mut alone = trace(&events, 1, false);
        let codes = take_codes(&mut alone);
        for part in [part, events.len()] {
            let mut found = trace(&events, part, true);
            prop_assert_eq!(take_codes(&mut found), codes.clone());
            prop_assert!(found == alone, "{:?}, but alone {:?}", found, alone);
        }
    }
}
