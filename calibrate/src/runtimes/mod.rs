//! Runtimes: which are known, and how each is started.
//!
//! Those of `runtimes/` are built into the program, so that they are found wherever it is installed:
//! the files are written into the private folder of each process that starts one. A user's own is a
//! file that names its command.

mod folder;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf, absolute};

use anyhow::Context;
use cli_support::input;
use fused_kernels::gpu::{make_own_folder, user_cache_folder};
use fused_kernels::runtime::RuntimeProgram;
use fusion_cost_model::{Error, Implementation};
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};

pub use folder::PrivateFolder;

use crate::exit::UsageError;

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/runtimes");

/// The version of the format of these files.
const SCHEMA_VERSION: u32 = 1;

/// The bytes of such a file at most.
const MOST_BYTES: u64 = 1 << 16;

/// A runtime that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeChoice {
    /// Its name, as its file says.
    pub name: String,
    /// Its file; `None` for one that is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// What its records are called; `None` until it was asked for its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<Implementation>,
}

/// What a file says of a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    kind: String,
    schema_version: u32,
    name: String,
    /// The program and its arguments. One that names a file beside this one means that file.
    command: Vec<String>,
    /// How to install what it needs.
    #[serde(default)]
    install: Option<String>,
}

impl Definition {
    fn from_toml(text: &str) -> Result<Self, String> {
        let definition: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let Self { kind, schema_version, name, command, .. } = &definition;
        if kind != "runtime" {
            return Err(format!("its kind is {kind:?}, and that of a runtime is \"runtime\""));
        }
        if *schema_version != SCHEMA_VERSION {
            let text = "and this program reads only";
            return Err(format!("schema_version is {schema_version}, {text} {SCHEMA_VERSION}"));
        }
        fusion_cost_model::RuntimeId::new(name, "1").map_err(|error| error.to_string())?;
        if command.is_empty() || matches!(name.as_str(), "native" | "vendor") {
            return Err("it needs a command, and a name that is not native or vendor".to_owned());
        }
        Ok(definition)
    }
}

/// The names of those that are built in.
#[must_use]
pub fn names() -> Vec<String> {
    let is_toml = |path: &Path| path.extension().is_some_and(|extension| extension == "toml");
    let stem = |path: &Path| path.file_stem()?.to_str().map(str::to_owned);
    let files = BUILT_IN.files().map(include_dir::File::path);
    let names: BTreeSet<String> = files.filter(|path| is_toml(path)).filter_map(stem).collect();
    names.into_iter().collect()
}

impl RuntimeChoice {
    /// A runtime by its name or the path of its file.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when there is none, or its file says something else.
    pub fn find(name: &str) -> anyhow::Result<Self> {
        let is_path = name.contains(['/', '\\']) || name.ends_with(".toml");
        if is_path {
            let file = absolute(name)?;
            let folder = folder_of(&file).to_owned();
            if file.exists() && !file.is_file() {
                let reason = "it is no regular file, and each worker reads it again";
                return Err(UsageError(format!("cannot read {}: {reason}", file.display())).into());
            }
            let choice = Self { name: name.to_owned(), file: Some(file), implementation: None };
            let Definition { name, command, .. } = choice.definition()?;
            remember_program(&command);
            remember_words(&command, &folder);
            return Ok(Self { name, ..choice });
        }
        let known = names();
        if !known.iter().any(|one| one == name) {
            let unknown = Error::unknown_name("runtime", name, known.iter().map(String::as_str));
            let advice = "see `calibrate list runtimes`, or name a .toml file";
            return Err(UsageError(format!("{unknown}; {advice}")).into());
        }
        let choice = Self { name: name.to_owned(), file: None, implementation: None };
        remember_program(&choice.definition()?.command);
        Ok(choice)
    }

    /// How to install what it needs, if its file says so.
    #[must_use]
    pub fn install(&self) -> Option<String> {
        self.definition().ok()?.install
    }

