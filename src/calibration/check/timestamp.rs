//! Points in time, as files have them.

use std::ops::Range;

use super::contradiction::{Checked, fail};
use crate::place::Place;

/// Fails unless a text is a time in UTC to the second (RFC 3339), such as `2026-11-21T03:59:25Z`.
pub(super) fn check(place: Place, text: &str) -> Checked {
    if is_utc(text) {
        return Ok(());
    }
    let why = format!("it is {text:?}; write a time in UTC as 2026-11-21T03:59:25Z");
    fail(place, why)
}

fn is_utc(text: &str) -> bool {
    let shape = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    if !shape.eq(*b"0000-00-00T00:00:00Z") {
        return false;
    }
    let number = |digits: Range<usize>| text[digits].parse::<u32>().unwrap_or(u32::MAX);
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let (hour, minute, second) = (number(11..13), number(14..16), number(17..19));
    (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && (hour < 24 && minute < 60 && second < 60)
}

const fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_there_are_and_days_that_there_are_not() {
        for text in [
            "2026-11-21T03:59:25Z",
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2024-02-29T00:00:00Z",
            "2000-02-29T00:00:00Z",
        ] {
            assert!(is_utc(text), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2026-11-21",
            "2026-11-21 03:59:25Z",
            "2026-11-21T03:59:25",
            "2026-11-21T03:59:25+00:00",
            "2026-11-21T03:59:25Z ",
            "2026-11-21T03:59:60Z",
            "2026-11-21T24:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-11-31T00:00:00Z",
            "2026-11-00T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "+026-11-21T03:59:25Z",
            "２026-11-21T03:59:2Z",
        ] {
            assert!(!is_utc(text), "{text}");
        }
    }
}
