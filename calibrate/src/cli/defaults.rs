//! Defaults of options, from a file and from variables: the command line comes first, then a
//! variable, then the file.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind as ClapErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, ColorChoice, Command, CommandFactory, FromArgMatches, ValueEnum as _};
use cli_support::{input, say};
use fused_kernels::worker;
use fusion_cost_model::Backend;
use toml::{Spanned, Value};

use super::Cli;
use crate::exit::UsageError;

/// The most bytes of a file of defaults.
const MOST_BYTES: u64 = 1 << 20;

/// Options that describe a machine and its user. What to measure has no defaults.
const KEYS: [&str; 19] = [
    "backend",
    "cache",
    "clock",
    "code-cache",
    "color",
    "core",
    "device",
    "dtype",
    "gpu-lib-dir",
    "hardware",
    "implementation",
    "kernel-limit",
    "process-limit",
    "processes",
    "progress",
    "rounds",
    "spread",
    "threads",
    "time-budget",
];

/// The one that may have several values: folders, in a variable separated like those of `PATH`.
const LIST: &str = "gpu-lib-dir";

/// Keys that only one kind of backend has; on the other one their defaults say nothing.
const OF_CPU: [&str; 1] = ["threads"];
const OF_GPU: [&str; 7] =
    ["clock", "code-cache", "core", "device", "gpu-lib-dir", "implementation", "kernel-limit"];

/// Where a default is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A variable of the environment.
    Variable(String),
    /// A line of the file.
    Line(PathBuf, usize),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
        }
    }
}

/// The default of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The option, without its hyphens.
    pub key: &'static str,
    /// Its values: one, but of folders of libraries.
    pub values: Vec<String>,
    /// Where they are from.
    pub source: Source,
}

/// Everything that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The file that is read if it is there; `None` where the user has no folder for it.
    pub file: Option<PathBuf>,
    /// Whether it is there.
    pub is_there: bool,
    /// In the order of their keys, each once.
    pub settings: Vec<Setting>,
}

impl Defaults {
    /// The options that can be set.
    #[must_use]
    pub const fn keys() -> &'static [&'static str] {
        &KEYS
    }

    /// Reads the file that the command line or a variable names, or the user's own if there is one,
    /// and the variables.
    ///
    /// # Errors
    ///
    /// When a file that was named cannot be read, or something in it is not a default.
    pub fn read(
        args: &[OsString],
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, UsageError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let named = option(args, "--config").or_else(|| variable("CALIBRATE_CONFIG"));
        let file = named.clone().map(PathBuf::from).or_else(|| usual_file(&variable));
        let mut settings = BTreeMap::new();
        let mut is_there = false;
        if let Some(file) = &file {
            match input::text(file, MOST_BYTES) {
                Ok(text) => {
                    is_there = true;
                    for setting in of_file(file, &text)? {
                        settings.insert(setting.key, setting);
                    }
                }
                // The user's own file need not be there, nor be the user's: a service may have the home
                // of somebody else, or none.
                Err(error) if named.is_none() => match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => {}
                    ErrorKind::PermissionDenied => {
                        let file = file.display();
                        say!("note: cannot read {file}: {error}; the defaults in it do not count");
                    }
                    _ => return Err(unread(file, &error)),
                },
                Err(error) => return Err(unread(file, &error)),
            }
        }
        for key in KEYS {
            let name = format!("CALIBRATE_{}", key.to_uppercase().replace('-', "_"));
            if let Some(value) = variable(&name) {
                let values = if key == LIST {
                    std::env::split_paths(&value).map(|one| one.display().to_string()).collect()
                } else {
                    vec![value.to_string_lossy().into_owned()]
                };
                settings.insert(key, Setting { key, values, source: Source::Variable(name) });
            }
        }
        let settings: Vec<Setting> = settings.into_values().collect();
        settings.iter().try_for_each(check)?;
        Ok(Self { file, is_there, settings })
    }

    /// The parser with these defaults.
    #[must_use]
    pub fn applied_to(&self, command: Command) -> Command {
        self.settings.iter().fold(command, |command, setting| {
            // The parser keeps what is known when the program is compiled; this is kept as long.
            let values: Vec<&'static str> = setting
                .values
                .iter()
                .map(|one| &*Box::leak(one.clone().into_boxed_str()))
                .collect();
            command.mut_arg(id(setting.key), |arg| arg.default_values(values))
        })
    }
}

/// What the parser calls an option.
fn id(key: &str) -> String {
    key.replace('-', "_")
}

/// The command line with `--color` and `--config`, which all commands have, behind the name of the
/// command where they stand before it.
fn behind_the_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let names = ["--color", "--config"];
    let length = |arg: &OsString| {
        let (name, value) = arg.to_str().map(|arg| arg.split_once('=').unwrap_or((arg, "")))?;
        names.contains(&name).then_some(if value.is_empty() { 2 } else { 1 })
    };
    let mut end = 1;
    while let Some(more) = args.get(end).and_then(length) {
        end += more;
    }
    if args.get(end).is_some_and(|arg| !arg.to_string_lossy().starts_with('-')) {
        args[1..=end].rotate_right(1);
    }
    args
}

