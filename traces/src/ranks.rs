//! The traces of a run over several processes: which files they are, whose they are, and whether
//! they belong together, before any is loaded.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::load::{GZIP, has_event};
use crate::{Metadata, Options, Trace, TraceError, trace_files};

/// Bytes of memory for a byte of JSON. Traces of training, serving and stacks took 0.06 to 0.17
/// when they were loaded, and columns that grow and a summary that sorts may need as much again.
const MEMORY_PER_BYTE: f64 = 0.3;

/// How much smaller gzip makes a trace at most; real ones became 7 to 21 times smaller.
const COMPRESSION: f64 = 21.0;

/// A file of this size is read as a whole in no time.
const SMALL_BYTES: u64 = 16 * 1024;

/// The file of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFile {
    /// Where it is.
    pub path: PathBuf,
    /// What reports call it: its path, unless it is a copy of what was named.
    pub named: PathBuf,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Whether it is compressed, whatever its name says.
    pub is_compressed: bool,
    /// What it says about its run without its events: see [`Trace::metadata`].
    pub metadata: Metadata,
    /// The number of its process: what the file says, else what its name says.
    pub rank: Option<u64>,
}

impl RankFile {
    /// Finds out what a file says without its events.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a trace.
    pub fn of(path: impl Into<PathBuf>) -> Result<Self, TraceError> {
        let path = path.into();
        let metadata = Trace::metadata(&path)?;
        let read_error = |source| TraceError::Read { path: path.clone(), source };
        let information = fs::metadata(&path).map_err(read_error)?;
        let mut start = Vec::new();
        let file = File::open(&path).map_err(read_error)?;
        file.take(GZIP.len() as u64).read_to_end(&mut start).map_err(read_error)?;
        let told = metadata.distributed.as_ref().and_then(|place| place.rank);
        let rank = told.or_else(|| rank_in(&name_of(&path)));
        let is_compressed = start == GZIP;
        let named = path.clone();
        Ok(Self { path, named, bytes: information.len(), is_compressed, metadata, rank })
    }

    /// About how many bytes of memory it takes to load and sum it up, rather too many than too
    /// few.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    pub fn memory_bytes(&self) -> u64 {
        let json = self.bytes as f64 * if self.is_compressed { COMPRESSION } else { 1.0 };
        (json * MEMORY_PER_BYTE) as u64
    }
}

/// The traces of a run, by rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    /// Those with a rank in its order, then the others by name, where `rank10` follows `rank9`.
    pub files: Vec<RankFile>,
    /// What does not fit together.
    pub warnings: Vec<RankWarning>,
}

impl Ranks {
    /// Finds the traces that paths name: files, and folders with one file for each rank.
    ///
    /// # Errors
    ///
    /// For the first file that cannot be read, and for the first one that is named and is not a
    /// trace. Files of a folder that are not traces give a warning, another one if their name
    /// contains a rank. When a folder has no traces.
    pub fn find<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, TraceError> {
        let mut files = Vec::new();
        let (mut others, mut lost) = (Vec::new(), Vec::new());
        for path in paths {
            let path = path.as_ref();
            let before = files.len();
            let mut first_other = None;
            for file in trace_files(path)? {
                let of_file = if file == path { RankFile::of(&file) } else { of_folder(&file) };
                match of_file {
                    Ok(file) => files.push(file),
                    Err(TraceError::NotATrace { path: file, reason }) if file != path => {
                        match rank_in(&name_of(&file)) {
                            Some(_) => lost.push((file.clone(), reason.clone())),
                            None => others.push(file.clone()),
                        }
                        first_other.get_or_insert(TraceError::NotATrace { path: file, reason });
                    }
                    Err(error) => return Err(error),
                }
            }
            if files.len() == before {
                let none = TraceError::NoTraces { path: path.to_owned() };
                return Err(first_other.unwrap_or(none));
            }
        }
        files.sort_by(|a, b| {
            let rank = |file: &RankFile| file.rank.unwrap_or(u64::MAX);
            rank(a).cmp(&rank(b)).then_with(|| natural(&name_of(&a.path), &name_of(&b.path)))
        });
        let mut warnings = mismatches(&files);
        if !others.is_empty() {
            warnings.push(RankWarning::NoTraces { files: others });
        }
        if !lost.is_empty() {
            warnings.push(RankWarning::LostRanks { files: lost });
        }
        Ok(Self { files, warnings })
    }

