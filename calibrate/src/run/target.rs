//! What a run measures on: a device, and what was found at its place.

use std::time::Duration;

use cli_support::memory;
use fused_kernels::cpu::Cpu;
use fused_kernels::runtime::Runtime;
use fusion_cost_model::CacheState;
use fusion_cost_model::calibration::{Fingerprint, RuntimeUsed};

use crate::exit::{InterruptedError, NoDeviceError};
use crate::machine::fingerprint;
use crate::machine::preflight::{GpuNeeds, Needs};
use crate::plan::{
    Available, Needed, Plan, Refusal, Subject, Wanted, Ways, bytes_needed, controls, device_bytes,
};
use crate::runtimes::RuntimeChoice;
use crate::stop::Stop;
use crate::worker::{
    CoreChoice, Device, FoundGpu, IdentifyTask, IntroduceTask, NoAnswer, PROBE_LIMIT, PlanTask,
    probe,
};

/// A device that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What runs the kernels.
    pub device: Device,
    /// What is at its place; `None` for a CPU, which needs no looking for.
    found: Option<FoundGpu>,
    /// What the runtimes of the device said of themselves.
    runtimes: Vec<RuntimeUsed>,
}

impl Target {
    /// Looks for a device.
    ///
    /// # Errors
    ///
    /// [`NoDeviceError`] when it is not there, and [`InterruptedError`].
    pub fn find(mut device: Device, stop: &Stop) -> anyhow::Result<Self> {
        if device.gpu.is_none() {
            let mut runtimes = Vec::new();
            for index in 0..device.runtimes.len() {
                let used = introduced(&device, &device.runtimes[index], stop)
                    .map_err(|reason| unusable_runtime(&device.runtimes[index], &reason))?;
                device.runtimes[index].implementation = Some(used.implementation);
                runtimes.push(used);
            }
            return Ok(Self { device, found: None, runtimes });
        }
        match probe(&device, IdentifyTask, PROBE_LIMIT, stop) {
            Ok(found) => Ok(Self { device, found: Some(found), runtimes: Vec::new() }),
            Err(reason) => Err(unusable(&device, &reason)),
        }
    }

    /// The runtimes whose kernels can run.
    #[must_use]
    pub fn runtimes(&self) -> &[RuntimeUsed] {
        &self.runtimes
    }

    /// Observes the machine that it belongs to.
    #[must_use]
    pub fn observe(&self) -> Fingerprint {
        let gpu = self.found.as_ref().map(|found| found.observed.clone());
        Fingerprint { gpu, ..fingerprint::observe() }
    }

    /// The second-level cache of a GPU; `None` for a CPU.
    #[must_use]
    pub fn l2_bytes(&self) -> Option<u64> {
        self.found.as_ref().map(|found| found.observed.l2_bytes)
    }

    /// Which cores of a GPU kernels may be written with.
    #[must_use]
    pub fn cores(&self) -> CoreChoice {
        let is_named = self.device.gpu.as_ref().is_some_and(|gpu| gpu.core.is_some());
        match &self.found {
            None => CoreChoice::None,
            Some(found) if is_named => CoreChoice::Only(found.core),
            Some(found) => CoreChoice::From(found.core),
        }
    }

    /// Plans what can be measured on it, and says what that needs of the machine.
    ///
    /// # Errors
    ///
    /// When the device does not answer, or nothing can be measured, and [`InterruptedError`].
    pub fn plan(
        &self,
        wanted: Wanted,
        ways: &Ways,
        cache: CacheState,
        stop: &Stop,
    ) -> anyhow::Result<(Plan, Needs)> {
        let mut subjects = wanted.subjects(ways);
        let asked_for = subjects.len();
        subjects.extend(controls(&subjects, self.l2_bytes())?);
        let bytes = self.ask(subjects.clone(), cache, stop)?;
        let needs = self.needs(&subjects, &bytes);
        let bytes = bytes.get(..asked_for).unwrap_or_default();
        Ok((wanted.plan(ways, bytes, self.available())?, needs))
    }

