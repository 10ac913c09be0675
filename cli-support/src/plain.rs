//! Names in traces, files and devices are whatever their authors made them. Here they become plain:
//! nothing that a terminal would obey, and nothing that a spreadsheet would compute.

use std::borrow::Cow;
use std::fmt::Write;

/// A text with escapes for all that controls a terminal, but line ends and tabs: other control
/// characters, and those that turn the direction of writing.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_command(character) {
            plain.extend(character.escape_unicode());
        } else {
            plain.push(character);
        }
    }
    Cow::Owned(plain)
}

/// Whether a text has nothing that a terminal would obey.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(is_command)
}

/// JSON in which whatever a terminal would obey is an escape, which programs read as what it was.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_command(character) {
            // Writing to a string cannot fail, and all of them have four digits.
            let _ = write!(plain, "\\u{:04x}", u32::from(character));
        } else {
            plain.push(character);
        }
    }
    Cow::Owned(plain)
}

fn is_command(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Marks, embeddings, overrides and isolates of direction; separators of lines.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        _ => character.is_control(),
    }
}

/// Makes cells of CSV plain. Whatever a terminal would obey becomes an escape as in [`text`], but ends
/// of lines: a line feed, with or without a carriage return before it. An apostrophe stands before what a spreadsheet would take for a formula: cells that
/// begin with `=`, `+`, `-`, `@`, a tab or the end of a line, and are not a number. The text comes in
/// pieces.
#[derive(Debug, Default)]
pub struct Cells {
    /// A character that may be a command, as far as it is there.
    begun: Vec<u8>,
    /// Whether a carriage return came last: the end of a line, or a command.
    has_returned: bool,
    /// Whether formulas stay as they are.
    has_formulas: bool,
    place: Place,
    /// A cell that begins with a sign, until it is known whether it is a number.
    held: Vec<u8>,
}

/// Where in the text the next byte is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Before the first byte of a cell.
    #[default]
    Start,
    /// The same, behind a quote.
    QuotedStart,
    Cell,
    Quoted,
    /// In a cell that is held.
    Held,
    QuotedHeld,
    /// Behind a quote in a quoted cell: its end, or the first of two.
    Quote,
}

impl Cells {
    /// Those that a spreadsheet may take for formulas.
    #[must_use]
    pub fn with_formulas() -> Self {
        Self { has_formulas: true, ..Self::default() }
    }

    /// Passes a piece of the text on.
    pub fn pass(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        for &byte in piece {
            self.character(byte, out);
        }
    }

    /// Passes on what is left at the end.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.give_up(out);
        if std::mem::take(&mut self.has_returned) {
            self.escape('\r', out);
        }
        self.release(out);
        self.place = Place::Start;
    }

    /// Puts the bytes together of characters that may be commands.
    fn character(&mut self, byte: u8, out: &mut Vec<u8>) {
        if !self.begun.is_empty() && byte & 0xc0 != 0x80 {
            self.give_up(out);
        }
        if std::mem::take(&mut self.has_returned) {
            match byte {
                b'\n' => self.byte(b'\r', out),
                _ => self.escape('\r', out),
            }
        }
        match byte {
            b'\r' => self.has_returned = true,
            _ if byte.is_ascii() && is_command(char::from(byte)) => {
                self.escape(char::from(byte), out);
            }
            // The first bytes of all commands beyond ASCII.
            0xc2 | 0xd8 | 0xe2 => self.begun.push(byte),
            _ if self.begun.is_empty() => self.byte(byte, out),
            _ => {
                self.begun.push(byte);
                let whole = std::str::from_utf8(&self.begun).ok();
                match whole.and_then(|text| text.chars().next()) {
                    Some(command) if is_command(command) => {
                        self.begun.clear();
                        self.escape(command, out);
                    }
                    None if self.begun.len() < LONGEST_COMMAND => {}
                    _ => self.give_up(out),
                }
            }
        }
    }

    fn escape(&mut self, command: char, out: &mut Vec<u8>) {
        for letter in command.escape_unicode() {
            // Escapes are ASCII.
            self.byte(letter as u8, out);
        }
    }

    /// Passes on what is not a command.
    fn give_up(&mut self, out: &mut Vec<u8>) {
        for byte in std::mem::take(&mut self.begun) {
            self.byte(byte, out);
        }
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.has_formulas {
            out.push(byte);
            return;
        }
        let is_end = matches!(byte, b',' | b'\r' | b'\n');
        self.place = match (self.place, byte) {
            (Place::Start | Place::Cell | Place::Quote, _) if is_end => Place::Start,
            (Place::Start, b'"') => Place::QuotedStart,
            (Place::Start, b'+' | b'-') => Place::Held,
            (Place::QuotedStart, b'+' | b'-') => Place::QuotedHeld,
            (Place::Start, b'=' | b'@' | b'\t') => {
                out.push(b'\'');
                Place::Cell
            }
            (Place::QuotedStart, b'=' | b'@' | b'\t' | b'\r' | b'\n') => {
                out.push(b'\'');
                Place::Quoted
            }
            (Place::Start | Place::Cell, _) => Place::Cell,
            (Place::QuotedStart | Place::Quoted | Place::QuotedHeld, b'"') => Place::Quote,
            (Place::Quote | Place::QuotedStart | Place::Quoted, _) => Place::Quoted,
            (Place::Held, _) if is_end => Place::Start,
            (Place::Held, _) => Place::Held,
            (Place::QuotedHeld, _) => Place::QuotedHeld,
        };
        if matches!(self.place, Place::Held | Place::QuotedHeld) {
            self.held.push(byte);
            return;
        }
        self.release(out);
        out.push(byte);
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        if self.held.is_empty() {
            return;
        }
        let text = std::str::from_utf8(&self.held).unwrap_or_default();
        // A sign alone means nothing to a spreadsheet, unless more follows behind two quotes.
        let is_alone = self.held.len() < 2 && self.place != Place::Quote;
        let is_number = is_alone || text.parse::<f64>().is_ok();
        if !is_number {
            out.push(b'\'');
        }
        out.append(&mut self.held);
    }
}

