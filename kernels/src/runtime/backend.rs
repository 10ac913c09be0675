//! A runtime as a backend.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use fusion_cost_model::calibration::KernelFailure;
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{Backend as BackendName, CacheState, Clock, DType, Problem};

use super::answer::Introduction;
use super::aside::aside;
use super::conversation::Conversation;
use super::describe::Description;
use super::error::RuntimeError;
use super::message::{Hello, PROTOCOL, Prepare, Request, Supports};
use super::output::{OutputFile, PART};
use super::prepared::{Files, PreparedRuntime, Watched};
use super::program::RuntimeProgram;
use crate::affinity::Binding;
use crate::backend::{
    Backend, BackendError, FirstRuns, MachineReading, Prepared, Requirements, Setup, Unsupported,
    Variant,
};
use crate::copies::Copies;
use crate::cpu::{Cpu, processor_time_of};
use crate::inputs::Inputs;
use crate::numbers::encode;

/// How often a runtime keeps a tensor at most: as it was given, where it runs, and packed.
const COPIES: u64 = 3;

/// What the numbers of its tensors can be.
const DTYPES: [DType; 3] = [DType::F32, DType::Bf16, DType::F16];

/// A runtime that is there.
pub struct Runtime {
    shared: Shared,
    program: RuntimeProgram,
    introduction: Introduction,
    prepared: Cell<u32>,
    /// Keeps the thread that measures out of its way, where it is bound.
    aside: Option<Binding>,
}

/// What all of a runtime's problems share.
pub(super) struct Shared {
    pub(super) conversation: RefCell<Conversation>,
    pub(super) watched: RefCell<Watched>,
    /// What it is called in messages.
    pub(super) name: String,
    /// The threads that it may use.
    pub(super) threads: usize,
    /// The processors that it is bound to.
    pub(super) processors: Option<Vec<u32>>,
    /// Whether it leaves a processor to the thread that measures, which so hears each answer at once.
    pub(super) leaves_one: bool,
}

impl Shared {
    pub(super) fn ask<R: Request>(&self, request: &R) -> Result<R::Answer, BackendError> {
        self.conversation.borrow_mut().ask(request).map_err(|error| self.error(error))
    }

    pub(super) fn ask_in_a_row<R: Request>(
        &self,
        requests: [&R; 2],
    ) -> Result<[(R::Answer, Instant); 2], BackendError> {
        let mut conversation = self.conversation.borrow_mut();
        conversation.ask_in_a_row(requests).map_err(|error| self.error(error))
    }

    /// Looks at which threads compute, when it is time to.
    pub(super) fn look(&self) {
        self.watched.borrow_mut().look(self.threads, self.processors.as_deref());
    }

    pub(super) fn error(&self, error: RuntimeError) -> BackendError {
        if let RuntimeError::Unsupported(reason) = error {
            let name = self.name.clone();
            return BackendError::Unsupported(Unsupported::Runtime { name, reason });
        }
        let has_crashed = matches!(error, RuntimeError::Ended { .. });
        let source = format!("{}: {error}", self.name).into();
        if has_crashed {
            BackendError::Kernels { failure: KernelFailure::Crash, source }
        } else {
            BackendError::Device(source)
        }
    }
}

impl Runtime {
    /// How long one may take to introduce itself.
    pub const START_LIMIT: Duration = <Hello<'_> as Request>::LIMIT;

    /// Starts a runtime that is to compute on this many threads, each of them bound to a processor
    /// or free. One that ends before it has said what it is, is started once more.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when there are no threads, or the program cannot be started, lacks something,
    /// or does not introduce itself.
    pub fn start(
        program: &RuntimeProgram,
        threads: usize,
        bound: bool,
    ) -> Result<Self, BackendError> {
        let processors = if bound {
            Cpu::with_bound_threads(threads)?.pinned().map(<[u32]>::to_vec)
        } else {
            None
        };
        let named = |error: RuntimeError| {
            let text = format!("{}: {error}", program.name).into();
            let is_absent = match &error {
                RuntimeError::Start { source, .. } => source.kind() == ErrorKind::NotFound,
                error => matches!(error, RuntimeError::Missing(_)),
            };
            if is_absent { BackendError::NotInstalled(text) } else { BackendError::Device(text) }
        };
        let start = || introduced(program, threads, processors.as_deref());
        let (conversation, introduction) = match start() {
            // The system ends a process for the memory that another one took, and any program can
            // send it a signal.
            Err(RuntimeError::Ended { .. }) => start(),
            answer => answer,
        }
        .map_err(named)?;
        let watched = RefCell::new(watched(&conversation).map_err(named)?);
        let name = program.name.clone();
        let conversation = RefCell::new(conversation);
        let leaves_one = std::thread::available_parallelism().is_ok_and(|all| all.get() > threads);
        let aside = processors.as_deref().and_then(aside);
        let shared = Shared { conversation, watched, name, threads, processors, leaves_one };
        let (program, prepared) = (program.clone(), Cell::new(0));
        Ok(Self { shared, program, introduction, prepared, aside })
    }

