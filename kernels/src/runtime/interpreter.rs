//! The interpreter of a script: where it is missing, the system says that the script is.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// The most bytes that Linux reads of a first line.
const FIRST_LINE: u64 = 256;

/// The error of starting a program, which names the interpreter if that is what is missing.
pub(super) fn named(program: &Path, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    match found(program).and_then(|script| interpreter(&script)).filter(|it| !it.exists()) {
        Some(missing) => io::Error::new(
            io::ErrorKind::NotFound,
            format!("its first line names the interpreter {missing:?}, which is missing"),
        ),
        None => error,
    }
}

/// The file of a program: at its path, or in a folder of `PATH` if it is only a name.
fn found(program: &Path) -> Option<PathBuf> {
    if program.is_absolute() {
        return program.is_file().then(|| program.to_owned());
    }
    if program.components().count() > 1 {
        // It lies in the folder that the process would have had.
        return None;
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The interpreter that the first line of a script names.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = String::new();
    BufReader::new(File::open(script).ok()?.take(FIRST_LINE)).read_line(&mut line).ok()?;
    // A line that another system has written ends with a carriage return, which is a part of the name.
    let name = line.strip_suffix('\n').unwrap_or(&line).strip_prefix("#!")?;
    name.trim_start_matches([' ', '\t']).split([' ', '\t']).next().map(PathBuf::from)
}
