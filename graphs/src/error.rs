//! The one error of this crate.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

/// What went wrong, where, and what to do about it.
///
/// Its text is meant for people. Programs ask what kind of error it is: [`is_open_dims`] and so on.
/// New kinds may come, so handle what is none of those that you ask for.
///
/// [`is_open_dims`]: Self::is_open_dims
pub struct Error(Box<ErrorKind>);

/// What an [`Error`] can be.
#[derive(Debug, ThisError)]
pub(crate) enum ErrorKind {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}not a valid {format}: {reason}", Prefix(.path))]
    Format { path: Option<PathBuf>, format: &'static str, reason: String },
    #[error("{}not a valid graph: {reason}", Prefix(.path))]
    Graph { path: Option<PathBuf>, reason: String },
    #[error("{0}")]
    Sizes(String),
    #[error(
        "the graph leaves dimensions open: {}; give each a number, such as --dim {}=8",
        OpenDims(.0),
        .0.first().map_or("batch", |dim| dim.name.as_str())
    )]
    OpenDims(Vec<OpenDim>),
    #[error(
        "`{text}` gives a dimension no number: {reason}; expected name=number, such as batch=8"
    )]
    DimText { text: String, reason: &'static str },
    #[error("{0}")]
    UnknownDim(fusion_cost_model::Error),
}

/// A dimension without a number, and the inputs that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenDim {
    pub(crate) name: String,
    pub(crate) inputs: Vec<String>,
}

impl Error {
    pub(crate) fn format(format: &'static str, reason: impl fmt::Display) -> Self {
        ErrorKind::Format { path: None, format, reason: reason.to_string() }.into()
    }

    pub(crate) fn graph(reason: impl fmt::Display) -> Self {
        ErrorKind::Graph { path: None, reason: reason.to_string() }.into()
    }

    /// The same error, naming the file that the graph came from.
    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        if let ErrorKind::Format { path, .. } | ErrorKind::Graph { path, .. } = &mut *self.0 {
            *path = Some(file.to_owned());
        }
        self
    }

    /// Whether the file cannot be read from the disk. [`source`] is the reason.
    ///
    /// [`source`]: std::error::Error::source
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(*self.0, ErrorKind::Read { .. })
    }

    /// Whether the bytes are neither ONNX nor the JSON of a graph, or are damaged.
    #[must_use]
    pub fn is_invalid_format(&self) -> bool {
        matches!(*self.0, ErrorKind::Format { .. })
    }

    /// Whether the file can be read, but what it says is not a graph: a tensor that nothing writes,
    /// nodes in a circle, shapes that do not go together, sizes that cannot be.
    #[must_use]
    pub fn is_invalid_graph(&self) -> bool {
        matches!(*self.0, ErrorKind::Graph { .. } | ErrorKind::Sizes(_))
    }

    /// Whether a tensor or an op has sizes that cannot be, such as more elements than 63 bits count.
    /// Numbers that were given to dimensions may be the cause.
    #[must_use]
    pub fn is_invalid_sizes(&self) -> bool {
        matches!(*self.0, ErrorKind::Sizes(_))
    }

    /// Whether the graph has dimensions that were given no number.
    #[must_use]
    pub fn is_open_dims(&self) -> bool {
        matches!(*self.0, ErrorKind::OpenDims(_))
    }

    /// The names of the dimensions that need a number; empty unless [`Self::is_open_dims`].
    pub fn open_dims(&self) -> impl Iterator<Item = &str> {
        let dims = match &*self.0 {
            ErrorKind::OpenDims(dims) => dims.as_slice(),
            _ => &[],
        };
        dims.iter().map(|dim| dim.name.as_str())
    }

    /// Whether a number was given to a dimension that the graph does not have, or in another form
    /// than `name=number`.
    #[must_use]
    pub fn is_invalid_dim(&self) -> bool {
        matches!(*self.0, ErrorKind::DimText { .. } | ErrorKind::UnknownDim(_))
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

struct Prefix<'a>(&'a Option<PathBuf>);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, "{}: ", path.display()),
            None => Ok(()),
        }
    }
}

struct OpenDims<'a>(&'a [OpenDim]);

impl fmt::Display for OpenDims<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, OpenDim { name, inputs }) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}` (of {})", inputs.join(", "))?;
        }
        Ok(())
    }
}