    /// For each subject the bytes that it needs where its kernels work, or why it cannot be run
    /// there.
    fn ask(
        &self,
        subjects: Vec<Subject>,
        cache: CacheState,
        stop: &Stop,
    ) -> anyhow::Result<Vec<Result<u64, Refusal>>> {
        let device = &self.device;
        if device.gpu.is_none() {
            // Only to plan with, so it needs no more threads than there are processors: kernels run
            // in processes of their own.
            let planner = Cpu::new(device.threads.min(fingerprint::available_threads()))?;
            let mut by_runtime = Vec::new();
            for (RuntimeUsed { implementation, .. }, choice) in
                self.runtimes.iter().zip(&device.runtimes)
            {
                let is_its = |subject: &&Subject| subject.implementation == *implementation;
                let subjects: Vec<Subject> = subjects.iter().filter(is_its).copied().collect();
                let answers = probe(device, PlanTask { subjects, cache }, PLAN_LIMIT, stop)
                    .map_err(|reason| unusable_runtime(choice, &reason))?;
                by_runtime.push((*implementation, answers.into_iter()));
            }
            let mut bytes = |subject: &Subject| {
                let whose = subject.implementation;
                match by_runtime.iter_mut().find(|(runtime, _)| *runtime == whose) {
                    Some((_, answers)) => answers
                        .next()
                        .unwrap_or_else(|| Err(format!("{subject}: no answer").into())),
                    None => device_bytes(&planner, subject, cache),
                }
            };
            return Ok(subjects.iter().map(&mut bytes).collect());
        }
        let answers = probe(device, PlanTask { subjects, cache }, PROBE_LIMIT, stop);
        answers.map_err(|reason| unusable(device, &reason))
    }

    fn available(&self) -> Available {
        let device = self.found.as_ref().map(|found| found.free_memory);
        Available { host: memory::available_bytes(), device }
    }

    /// What the machine must have for the largest of some subjects that fit into it.
    fn needs(&self, subjects: &[Subject], bytes: &[Result<u64, Refusal>]) -> Needs {
        let available = self.available();
        let needed = |(subject, bytes): (&Subject, &Result<u64, Refusal>)| {
            let bytes = *bytes.as_ref().ok()?;
            let needed = bytes_needed(&subject.problem, bytes, self.found.is_some());
            available.suffices(needed).then_some(needed)
        };
        let needed = subjects.iter().zip(bytes).filter_map(needed);
        let largest = |a: Needed, b: Needed| Needed {
            host: a.host.max(b.host),
            device: a.device.max(b.device),
        };
        let Needed { host, device: needed } = needed.reduce(largest).unwrap_or_default();
        let gpu = self.found.as_ref().map(|found| GpuNeeds {
            needed,
            free: found.free_memory,
            total: found.observed.memory_bytes,
        });
        Needs { threads: self.device.threads, memory_bytes: host, gpu }
    }
}

/// How long a runtime may take to say which of many problems it runs.
const PLAN_LIMIT: Duration = Duration::from_secs(300);

/// What a runtime says of itself.
///
/// # Errors
///
/// [`NoAnswer`], which is [`NoAnswer::NoDevice`] where something can be installed.
pub fn introduced(
    device: &Device,
    choice: &RuntimeChoice,
    stop: &Stop,
) -> Result<RuntimeUsed, NoAnswer> {
    let task = IntroduceTask { runtime: choice.name.clone() };
    probe(device, task, Runtime::START_LIMIT + PROBE_LIMIT, stop)
}

fn unusable_runtime(choice: &RuntimeChoice, reason: &NoAnswer) -> anyhow::Error {
    if matches!(reason, NoAnswer::Stopped) {
        return InterruptedError.into();
    }
    let text =
        format!("the runtime {} cannot be used: {}", choice.name, why_unusable(choice, reason));
    match reason {
        NoAnswer::NoDevice(_) => NoDeviceError(text).into(),
        _ => anyhow::Error::msg(text),
    }
}

/// Why a runtime cannot be used, and how to install what it needs if that is not there.
#[must_use]
pub fn why_unusable(choice: &RuntimeChoice, reason: &NoAnswer) -> String {
    let install = choice.install().filter(|_| matches!(reason, NoAnswer::NoDevice(_)));
    let advice =
        install.map(|how| format!("; to install what it needs: {how}")).unwrap_or_default();
    let reason = reason.to_string();
    let reason = reason.strip_prefix(&format!("{}: ", choice.name)).unwrap_or(&reason);
    let missing = choice.missing_files().map(|what| format!("; {what}")).unwrap_or_default();
    format!("{reason}{missing}{advice}")
}

fn unusable(device: &Device, reason: &NoAnswer) -> anyhow::Error {
    if matches!(reason, NoAnswer::Stopped) {
        return InterruptedError.into();
    }
    let backend = device.backend;
    let text = format!("the {backend} backend cannot be used: {reason}");
    NoDeviceError(format!("{text} (`calibrate list devices` lists the devices)")).into()
}
