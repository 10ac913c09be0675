//! Finds the traces of a command line and reads them, with progress and warnings on stderr.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use cli_support::exit::UsageError;
use cli_support::input;
use cli_support::memory;
use cli_support::plain;
use cli_support::say;
use cli_support::units::gibibytes;
use indicatif::{ProgressBar, ProgressStyle};
use kernel_traces::{
    IndexPolicy, IndexUse, Options, RankFile, Ranks, Streamed, Trace, Warning, at_once, index,
};

use super::copies::Copies;
use crate::cli::{TraceFiles, TraceInput};
use crate::report;

/// The traces of a command line.
pub(super) struct Inputs {
    /// Those to read.
    pub(super) files: Vec<RankFile>,
    /// Where their indexes are.
    pub(super) policy: IndexPolicy,
    stream: bool,
    verbose: bool,
    bar: Option<ProgressBar>,
    /// Copies of what cannot be read twice, which are there as long as this is.
    copies: Copies,
    /// The bytes of the files that were read.
    pub(super) done: u64,
}

/// A trace, whole or in parts.
pub(super) enum Opened {
    Whole(Box<Trace>),
    /// In parts, which [`Inputs::stream`] gives.
    InParts,
}

/// Finds the traces of a command that can read them whole or in parts.
pub(super) fn find_input(input: &TraceInput) -> anyhow::Result<Inputs> {
    find(&input.files, input.index.policy(), input.stream)
}

/// Finds the traces and says, within milliseconds, what they say about themselves.
pub(super) fn find(
    input: &TraceFiles,
    policy: IndexPolicy,
    stream: bool,
) -> anyhow::Result<Inputs> {
    let (files, copies) = ranks(&input.paths, input.rank)?;
    let mut inputs = Inputs::new(files, policy, stream, input.verbose);
    inputs.copies = copies;
    Ok(inputs)
}

/// The traces that paths name, or those of one rank.
pub(super) fn ranks<P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
    rank: Option<u64>,
) -> anyhow::Result<(Vec<RankFile>, Copies)> {
    let (paths, copies) = Copies::of(paths)?;
    let Ranks { mut files, warnings } =
        Ranks::find(paths).map_err(|error| copies.name_in(error))?;
    files.iter().for_each(|file| input::remember(&file.path));
    copies.name(&mut files);
    let Some(rank) = rank else {
        for warning in warnings {
            say!("warning: {}: {warning}; {}", warning.code(), warning.advice());
        }
        return Ok((files, copies));
    };
    let known: Vec<String> =
        files.iter().filter_map(|file| file.rank).map(|rank| rank.to_string()).collect();
    files.retain(|file| file.rank == Some(rank));
    if files.is_empty() {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("no trace is of rank {rank}; there are: {known}");
        return Err(UsageError(message).into());
    }
    Ok((files, copies))
}

fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    let template = "{bar:24} {bytes}/{total_bytes}, {eta} left: {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

