//! What stands behind the events, found without reading them.

use super::boundary::boundary;

/// How far from its end a trace is searched; metadata takes some thousand bytes.
const TAIL: usize = 1 << 20;

/// The text from the bracket on that ends the events, if the end of the trace has one.
pub(crate) fn behind_events(text: &[u8]) -> Option<&[u8]> {
    let tail = text.get(text.len().saturating_sub(TAIL)..)?;
    let mut at = 0;
    loop {
        at = boundary(tail, at, true)?;
        if tail.get(at) == Some(&b']') {
            return tail.get(at..);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_events_is_found_from_anywhere() {
        let text = br#"{"traceEvents": [{"ph": "X", "args": {"list": [{}]}}, {"ph": "M"}],
            "deviceProperties": [{"id": 0}], "traceName": "x"}"#;
        let found = behind_events(text).unwrap();
        assert!(found.starts_with(b"],\n") && found.ends_with(b"\"x\"}"));
        let mut long = br#"{"traceEvents": ["#.to_vec();
        long.extend(br#"{"ph": "M", "name": "x"}, "#.repeat(100_000));
        long.extend(br#"{"ph": "M"}], "traceName": "x"}"#);
        assert_eq!(behind_events(&long).unwrap(), br#"], "traceName": "x"}"#);
    }

    #[test]
    fn there_may_be_none() {
        for text in [&b""[..], b"{", b"]", br#"{"traceEvents": [{"ph": "X"}, {"ph"#] {
            assert_eq!(behind_events(text), None);
        }
    }
}
