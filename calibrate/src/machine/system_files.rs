//! What Linux reports about the machine in small files under `/proc` and `/sys`.
//!
//! They are read below a root folder, so that tests can make machines up. What is missing, cannot
//! be read or makes no sense is `None`: none of it is worth stopping a calibration for.

use std::path::PathBuf;

use procfs_core::FromRead;

/// The longest word that is believed; the system's own are far shorter.
const LONGEST_WORD: usize = 64;

/// The files below a root folder.
#[derive(Debug, Clone)]
pub(crate) struct SystemFiles {
    root: PathBuf,
}

impl SystemFiles {
    /// The files of the machine that this runs on.
    pub(crate) fn of_this_machine() -> Self {
        Self::below("/")
    }

    /// The files below a folder.
    pub(crate) fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The text of a file, given relative to the root.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.root.join(path)).ok()?;
        // One odd byte in a process's or a device's name must not hide the rest of the file.
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What a file under `/proc` says.
    pub(crate) fn parsed<T: FromRead>(&self, path: &str) -> Option<T> {
        T::from_read(self.text(path)?.as_bytes()).ok()
    }

    /// The only word of a file.
    pub(crate) fn word(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let word = text.trim();
        is_word(word).then(|| word.to_owned())
    }

    /// The only number of a file.
    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.trim().parse().ok()
    }

    /// The paths of what a folder contains, relative to the root and in order.
    pub(crate) fn entries(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.root.join(folder)) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut paths: Vec<_> = names.map(|name| format!("{folder}/{name}")).collect();
        paths.sort_unstable();
        paths
    }
}

/// Whether a text is one printable word, as the system writes names.
pub(crate) fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST_WORD
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A machine that consists of these files; it is gone when the folder is dropped.
    pub(crate) fn made_up(files: &[(&str, &str)]) -> (tempfile::TempDir, SystemFiles) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let files = SystemFiles::below(folder.path());
        (folder, files)
    }

    #[test]
    fn words_and_numbers_are_read_without_their_line_ends() {
        let (_folder, files) = made_up(&[("sys/word", "schedutil\n"), ("sys/number", " -42\n")]);
        assert_eq!(files.word("sys/word").as_deref(), Some("schedutil"));
        assert_eq!(files.number("sys/number"), Some(-42));
        assert_eq!(files.number("sys/word"), None);
        assert_eq!(files.entries("sys"), ["sys/number", "sys/word"]);
    }

    #[test]
    fn nonsense_and_nothing_are_none() {
        let long = "x".repeat(65);
        let (folder, files) = made_up(&[
            ("empty", "\n"),
            ("two", "two words"),
            ("escape", "\u{1b}[2J"),
            ("long", &long),
        ]);
        std::fs::write(folder.path().join("binary"), [0xff, 0xfe, 0]).unwrap();
        for path in ["empty", "two", "escape", "long", "binary", "missing", "."] {
            assert_eq!(files.word(path), None, "{path}");
            assert_eq!(files.number(path), None, "{path}");
        }
        assert!(files.entries("missing").is_empty());
    }
}
