//! What can be read only once, as standard input and pipes, becomes a file.
//!
//! A trace is read twice: first what it says about itself, then its events, which are mapped.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use cli_support::exit::UsageError;
use cli_support::input;
use kernel_traces::{RankFile, TraceError};
use tempfile::TempDir;

/// What stands for standard input on the command line.
const STDIN: &str = "-";

/// Copies with what they are copies of. They are deleted with this.
#[derive(Debug, Default)]
pub(super) struct Copies {
    folder: Option<TempDir>,
    names: Vec<(PathBuf, PathBuf)>,
}

impl Copies {
    /// The paths, with copies in the place of those that can be read only once.
    pub(super) fn of<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
    ) -> anyhow::Result<(Vec<PathBuf>, Self)> {
        let mut copies = Self::default();
        let paths = paths.into_iter().map(|path| {
            let path = path.as_ref();
            if path == Path::new(STDIN) {
                input::remember_stdin();
                copies.add(PathBuf::from("stdin"), &mut io::stdin().lock())
            } else if input::is_pipe(path) {
                let mut pipe =
                    input::open(path).with_context(|| format!("cannot read {}", path.display()))?;
                copies.add(path.to_owned(), &mut pipe)
            } else {
                Ok(path.to_owned())
            }
        });
        let paths = paths.collect::<anyhow::Result<Vec<PathBuf>>>()?;
        Ok((paths, copies))
    }

    fn add(&mut self, name: PathBuf, source: &mut impl Read) -> anyhow::Result<PathBuf> {
        if self.names.iter().any(|(_, known)| *known == name) {
            let message = format!("{} can be read only once", name.display());
            return Err(UsageError(message).into());
        }
        let why =
            || format!("cannot copy {} to {}", name.display(), std::env::temp_dir().display());
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => tempfile::tempdir().with_context(why)?,
        };
        let path = folder.path().join(format!("{}.json", self.names.len()));
        self.folder = Some(folder);
        let mut file = File::create(&path).with_context(why)?;
        io::copy(source, &mut file).with_context(why)?;
        self.names.push((path.clone(), name));
        Ok(path)
    }

    /// Calls the file of an error by the name of what it is a copy of.
    pub(super) fn name_in(&self, mut error: TraceError) -> TraceError {
        if let TraceError::NotATrace { path, .. } | TraceError::Read { path, .. } = &mut error
            && let Some((_, name)) = self.names.iter().find(|(copy, _)| copy == path)
        {
            path.clone_from(name);
        }
        error
    }

    /// Calls files by the names of what they are copies of.
    pub(super) fn name(&self, files: &mut [RankFile]) {
        for file in files {
            if let Some((_, name)) = self.names.iter().find(|(path, _)| *path == file.path) {
                file.named.clone_from(name);
            }
        }
    }
}
