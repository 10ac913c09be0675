//! Files that are read whole, if they are not too large.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// The bytes that a file has at most: those of six thousand records, thirty times as many as there are
/// problems in the largest set. Reading more would take seconds.
const MOST_BYTES: u64 = 16 << 20;

/// What its lines, keys, values and tables take at most. A parser needs some 100 bytes for a line, 150
/// and a part of a microsecond for a value, and more for a key or a table, so that a file of hardly
/// anything else would take gigabytes and many seconds. A calibration of the largest size has
/// twenty-four millions.
const MOST_PARTS: usize = 24_500_000;

/// The keys that a table has at most. One of a calibration has some fifty; among a million, each
/// further one is slow to insert.
const MOST_KEYS: usize = 10_000;

/// The text of a file without a byte order mark. It is read once: it can be a pipe.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let text = File::open(path).and_then(read_to_limit);
    text.map_err(|source| ErrorKind::Read { path: path.to_owned(), source }.into())
}

/// Not more than the limit also of what has no size, or never ends.
fn read_to_limit(file: File) -> io::Result<String> {
    let too_large = |has: &str| {
        let reason = format!("it has {has}more than the {} MiB that are read", MOST_BYTES >> 20);
        io::Error::new(io::ErrorKind::FileTooLarge, reason)
    };
    let bytes = file.metadata()?.len();
    if bytes > MOST_BYTES {
        return Err(too_large(&format!("{} MiB, ", bytes.div_ceil(1 << 20))));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large(""));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let reason = format!("line {line} is not in UTF-8; save it as text in UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })?;
    let Parts { parts, most_keys, at_line } = Parts::of(&text);
    if parts > MOST_PARTS || most_keys > MOST_KEYS {
        let reason = if parts > MOST_PARTS {
            format!(
                "it has more lines, keys, values and tables than a calibration of {} MiB, the most \
                 that is read",
                MOST_BYTES >> 20
            )
        } else {
            format!(
                "the table that ends at line {at_line} has {most_keys} keys, more than the {MOST_KEYS} \
                 that are read"
            )
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// What a part of a key or of a number takes, and a line, a value in a list, a key with its value, and a
/// table.
const DOT: usize = 3;
const LINE: usize = 6;
const VALUE: usize = 8;
const KEY: usize = 16;
const TABLE: usize = 40;

/// What a parser has to do for a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    /// At least as many as it has lines, keys, values and tables, each with its weight: all of them
    /// are behind one of a few signs. So are the tables that a line names, and what is before a dot
    /// in a key.
    parts: usize,
    /// The keys of the table that has the most of them.
    most_keys: usize,
    /// The line of its last key, from 1.
    at_line: usize,
}

/// What a sign is part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Keys, values and tables.
    Code,
    Comment,
    /// A text, which ends with one such sign or at the end of the line, or with three of them.
    Text {
        quote: u8,
        has_lines: bool,
    },
}

impl Within {
    /// What the next sign is part of, and how many signs follow that are part of the same as this one.
    fn after(self, byte: u8, rest: &[u8]) -> (Self, usize) {
        match (self, byte) {
            (Self::Comment | Self::Text { has_lines: false, .. }, b'\n') => (Self::Code, 0),
            (Self::Code, b'#') => (Self::Comment, 0),
            (Self::Code, quote @ (b'"' | b'\'')) => {
                let has_lines = rest.starts_with(&[quote; 2]);
                (Self::Text { quote, has_lines }, if has_lines { 2 } else { 0 })
            }
            (Self::Text { quote: b'"', .. }, b'\\') => (self, 1),
            (Self::Text { quote, has_lines: false }, _) if byte == quote => (Self::Code, 0),
            (Self::Text { quote, has_lines: true }, _)
                if byte == quote && rest.starts_with(&[quote; 2]) =>
            {
                (Self::Code, 2)
            }
            _ => (self, 0),
        }
    }
}

impl Parts {
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut found = Self::default();
        let (mut dots, mut line) = (0, 1);
        // The keys of the table, and of those around it, which go on behind it.
        let (mut keys, mut around) = (0, Vec::new());
        let (mut is_first_of_line, mut last) = (true, b'\n');
        let (mut within, mut at) = (Within::Code, 0);
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            let before = within;
            let skipped;
            (within, skipped) = before.after(byte, &bytes[at..]);
            at += skipped;
            if byte == b'\n' {
                (found.parts, line, is_first_of_line) = (found.parts + LINE, line + 1, true);
            }
            if before != Within::Code || within != Within::Code {
                dots = 0;
                continue;
            }
            if byte == b'[' && is_first_of_line {
                found.parts += TABLE;
                // Elsewhere it is in a list that goes on.
                if !matches!(last, b'[' | b',') {
                    keys = 0;
                    around.clear();
                }
            }
            if !byte.is_ascii_whitespace() {
                (last, is_first_of_line) = (byte, false);
            }
            match byte {
                b'.' => {
                    found.parts += DOT;
                    dots += 1;
                    continue;
                }
                // Behind a key.
                b'=' => {
                    found.parts += KEY + dots * TABLE;
                    keys += 1;
                    if keys > found.most_keys {
                        (found.most_keys, found.at_line) = (keys, line);
                    }
                }
                // Behind the name of a table, or a list.
                b']' => found.parts += dots * TABLE,
                b'{' => {
                    found.parts += VALUE;
                    around.push(keys);
                    keys = 0;
                }
                b'}' => keys = around.pop().unwrap_or(keys),
                b',' | b'[' => found.parts += VALUE,
                b'\n' => {}
                _ => continue,
            }
            dots = 0;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(5 << 30).unwrap();
        let message = read(file.path()).unwrap_err().to_string();
        assert!(
            message.ends_with("it has 5120 MiB, more than the 16 MiB that are read"),
            "{message}"
        );
        #[cfg(unix)]
        assert!(read(Path::new("/dev/zero")).is_err());
    }

    fn refusal(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path()).unwrap_err().to_string()
    }

    #[test]
    fn a_file_of_too_many_parts_is_not_parsed() {
        let Parts { parts, most_keys, .. } =
            Parts::of("a = 1.5\n[[c]]\nd = [\n    1.5,\n    2.5\n]\n");
        let (keys, brackets_and_commas, lines, dots, tables) = (2, 4, 6, 3, 1);
        let expected =
            keys * KEY + brackets_and_commas * VALUE + lines * LINE + dots * DOT + tables * TABLE;
        // The dot of a number is not before a key, but it can be before the end of a list.
        assert_eq!((parts, most_keys), (expected, 1));
        let Parts { parts, .. } = Parts::of("a.b.c = 1\n[d.e]\n");
        assert_eq!(parts, KEY + VALUE + 2 * LINE + 3 * DOT + 4 * TABLE);
        for part in [
            "\n",
            "#\n",
            "[x1234567]\n",
            "[x1]\na=1\n",
            "a.",
            "1.",
            "[",
            "a={",
            "1,",
            "a1.b.c.d=1\n",
        ] {
            let text = part.repeat(MOST_BYTES as usize / part.len());
            let message = refusal(&text);
            let expected =
                "it has more lines, keys, values and tables than a calibration of 16 MiB";
            assert!(message.contains(expected), "{part:?}: {message}");
        }
    }

    /// Also where what looks like the beginning of another table is in a list.
    #[test]
    fn a_table_of_too_many_keys_is_not_parsed() {
        for between in ["", "y = [\n[1],\n\n[1]]\n"] {
            let of_some = |from: usize| -> String {
                let keys = from..from + MOST_KEYS / 2;
                keys.map(|key| format!("k{key} = 1\n")).collect()
            };
            let enough = format!("{}\n[x]\n{}", of_some(0), of_some(0));
            assert_eq!(Parts::of(&enough).most_keys, MOST_KEYS / 2);
            let message = refusal(&format!("{}{between}{}z = 1\n", of_some(0), of_some(MOST_KEYS)));
            let expected = " keys, more than the 10000 that are read";
            assert!(message.contains(expected), "{between:?}: {message}");
            let line = 1 + MOST_KEYS + between.lines().count();
            assert!(message.contains(&format!("ends at line {line} ")), "{line}: {message}");
        }
    }

    /// However a table is written, and whatever looks like a key in a text or a comment.
    #[test]
    fn each_table_has_its_own_keys() {
        for (text, most_keys) in [
            ("a=1\nb=1\n  [x]\nc=1\n\t[[y]]\nd=1\n", 2),
            ("all = [ {a=1, b=2}, {a=1, b=2}, {a=1, b={c=1, d=2, e=3}} ]\nb=1\nc=1\n", 3),
            ("a = \"\"\"\nb = 1\n[c]\nd = '1'\n\"\"\"\ne = 1\n", 2),
            ("a = 'b = 1' # c = \"1\n# = = =\nd = \"e = \\\" = \"\n'f = 1' = 2\n", 3),
            ("a = ''\nb = \"\"\nc = '''\n='= ''='''\nd = 1\n", 4),
            // A text without an end, and a bracket without a beginning.
            ("a = '\nb = 1\n}\nc = 1\n", 3),
        ] {
            assert_eq!(Parts::of(text).most_keys, most_keys, "{text}");
        }
    }

    #[test]
    fn what_is_not_in_utf_8_is_refused_with_its_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a = 1\nb = '\xff'\n").unwrap();
        let message = read(file.path()).unwrap_err().to_string();
        assert!(message.contains("line 2 is not in UTF-8; save it as text"), "{message}");
    }

    /// A fleet that was merged may have some thousands of records.
    #[test]
    fn five_thousand_records_are_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations");
        for name in ["amd-epyc-2-threads", "amd-epyc-zen5-2-threads", "intel-xeon-2-threads"] {
            let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).unwrap();
            let records = text.matches("[[fusion]]").count();
            let Parts { parts, most_keys, .. } = Parts::of(&text);
            assert!(text.len() * 5000 / records < MOST_BYTES as usize, "{name}: {}", text.len());
            assert!(parts * 5000 / records < MOST_PARTS, "{name}: {parts}");
            // Whatever has the most bytes has not too many parts either.
            assert!(parts * (MOST_BYTES as usize / text.len()) < MOST_PARTS, "{name}: {parts}");
            assert!(most_keys < 100, "{name}: {most_keys}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, "kind = \"calibration\"\n").unwrap()
        });
        assert_eq!(read(&path).unwrap(), "kind = \"calibration\"\n");
        writer.join().unwrap();
    }
}
