//! Where vendors' libraries are looked for.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::library::{OpenLibrary, Unusable};

/// What decides where libraries are: the environment and the file system, which tests replace.
pub(crate) struct Surroundings<'a> {
    /// A variable of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// What the system's folders are in: `/`.
    pub(crate) root: &'a Path,
}

/// One place to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A folder.
    Folder(PathBuf),
    /// Wherever the system's loader looks for a library that is given by name.
    Loader,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Loader => f.write_str("the folders of the system's loader"),
        }
    }
}

/// A library that is to be found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// What it is, for messages: `the CUDA driver`.
    pub(crate) what: &'static str,
    /// The names that it may have, best first.
    pub(crate) names: &'a [&'static str],
    /// What to do if there is none.
    pub(crate) advice: &'static str,
}

/// A library that was found, with its functions.
#[derive(Debug, Clone)]
pub(crate) struct Found<T> {
    /// The functions.
    pub(crate) table: T,
    /// The library.
    pub(crate) library: OpenLibrary,
}

/// A library that is not there, or that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct MissingLibrary {
    /// What it is, such as `the CUDA driver`.
    pub what: &'static str,
    /// The names that were looked for.
    pub names: Vec<&'static str>,
    /// Where, in order.
    pub looked_in: Vec<String>,
    /// Those that are there, and why they cannot be used.
    pub unusable: Vec<(PathBuf, Unusable)>,
    /// What to do.
    pub advice: &'static str,
}

impl fmt::Display for MissingLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unusable.is_empty() {
            write!(f, "{} ({}) was not found", self.what, self.names.join(", "))?;
            if !self.looked_in.is_empty() {
                write!(f, " in {}", self.looked_in.join(", "))?;
            }
        } else {
            write!(f, "{} cannot be used", self.what)?;
            for (index, (path, why)) in self.unusable.iter().enumerate() {
                let before = if index == 0 { ": " } else { "; " };
                write!(f, "{before}{}: {why}", path.display())?;
            }
        }
        write!(f, "; {}", self.advice)
    }
}

/// The places to look, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Search {
    places: Vec<Place>,
}

impl Search {
    /// For libraries of CUDA: the given folders, then those of the toolkit, then the loader's,
    /// then those of Python packages.
    pub(crate) fn cuda(given: &[PathBuf], surroundings: &Surroundings<'_>) -> Self {
        let mut folders = Vec::new();
        let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|name| path(surroundings, name));
        let local = surroundings.root.join("usr/local");
        let installed = [local.join("cuda")].into_iter().chain(matching(&local, "cuda-"));
        for home in homes.chain(installed) {
            for folder in ["lib64", "lib", "targets/x86_64-linux/lib", "bin"] {
                folders.push(home.join(folder));
            }
        }
        let packages = python_packages(surroundings);
        let behind = packages.iter().flat_map(|folder| {
            matching(&folder.join("nvidia"), "").into_iter().map(|package| package.join("lib"))
        });
        Self::of(given, folders, behind)
    }

    /// For libraries of ROCm: the given folders, then those of ROCm, then the loader's.
    pub(crate) fn rocm(given: &[PathBuf], surroundings: &Surroundings<'_>) -> Self {
        let mut homes: Vec<PathBuf> = path(surroundings, "ROCM_PATH").into_iter().collect();
        let opt = surroundings.root.join("opt");
        homes.push(opt.join("rocm"));
        homes.extend(matching(&opt, "rocm-"));
        Self::of(given, homes.into_iter().map(|home| home.join("lib")).collect(), [])
    }

    /// In these folders and nowhere else.
    #[cfg(test)]
    pub(crate) fn only(folders: &[PathBuf]) -> Self {
        Self { places: folders.iter().cloned().map(Place::Folder).collect() }
    }

    /// Given folders are named in messages even if they are not there; of the others, only those
    /// that are.
    fn of(
        given: &[PathBuf],
        before: Vec<PathBuf>,
        behind: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let mut places: Vec<Place> = given.iter().cloned().map(Place::Folder).collect();
        let folders = |folders: Vec<PathBuf>| {
            folders.into_iter().filter(|folder| folder.is_dir()).map(Place::Folder)
        };
        places.extend(folders(before));
        places.push(Place::Loader);
        places.extend(folders(behind.into_iter().collect()));
        let mut seen = Vec::new();
        places.retain(|place| {
            let first = !seen.contains(place);
            if first {
                seen.push(place.clone());
            }
            first
        });
        Self { places }
    }

    /// Opens the first library that can be used. One that cannot does not end the search, but is
    /// named if nothing better is found.
    pub(crate) fn open<T>(
        &self,
        wanted: &Wanted<'_>,
        resolve: impl Fn(&OpenLibrary) -> Result<T, Unusable>,
    ) -> Result<Found<T>, MissingLibrary> {
        let mut unusable = Vec::new();
        for place in &self.places {
            for name in wanted.names {
                let candidate = match place {
                    Place::Folder(folder) => folder.join(name),
                    Place::Loader => PathBuf::from(name),
                };
                if matches!(place, Place::Folder(_)) && !candidate.exists() {
                    continue;
                }
                match use_library(candidate.as_os_str(), &resolve) {
                    Ok(found) => return Ok(found),
                    Err(why) if *place == Place::Loader && is_absent(&why, name) => {}
                    Err(why) => unusable.push((candidate, why)),
                }
            }
        }
        Err(MissingLibrary {
            what: wanted.what,
            names: wanted.names.to_vec(),
            looked_in: self.places.iter().map(ToString::to_string).collect(),
            unusable,
            advice: wanted.advice,
        })
    }
}