    /// What it says of itself.
    #[must_use]
    pub fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    /// What our own kernels find on the processors of the runtime, which sleeps meanwhile. They are not
    /// kept: their threads would spin beside those of the runtime.
    fn on_cpu<T>(
        &mut self,
        find: impl FnOnce(&mut Cpu) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        // Processors are chosen from those on which this thread may run.
        self.aside = None;
        let Shared { threads, processors, .. } = &self.shared;
        let cpu = match processors {
            Some(_) => Cpu::with_bound_threads(*threads),
            None => Cpu::new(*threads),
        };
        let found = cpu.and_then(|mut cpu| find(&mut cpu));
        self.aside = processors.as_deref().and_then(aside);
        found
    }

    /// Why a problem is not run in this way, apart from what the runtime says.
    fn check(&self, problem: &Problem, setup: Setup) -> Result<(), Unsupported> {
        if setup.clock != Clock::Host {
            return Err(Unsupported::NoClock(setup.clock));
        }
        if let Some(rewrite) = setup.rewrite {
            return Err(Unsupported::NoRewrite(rewrite));
        }
        let no =
            |reason: String| Err(Unsupported::Runtime { name: self.shared.name.clone(), reason });
        if setup.cache != CacheState::Warm {
            return no("runtimes are measured with warm caches only".to_owned());
        }
        let dtype = problem.dtype();
        if !DTYPES.contains(&dtype) {
            return no(format!("runtimes are not measured in {dtype}"));
        }
        if !self.introduction.dtypes.iter().any(|one| one == dtype.name()) {
            return no(format!("it does not compute in {dtype}{}", self.unknown_dtypes()));
        }
        Ok(())
    }

    /// What to say of the dtypes that it names and nobody knows.
    fn unknown_dtypes(&self) -> String {
        let is_unknown = |name: &&String| !DTYPES.iter().any(|known| known.name() == name.as_str());
        let unknown: Vec<&str> =
            self.introduction.dtypes.iter().filter(is_unknown).map(String::as_str).collect();
        if unknown.is_empty() {
            return String::new();
        }
        let known = DTYPES.map(|dtype| dtype.name()).join(", ");
        format!("; of its `dtypes`, {unknown:?} are unknown, and {known} are known")
    }

    /// Starts it anew if it has ended, so that a problem at which it does so costs no other one.
    fn revive(&self) -> Result<(), RuntimeError> {
        if self.shared.conversation.borrow().process().is_some() {
            return Ok(());
        }
        let Shared { threads, processors, .. } = &self.shared;
        let (conversation, _) = introduced(&self.program, *threads, processors.as_deref())?;
        self.shared.watched.replace(watched(&conversation)?);
        self.shared.conversation.replace(conversation);
        Ok(())
    }

    /// Whether it says that it runs a problem.
    fn supports(&self, problem: &Problem) -> Result<(), RuntimeError> {
        let request = Supports { problem: &Description::of(problem) };
        self.shared.conversation.borrow_mut().ask(&request).map(|_| ())
    }

    /// The same in some way.
    fn runs(&self, problem: &Problem, setup: Setup) -> Result<bool, BackendError> {
        if self.check(problem, setup).is_err() {
            return Ok(false);
        }
        match self.supports(problem) {
            Ok(()) => Ok(true),
            Err(RuntimeError::Unsupported(_)) => Ok(false),
            Err(error) => Err(self.shared.error(error)),
        }
    }

