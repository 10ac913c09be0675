//! Sets of sizes: which problems to measure for which chains.

use std::collections::HashSet;
use std::ops::Range;

use fusion_cost_model::{Chain, DType, Error, Family, FileKind, PATTERNS, Problem, Sizes};
use serde::Deserialize;
use toml::Spanned;

const SCHEMA_VERSION: u32 = 2;

/// A set of sizes, as in a file under `profiles/shapes/`.
#[derive(Debug, Clone)]
pub struct ShapeSet {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub description: String,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    chains: Vec<Chain>,
    sizes: Vec<Sizes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "kind")]
    _kind: FileKind,
    #[serde(rename = "schema_version")]
    _schema_version: u32,
    name: String,
    description: String,
    #[serde(default)]
    shapes: Vec<FileEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    fusion: Spanned<Vec<Spanned<String>>>,
    sizes: Spanned<Vec<Spanned<String>>>,
}

/// A file of sizes that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShapesError {
    /// Not TOML, or not of the format.
    #[error(transparent)]
    Syntax(#[from] toml::de::Error),
    /// Not a file of sizes, or of a format that this version does not know.
    #[error(transparent)]
    Kind(Error),
    /// A name or sizes that cannot be.
    #[error("[[shapes]] entry {entry}, `{key}` at line {line}: {source}")]
    Vocabulary {
        /// Counted from 1.
        entry: usize,
        /// The list.
        key: &'static str,
        /// The line of the name or the sizes, from 1.
        line: usize,
        /// What is wrong.
        source: Error,
    },
    /// Nothing to measure.
    #[error(
        "[[shapes]] entry {entry}, `{key}` at line {line}: it is empty; it would measure nothing"
    )]
    Empty {
        /// Counted from 1.
        entry: usize,
        /// The list.
        key: &'static str,
        /// Its line, from 1.
        line: usize,
    },
    /// No entries.
    #[error("it has no [[shapes]], so that there is nothing to measure")]
    NoEntries,
    /// Chains with different sizes in one entry.
    #[error(
        "[[shapes]] entry {entry}, `fusion` at line {line}: `{first}` and `{second}` do not have the \
         same sizes"
    )]
    Mixed {
        /// Counted from 1.
        entry: usize,
        /// The line of the second one, from 1.
        line: usize,
        /// One chain.
        first: String,
        /// Another one.
        second: String,
    },
}

impl ShapeSet {
    /// Reads a file of sizes.
    ///
    /// # Errors
    ///
    /// [`ShapesError`] with the entry, or the key and line.
    pub fn from_toml(text: &str) -> Result<Self, ShapesError> {
        FileKind::Shapes.expect(text, SCHEMA_VERSION).map_err(ShapesError::Kind)?;
        let file: File = toml::from_str(text)?;
        if file.shapes.is_empty() {
            return Err(ShapesError::NoEntries);
        }
        let entries = file
            .shapes
            .iter()
            .zip(1..)
            .map(|(entry, number)| Entry::read(entry, number, text))
            .collect::<Result<_, _>>()?;
        Ok(Self { name: file.name, description: file.description, entries })
    }

    /// Every chain that the set names, each once, in the order of the file.
    #[must_use]
    pub fn all_chains(&self) -> Vec<Chain> {
        let mut seen = HashSet::new();
        let chains = self.entries.iter().flat_map(|entry| entry.chains.iter().copied());
        chains.filter(|chain| seen.insert(*chain)).collect()
    }

    /// The chains that a name selects: `all`, a family, a pattern, or a chain. `all` and a family are
    /// the chains that the set names, single ops among them, and the patterns that it does not name.
    ///
    /// # Errors
    ///
    /// [`Error`] with the nearest names.
    pub fn select(&self, name: &str) -> Result<Vec<Chain>, Error> {
        let Some(group) = Group::named(name) else {
            return select(name);
        };
        let mut chains = self.all_chains();
        chains.retain(|chain| group.contains(Family::of(chain.form())));
        for pattern in group.patterns() {
            if !chains.contains(&pattern) {
                chains.push(pattern);
            }
        }
        Ok(chains)
    }

