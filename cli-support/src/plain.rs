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

/// A name without line ends of its own, behind which another line could be made up.
#[must_use]
pub fn on_one_line(name: &str) -> String {
    name.replace('\n', "\\n")
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
/// of lines: a line feed, with or without a carriage return before it. An apostrophe stands before
/// what a spreadsheet would take for a formula: cells that begin with `=`, `+`, `-`, `@`, a tab or the
/// end of a line, and are not a number. Spreadsheets leave out blanks before these signs, and some
/// take a semicolon or a tab for the end of a cell, and then a quote for a part of it. So the signs
/// are looked for behind all of them. The text comes in pieces.
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
    /// Behind blanks, or what some take for the end of a cell.
    Blank,
    /// The same two behind a quote.
    QuotedStart,
    QuotedBlank,
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
            // The first bytes of all commands, blanks and wide signs beyond ASCII.
            0xc2 | 0xd8 | 0xe1..=0xe3 | 0xef => self.begun.push(byte),
            _ if self.begun.is_empty() => self.byte(byte, out),
            _ => {
                self.begun.push(byte);
                let whole = std::str::from_utf8(&self.begun).ok();
                match whole.and_then(|text| text.chars().next()) {
                    Some(command) if is_command(command) => {
                        self.begun.clear();
                        self.escape(command, out);
                    }
                    Some(letter) if is_blank(letter) && self.may_begin() => {
                        out.append(&mut self.begun);
                    }
                    Some(letter) if is_wide_sign(letter) && self.may_begin() => {
                        out.push(b'\'');
                        self.give_up(out);
                    }
                    None if self.begun.len() < LONGEST_LETTER => {}
                    _ => self.give_up(out),
                }
            }
        }
    }

    /// Whether what comes next may be the first of a cell that a spreadsheet looks at.
    fn may_begin(&self) -> bool {
        let begins = [Place::Start, Place::Blank, Place::QuotedStart, Place::QuotedBlank];
        !self.has_formulas && begins.contains(&self.place)
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
            (Place::Start | Place::Blank | Place::Cell | Place::Held | Place::Quote, _)
                if is_end =>
            {
                Place::Start
            }
            (Place::Start | Place::Blank, b'"') => Place::QuotedStart,
            (Place::Start | Place::Blank, b'+' | b'-') => Place::Held,
            (Place::QuotedStart | Place::QuotedBlank, b'+' | b'-') => Place::QuotedHeld,
            (Place::Start | Place::Blank, b'=' | b'@') => {
                out.push(b'\'');
                Place::Cell
            }
            (Place::QuotedStart | Place::QuotedBlank, b'=' | b'@') => {
                out.push(b'\'');
                Place::Quoted
            }
            (Place::Start, b'\t') => {
                out.push(b'\'');
                Place::Blank
            }
            (Place::QuotedStart, b'\t' | b'\r' | b'\n') => {
                out.push(b'\'');
                Place::QuotedBlank
            }
            (Place::Start | Place::Blank | Place::QuotedStart | Place::QuotedBlank, b' ') => {
                self.place
            }
            (Place::QuotedBlank, b'\r') => Place::QuotedBlank,
            (Place::Start | Place::Blank | Place::Cell | Place::Held, b';' | b'\t') => Place::Blank,
            (
                Place::QuotedStart | Place::QuotedBlank | Place::Quoted | Place::QuotedHeld,
                b';' | b'\t' | b'\n',
            ) => Place::QuotedBlank,
            (Place::Start | Place::Blank | Place::Cell, _) => Place::Cell,
            (Place::QuotedStart | Place::QuotedBlank | Place::Quoted | Place::QuotedHeld, b'"') => {
                Place::Quote
            }
            (Place::Quote | Place::QuotedStart | Place::QuotedBlank | Place::Quoted, _) => {
                Place::Quoted
            }
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

/// What spreadsheets leave out before the first sign of a cell: spaces of all widths, none too, and
/// the mark at the beginning of a file.
fn is_blank(letter: char) -> bool {
    let has_no_width =
        matches!(letter, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}');
    letter.is_whitespace() || has_no_width
}

/// `=`, `+`, `-` and `@` as wide as a Chinese letter, which mean the same to some.
fn is_wide_sign(letter: char) -> bool {
    matches!(letter, '\u{ff1d}' | '\u{ff0b}' | '\u{ff0d}' | '\u{ff20}')
}

/// The bytes of the longest command, blank or sign.
const LONGEST_LETTER: usize = 3;

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
        assert_eq!(on_one_line("a\nerror: b"), "a\\nerror: b");
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
            ("\"\t=1\"\n", "\"'\t'=1\"\n"),
            ("\"\r\n=1\",\"\n=1\"\r\n", "\"'\r\n'=1\",\"'\n'=1\"\r\n"),
            ("\"+\"\"a\"\"\",=\r\n", "\"'+\"\"a\"\"\",'=\r\n"),
            ("-x", "'-x"),
        ] {
            assert_eq!(cells(csv), plain, "{csv:?}");
        }
    }

    /// Spreadsheets leave blanks out, and some end cells at a semicolon or a tab.
    #[test]
    fn formulas_behind_blanks_and_other_separators_become_text() {
        for (csv, plain) in [
            (" =1,  @a,\" =1,\"\r\n", " '=1,  '@a,\" '=1,\"\r\n"),
            ("\u{feff}=1,\u{feff}\"=1\"", "\u{feff}'=1,\u{feff}\"'=1\""),
            ("\u{a0}=1,\u{3000}@,\u{2003}\u{200b}-x", "\u{a0}'=1,\u{3000}'@,\u{2003}\u{200b}'-x"),
            (" -x, -5,\" +x\"", " '-x, -5,\" '+x\""),
            ("a;=1,b; @x;c;-y\r\n", "a;'=1,b; '@x;c;'-y\r\n"),
            ("a\t=1", "a\t'=1"),
            // Where semicolons end cells, this quote is in the middle of one.
            ("x,\"a;=1, b\",\"a\n=1\",\"a\r\n+b\"", "x,\"a;'=1, b\",\"a\n'=1\",\"a\r\n'+b\""),
            ("\u{ff1d}1,a;\u{ff0b}1,\u{ff0d}\u{ff20}", "'\u{ff1d}1,a;'\u{ff0b}1,'\u{ff0d}\u{ff20}"),
            ("-5;=1,-x;=1,\"-5;-y\"", "-5;'=1,'-x;'=1,\"-5;'-y\""),
        ] {
            assert_eq!(cells(csv), plain, "{csv:?}");
        }
    }

    #[test]
    fn formulas_stay_where_they_are_asked_for() {
        let csv = " =1,a;@x,\u{feff}-y,\u{ff1d}1,-\u{a0}";
        let (mut cells, mut out) = (Cells::with_formulas(), Vec::new());
        cells.pass(csv.as_bytes(), &mut out);
        cells.finish(&mut out);
        assert_eq!(out, csv.as_bytes());
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
            " a =b, -5,64x32 float;Scalar=-1;;-1;+2;-0.5,a\u{a0}=b,\u{feff},; ,a - b\r\n",
        ] {
            assert_eq!(cells(csv), csv);
        }
    }
}