    /// The size of all files, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// A file of a folder, which need not be a trace: it is read up to its first event.
fn of_folder(path: &Path) -> Result<RankFile, TraceError> {
    let file = RankFile::of(path)?;
    if file.bytes <= SMALL_BYTES {
        Trace::load(path, &Options::default(), &mut |_, _| {})?;
    } else {
        has_event(path)?;
    }
    Ok(file)
}

/// What does not fit together among the files of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankWarning {
    /// Several files are of one rank.
    SameRank {
        /// The rank.
        rank: u64,
        /// The files.
        files: Vec<PathBuf>,
    },
    /// The files disagree on the number of processes.
    WorldSizes {
        /// The numbers.
        sizes: Vec<u64>,
    },
    /// There are fewer ranks than the run had.
    MissingRanks {
        /// How many there are.
        found: u64,
        /// How many there were.
        world_size: u64,
    },
    /// Files of a folder are not traces, and are left out.
    NoTraces {
        /// The files.
        files: Vec<PathBuf>,
    },
    /// Files of a folder are not traces although their names contain a rank.
    LostRanks {
        /// The files, and why each is not a trace.
        files: Vec<(PathBuf, String)>,
    },
}

impl RankWarning {
    /// A short name that never changes, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::SameRank { .. } => "same-rank",
            Self::WorldSizes { .. } => "world-sizes",
            Self::MissingRanks { .. } => "missing-ranks",
            Self::NoTraces { .. } => "no-traces",
            Self::LostRanks { .. } => "lost-ranks",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::SameRank { .. } => "sums count that rank more than once; name one file for each",
            Self::WorldSizes { .. } => "files of different runs? name those of one",
            Self::MissingRanks { .. } => "sums are of the ranks that are there",
            Self::NoTraces { .. } => {
                "they are left out; name the files of the run if one is missing"
            }
            Self::LostRanks { .. } => {
                "figures are of the other ranks only; copy or record these again"
            }
        }
    }
}

impl fmt::Display for RankWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameRank { rank, files } => {
                write!(f, "rank {rank} has several files: {}", listed(files))
            }
            Self::WorldSizes { sizes } => {
                let sizes: Vec<_> = sizes.iter().map(u64::to_string).collect();
                write!(f, "the files are of runs over {} processes", sizes.join(" and "))
            }
            Self::MissingRanks { found, world_size } => {
                write!(f, "{found} of the {world_size} ranks of the run are there")
            }
            Self::NoTraces { files } => {
                write!(f, "files of the folder are not traces: {}", listed(files))
            }
            Self::LostRanks { files } => {
                let files: Vec<String> = files
                    .iter()
                    .map(|(file, reason)| format!("{} ({reason})", file.display()))
                    .collect();
                write!(f, "traces of ranks cannot be read: {}", files.join(", "))
            }
        }
    }
}

fn listed(files: &[PathBuf]) -> String {
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    files.join(", ")
}

fn mismatches(files: &[RankFile]) -> Vec<RankWarning> {
    // One trace of many ranks is what people look at first, and no mistake.
    if files.len() < 2 {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let mut by_rank: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for file in files {
        if let Some(rank) = file.rank {
            by_rank.entry(rank).or_default().push(file.path.clone());
        }
    }
    let found = by_rank.len() as u64;
    let several = by_rank.into_iter().filter(|(_, files)| files.len() > 1);
    warnings.extend(several.map(|(rank, files)| RankWarning::SameRank { rank, files }));
    let told = |file: &RankFile| file.metadata.distributed.as_ref()?.world_size;
    let mut sizes: Vec<u64> = files.iter().filter_map(told).collect();
    sizes.sort_unstable();
    sizes.dedup();
    match sizes.as_slice() {
        &[world_size] if found > 0 && found < world_size => {
            warnings.push(RankWarning::MissingRanks { found, world_size });
        }
        [_, _, ..] => warnings.push(RankWarning::WorldSizes { sizes }),
        _ => {}
    }
    warnings
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The rank in a file's name: `rank3.json`, `trace_Rank-3.json.gz`, `1751-TP-3.json`.
/// Other numbers are times and ids of processes.
pub(crate) fn rank_in(name: &str) -> Option<u64> {
    let name = name.to_lowercase();
    ["rank", "tp"].iter().find_map(|word| {
        name.match_indices(word).find_map(|(at, _)| {
            let before = name.get(..at)?;
            if before.ends_with(|before: char| before.is_alphanumeric()) {
                return None;
            }
            let rest = name.get(at + word.len()..)?.trim_start_matches(['-', '_', '.', '=', ' ']);
            let digits = rest.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(rest.len());
            rest.get(..digits)?.parse().ok()
        })
    })
}

/// Compares names as people do, with numbers by their value.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let ((x, rest_of_left), (y, rest_of_right)) = (first_part(left), first_part(right));
        if x.is_empty() || y.is_empty() {
            return x.len().cmp(&y.len()).then_with(|| a.cmp(b));
        }
        let is_digits = |part: &str| part.starts_with(|first: char| first.is_ascii_digit());
        let order = if is_digits(x) && is_digits(y) {
            let (x, y) = (x.trim_start_matches('0'), y.trim_start_matches('0'));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            x.cmp(y)
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (rest_of_left, rest_of_right);
    }
}

/// The digits that a text begins with, or what comes before the first; and the rest.
fn first_part(text: &str) -> (&str, &str) {
    let is_digits = text.starts_with(|first: char| first.is_ascii_digit());
    let end = text.find(|one: char| one.is_ascii_digit() != is_digits);
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests;
