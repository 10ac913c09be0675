//! An examination of a machine: what is there, and which kinds of kernels work.
//!
//! It is what somebody runs first on a machine that nobody has tried. Libraries and devices are
//! looked for by `libraries`; then each of the `checks` runs in a process of its own, which is
//! killed when it takes too long; and at last what the device reaches is held against its data
//! sheet (`timings`).

mod checks;
mod families;
mod libraries;
mod permissions;
mod timings;

use std::time::{Duration, Instant};

use fusion_cost_model::Backend;
use fusion_cost_model::calibration::Fingerprint;

use crate::exit::UsageError;
use crate::machine::fingerprint;
use crate::run::Target;
use crate::stop::Stop;
use crate::worker::{Device, Examined, Gpu, NoAnswer, Processes};

/// What the page of an examination begins with.
pub const FIRST_WORDS: &str = "calibrate doctor";

/// What is to be examined.
#[derive(Debug, Clone)]
pub struct Request {
    /// The backends.
    pub backends: Vec<Backend>,
    /// Which GPU of a backend.
    pub gpu: Gpu,
    /// What the name of a check contains, where not all of them are to run.
    pub check: Option<String>,
    /// How often each kernel is launched.
    pub launches: u32,
    /// How long a kernel may take when it runs for the first time.
    pub kernel_limit: Duration,
    /// How long a check may take.
    pub check_limit: Duration,
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// All is well.
    Passed,
    /// There is something to know.
    Noted,
    /// A library or the device is not there.
    Missing,
    /// It does not work.
    Failed,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// What became of it.
    pub status: Status,
    /// What was found, a line or several.
    pub found: Vec<String>,
    /// How long it took; `None` where that says nothing.
    pub seconds: Option<f64>,
}

impl Finding {
    fn new(name: impl Into<String>, status: Status, found: Vec<String>) -> Self {
        Self { name: name.into(), status, found, seconds: None }
    }
}

/// What was found of a backend.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendFindings {
    /// The backend.
    pub backend: Backend,
    /// In the order in which they were looked at.
    pub findings: Vec<Finding>,
}

/// What was found of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Examination {
    /// The machine.
    pub fingerprint: Fingerprint,
    /// In the order in which they were examined.
    pub backends: Vec<BackendFindings>,
    /// Whether the user ended it.
    pub is_interrupted: bool,
}

impl Examination {
    /// How many checks ended so.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        let all = self.backends.iter().flat_map(|one| &one.findings);
        all.filter(|finding| finding.status == status).count()
    }

    /// Whether what was asked for is not there: the backend that was named, or any GPU.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        let is_missing = |one: &&BackendFindings| {
            one.findings.iter().any(|finding| finding.status == Status::Missing)
        };
        let mut gpus = self.backends.iter().filter(|one| one.backend != Backend::Cpu).peekable();
        gpus.peek().is_some() && gpus.all(|one| is_missing(&one))
    }
}

/// Examines a machine. `hears` is given each finding as soon as it is there.
///
/// # Errors
///
/// When no process can be started, and [`UsageError`] when no check has the name that was asked for.
pub fn examine(
    request: &Request,
    stop: &Stop,
    hears: &mut dyn FnMut(Backend, &Finding),
) -> anyhow::Result<Examination> {
    let mut examination = Examination {
        fingerprint: fingerprint::observe(),
        backends: Vec::new(),
        is_interrupted: false,
    };
    let mut names = Vec::new();
    for &backend in &request.backends {
        let device = match backend {
            Backend::Cpu => Device::cpu(fingerprint::default_threads(), true),
            Backend::Cuda | Backend::Hip => Device::gpu(backend, request.gpu.clone()),
        };
        let mut findings = Vec::new();
        let mut add = |finding: Finding| {
            hears(backend, &finding);
            findings.push(finding);
        };
        let mut libraries = libraries::look(&device, stop);
        let target = libraries.target.take();
        libraries.findings.into_iter().for_each(&mut add);
        if let Some(target) = target {
            names.extend(examine_kernels(request, &target, stop, &mut add)?);
            if !stop.requested() && request.wants(timings::NAME) {
                timings::measure(request, &target, stop)?.into_iter().for_each(&mut add);
            }
            names.push(timings::NAME.to_owned());
            if let Some(gpu) = target.observe().gpu {
                examination.fingerprint.gpu = Some(gpu);
            }
        }
        examination.backends.push(BackendFindings { backend, findings });
        examination.is_interrupted = stop.requested();
        if examination.is_interrupted {
            break;
        }
    }
    let is_known = names.is_empty() || names.iter().any(|name| request.wants(name));
    match &request.check {
        Some(check) if !is_known => {
            let text = format!("--check {check} names no check; there are: {}", names.join(", "));
            Err(UsageError(text).into())
        }
        _ => Ok(examination),
    }
}

impl Request {
    /// Whether a check is to run.
    fn wants(&self, name: &str) -> bool {
        self.check.as_ref().is_none_or(|check| name.contains(check.as_str()))
    }
}

/// Runs every check of kernels that is wanted, each in a process of its own. The names of all.
fn examine_kernels(
    request: &Request,
    target: &Target,
    stop: &Stop,
    add: &mut dyn FnMut(Finding),
) -> anyhow::Result<Vec<String>> {
    let checks = checks::of(target, request.launches)?;
    let names = checks.iter().map(|check| check.name.clone()).collect();
    for check in checks.into_iter().filter(|check| request.wants(&check.name)) {
        if stop.requested() {
            break;
        }
        let began = Instant::now();
        let answer = processes(request, target, stop)?.examine(check.task.clone());
        let (status, found) = match answer {
            Ok(Examined::Right(kernels)) => match check.lacks(&kernels) {
                None => (Status::Passed, kernels),
                Some(lack) => (Status::Noted, vec![lack]),
            },
            Ok(Examined::Wrong(problem, wrong)) => {
                let how = check.reproducers(target, problem);
                (Status::Failed, [wrong.to_string()].into_iter().chain(how).collect())
            }
            Ok(Examined::Failed(problem, why)) => {
                let how = check.reproducers(target, problem);
                (Status::Failed, [why].into_iter().chain(how).collect())
            }
            Ok(Examined::NoKernels(problem)) => {
                (Status::Noted, vec![format!("there are no kernels for {problem}")])
            }
            Err(NoAnswer::Stopped) => break,
            Err(error @ NoAnswer::NotStarted(_)) => return Err(error.into()),
            Err(error) => {
                let why = error.to_string();
                let at = check.task.problem_of(&why).or(check.task.problems.first().copied());
                let how = at.map(|problem| check.reproducers(target, problem));
                (Status::Failed, [why].into_iter().chain(how.into_iter().flatten()).collect())
            }
        };
        let seconds = Some(began.elapsed().as_secs_f64());
        add(Finding { name: check.name, status, found, seconds });
    }
    Ok(names)
}

fn processes<'s>(
    request: &Request,
    target: &Target,
    stop: &'s Stop,
) -> anyhow::Result<Processes<'s>> {
    let processes = Processes::new(target.device.clone(), stop)?.with_limit(request.check_limit);
    Ok(processes.with_kernel_limit(request.kernel_limit))
}
