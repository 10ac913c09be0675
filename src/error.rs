//! The one error of this crate.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

/// What went wrong, where, and what to do about it.
///
/// Its text is meant for people. Programs ask what kind of error it is: [`is_unknown_name`],
/// [`is_hardware_mismatch`] and so on. New kinds may come, so handle what is none of those that you
/// ask for.
///
/// ```
/// use fusion_cost_model::Problem;
///
/// let error = "linear_bais/f32/m1.k2.n3".parse::<Problem>().unwrap_err();
/// assert!(error.is_unknown_name());
/// assert!(error.to_string().contains("did you mean `linear_bias`"));
/// ```
///
/// [`is_unknown_name`]: Self::is_unknown_name
/// [`is_hardware_mismatch`]: Self::is_hardware_mismatch
pub struct Error(Box<ErrorKind>);

/// What an [`Error`] can be.
#[derive(Debug, ThisError)]
pub(crate) enum ErrorKind {
    #[error("unknown {what} `{name}`{suggestions}")]
    UnknownName { what: &'static str, name: String, suggestions: Suggestions },
    #[error("`{chain}` cannot be one kernel: {reason}")]
    NotOneKernel { chain: String, reason: String },
    #[error("a chain of {ops} ops is too long: at most {most} can be one kernel")]
    ChainTooLong { ops: usize, most: usize },
    #[error("{what} of {bytes} bytes is too long: it has at most {most}")]
    TooLong { what: &'static str, bytes: usize, most: usize },
    #[error("sizes `{sizes}`: {reason}")]
    Sizes { sizes: String, reason: String },
    #[error(
        "problem `{0}`: expected chain/dtype/sizes, such as linear_bias_relu/f32/m512.k512.n512"
    )]
    ProblemText(String),
    #[error(
        "target `{0}`: it has two parts of one kind; write it as cpu/2/f32/native or \
         cuda/device/bf16/vendor, or only some of that"
    )]
    TargetText(String),
    #[error(
        "runtime `{0}`: write its name in small letters, digits, - and _, then @ and its version, as in \
         pytorch@2.9.1, in at most 48 bytes"
    )]
    RuntimeText(String),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{}not a valid {file} file: {reason}", Prefix(.path))]
    InvalidFile { path: Option<PathBuf>, file: &'static str, reason: String },
    #[error("{}{reason}", Prefix(.path))]
    WrongFile { path: Option<PathBuf>, reason: String },
    #[error(
        "{}schema_version is {found}, but this version reads only {known}; {advice}",
        Prefix(.path)
    )]
    OtherVersion { path: Option<PathBuf>, found: i64, known: u32, advice: &'static str },
    #[error(
        "the calibration is of {found}, not of {expected}; calibrate on that machine, or load its \
         file"
    )]
    HardwareMismatch { expected: String, found: String },
    #[error("node {node} reads node {read}; put the nodes that a node reads before it")]
    GraphOrder { node: usize, read: usize },
    #[error("the calibration has no state {state} of the machine; {}", States(.known))]
    UnknownState { state: u32, known: Vec<u32> },
    #[error("nothing was measured for {question}, and the policy is not to guess")]
    Undecided { question: String },
}

