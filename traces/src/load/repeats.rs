//! Events that are written like earlier ones, apart from their numbers.
//!
//! A program does the same things over and over: a trace has millions of events, and without their
//! times and ids some thousand texts. What the parser found in a text that came twice is kept as a
//! [`Template`]. Where a template is at a place, only its numbers are read. The parser would find
//! the same: it decides by the text, and takes the same way through it whichever digits a number
//! has, as long as these are a number of the plain form. That is what is asked of them here.
//!
//! Which template to look for is guessed from the events before. A wrong guess costs the comparison
//! of some bytes. Events that are not kept, as arrows from launches to kernels, have templates of their
//! own, and are seen by how they begin.

use std::mem;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::event::Event;
use super::fast::NumberAt;
use super::row::{References, Row};
use super::template::{Gap, Head, Template, find_gaps, hash};

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

/// How many templates of events that are not kept are tried: the beginning and the end of an arrow of
/// some kinds.
const MOST_PASSED: usize = 4;

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
    /// By the hash of two events what came after them the last time, and what came before that;
    /// empty before there is a template.
    guesses: Vec<[u32; 2]>,
    /// Hashes of texts that came once.
    seen: Vec<u64>,
    /// The templates of the last two events.
    last: [u32; 2],
    /// Those of events that are not kept, such as arrows, the last first.
    passed: Vec<Passed>,
    /// For the text that is learned.
    gaps: Vec<Gap>,
}

/// A template of events that are not kept. They are between those that are, and follow from none.
#[derive(Debug, Clone, Copy)]
struct Passed {
    head: Head,
    template: u32,
}

impl Repeats {
    /// The event with which a text begins, if the guess is right.
    #[inline]
    pub(super) fn find(&mut self, text: &[u8]) -> Option<Repeated> {
        for passed in &self.passed {
            if passed.head.is_of(text)
                && let Some(found) = self.read(passed.template, text)
            {
                return Some(found);
            }
        }
        let [guess, before] = *self.guesses.get(pair(self.last))?;
        if let Some(found) = self.read(guess, text) {
            self.last = [self.last[1], guess];
            return Some(found);
        }
        let next = self.templates.get(self.last[1] as usize).map_or(NONE, |last| last.next);
        for other in [before, next] {
            if other != guess
                && let Some(found) = self.read(other, text)
            {
                self.follows(other);
                return Some(found);
            }
        }
        None
    }

    #[inline]
    fn read(&self, template: u32, text: &[u8]) -> Option<Repeated> {
        let known = self.templates.get(template as usize)?;
        let (row, used) = known.template.read(text)?;
        Some(Repeated { template, row, references: known.references, used })
    }

    /// Remembers what came after the last two events.
    fn follows(&mut self, template: u32) {
        if let Some(guesses) = self.guesses.get_mut(pair(self.last))
            && guesses[0] != template
        {
            *guesses = [template, guesses[0]];
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
        if find_gaps(text, numbers, &mut gaps)
            && let Some(number) = self.number(text, event, row, &gaps)
        {
            self.follows(number);
        }
        self.gaps = gaps;
    }

    /// Learns the text of an event that is not kept, likewise. It says nothing of what comes next.
    pub(super) fn learn_passed(&mut self, text: &[u8], numbers: &[NumberAt]) {
        if numbers.is_empty() || text.len() > LONGEST {
            return;
        }
        let mut gaps = mem::take(&mut self.gaps);
        let row = Row::of(&Event::NONE, 0, 0);
        if find_gaps(text, numbers, &mut gaps)
            && let Some(template) = self.number(text, &Event::NONE, row, &gaps)
            && let Some(known) = self.templates.get(template as usize)
            && let Some(head) = known.template.head()
        {
            // It may begin otherwise than before, with a number that has been seen to vary.
            self.passed.retain(|one| one.template != template);
            self.passed.insert(0, Passed { head, template });
            self.passed.truncate(MOST_PASSED);
        }
        self.gaps = gaps;
    }

    /// The template of an event, which comes for the second time at least.
    fn number(&mut self, text: &[u8], event: &Event<'_>, row: Row, gaps: &[Gap]) -> Option<u32> {
        let hash = hash(text, gaps);
        if let Some(&number) = self.by_hash.get(&hash) {
            let known = self.templates.get_mut(number as usize)?;
            if known.template.read(text).is_none() {
                known.template.vary(text, gaps);
            }
            return known.template.read(text).map(|_| number);
        }
        if self.comes_first(hash) {
            return None;
        }
        if self.templates.len() >= MOST || self.bytes + text.len() > MOST_BYTES {
            *self = Self { seen: mem::take(&mut self.seen), ..Self::default() };
        }
        if self.guesses.is_empty() {
            self.guesses = vec![[NONE; 2]; PAIRS];
            self.last = [NONE; 2];
        }
        let template = Template::of(text, gaps, row);
        self.bytes += template.bytes();
        let number = self.templates.len() as u32;
        let event = Arc::new(event.clone().into_owned());
        self.templates.push(Known { template, event, references: None, next: NONE });
        self.by_hash.insert(hash, number);
        Some(number)
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
mod tests;
