//! Whether the system backs memory with huge pages.

use crate::machine::system_files::{SystemFiles, is_word};

/// The chosen one of `always`, `madvise` and `never`.
pub(crate) fn huge_pages(files: &SystemFiles) -> Option<String> {
    // The file lists every choice, with brackets around the one in force.
    let text = files.text("sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, after) = text.split_once('[')?;
    let (chosen, _) = after.split_once(']')?;
    is_word(chosen).then(|| chosen.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system_files::tests::made_up;

    #[test]
    fn the_word_in_brackets() {
        for (text, expected) in [
            ("always [madvise] never\n", Some("madvise")),
            ("[always] madvise never\n", Some("always")),
            ("always madvise [never]\n", Some("never")),
            ("always madvise never\n", None),
            ("]always[ never\n", None),
            ("[] never\n", None),
            ("[al ways] never\n", None),
            ("", None),
        ] {
            let (_folder, files) = made_up(&[("sys/kernel/mm/transparent_hugepage/enabled", text)]);
            assert_eq!(huge_pages(&files).as_deref(), expected, "{text}");
        }
        let (_folder, nothing) = made_up(&[]);
        assert_eq!(huge_pages(&nothing), None);
    }
}
