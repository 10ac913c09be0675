//! Changes inputs: their bytes, and the words, numbers and lines that texts consist of.

use std::collections::BTreeSet;
use std::ops::Range;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Values at the ends of what a number, or whatever stands in its place, can be.
const VALUES: [&[u8]; 30] = [
    b"0",
    b"-0.0",
    b"1",
    b"-1",
    b"2",
    b"0.1",
    b"1e-320",
    b"1e308",
    b"1e400",
    b"nan",
    b"inf",
    b"-inf",
    b"255",
    b"256",
    b"65536",
    b"4294967295",
    b"4294967296",
    b"9007199254740993",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"true",
    b"null",
    b"\"\"",
    b"[]",
    b"{}",
    b"\xff",
    b"\0",
];

/// An input may have this many times the bytes of the largest seed: larger ones find nothing that
/// smaller ones do not.
const MOST_GROWTH: usize = 2;

/// And at least this many bytes.
const LEAST_ROOM: usize = 1 << 10;

/// Words that are remembered.
const MOST_WORDS: usize = 4000;

/// How the inputs of a target are changed.
#[derive(Debug)]
pub(crate) struct Mutation {
    /// Every word of the seeds, to take the place of others.
    words: Vec<Vec<u8>>,
    /// Bytes of an input at most.
    most_bytes: usize,
}

impl Mutation {
    pub(crate) fn of(seeds: &[Vec<u8>]) -> Self {
        let words = seeds.iter().flat_map(|seed| seed.split(|&byte| !is_of_word(byte)));
        let words: BTreeSet<&[u8]> = words.filter(|word| (1..=40).contains(&word.len())).collect();
        let words = words.into_iter().take(MOST_WORDS).map(<[u8]>::to_vec).collect();
        let longest = seeds.iter().map(Vec::len).max().unwrap_or_default();
        Self { words, most_bytes: LEAST_ROOM.max(MOST_GROWTH * longest) }
    }

    /// One of the inputs with a change to a word, or with up to four changes of any kind.
    pub(crate) fn changed(&self, inputs: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
        let mut input = one_of(inputs, random).cloned().unwrap_or_default();
        if random.random() {
            self.change_word(&mut input, random);
        } else {
            for _ in 0..random.random_range(1..=4) {
                let other = one_of(inputs, random).map_or(&[][..], Vec::as_slice);
                self.change(&mut input, other, random);
            }
        }
        input.truncate(self.most_bytes);
        input
    }

    /// Puts a value or another word in the place of a word.
    fn change_word(&self, input: &mut Vec<u8>, random: &mut ChaCha8Rng) {
        let at = random.random_range(0..=input.len());
        // Of two words, the one after the place.
        let at = at + input[at..].iter().take_while(|&&byte| !is_of_word(byte)).count();
        let by = match one_of(&self.words, random) {
            Some(word) if random.random() => word.as_slice(),
            _ => VALUES[random.random_range(0..VALUES.len())],
        };
        put(input, word_at(input, at), by);
    }

    fn change(&self, input: &mut Vec<u8>, other: &[u8], random: &mut ChaCha8Rng) {
        let at = random.random_range(0..=input.len());
        let short = 1 + random.random_range(0..16_usize);
        let to_end = |length: usize, input: &[u8]| at..(at + length).min(input.len());
        match random.random_range(0..11) {
            0 => put(input, to_end(1, input), &[random.random()]),
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.random_range(0..8);
                }
            }
            2 => {
                let bytes: Vec<u8> = (0..short).map(|_| random.random()).collect();
                put(input, at..at, &bytes);
            }
            3 => put(input, to_end(short, input), b""),
            4 => put(input, to_end(short * short, input), b""),
            5 => {
                let piece = input[to_end(short * short, input)].to_vec();
                let to = random.random_range(0..=input.len());
                put(input, to..to, &piece);
            }
            6 => self.change_word(input, random),
            7 => put(input, line_at(input, at), b""),
            8 => {
                let line = input[line_at(input, at)].to_vec();
                let to = line_at(input, random.random_range(0..=input.len())).start;
                put(input, to..to, &line);
            }
            9 => {
                let line = line_at(other, random.random_range(0..=other.len()));
                let to = line_at(input, at);
                put(input, to.start..to.start, &other[line]);
            }
            _ => {
                let from = random.random_range(0..=other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
}

fn one_of<'a, T>(list: &'a [T], random: &mut ChaCha8Rng) -> Option<&'a T> {
    (!list.is_empty()).then(|| &list[random.random_range(0..list.len())])
}

fn put(input: &mut Vec<u8>, place: Range<usize>, bytes: &[u8]) {
    input.splice(place, bytes.iter().copied());
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.')
}

/// The word around a place; nothing between two words.
fn word_at(input: &[u8], at: usize) -> Range<usize> {
    let before = input[..at].iter().rev().take_while(|&&byte| is_of_word(byte)).count();
    let after = input[at..].iter().take_while(|&&byte| is_of_word(byte)).count();
    at - before..at + after
}

/// The line around a place, with its end.
fn line_at(input: &[u8], at: usize) -> Range<usize> {
    let start = input[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
    let end = input[at..].iter().position(|&byte| byte == b'\n');
    start..end.map_or(input.len(), |place| at + place + 1)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn words_and_lines_are_found_around_any_place() {
        let text = b"a = 1.5\nkey = \"x\"\n";
        assert_eq!(word_at(text, 5), 4..7);
        assert_eq!(word_at(text, 4), 4..7);
        assert_eq!(word_at(text, 3), 3..3);
        assert_eq!(word_at(text, text.len()), text.len()..text.len());
        assert_eq!(line_at(text, 0), 0..8);
        assert_eq!(line_at(text, 7), 0..8);
        assert_eq!(line_at(text, 8), 8..18);
        assert_eq!(line_at(b"", 0), 0..0);
    }

    #[test]
    fn every_input_can_be_changed_and_one_seed_gives_one_series() {
        let inputs = [Vec::new(), b"x".to_vec(), b"a = 1\nb = 2\n".to_vec()];
        let series = |seed| {
            let (mutation, mut random) = (Mutation::of(&inputs), ChaCha8Rng::seed_from_u64(seed));
            (0..2000).map(|_| mutation.changed(&inputs, &mut random)).collect::<Vec<_>>()
        };
        let one = series(1);
        assert_eq!(one, series(1));
        assert_ne!(one, series(2));
        let different: BTreeSet<_> = one.iter().collect();
        assert!(different.len() > 300, "{}", different.len());
    }
}
