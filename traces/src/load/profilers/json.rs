//! Goes through JSON text without a tree of values, and gives up where the text does.

use serde::Deserialize;

use super::super::scan::{Cursor, Stop};

/// Goes through the members of an object. `each` goes past the value.
pub(super) fn members<'b>(
    at: &mut Cursor<'b>,
    mut each: impl FnMut(&mut Cursor<'b>, &'b [u8]) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut is_first = true;
    while let Some(key) = at.next_key(is_first)? {
        is_first = false;
        each(at, key)?;
    }
    Ok(())
}

/// Goes through the elements of a list. `each` goes past the element.
pub(super) fn elements<'b>(
    at: &mut Cursor<'b>,
    mut each: impl FnMut(&mut Cursor<'b>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    at.expect(b'[')?;
    at.skip_space();
    if at.peek()? == b']' {
        at.advance(1);
        return Ok(());
    }
    loop {
        each(at)?;
        at.skip_space();
        match at.peek()? {
            b',' => at.advance(1),
            b']' => {
                at.advance(1);
                return Ok(());
            }
            _ => return Err(Stop::Odd),
        }
        at.skip_space();
    }
}

/// Goes past a value: what it is, if it is of that type.
pub(super) fn value<'b, T: Deserialize<'b>>(at: &mut Cursor<'b>) -> Result<Option<T>, Stop> {
    let start = at.position();
    at.skip_value()?;
    Ok(serde_json::from_slice(at.since(start)).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: &str) -> (i64, Result<(), Stop>) {
        let (mut at, mut sum) = (Cursor::new(text.as_bytes()), 0);
        let end = members(&mut at, |at, key| match key {
            b"n" => elements(at, |at| {
                sum += value::<i64>(at)?.unwrap_or(1000);
                Ok(())
            }),
            _ => at.skip_value(),
        });
        (sum, end)
    }

    #[test]
    fn what_is_whole_is_read() {
        assert_eq!(sum(r#"{"a": {"n": [7]}, "n": [ 1 , 2,3 ], "n": [], "b": "]}"}"#), (6, Ok(())));
        assert_eq!(sum(r#"{"n": [1, "x", 2]} more"#), (1003, Ok(())));
        assert_eq!(sum("{}"), (0, Ok(())));
    }

    #[test]
    fn the_text_may_end_or_break_anywhere() {
        let text = r#"{"n": [10, 20], "x": 1, "n": [30]}"#;
        let mut most = 0;
        for cut in 0..text.len() {
            let (sum, end) = sum(&text[..cut]);
            assert_eq!(end, Err(Stop::Incomplete), "cut at {cut}");
            assert!(sum >= most);
            most = sum;
        }
        assert_eq!(most, 60);
        assert_eq!(sum(r#"{"n": [10 20]}"#), (10, Err(Stop::Odd)));
        assert_eq!(sum(r#"{"n": 3}"#), (0, Err(Stop::Odd)));
        assert_eq!(sum(r#"["n"]"#), (0, Err(Stop::Odd)));
    }
}
