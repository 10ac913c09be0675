//! Interned names: a trace has hundreds of thousands of kernels and some hundred names.

use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

/// A name of a [`Names`] table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct NameId(pub u32);

/// Every distinct name of a trace, once.
#[derive(Debug, Clone, Default)]
pub struct Names {
    texts: Vec<Box<str>>,
    /// By the bytes in the file, which need not be UTF-8. Empty until the first one is looked for
    /// if the names come from an index.
    ids: FxHashMap<Box<[u8]>, NameId>,
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Names {
    /// The text of a name; empty for an id of another table.
    #[must_use]
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The names with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, &str)> {
        (0..).map(NameId).zip(self.texts.iter().map(|text| &**text))
    }

    /// The names whose ids are their places.
    pub(crate) fn from_texts(texts: Vec<Box<str>>) -> Self {
        Self { texts, ids: FxHashMap::default() }
    }

    /// The id of a name that may be there.
    pub(crate) fn find(&mut self, bytes: &[u8]) -> Option<NameId> {
        self.index();
        self.ids.get(bytes).copied()
    }

    /// Makes names from an index ready to be looked for.
    fn index(&mut self) {
        if self.ids.is_empty() {
            let texts = self.texts.iter().map(|text| text.as_bytes().into());
            self.ids.extend(texts.zip((0..).map(NameId)));
        }
    }

    /// The id of a name, which is added if it is new. What is not UTF-8 becomes U+FFFD.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> NameId {
        self.index();
        if let Some(&id) = self.ids.get(bytes) {
            return id;
        }
        let text = String::from_utf8_lossy(bytes);
        // Two broken spellings of one text are one name.
        let known = self.ids.get(text.as_bytes()).copied();
        let id = known.unwrap_or_else(|| {
            let id = NameId(self.texts.len() as u32);
            self.texts.push(text.clone().into());
            self.ids.insert(text.as_bytes().into(), id);
            id
        });
        self.ids.insert(bytes.into(), id);
        id
    }

    /// Adds the names of another table: the new id of each of its ids.
    pub(crate) fn absorb(&mut self, other: &Self) -> Vec<NameId> {
        other.texts.iter().map(|text| self.intern(text.as_bytes())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_id_for_each_text() {
        let mut names = Names::default();
        let first = names.intern(b"a\xffb");
        assert_eq!(names.intern("a\u{fffd}b".as_bytes()), first);
        assert_eq!(names.intern(b"a\xfeb"), first);
        let other = names.intern(b"gemm");
        assert_ne!(other, first);
        assert_eq!((names.len(), names.text(first), names.text(other)), (2, "a\u{fffd}b", "gemm"));
        assert_eq!(names.text(NameId(9)), "");

        let mut more = Names::default();
        more.intern(b"gemm");
        assert_eq!(more.absorb(&names), [NameId(1), NameId(0)]);

        let mut again = Names::from_texts(vec!["a".into(), "b".into()]);
        assert_eq!((again.intern(b"b"), again.intern(b"c")), (NameId(1), NameId(2)));
        assert_eq!(again.len(), 3);
    }
}