impl Inputs {
    /// Says, within milliseconds, what files say about themselves.
    pub(super) fn new(
        files: Vec<RankFile>,
        policy: IndexPolicy,
        stream: bool,
        verbose: bool,
    ) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        if is_terminal || verbose {
            for file in &files {
                say!("{}", report::trace_file(file));
            }
        }
        let bytes = files.iter().map(|file| file.bytes).sum();
        let bar = is_terminal.then(|| bar(bytes));
        Self { files, policy, stream, verbose, bar, copies: Copies::default(), done: 0 }
    }

    /// Whether a trace is read in parts: it was asked for, or the memory is not enough.
    pub(super) fn must_stream(&self, file: &RankFile) -> bool {
        if self.stream {
            return true;
        }
        let lacks_memory = self.lacks_memory(file);
        if let Some(lack) = &lacks_memory {
            self.note(&format!("note: {lack}; it is read as with --stream"));
        }
        lacks_memory.is_some()
    }

    /// Says if the memory is not enough for a trace that is needed whole.
    pub(super) fn note_memory(&self, file: &RankFile) {
        if let Some(lack) = self.lacks_memory(file) {
            self.note(&format!("note: {lack}; it is needed whole, and loaded anyway"));
        }
    }

    /// What to say of a trace that takes more memory than there is. One with an index is mapped.
    fn lacks_memory(&self, file: &RankFile) -> Option<String> {
        let (needed, free) = (file.memory_bytes(), memory::available_bytes());
        let lacks =
            needed > free && !index::is_there(&file.path, &Options::default(), &self.policy);
        lacks.then(|| {
            format!(
                "{} may need {} of memory and {} are free",
                file.named.display(),
                gibibytes(needed),
                gibibytes(free)
            )
        })
    }

    /// A trace, whole if it can be.
    pub(super) fn open(&mut self, file: &RankFile) -> anyhow::Result<Opened> {
        if self.must_stream(file) {
            return Ok(Opened::InParts);
        }
        Ok(Opened::Whole(Box::new(self.load(file)?)))
    }

    /// The one way in which subcommands get a whole trace.
    pub(super) fn load(&mut self, file: &RankFile) -> anyhow::Result<Trace> {
        let progress = &mut self.progress(file);
        let opened = Trace::open(&file.path, &Options::default(), &self.policy, progress)?;
        Ok(self.opened(file, opened))
    }

    /// Two whole traces, which are read at once.
    pub(super) fn load_both(&mut self, files: [&RankFile; 2]) -> anyhow::Result<[Trace; 2]> {
        let policy = &self.policy;
        let progress = files.map(|file| Mutex::new(self.progress_beside(file)));
        let open = |which: usize| {
            let mut progress = progress[which].lock().unwrap_or_else(PoisonError::into_inner);
            Trace::open(&files[which].path, &Options::default(), policy, &mut **progress)
        };
        let (first, second) = at_once(|| open(0), || open(1));
        Ok([self.opened(files[0], first?), self.opened(files[1], second?)])
    }

    /// A trace is open: says what is to be known of it.
    fn opened(&mut self, file: &RankFile, (trace, index): (Trace, IndexUse)) -> Trace {
        self.read(file, &trace.warnings);
        // Without a request for an index, a folder that cannot be written is not reported.
        let is_asked_for = self.verbose || matches!(self.policy, IndexPolicy::In(_));
        if let IndexUse::NotWritten { error, .. } = index
            && is_asked_for
        {
            self.note(&format!("warning: no-index: {error}; the next load will not be faster"));
        }
        trace
    }

    /// The same as [`Inputs::progress`], for a load that runs alongside another one.
    fn progress_beside(&self, file: &RankFile) -> Box<dyn FnMut(u64, u64) + Send> {
        let (bar, mut before) = (self.bar.clone(), 0);
        if let Some(bar) = &bar {
            bar.set_message(plain::text(&file.named.display().to_string()).into_owned());
        }
        Box::new(move |done, _| {
            if let Some(bar) = &bar {
                bar.inc(done - before);
            }
            before = done;
        })
    }

    /// Reads a trace in parts.
    pub(super) fn stream(
        &mut self,
        file: &RankFile,
        options: &Options,
        each: &mut dyn FnMut(&Trace) -> ControlFlow<()>,
    ) -> anyhow::Result<Streamed> {
        let streamed = Trace::stream(&file.path, options, each, &mut self.progress(file))?;
        self.read(file, &streamed.warnings);
        Ok(streamed)
    }

    /// What is called with the progress of a load.
    pub(super) fn progress(&self, file: &RankFile) -> impl FnMut(u64, u64) + use<> {
        let (bar, before) = (self.bar.clone(), self.done);
        if let Some(bar) = &bar {
            bar.set_message(plain::text(&file.named.display().to_string()).into_owned());
        }
        move |done, _| {
            if let Some(bar) = &bar {
                bar.set_position(before + done);
            }
        }
    }

    /// A file is read.
    fn read(&mut self, file: &RankFile, warnings: &[Warning]) {
        self.done += file.bytes;
        self.warn(file, warnings);
    }

    /// Says what is to be known of a trace.
    pub(super) fn warn(&self, file: &RankFile, warnings: &[Warning]) {
        let which = match self.files.len() {
            1 => String::new(),
            _ => format!(" ({})", file.named.display()),
        };
        for warning in warnings {
            let (code, advice) = (warning.code(), warning.advice());
            self.note(&format!("warning: {code}: {warning}{which}; {advice}"));
        }
    }

    /// Says something that stays.
    pub(super) fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say!("{line}")),
            None => say!("{line}"),
        }
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