    /// What its command may mean by words that look like files and are none.
    #[must_use]
    pub fn missing_files(&self) -> Option<String> {
        let folder = folder_of(self.file.as_ref()?);
        let words = self.definition().ok()?.command;
        let is_missing = |word: &&String| is_like_a_file(word) && !folder.join(word).exists();
        let missing: Vec<String> =
            words.iter().skip(1).filter(is_missing).map(|word| format!("`{word}`")).collect();
        let place = folder.display();
        (!missing.is_empty())
            .then(|| format!("there is no {} in {place}", missing.join(" and no ")))
    }

    fn definition(&self) -> anyhow::Result<Definition> {
        let (text, place) = match &self.file {
            Some(file) => (read(file)?, file.display().to_string()),
            None => {
                let place = format!("{}.toml", self.name);
                let file = BUILT_IN.get_file(&place).and_then(include_dir::File::contents_utf8);
                (file.with_context(|| format!("{place} is not built in"))?.to_owned(), place)
            }
        };
        Definition::from_toml(&text)
            .map_err(|reason| UsageError(format!("{place}: {reason}")).into())
    }

    /// How it is started with a private folder.
    ///
    /// # Errors
    ///
    /// When its file cannot be read, or the folder not be written to.
    pub fn program(&self, folder: &Path) -> anyhow::Result<RuntimeProgram> {
        let Definition { name, command, .. } = self.definition()?;
        let beside = match &self.file {
            Some(file) => folder_of(file).to_owned(),
            None => {
                let program = folder.join("program");
                fs::create_dir_all(&program)?;
                BUILT_IN.extract(&program)?;
                program
            }
        };
        let command = in_full(command, &beside).collect();
        let cache = cache(user_cache_folder(), &name);
        Ok(RuntimeProgram { name, command, folder: folder.to_owned(), cache })
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// Whether a word is no option, and ends like the name of a file.
fn is_like_a_file(word: &str) -> bool {
    let ending = Path::new(word).extension().and_then(std::ffi::OsStr::to_str);
    !word.starts_with('-') && ending.is_some_and(|it| it.starts_with(|c: char| c.is_alphabetic()))
}

/// The words of a command, where those that are files in a folder have it before them.
fn in_full(command: Vec<String>, folder: &Path) -> impl Iterator<Item = OsString> {
    command.into_iter().map(|word| {
        let file = folder.join(&word);
        if file.is_file() { file.into() } else { word.into() }
    })
}

/// No result of this process takes the place of the program that workers run, wherever it is found.
fn remember_program(command: &[String]) {
    let program = command.first().map_or("", String::as_str);
    let places = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&places).for_each(|place| input::remember(&place.join(program)));
}

/// Nor of what the words of a command may name, in the folder of the runtime and in the current one.
fn remember_words(command: &[String], folder: &Path) {
    for name in command.iter().flat_map(|word| names_within(word)) {
        input::remember(&folder.join(name));
        input::remember(Path::new(name));
    }
}

/// The parts of a word that may be names of files: the word, the values of `--tables=FILE,FILE`, and
/// that of `-cFILE`.
fn names_within(word: &str) -> impl Iterator<Item = &str> {
    let short = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let of_short = short.and_then(|letters| {
        let mut letters = letters.chars();
        letters.next().map(|_| letters.as_str())
    });
    [word].into_iter().chain(word.split(['=', ',', ':', ';'])).chain(of_short)
}

fn read(file: &Path) -> anyhow::Result<String> {
    let text = input::text(file, MOST_BYTES);
    text.map_err(|error| UsageError(format!("cannot read {}: {error}", file.display())).into())
}

/// Where a runtime keeps what it compiles: beside the compiled kernels of GPUs, and like these nowhere
/// that others may write to, since it is code that runs.
fn cache(caches: Option<PathBuf>, name: &str) -> Option<PathBuf> {
    let cache = caches?.join("runtimes").join(name);
    make_own_folder(&cache).ok().map(|()| cache)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_runtime_is_whole() {
        assert_eq!(names(), ["numpy", "onnxruntime", "openvino", "pytorch", "template"]);
        let folder = PrivateFolder::new().unwrap();
        for name in names() {
            let choice = RuntimeChoice::find(&name).unwrap();
            assert_eq!(choice.definition().unwrap().name, name);
            let program = choice.program(folder.path()).unwrap();
            assert_eq!(program.command.len(), 2);
            assert!(Path::new(&program.command[1]).is_file(), "{:?}", program.command);
        }
        let message = format!("{:#}", RuntimeChoice::find("pytroch").unwrap_err());
        assert!(message.contains("did you mean `pytorch`?"), "{message}");
    }

    #[test]
    fn words_that_look_like_files_and_are_none_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let toml = folder.path().join("mine.toml");
        fs::write(folder.path().join("there.py"), "").unwrap();
        let missing = |words: &str| {
            let text = format!(
                "kind = \"runtime\"\nschema_version = 1\nname = \"mine\"\ncommand = [{words}]"
            );
            fs::write(&toml, text).unwrap();
            RuntimeChoice::find(toml.to_str().unwrap()).unwrap().missing_files()
        };
        assert_eq!(missing(r#""a.out", "there.py", "-x.y", "1.5", "fast""#), None);
        let expected = format!("there is no `no.py` in {}", folder.path().display());
        assert_eq!(missing(r#""python3", "no.py", "there.py""#), Some(expected));
        assert_eq!(RuntimeChoice::find("numpy").unwrap().missing_files(), None);
    }

    #[cfg(unix)]
    #[test]
    fn what_runtimes_compile_is_kept_where_nobody_else_writes() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let of_runtime = || cache(Some(folder.path().to_owned()), "pytorch");
        let expected = folder.path().join("runtimes/pytorch");
        assert_eq!(of_runtime(), Some(expected.clone()));
        assert_eq!(fs::metadata(&expected).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&expected, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(of_runtime(), None);
        assert_eq!(cache(None, "pytorch"), None);
        assert_eq!(cache(Some("/dev/null".into()), "pytorch"), None);
    }

    #[test]
    fn a_file_of_ones_own_names_a_program_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let toml = folder.path().join("mine.toml");
        let write = |text: &str| fs::write(&toml, text).unwrap();
        let find = || RuntimeChoice::find(toml.to_str().unwrap());
        write(
            "kind = \"runtime\"\nschema_version = 1\nname = \"mine\"\ncommand = [\"run.sh\", \"-v\"]",
        );
        fs::write(folder.path().join("run.sh"), "").unwrap();
        let program = find().unwrap().program(folder.path()).unwrap();
        assert_eq!(program.command, [folder.path().join("run.sh").into(), OsString::from("-v")]);
        for (text, why) in [
            ("kind = \"shapes\"\nschema_version = 1\nname = \"a\"\ncommand = [\"b\"]", "kind is"),
            (
                "kind = \"runtime\"\nschema_version = 2\nname = \"a\"\ncommand = [\"b\"]",
                "reads only 1",
            ),
            (
                "kind = \"runtime\"\nschema_version = 1\nname = \"A b\"\ncommand = [\"b\"]",
                "small letters",
            ),
            (
                "kind = \"runtime\"\nschema_version = 1\nname = \"native\"\ncommand = [\"b\"]",
                "not native",
            ),
            (
                "kind = \"runtime\"\nschema_version = 1\nname = \"a\"\ncommand = []",
                "needs a command",
            ),
            ("kind = \"runtime\"\nschema_version = 1\nname = \"a\"\ncomand = []", "comand"),
        ] {
            write(text);
            let message = format!("{:#}", find().unwrap_err());
            assert!(message.contains(why), "{message}");
        }
        assert!(RuntimeChoice::find("no/such.toml").is_err());
        // A part of a file could be another runtime.
        let whole = "kind = \"runtime\"\nschema_version = 1\nname = \"a\"\ncommand = [\"b\"]\n";
        write(&format!("{whole}# {}\ninstall = \"c\"\n", "-".repeat(1 << 16)));
        let message = format!("{:#}", find().unwrap_err());
        assert!(message.contains("more than the 64 KiB that are read"), "{message}");
    }
}
