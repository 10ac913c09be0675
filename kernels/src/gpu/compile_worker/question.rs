//! What the compile worker is asked.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::worker::Question;

/// Find the compiler, in these folders first.
// Not paths, which must be text to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// The folders.
    pub(crate) folders: Vec<OsString>,
}

/// A compiler that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// Its version.
    pub(crate) version: String,
    /// Its file.
    pub(crate) path: OsString,
}

impl Question for Open {
    const NAME: &'static str = "open";
    /// Or why there is no compiler.
    type Answer = Result<Opened, String>;
}

/// Compile a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Compile {
    /// Its name.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
    /// What it includes: name and text.
    pub(crate) headers: Vec<(String, String)>,
    /// The options of the compiler.
    pub(crate) options: Vec<String>,
}

/// What became of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Compilation {
    /// Machine code.
    Code {
        /// The code.
        #[serde(with = "serde_bytes")]
        image: Vec<u8>,
        /// What the compiler said.
        log: String,
    },
    /// The program is wrong, as the log says.
    Refused(String),
    /// Something else is, for this reason.
    Failed(String),
}

impl Question for Compile {
    const NAME: &'static str = "compile";
    type Answer = Compilation;
}
