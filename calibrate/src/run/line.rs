//! A line of the journal: an object of JSON whose last member is a checksum of the others, so that
//! a number that a disk or an editor changed is not taken for a measurement.

use std::fmt::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;
use twox_hash::XxHash3_64;

/// What every journal begins with, and nothing else.
const BEGINNING: &[u8] = b"{\"tool_version\":\"";

/// The text of a line, with its end.
pub(super) fn write(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(value)?;
    let checksum = checksum(text.as_bytes());
    text.pop();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{checksum}");
    Ok(text)
}

/// Reads a line, or says why not.
pub(super) fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let end = line.len().saturating_sub(checksum(b"").len());
    let (object, found) = line.split_at(end);
    let object = [object, b"}"].concat();
    if found != checksum(&object).as_bytes() {
        return Err("its checksum is wrong".to_owned());
    }
    serde_json::from_slice(&object).map_err(|error| error.to_string())
}

/// The member that takes the place of the last brace of an object.
fn checksum(object: &[u8]) -> String {
    format!(",\"sum\":\"{:016x}\"}}", XxHash3_64::oneshot(object))
}

/// Whether these bytes can be the first line of a journal, or what a crash left of one.
pub(super) fn may_begin_journal(line: &[u8]) -> bool {
    line.starts_with(BEGINNING) || BEGINNING.starts_with(line)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_line_is_json_and_any_other_byte_in_it_is_seen() {
        let value = json!({"Process": {"seconds": [0.25, 1e-3], "name": "ä"}});
        let line = write(&value).unwrap();
        assert_eq!(read::<Value>(line.as_bytes()).unwrap(), value);
        let plain: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(plain["Process"], value["Process"]);
        assert_eq!(plain["sum"].as_str().unwrap().len(), 16);
        for at in 0..line.len() - 1 {
            for bit in 0..8 {
                let mut bytes = line.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                assert!(read::<Value>(&bytes).is_err(), "byte {at}, bit {bit}");
            }
        }
        for cut in 0..line.len() - 1 {
            assert!(read::<Value>(&line.as_bytes()[..cut]).is_err(), "cut at {cut}");
        }
        assert!(read::<Value>(b"{\"Part\":3}\n").is_err(), "without a checksum");
    }

    #[test]
    fn journals_are_known_by_their_first_bytes() {
        for text in [&b""[..], b"{", b"{\"tool_ver", b"{\"tool_version\":\"0.1.0\",\"pro"] {
            assert!(may_begin_journal(text));
        }
        for text in [&b"\n"[..], b"{\"traceEvents\": []}", b"years of work", b"\xff\xfe"] {
            assert!(!may_begin_journal(text));
        }
    }
}
