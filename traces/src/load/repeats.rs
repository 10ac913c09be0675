//! Events that are written like earlier ones, apart from their numbers.
//!
//! A program does the same things over and over: a trace has millions of events, and without their
//! times and ids some thousand texts. What the parser found in a text that came twice is kept as a
//! [`Template`]. Where a template is at a place, only its numbers are read. The parser would find
//! the same: it decides by the text, and takes the same way through it whichever digits a number
//! has, as long as these are a number of the plain form. That is what is asked of them here.
//!
//! Which template to look for is guessed from the events before. A wrong guess costs the comparison
//! of some bytes.

use std::mem;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::event::Event;
use super::fast::NumberAt;
use super::row::{References, Row};
use super::template::{Gap, Template, find_gaps, hash};

/// Templates that are kept at most, and their bytes of text: as many as large models have. When
/// there are more, all are forgotten and learned anew.
const MOST: usize = 1 << 13;
const MOST_BYTES: usize = 4 << 20;

/// Longer texts are not learned.
const LONGEST: usize = 1 << 14;

/// How many pairs of events have a guess for the next one; a power of two.
const PAIRS: usize = 1 << 14;

/// How many texts are remembered that came once; a power of two.
const SEEN_ONCE: usize = 1 << 12;

/// No template.
const NONE: u32 = u32::MAX;

/// What is known of the events of a template.
#[derive(Debug)]
struct Known {
    template: Template,
    /// The one it was learned from.
    event: Arc<Event<'static>>,
    references: Option<References>,
    /// The template that came after it the last time.
    next: u32,
}

/// An event that was found by a template.
pub(super) struct Repeated {
    pub(super) template: u32,
    pub(super) row: Row,
    pub(super) references: Option<References>,
    /// How many bytes it has.
    pub(super) used: usize,
}

/// The templates of a file.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    templates: Vec<Known>,
    /// By the hash of text and gaps.
    by_hash: FxHashMap<u64, u32>,
    bytes: usize,
    /// Guesses by the hash of two events; empty before there is a template.
    guesses: Vec<u32>,
    /// Hashes of texts that came once.
    seen: Vec<u64>,
    /// The templates of the last two events.
    last: [u32; 2],
    /// For the text that is learned.
    gaps: Vec<Gap>,
}

impl Repeats {
    /// The event with which a text begins, if the guess is right.
    #[inline]
    pub(super) fn find(&mut self, text: &[u8]) -> Option<Repeated> {
        let pair = pair(self.last);
        let guess = *self.guesses.get(pair)?;
        if let Some(found) = self.read(guess, text) {
            self.last = [self.last[1], guess];
            return Some(found);
        }
        let next = self.templates.get(self.last[1] as usize).map_or(NONE, |last| last.next);
        if next == guess {
            return None;
        }
        let found = self.read(next, text)?;
        self.follows(next);
        Some(found)
    }

    #[inline]
    fn read(&self, template: u32, text: &[u8]) -> Option<Repeated> {
        let known = self.templates.get(template as usize)?;
        let (row, used) = known.template.read(text)?;
        Some(Repeated { template, row, references: known.references, used })
    }

    /// Remembers what came after the last two events.
    fn follows(&mut self, template: u32) {
        if let Some(guess) = self.guesses.get_mut(pair(self.last)) {
            *guess = template;
        }
        if let Some(last) = self.templates.get_mut(self.last[1] as usize) {
            last.next = template;
        }
        self.last = [self.last[1], template];
    }

