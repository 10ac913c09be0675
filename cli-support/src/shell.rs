//! Commands that a reader copies into a shell.

use std::borrow::Cow;
use std::path::Path;

/// A word of a command, in quotes where a shell would take it apart.
#[must_use]
pub fn word(text: &str) -> Cow<'_, str> {
    // No command line can have a NUL, so that one as it is loses nothing.
    shlex::try_quote(text).unwrap_or(Cow::Borrowed(text))
}

/// The name of a file as such a word.
#[must_use]
pub fn file(path: &Path) -> String {
    word(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_word_as_it_was() {
        assert_eq!(word("profiles/a-1.toml"), "profiles/a-1.toml");
        assert_eq!(file(Path::new("my model.toml")), "'my model.toml'");
        for text in ["my model.toml", "a'b", "$HOME;", "a\"b\\", "", "m*{1,2}", "~", "#x", "a\0b"] {
            let line = format!("calibrate show {} -x", word(text));
            let words = shlex::split(&line);
            let expected = ["calibrate", "show", text, "-x"].map(str::to_owned).to_vec();
            assert!(words == Some(expected) || text.contains('\0'), "{line}");
        }
    }
}