    /// The problems of a chain in this set. A chain that the set does not name has the sizes of
    /// the named ones that take the same sizes.
    #[must_use]
    pub fn problems(&self, chain: &Chain, dtype: DType) -> Vec<Problem> {
        let named = self.entries.iter().any(|entry| entry.chains.contains(chain));
        let mut seen = HashSet::new();
        self.entries
            .iter()
            .filter(|entry| {
                if named {
                    entry.chains.contains(chain)
                } else {
                    entry.chains.iter().any(|other| other.form() == chain.form())
                }
            })
            .flat_map(|entry| &entry.sizes)
            .filter_map(|sizes| Problem::new(*chain, dtype, *sizes).ok())
            .filter(|problem| seen.insert(*problem))
            .collect()
    }
}

impl Entry {
    /// Reads the entry of this number in a text.
    fn read(entry: &FileEntry, number: usize, text: &str) -> Result<Self, ShapesError> {
        let line = |at: Range<usize>| 1 + text[..at.start].matches('\n').count();
        for (key, list) in [("fusion", &entry.fusion), ("sizes", &entry.sizes)] {
            if list.get_ref().is_empty() {
                return Err(ShapesError::Empty { entry: number, key, line: line(list.span()) });
            }
        }
        let vocabulary = |key, at: Range<usize>| {
            let line = line(at);
            move |source| ShapesError::Vocabulary { entry: number, key, line, source }
        };
        let mut chains: Vec<Chain> = Vec::new();
        for name in entry.fusion.get_ref() {
            let named = select(name.get_ref()).map_err(vocabulary("fusion", name.span()))?;
            let first = chains.first().or(named.first()).copied();
            let is_other = |chain: &&Chain| first.is_some_and(|one| one.form() != chain.form());
            if let (Some(first), Some(other)) = (first, named.iter().find(is_other)) {
                return Err(ShapesError::Mixed {
                    entry: number,
                    line: line(name.span()),
                    first: first.name(),
                    second: other.name(),
                });
            }
            chains.extend(named);
        }
        let Some(first) = chains.first() else {
            return Ok(Self { chains, sizes: Vec::new() });
        };
        let sizes = entry.sizes.get_ref().iter().map(|sizes| {
            Sizes::parse(first.form(), sizes.get_ref()).map_err(vocabulary("sizes", sizes.span()))
        });
        let sizes = sizes.collect::<Result<_, _>>()?;
        Ok(Self { chains, sizes })
    }
}

/// A name of more than one chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    All,
    Family(Family),
}

impl Group {
    fn named(name: &str) -> Option<Self> {
        let wanted = name.trim().to_ascii_lowercase();
        if wanted == "all" {
            return Some(Self::All);
        }
        Family::ALL.into_iter().find(|family| family.name() == wanted).map(Self::Family)
    }

    fn contains(self, family: Family) -> bool {
        self == Self::All || self == Self::Family(family)
    }

    fn patterns(self) -> impl Iterator<Item = Chain> {
        let patterns = PATTERNS.iter().filter(move |pattern| self.contains(pattern.family));
        patterns.filter_map(|pattern| Chain::new(pattern.ops).ok())
    }
}