/// The value of an option that is needed before the command line is parsed.
fn option(args: &[OsString], name: &str) -> Option<OsString> {
    let mut args = args.iter().take_while(|arg| *arg != "--");
    while let Some(arg) = args.next() {
        if arg == name {
            return args.next().cloned();
        }
        if let Some(value) = arg.to_str().and_then(|arg| arg.strip_prefix(name)?.strip_prefix('='))
        {
            return Some(value.into());
        }
    }
    None
}

fn unread(file: &Path, error: &std::io::Error) -> UsageError {
    UsageError(format!("cannot read {}: {error}", file.display()))
}

fn usual_file(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".config")))
        .or_else(|| variable("APPDATA").map(PathBuf::from));
    Some(folder?.join("calibrate").join("config.toml"))
}

fn of_file(file: &Path, text: &str) -> Result<Vec<Setting>, UsageError> {
    let line_of = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let wrong = |line: usize, what: &str| UsageError(format!("{}:{line}: {what}", file.display()));
    let table: BTreeMap<Spanned<String>, Spanned<Value>> =
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            wrong(line_of(at), error.message())
        })?;
    let mut settings = Vec::new();
    for (name, value) in table {
        let line = line_of(name.span().start);
        let name = name.get_ref();
        let Some(key) = KEYS.into_iter().find(|key| key == name) else {
            let what = format!("unknown key `{name}`; the keys are {}", KEYS.join(", "));
            return Err(wrong(line, &what));
        };
        let one = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string()),
            _ => None,
        };
        let values = match value.get_ref() {
            Value::Array(all) if key == LIST => all.iter().map(one).collect(),
            value => one(value).map(|value| vec![value]),
        };
        let Some(values) = values else {
            let list = if key == LIST { ", or a list of them" } else { "" };
            return Err(wrong(line, &format!("{key} must be a text or a whole number{list}")));
        };
        settings.push(Setting { key, values, source: Source::Line(file.to_owned(), line) });
    }
    Ok(settings)
}

/// Fails if the parser refuses a value.
fn check(setting: &Setting) -> Result<(), UsageError> {
    for value in &setting.values {
        // It would be another folder wherever the program is started.
        if setting.key == LIST && !Path::new(value).is_absolute() {
            let what = format!("{LIST} must be an absolute path, and `{value}` is not");
            return Err(UsageError(format!("{}: {what}", setting.source)));
        }
        let args = ["calibrate".to_owned(), format!("--{}={value}", setting.key)];
        let Err(error) = Cli::command().try_get_matches_from(args) else { continue };
        if matches!(error.kind(), ClapErrorKind::InvalidValue | ClapErrorKind::ValueValidation) {
            let text = error.to_string();
            let message = text.split("\n\n").next().unwrap_or_default();
            let words: Vec<&str> = message.split_whitespace().collect();
            let message = words.join(" ");
            let message = message.strip_prefix("error: ").unwrap_or(&message);
            return Err(UsageError(format!("{}: {message}", setting.source)));
        }
    }
    Ok(())
}

/// Reads the command line, with the defaults of this user. A worker has none: it gets all that it
/// needs with its task.
///
/// # Errors
///
/// When the defaults cannot be read, or the command line is wrong or asks for help; see
/// [`exit::report`](crate::exit::report).
pub fn parse(args: Vec<OsString>) -> anyhow::Result<(Cli, Defaults)> {
    if args.get(1).is_some_and(|arg| arg == OsStr::new(worker::ARGUMENT)) {
        let matches = Cli::command().try_get_matches_from(args)?;
        return Ok((Cli::from_arg_matches(&matches)?, Defaults::default()));
    }
    let args = behind_the_command(args);
    let defaults = Defaults::read(&args, &|name| std::env::var_os(name))?;
    let of_file = || defaults.settings.iter().find(|one| one.key == "color");
    let colour = option(&args, "--color").and_then(|when| when.into_string().ok());
    let colour = colour.or_else(|| of_file().and_then(|one| one.values.first().cloned()));
    let colour = colour.and_then(|when| ColorChoice::from_str(&when, true).ok());
    let command = defaults.applied_to(Cli::command()).color(colour.unwrap_or_default());
    let matches = command.try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    leave_other_backends(&mut cli, &matches);
    Ok((cli, defaults))
}

/// Takes defaults away that have no meaning on the backend of a run: a file may be for several.
fn leave_other_backends(cli: &mut Cli, matches: &ArgMatches) {
    let is_default = |key: &str| matches.value_source(&id(key)) == Some(ValueSource::DefaultValue);
    let run = &mut cli.run;
    let others = if run.backend == Backend::Cpu { &OF_GPU[..] } else { &OF_CPU[..] };
    for key in others.iter().copied().filter(|key| is_default(key)) {
        match key {
            "threads" => run.threads = None,
            key => run.gpu.forget(key),
        }
    }
}

#[cfg(test)]
mod tests;
