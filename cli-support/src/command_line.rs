//! How a program ends that has only something to say about its command line.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::{exit, plain};

/// Prints what the parser of the command line found, and gives the exit code: what is wrong goes to
/// stderr, and help and versions, which were asked for, go to stdout.
///
/// Not by `clap::Error::exit`, which says nothing of a stdout that takes nothing, and repeats words of
/// the command line as they are. These can be names of files: `calibrate show *`.
pub(crate) fn end(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let is_plain = plain::is_plain(&without_styles(&text.ansi().to_string()));
    let plain = || plain::text(&text.to_string()).into_owned();
    if error.use_stderr() {
        // Nobody is left to tell that it could not be printed.
        let _ = if is_plain { error.print() } else { io::stderr().write_all(plain().as_bytes()) };
        return ExitCode::from(exit::USAGE);
    }
    let mut stdout = io::stdout();
    let printed = if is_plain { error.print() } else { stdout.write_all(plain().as_bytes()) };
    let printed = printed.and_then(|()| stdout.flush());
    exit::report(printed.map(|()| exit::DONE).map_err(Into::into))
}

/// A text without the styles of letters, which the parser has in it wherever it is printed.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('m') {
            Some((style, rest)) if style.bytes().all(|it| it.is_ascii_digit() || it == b';') => {
                plain += rest;
            }
            _ => {
                plain += "\u{1b}[";
                plain += part;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_go_and_what_a_terminal_obeys_stays() {
        assert_eq!(without_styles("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m x"), "error: x");
        for text in ["", "mm", "\u{1b}[2J", "\u{1b}]0;m", "a\u{1b}[?25lm"] {
            assert_eq!(without_styles(text), text);
        }
    }
}