impl Error {
    /// A name that nothing has, with those of `known` that are nearest to it, or the first of `known`
    /// where none is near. `what` says what the name was meant to be: "op", "shape set".
    pub fn unknown_name<'a>(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let name = shortened(name);
        let suggestions = Suggestions::of(&name, known);
        ErrorKind::UnknownName { what, name: name.into_owned(), suggestions }.into()
    }

    /// A name that is another one's in a system that this project does not speak the language of.
    pub(crate) fn foreign_name(what: &'static str, name: &str, ours: &str) -> Self {
        let suggestions = Suggestions::Nearest(vec![ours.to_owned()]);
        ErrorKind::UnknownName { what, name: shortened(name).into_owned(), suggestions }.into()
    }

    pub(crate) fn not_one_kernel(chain: impl Into<String>, reason: impl Into<String>) -> Self {
        ErrorKind::NotOneKernel { chain: chain.into(), reason: reason.into() }.into()
    }

    pub(crate) fn invalid_file(file: &'static str, reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        let mut lines = reason.split('\n');
        let mut shown: Vec<_> = lines.by_ref().take(LINES_SHOWN).map(shortened).collect();
        if let Some(last) = lines.next_back() {
            let left_out = format!("[... {} lines ...]", lines.count());
            shown.extend([left_out.into(), shortened(last)]);
        }
        ErrorKind::InvalidFile { path: None, file, reason: shown.join("\n") }.into()
    }

    /// The same error, naming the file that the text came from.
    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        if let ErrorKind::InvalidFile { path, .. }
        | ErrorKind::WrongFile { path, .. }
        | ErrorKind::OtherVersion { path, .. } = &mut *self.0
        {
            *path = Some(file.to_owned());
        }
        self
    }

    /// Whether nothing has a name that was given; the text suggests the nearest ones.
    #[must_use]
    pub fn is_unknown_name(&self) -> bool {
        matches!(*self.0, ErrorKind::UnknownName { .. })
    }

    /// Whether the ops, or the two neighbours, cannot be one kernel.
    #[must_use]
    pub fn is_not_one_kernel(&self) -> bool {
        matches!(
            *self.0,
            ErrorKind::NotOneKernel { .. }
                | ErrorKind::ChainTooLong { .. }
                | ErrorKind::TooLong { .. }
        )
    }

    /// Whether sizes do not belong to their chain, or no tensor can have them.
    #[must_use]
    pub fn is_invalid_sizes(&self) -> bool {
        matches!(*self.0, ErrorKind::Sizes { .. })
    }

    /// Whether the question itself is wrong: a name, a chain, sizes, the text of a problem or a
    /// target, or the order of a graph's nodes.
    #[must_use]
    pub fn is_invalid_question(&self) -> bool {
        self.is_unknown_name()
            || self.is_not_one_kernel()
            || self.is_invalid_sizes()
            || matches!(
                *self.0,
                ErrorKind::ProblemText(_)
                    | ErrorKind::TargetText(_)
                    | ErrorKind::RuntimeText(_)
                    | ErrorKind::GraphOrder { .. }
                    | ErrorKind::UnknownState { .. }
            )
    }

    /// Whether a file cannot be read from the disk or written to it. [`source`] is the reason.
    ///
    /// [`source`]: std::error::Error::source
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(*self.0, ErrorKind::Read { .. } | ErrorKind::Write { .. })
    }

    /// Whether a file is damaged, incomplete, or has values that cannot be.
    #[must_use]
    pub fn is_invalid_file(&self) -> bool {
        matches!(*self.0, ErrorKind::InvalidFile { .. })
    }

    /// Whether a file is of another kind than was expected, such as a data sheet in the place of a
    /// calibration, or does not say its kind.
    #[must_use]
    pub fn is_wrong_file(&self) -> bool {
        matches!(*self.0, ErrorKind::WrongFile { .. })
    }

    /// Whether a file was written by a version with another format.
    #[must_use]
    pub fn is_other_version(&self) -> bool {
        matches!(*self.0, ErrorKind::OtherVersion { .. })
    }

    /// Whether a calibration is of another machine than was expected.
    #[must_use]
    pub fn is_hardware_mismatch(&self) -> bool {
        matches!(*self.0, ErrorKind::HardwareMismatch { .. })
    }

    /// Whether nothing is known and the policy is not to guess.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        matches!(*self.0, ErrorKind::Undecided { .. })
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?})", self.0)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// The characters of a line that are shown, its first and its last ones: as many as a list of all keys
/// of a record has.
const FIRST_SHOWN: usize = 2000;
const LAST_SHOWN: usize = 100;

/// The first lines of a message that are shown, before its last one. A parser's has five, but a text
/// from a file can be in it.
const LINES_SHOWN: usize = 8;

/// A line of a message without its middle, if it is too long to be read.
pub(crate) fn shortened(line: &str) -> Cow<'_, str> {
    let start = line.char_indices().nth(FIRST_SHOWN).map(|(at, _)| at);
    let end = line.char_indices().nth_back(LAST_SHOWN - 1).map(|(at, _)| at);
    match start.zip(end) {
        Some((start, end)) if start < end => {
            let bytes = end - start;
            format!("{} [... {bytes} bytes ...] {}", &line[..start], &line[end..]).into()
        }
        _ => line.into(),
    }
}

struct Prefix<'a>(&'a Option<PathBuf>);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, "{}: ", path.display()),
            None => Ok(()),
        }
    }
}

/// The states of the machine that a calibration has.
struct States<'a>(&'a [u32]);

impl fmt::Display for States<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("it tells none apart"),
            [only] => write!(f, "it has only state {only}"),
            [first, .., last] => write!(f, "it has the states {first} to {last}"),
        }
    }
}