/// The bytes of the longest command.
const LONGEST_COMMAND: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        for plain in ["gemm<float, 4>", "two\nlines\tand a tab", "日本語 é 🦀", ""] {
            assert!(matches!(text(plain), Cow::Borrowed(same) if same == plain));
        }
        assert_eq!(text("a\u{1b}[2Jb\r\u{7}"), "a\\u{1b}[2Jb\\u{d}\\u{7}");
        assert_eq!(text("\u{9b}31m\u{7f}"), "\\u{9b}31m\\u{7f}");
        assert_eq!(text("gemm\u{202e}mmeg\u{2066}"), "gemm\\u{202e}mmeg\\u{2066}");
        assert_eq!(text("a\u{61c}-1"), "a\\u{61c}-1");
    }

    #[test]
    fn json_means_the_same_without_what_a_terminal_obeys() {
        let name = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}é\n\u{1f980}";
        let written = serde_json::to_string_pretty(&[name]).unwrap();
        let plain = json(&written);
        assert!(plain.contains("\\u001b[2J\\u009b31m\\u007f\\u202eé\\n\u{1f980}"), "{plain}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&plain).unwrap(), [name]);
        assert!(matches!(json("{\n\t\"a\": 1\n}\n"), Cow::Borrowed(_)));
    }

    /// In pieces of all sizes.
    fn cells(csv: &str) -> String {
        let all: Vec<String> = (1..=csv.len().max(1))
            .map(|size| {
                let (mut cells, mut out) = (Cells::default(), Vec::new());
                csv.as_bytes().chunks(size).for_each(|piece| cells.pass(piece, &mut out));
                cells.finish(&mut out);
                String::from_utf8(out).unwrap()
            })
            .collect();
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0].clone()
    }

    #[test]
    fn formulas_become_text() {
        for (csv, plain) in [
            ("=1+1,b\r\n", "'=1+1,b\r\n"),
            ("a,@SUM(A1)\r\n+cmd,\"=x, y\"\r\n", "a,'@SUM(A1)\r\n'+cmd,\"'=x, y\"\r\n"),
            ("\"-2+3+cmd|' /C calc'!A0\",-2+3\r\n", "\"'-2+3+cmd|' /C calc'!A0\",'-2+3\r\n"),
            ("\"\t=1\"\n", "\"'\t=1\"\n"),
            ("\"\r\n=1\",\"\n=1\"\r\n", "\"'\r\n=1\",\"'\n=1\"\r\n"),
            ("\"+\"\"a\"\"\",=\r\n", "\"'+\"\"a\"\"\",'=\r\n"),
            ("-x", "'-x"),
        ] {
            assert_eq!(cells(csv), plain, "{csv:?}");
        }
    }

    #[test]
    fn nothing_is_left_in_cells_that_a_terminal_obeys() {
        for (csv, plain) in [
            ("a\0b,\u{1b}[2J\r\n", "a\\u{0}b,\\u{1b}[2J\r\n"),
            ("\"x, \u{7}\u{7f}\"\r\n", "\"x, \\u{7}\\u{7f}\"\r\n"),
            ("\u{9b}31m,\u{202e}\u{2066}\u{2028}", "\\u{9b}31m,\\u{202e}\\u{2066}\\u{2028}"),
            ("\u{61c},\u{61b}", "\\u{61c},\u{61b}"),
            // Neighbours of these, and ends of lines within a cell.
            ("£ é ‖ … € â 日本 🦀,\"a\tb\r\nc\"\r\n", "£ é ‖ … € â 日本 🦀,\"a\tb\r\nc\"\r\n"),
            ("-\u{1b},-5", "'-\\u{1b},-5"),
            // A carriage return alone has what follows written over what is there.
            ("\"safe\rrm -rf\",\"\r=1\"\r\n", "\"safe\\u{d}rm -rf\",\"\\u{d}=1\"\r\n"),
            ("a\r\r\nb\r", "a\\u{d}\r\nb\\u{d}"),
            ("=\0", "'=\\u{0}"),
        ] {
            assert_eq!(cells(csv), plain, "{csv:?}");
        }
        // What is not UTF-8 passes.
        for bytes in [&b"a\xc2"[..], b"\xe2\x80,", b"\xe2\xe2\xc2x\xe2\x80\xae"] {
            let (mut cells, mut out) = (Cells::default(), Vec::new());
            cells.pass(bytes, &mut out);
            cells.finish(&mut out);
            let expected = bytes
                .strip_suffix(b"\xe2\x80\xae")
                .map_or(bytes.to_vec(), |begin| [begin, b"\\u{202e}"].concat());
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn numbers_and_other_texts_stay() {
        for csv in [
            "",
            "name,ns\r\n,\r\n",
            "-5,+1.5e-3,-0.25,-inf\r\n\"-7\",-\r\n",
            "a=b,\"x \"\"=\"\" y\",\"\"\"=\"\"\",void f<-1>(int)\r\n",
        ] {
            assert_eq!(cells(csv), csv);
        }
    }
}