    fn prepare_one<'b>(
        &'b self,
        problem: &Problem,
        inputs: &Inputs,
    ) -> Result<PreparedRuntime<'b>, BackendError> {
        BackendError::check(problem, inputs)?;
        let id = self.prepared.get();
        self.prepared.set(id + 1);
        let wrong = |source| self.shared.error(RuntimeError::Tensors(source));
        let dtype = problem.dtype();
        let named =
            |tensor: &str| self.program.folder.join(format!("problem-{id}-{tensor}.{dtype}"));
        let mut files = Files(Vec::new());
        for (index, tensor) in inputs.tensors.iter().enumerate() {
            files.0.push(named(&format!("input-{index}")));
            write_numbers(&files.0[index], dtype, tensor).map_err(wrong)?;
        }
        let numbers = problem.steps().last().map_or(0, |step| step.output.elements());
        let output = named("output");
        files.0.push(output.clone());
        let file = File::options().read(true).write(true).create_new(true).open(&output);
        let file = file
            .and_then(|file| file.set_len(dtype.bytes() * numbers).map(|()| file))
            .map_err(wrong)?;
        let problem = &Description::of(problem);
        let paths =
            files.0[..inputs.tensors.len()].iter().map(std::path::PathBuf::as_path).collect();
        let request = Prepare { id, problem, files: paths, output: &output };
        let ready = self.shared.ask(&request)?;
        drop(files);
        let numbers = usize::try_from(numbers).unwrap_or(usize::MAX);
        let output = OutputFile { file, dtype, numbers };
        PreparedRuntime::new(&self.shared, id, (ready.kernels, ready.layouts), output)
    }
}

/// Starts the program of a runtime, and has it say what it is.
fn introduced(
    program: &RuntimeProgram,
    threads: usize,
    processors: Option<&[u32]>,
) -> Result<(Conversation, Introduction), RuntimeError> {
    let mut conversation = Conversation::start(program, threads, processors)?;
    let cache = program.cache.as_deref();
    let hello = Hello { protocol: PROTOCOL, threads, device: "cpu", cache };
    let introduction = conversation.ask(&hello)?;
    Ok((conversation, introduction))
}

/// The threads of its process.
fn watched(conversation: &Conversation) -> Result<Watched, RuntimeError> {
    conversation.process().map(Watched::of).ok_or(RuntimeError::Gone)
}

fn write_numbers(path: &Path, dtype: DType, numbers: &[f32]) -> std::io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    numbers.chunks(PART).try_for_each(|part| file.write_all(&encode(dtype, part)))
}

impl Backend for Runtime {
    fn name(&self) -> BackendName {
        BackendName::Cpu
    }

    fn threads(&self) -> u32 {
        u32::try_from(self.shared.threads).unwrap_or(u32::MAX)
    }

    fn requirements(&self, problem: &Problem, setup: Setup) -> Result<Requirements, Unsupported> {
        self.check(problem, setup)?;
        let ask = || self.revive().and_then(|()| self.supports(problem));
        let answer = match ask() {
            // What it did behind its last answer shows only now, and is not this problem's fault.
            Err(RuntimeError::Ended { .. } | RuntimeError::OutOfTurn { .. }) => ask(),
            answer => answer,
        };
        answer.map_err(|error| {
            let (name, reason) = (self.shared.name.clone(), error.to_string());
            match error {
                RuntimeError::Unsupported(_) => Unsupported::Runtime { name, reason },
                _ => Unsupported::NoAnswer { name, reason },
            }
        })?;
        let elements = |step: fusion_cost_model::kernel::Step| {
            step.output.elements() + step.operand_elements()
        };
        let first = problem.steps().next().map_or(0, |step| step.input.elements());
        let numbers = problem.steps().map(elements).fold(first, u64::saturating_add);
        Ok(Requirements::new(numbers.saturating_mul(problem.dtype().bytes() * COPIES)))
    }

    fn prepare<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
        setup: Setup,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError> {
        if !self.runs(problem, setup)? {
            return Ok(None);
        }
        Ok(Some(Box::new(self.prepare_one(problem, inputs)?)))
    }

    fn prepare_copies<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
        setup: Setup,
        variant: Variant,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError> {
        if !self.runs(problem, setup)? {
            return Ok(None);
        }
        let first = self.prepare_one(problem, inputs)?;
        let second = self.prepare_one(problem, inputs)?;
        Ok(Some(Box::new(Copies::new([first, second], variant))))
    }

    fn ceilings(
        &mut self,
        dtype: DType,
        clock: Clock,
        rounds: u32,
        hears: &mut FirstRuns<'_>,
    ) -> Result<Option<Ceilings>, BackendError> {
        self.on_cpu(|cpu| cpu.ceilings(dtype, clock, rounds, hears))
    }

    fn look_at_machine(&mut self) -> Result<Option<MachineReading>, BackendError> {
        self.on_cpu(Cpu::look_at_machine)
    }

    fn pinned(&self) -> Option<&[u32]> {
        self.shared.processors.as_deref()
    }

    fn time_of_its_program(&self) -> Option<Duration> {
        processor_time_of(self.shared.conversation.borrow().process()?)
    }
}