/// What may have been meant by an unknown name.
#[derive(Debug)]
pub(crate) enum Suggestions {
    /// The names most like it, best first.
    Nearest(Vec<String>),
    /// Nothing is like it: the first of all names, and how many more there are.
    Known(Vec<String>, usize),
}

/// At most this many similar names are suggested: more would not be read.
const MAX_SIMILAR: usize = 3;

/// At most this many names are listed where none is similar.
const MAX_LISTED: usize = 24;

/// Below this Jaro-Winkler similarity two names have nothing to do with each other.
const MIN_SIMILARITY: f64 = 0.72;

impl Suggestions {
    fn of<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for candidate in known {
            if !names.contains(&candidate) {
                names.push(candidate);
            }
        }
        let wanted = name.to_ascii_lowercase();
        let similarity = |candidate: &str| {
            let contained = wanted.len() >= 3 && candidate.contains(&wanted);
            let similarity = strsim::jaro_winkler(&wanted, &candidate.to_ascii_lowercase());
            if contained { similarity.max(0.9) } else { similarity }
        };
        let scored = names.iter().map(|candidate| (similarity(candidate), *candidate));
        let mut similar: Vec<(f64, &str)> =
            scored.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY).collect();
        similar.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        if similar.is_empty() {
            let more = names.len().saturating_sub(MAX_LISTED);
            let first = names.into_iter().take(MAX_LISTED);
            return Self::Known(first.map(str::to_owned).collect(), more);
        }
        similar.truncate(MAX_SIMILAR);
        Self::Nearest(similar.into_iter().map(|(_, candidate)| candidate.to_owned()).collect())
    }
}

impl fmt::Display for Suggestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |names: &[String]| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Nearest(names) => match &names[..] {
                [first @ .., last] if !first.is_empty() => {
                    write!(f, "; did you mean {} or `{last}`?", listed(first))
                }
                names => write!(f, "; did you mean {}?", listed(names)),
            },
            Self::Known(names, _) if names.is_empty() => Ok(()),
            Self::Known(names, 0) => write!(f, "; known: {}", listed(names)),
            Self::Known(names, more) => {
                write!(f, "; known: {} and {more} more", listed(names))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_suggested() {
        let names = ["linear_bias_relu", "conv_bn_relu", "add_relu"];
        let error = Error::unknown_name("fusion pattern", "linear_bais_relu", names);
        assert_eq!(
            error.to_string(),
            "unknown fusion pattern `linear_bais_relu`; did you mean `linear_bias_relu`?"
        );
        let error = Error::unknown_name("fusion pattern", "zzz", names);
        assert_eq!(
            error.to_string(),
            "unknown fusion pattern `zzz`; known: `linear_bias_relu`, `conv_bn_relu`, `add_relu`"
        );
        let error = Error::unknown_name("hardware", "zzz", []);
        assert_eq!(error.to_string(), "unknown hardware `zzz`");
    }

    #[test]
    fn few_of_many_names_are_listed() {
        let names: Vec<String> = (0..30).map(|number| format!("name-{number}")).collect();
        let twice = names.iter().chain(&names).map(String::as_str);
        let text = Error::unknown_name("op", "zzz", twice).to_string();
        assert!(text.ends_with(", `name-22`, `name-23` and 6 more"), "{text}");
        assert_eq!(text.matches("name-").count(), 24);
    }

    #[test]
    fn a_long_line_is_shown_without_its_middle() {
        let long = "ä".repeat(FIRST_SHOWN + LAST_SHOWN);
        assert_eq!(shortened(&long), long);
        let longer = format!("{long}z");
        let shown = shortened(&longer);
        assert!(shown.ends_with("ääz") && shown.contains("ä [... 2 bytes ...] ä"), "{shown}");
        let error = Error::invalid_file("hardware", format!("a\n{}\nb", "x".repeat(1 << 20)));
        let text = error.to_string();
        assert!(text.len() < 2300 && text.ends_with("\nb"), "{text}");
        let error = Error::invalid_file("hardware", "x\n".repeat(1 << 20) + "it is the last");
        let text = error.to_string();
        assert!(text.ends_with("x\n[... 1048568 lines ...]\nit is the last"), "{text}");
        let error = Error::unknown_name("op", &"relu".repeat(1 << 20), ["relu"]);
        assert!(error.to_string().len() < 2300);
    }

    #[test]
    fn it_is_as_small_as_a_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        fn shareable<T: Send + Sync + 'static>() {}
        shareable::<Error>();
    }
}