fn use_library<T>(
    name: &OsStr,
    resolve: impl Fn(&OpenLibrary) -> Result<T, Unusable>,
) -> Result<Found<T>, Unusable> {
    let library = OpenLibrary::open(name)?;
    let table = resolve(&library)?;
    Ok(Found { table, library })
}

/// Whether the loader says no more than that it found no such library. Its other messages are of
/// libraries that are there; a missing dependency of one is such a message too, but begins with
/// the dependency's name.
fn is_absent(why: &Unusable, name: &str) -> bool {
    match why {
        Unusable::Load(message) => {
            !cfg!(unix)
                || message.starts_with(&format!("{name}: cannot open shared object file"))
                || message.starts_with(&format!("Error loading shared library {name}: No such"))
        }
        Unusable::Symbol(_) | Unusable::Unfit(_) => false,
    }
}

/// A folder that a variable names. One that is relative to the current folder is left out: who
/// starts the program there need not know what lies in it.
fn path(surroundings: &Surroundings<'_>, variable: &str) -> Option<PathBuf> {
    (surroundings.variable)(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folders in one whose names begin so, the last in the alphabet first: `rocm-6.2.0` before
/// `rocm-6.1.0`.
fn matching(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let begins = |name: OsString| name.to_string_lossy().starts_with(prefix);
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| begins(entry.file_name()))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found.reverse();
    found
}

/// Where Python packages are: of the virtual environment, of each `python3` on the path, of the
/// user, of the system. No Python is started.
fn python_packages(surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(|variable| path(surroundings, variable))
        .collect();
    if let Some(path) = (surroundings.variable)("PATH") {
        prefixes.extend(
            std::env::split_paths(&path)
                .filter(|folder| folder.is_absolute() && folder.join("python3").is_file())
                .filter_map(|folder| folder.parent().map(Path::to_owned)),
        );
    }
    prefixes.extend(path(surroundings, "HOME").map(|home| home.join(".local")));
    prefixes.extend(["usr/local", "usr"].map(|prefix| surroundings.root.join(prefix)));
    prefixes
        .iter()
        .flat_map(|prefix| matching(&prefix.join("lib"), "python3"))
        .flat_map(|python| [python.join("site-packages"), python.join("dist-packages")])
        .filter(|folder| folder.is_dir())
        .collect()
}

#[cfg(test)]
mod tests;