    /// The event that a template was learned from.
    pub(super) fn event(&self, template: u32) -> Arc<Event<'static>> {
        let known = self.templates.get(template as usize);
        known.map_or_else(|| Arc::new(Event::NONE), |known| Arc::clone(&known.event))
    }

    /// Keeps the references of the events of a template.
    pub(super) fn refer(&mut self, template: u32, references: References) {
        if let Some(known) = self.templates.get_mut(template as usize) {
            known.references = Some(references);
        }
    }

    /// Forgets all references, for a builder that gives others.
    pub(super) fn forget_references(&mut self) {
        for known in &mut self.templates {
            known.references = None;
        }
    }

    /// Learns the text of an event, when it comes the second time. `numbers` are those that the
    /// parser saw in it, in order; without any it was another parser.
    pub(super) fn learn(&mut self, text: &[u8], event: &Event<'_>, row: Row, numbers: &[NumberAt]) {
        if numbers.is_empty() || text.len() > LONGEST {
            return;
        }
        let mut gaps = mem::take(&mut self.gaps);
        if find_gaps(text, numbers, &mut gaps) {
            self.learn_with(text, event, row, &gaps);
        }
        self.gaps = gaps;
    }

    fn learn_with(&mut self, text: &[u8], event: &Event<'_>, row: Row, gaps: &[Gap]) {
        let hash = hash(text, gaps);
        if let Some(&number) = self.by_hash.get(&hash) {
            let known = self.templates.get(number as usize);
            if known.is_some_and(|known| known.template.read(text).is_some()) {
                self.follows(number);
            }
            return;
        }
        if self.comes_first(hash) {
            return;
        }
        if self.templates.len() >= MOST || self.bytes + text.len() > MOST_BYTES {
            *self = Self { seen: mem::take(&mut self.seen), ..Self::default() };
        }
        if self.guesses.is_empty() {
            self.guesses = vec![NONE; PAIRS];
            self.last = [NONE; 2];
        }
        let template = Template::of(text, gaps, row);
        self.bytes += template.bytes();
        let number = self.templates.len() as u32;
        let event = Arc::new(event.clone().into_owned());
        self.templates.push(Known { template, event, references: None, next: NONE });
        self.by_hash.insert(hash, number);
        self.follows(number);
    }

    /// Whether a text has not come before, as far as that is remembered.
    fn comes_first(&mut self, hash: u64) -> bool {
        if self.seen.is_empty() {
            self.seen = vec![0; SEEN_ONCE];
        }
        let place = self.seen.get_mut(hash as usize % SEEN_ONCE);
        place.is_none_or(|seen| mem::replace(seen, hash) != hash)
    }
}

fn pair([before, last]: [u32; 2]) -> usize {
    // Multiplied by two large odd numbers, so that neighbours do not fall together.
    let mixed = before.wrapping_mul(0x9e37_79b1) ^ last.wrapping_mul(0x85eb_ca6b);
    (mixed >> 16) as usize % PAIRS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::builder::Builder;
    use super::super::event::Field;
    use super::super::fast::{Layouts, parse};
    use super::super::list::{self, Reading, Stopped};
    use super::*;
    use crate::{Trace, Warning};

    /// Learns a text that comes twice.
    fn learned(repeats: &mut Repeats, text: &str) {
        let padded = format!("{text}, {{\"ph\": \"M\", \"name\": \"an event that follows\"}}");
        let (mut layouts, mut event) = (Layouts::default(), Event::NONE);
        let (is_kept, used) = parse(padded.as_bytes(), &mut layouts, &mut event).unwrap();
        assert_eq!((is_kept, used), (true, text.len()));
        for _ in 0..2 {
            let row = Row::of(&event, 0, 0);
            repeats.learn(text.as_bytes(), &event, row, &layouts.numbers);
        }
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

    #[test]
    fn numbers_of_members_may_be_others() {
        let mut repeats = Repeats::default();
        learned(&mut repeats, KERNEL);
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
        learned(
            &mut repeats,
            &KERNEL.replacen("\"k\"", &format!("\"{}\"", "x".repeat(LONGEST)), 1),
        );
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
        (kind, name, dims, args, numbers).prop_map(|(kind, name, dims, args, numbers)| {
            let (tid, ts, dur, id, other) = numbers;
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
            let mut builder = Builder::of_part(true, known);
            let reading = Reading { is_all: true, strict: false, offset: 0 };
            let end = list::read(text.as_bytes(), usize::MAX, reading, &mut builder);
            assert_eq!(end, (text.len(), Stopped::ListEnd));
            repeats = builder.take_repeats();
            whole.absorb(builder);
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
}