/// The chains that a name in a file selects: the patterns of `all` or of a family, a pattern, or a
/// chain.
fn select(name: &str) -> Result<Vec<Chain>, Error> {
    match Group::named(name) {
        Some(group) => Ok(group.patterns().collect()),
        None => Ok(vec![name.parse()?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = r#"
kind = "shapes"
schema_version = 2
name = "example"
description = "two sizes"

[[shapes]]
fusion = ["linear_bias", "linear_bias_relu"]
sizes = ["m1.k2.n3", "m4.k5.n6"]

[[shapes]]
fusion = ["add_relu"]
sizes = ["m7.n8"]
"#;

    fn problems(set: &ShapeSet, chain: &str) -> Vec<String> {
        let problems = set.problems(&chain.parse().unwrap(), DType::F32);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_chain_has_its_own_sizes_or_those_of_its_form() {
        let set = ShapeSet::from_toml(SET).unwrap();
        assert_eq!(set.all_chains().len(), 3);
        let expected = ["linear_bias/f32/m1.k2.n3", "linear_bias/f32/m4.k5.n6"];
        assert_eq!(problems(&set, "linear_bias"), expected);
        assert_eq!(problems(&set, "linear+bias+silu+mul").len(), 2);
        assert_eq!(problems(&set, "mul_add_relu"), ["mul_add_relu/f32/m7.n8"]);
        assert_eq!(problems(&set, "softmax"), ["softmax/f32/m7.n8"]);
        assert_eq!(problems(&set, "conv_relu"), Vec::<String>::new());
    }

    #[test]
    fn all_and_families_have_the_single_ops_of_the_set() {
        let text = SET.replace("\"add_relu\"", "\"add_relu\", \"relu\"");
        let set = ShapeSet::from_toml(&text).unwrap();
        let names = |name: &str| -> Vec<String> {
            set.select(name).unwrap().iter().map(Chain::name).collect()
        };
        assert_eq!(names("all").len(), 19);
        assert_eq!(names("all")[..4], ["linear_bias", "linear_bias_relu", "add_relu", "relu"]);
        assert_eq!(names("elementwise")[..2], ["add_relu", "relu"]);
        assert_eq!(names("elementwise").len(), 5);
        assert_eq!(names("attention").len(), 4);
        assert_eq!(names("mul_add_relu"), ["mul_add_relu"]);
    }

    #[test]
    fn names_select_patterns() {
        assert_eq!(select("all").unwrap().len(), 18);
        assert_eq!(select("Linear").unwrap().len(), 5);
        assert_eq!(select("attention").unwrap().len(), 4);
        assert_eq!(select("add_relu").unwrap().len(), 1);
        assert!(select("relu").unwrap()[0].is_single());
        assert!(select("liner").unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn bad_files_say_where() {
        for (from, to, expected) in [
            ("sizes = [\"m7.n8\"]", "sizes = [\"m7\"]", "entry 2, `sizes` at line 13: "),
            ("sizes = [\"m7.n8\"]", "sizes = []", "entry 2, `sizes` at line 13: it is empty"),
            ("fusion = [\"add_relu\"]", "fusion = []", "entry 2, `fusion` at line 12: it is empty"),
            (&SET[SET.find("[[").unwrap()..], "", "it has no [[shapes]]"),
            ("m1.k2.n3", "m1.k0.n3", "entry 1, `sizes` at line 9: "),
            ("m1.k2.n3", "m1.k0.n3", "k (input features) is 0"),
            ("\"m4.k5.n6\"]", "\n\"m4.k5\"]", "entry 1, `sizes` at line 10: "),
            (
                "\"linear_bias\",",
                "\"add_relu\",",
                "entry 1, `fusion` at line 8: `add_relu` and `linear_bias_relu` do not have the same",
            ),
            ("\"linear_bias\",", "\"linear_bias\",\n\"relu\",", "entry 1, `fusion` at line 9: "),
            ("fusion = [\"add_relu\"]", "fusion = [\"ad_relu\"]", "entry 2, `fusion` at line 12: "),
            ("fusion = [\"add_relu\"]", "fusion = [\"ad_relu\"]", "did you mean `add_relu`"),
            ("fusion = [\"add_relu\"]", "fusion = [\"all\"]", "entry 2, `fusion` at line 12: "),
            ("schema_version = 2", "schema_version = 3", "schema_version is 3"),
            ("kind = \"shapes\"", "kind = \"hardware\"", "it is a hardware profile, not a set of"),
            ("kind = \"shapes\"", "", "its top level"),
            ("description", "discription", "line 5"),
        ] {
            let message = ShapeSet::from_toml(&SET.replace(from, to)).unwrap_err().to_string();
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }
}
