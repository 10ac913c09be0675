//! What the arguments of a kernel say about the collective that it is.
//!
//! Profilers since 2024 write the process group, the size and a sequence number there. Few kernels
//! have them, so their arguments go through the strict parser of JSON.

use serde_json::{Map, Value};

use crate::Message;

/// Longer texts are cut: a list of ranks is the longest.
const LONGEST: usize = 2048;

/// A message and the number of the collective in its group, 0 if there is none; nothing if the
/// arguments name no collective.
pub(super) fn read(args: &[u8]) -> Option<(Message, u32)> {
    let args: Map<String, Value> = serde_json::from_slice(args).ok()?;
    let collective = text(&args, "Collective name");
    if collective.is_empty() {
        return None;
    }
    let message = Message {
        collective,
        group: text(&args, "Process Group Name"),
        ranks: text(&args, "Process Group Ranks"),
        group_size: number(&args, "Group size"),
        dtype: text(&args, "dtype"),
        sent: number(&args, "In msg nelems"),
        received: number(&args, "Out msg nelems"),
    };
    Some((message, u32::try_from(number(&args, "Seq")).unwrap_or(0)))
}

/// The text of a value; a list, which some profilers write without quotes, as JSON.
fn text(args: &Map<String, Value>, key: &str) -> String {
    let mut text = match args.get(key) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string().replace(',', ", "),
    };
    let mut end = LONGEST.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn number(args: &Map<String, Value>, key: &str) -> u64 {
    args.get(key).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_collectives() {
        let text = br#"{"External id": 12945, "Collective name": "allreduce", "In msg nelems": 100,
            "Out msg nelems": 100, "Group size": 2, "dtype": "Float", "Process Group Name": "0",
            "Process Group Ranks": "[0, 1]", "Seq": 7}"#;
        let (message, sequence) = read(text).unwrap();
        assert_eq!((message.bytes(), sequence), (Some(400), 7));
        assert_eq!((message.group.as_str(), message.ranks.as_str()), ("0", "[0, 1]"));
        let list = String::from_utf8_lossy(text).replace("\"[0, 1]\"", "[0,1]");
        assert_eq!(read(list.as_bytes()).unwrap().0, message);
        let written = serde_json::to_string(&message).unwrap();
        assert_eq!(Message::of(&written), Some(message));
    }

    #[test]
    fn hostile_arguments() {
        for text in
            [&b"{}"[..], b"", b"[]", br#"{"Collective name": 3"#, b"{\"Collective name\": \"\"}"]
        {
            assert_eq!(read(text), None);
        }
        let long = "é".repeat(5000);
        let text = format!(
            "{{\"Collective name\": \"{long}\", \"In msg nelems\": 18446744073709551615, \
             \"dtype\": \"Double\", \"Seq\": -1, \"Group size\": \"x\"}}"
        );
        let (message, sequence) = read(text.as_bytes()).unwrap();
        assert_eq!((message.bytes(), sequence, message.group_size), (None, 0, 0));
        assert!(message.collective.len() <= LONGEST);
    }
}
