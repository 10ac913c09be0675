//! What the parser of a command line has to say.

use std::io::{self, Write};

use clap::builder::StyledStr;

use crate::plain;

/// Prints it: what is wrong goes to stderr, and help and versions, which were asked for, go to stdout.
///
/// Not by `clap::Error::exit`, which says nothing of a stdout that takes nothing, and repeats words of
/// the command line as they are. These can be names of files: `calibrate show *`.
///
/// # Errors
///
/// When stdout cannot be written. Nobody is left to tell of a stderr that cannot.
pub(crate) fn print(error: &clap::Error) -> io::Result<()> {
    let text = error.render();
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let has_lines = words.iter().any(|word| word.contains('\n'));
    let is_plain = !has_lines && plain::is_plain(&without_styles(&text.ansi().to_string()));
    let plain = || plain::text(&with_words_on_one_line(text.to_string(), &words)).into_owned();
    if error.use_stderr() {
        let _ = if is_plain { error.print() } else { io::stderr().write_all(plain().as_bytes()) };
        return Ok(());
    }
    let mut stdout = io::stdout();
    if is_plain {
        error.print()?
    } else {
        stdout.write_all(plain().as_bytes())?
    }
    stdout.flush()
}

/// A text in which words of the command line have no lines of their own, which could be taken for other
/// messages. The parser prints them without what it takes for styles.
fn with_words_on_one_line(text: String, words: &[String]) -> String {
    let as_printed = |word: &String| [word.clone(), StyledStr::from(word.clone()).to_string()];
    words.iter().flat_map(as_printed).fold(text, |text, word| {
        // What stands before the first line end can be the name of an option.
        let lines = word.find('\n').map_or("", |end| &word[end..]);
        if lines.trim().is_empty() {
            return text;
        }
        text.replace(lines, &plain::on_one_line(lines))
    })
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
    fn words_of_the_command_line_stay_on_one_line() {
        let words = ["show", "F\nerror: G.toml", "--color=a\nwrote b"].map(str::to_owned);
        let text = "error: 'F\nerror: G.toml' found\n\nUsage: a\nwrote b is no colour\n";
        assert_eq!(
            with_words_on_one_line(text.to_owned(), &words),
            "error: 'F\\nerror: G.toml' found\n\nUsage: a\\nwrote b is no colour\n"
        );
        let styled = ["-dA\nerror: B\u{1b}[0m".to_owned(), "\n".to_owned()];
        assert_eq!(
            with_words_on_one_line("error: 'A\nerror: B' of\n\nUsage\n".to_owned(), &styled),
            "error: 'A\\nerror: B' of\n\nUsage\n"
        );
    }

    #[test]
    fn styles_go_and_what_a_terminal_obeys_stays() {
        assert_eq!(without_styles("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m x"), "error: x");
        for text in ["", "mm", "\u{1b}[2J", "\u{1b}]0;m", "a\u{1b}[?25lm"] {
            assert_eq!(without_styles(text), text);
        }
    }
}
