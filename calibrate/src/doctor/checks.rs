//! Which kernels are examined, and how.

use fusion_cost_model::{Backend, Clock, Core, DType, Problem};

use super::families::FAMILIES;
use crate::run::Target;
use crate::worker::{CoreChoice, ExamineTask};

/// A check of kernels.
pub(super) struct Check {
    /// What it examines.
    pub(super) name: String,
    /// How.
    pub(super) task: ExamineTask,
    /// What the name of one of its kernels must contain, or something else was examined.
    kernels: Option<&'static str>,
}

impl Check {
    /// What was not examined, though the name of the check says so.
    pub(super) fn lacks(&self, kernels: &[String]) -> Option<String> {
        let wanted = self.kernels.filter(|name| !kernels.iter().any(|one| one.contains(name)))?;
        Some(format!("not examined: {wanted} is not used here, but {}", kernels.join(", ")))
    }

    /// The commands that run it again, and one of its problems by itself.
    pub(super) fn reproducers(&self, target: &Target, problem: Problem) -> [String; 2] {
        let Self { name, task, .. } = self;
        let backend = target.device.backend;
        let core = task.core.map(|core| format!(" --core {core}")).unwrap_or_default();
        [
            format!("again: calibrate doctor --backend {backend} --check '{name}'"),
            format!("by itself: calibrate --backend {backend}{core} --quick --problem {problem}"),
        ]
    }
}

/// Rows of a tile of `wgmma`, and of the TMA's boxes.
const TILE_ROWS: u64 = 128;
/// Numbers along k of a step of the ring through which it gets them.
const STEP: u64 = 64;
/// Steps of the longest product: one more than the ring has stages where its tiles are narrowest.
const MOST_STEPS: u64 = 9;
/// Waits of all blocks for each other, for each launch of the other checks.
const BARRIERS_A_LAUNCH: u32 = 10;

/// The checks of a device.
///
/// # Errors
///
/// Never, since the texts are fixed; they are parsed like any other.
pub(super) fn of(target: &Target, launches: u32) -> anyhow::Result<Vec<Check>> {
    match target.device.backend {
        Backend::Cpu => of_cpu(launches),
        Backend::Cuda | Backend::Hip => {
            let (CoreChoice::From(best) | CoreChoice::Only(best)) = target.cores() else {
                return Ok(Vec::new());
            };
            let processors = target.observe().gpu.map_or(1, |gpu| u64::from(gpu.processors));
            of_gpu(best, processors, launches)
        }
    }
}

fn of_cpu(launches: u32) -> anyhow::Result<Vec<Check>> {
    let each = FAMILIES.iter().map(|(name, chain, sizes)| {
        check(name, Clock::Host, None, launches, &[format!("{chain}/f32/{sizes}")])
    });
    each.collect()
}

fn of_gpu(best: Core, processors: u64, launches: u32) -> anyhow::Result<Vec<Check>> {
    let mut checks = Vec::new();
    let on = |core: Core, name: &str, launches, problems: &[String]| {
        check(&format!("{name} ({core})"), Clock::Device, Some(core), launches, problems)
    };
    for core in std::iter::successors(Some(best), |core| core.next()) {
        // As many tiles as processors: fewer would not take that path.
        let rows = if core == Core::Wgmma { TILE_ROWS * processors } else { 16 };
        for dtype in [DType::F16, DType::Bf16] {
            let problem = format!("linear_bias/{dtype}/m{rows}.k{STEP}.n64");
            let tile = on(core, &format!("a tile of the matrix core, {dtype}"), 1, &[problem])?;
            checks.push(Check { kernels: (core == Core::Wgmma).then_some("wgmma"), ..tile });
        }
        if core != Core::Wgmma {
            continue;
        }
        let edges = format!("linear_bias/bf16/m{}.k72.n56", rows - 37);
        let tma = on(core, "boxes of the TMA with edges", 1, &[edges])?;
        checks.push(Check { kernels: Some("wgmma"), ..tma });
        let steps = (1..=MOST_STEPS).map(|steps| steps * STEP);
        let problems: Vec<String> =
            steps.map(|k| format!("linear_bias/bf16/m{rows}.k{k}.n64")).collect();
        let ring = on(core, "a ring of 1 to 9 steps", 1, &problems)?;
        checks.push(Check { kernels: Some("wgmma"), ..ring });
    }
    let launch = ["relu/f32/m1.n8".to_owned()];
    // Each is waited for by the host.
    let clock = Clock::LaunchInclusive;
    checks.push(check("a launch and a wait", clock, Some(Core::Plain), launches, &launch)?);
    let barriers = launches.saturating_mul(BARRIERS_A_LAUNCH);
    let waiting = "linear+bias+add+layer_norm/f32/m33.k16.n40".to_owned();
    checks.push(on(Core::Plain, "all blocks wait for each other", barriers, &[waiting])?);
    for (name, chain, sizes) in FAMILIES {
        let problems = [DType::F32, DType::Bf16].map(|dtype| format!("{chain}/{dtype}/{sizes}"));
        checks.push(on(best, name, launches, &problems)?);
    }
    Ok(checks)
}

fn check(
    name: &str,
    clock: Clock,
    core: Option<Core>,
    launches: u32,
    problems: &[String],
) -> anyhow::Result<Check> {
    let problems = problems.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let task = ExamineTask { problems, clock, core, launches };
    Ok(Check { name: name.to_owned(), task, kernels: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_and_every_family_is_examined() {
        let names = |best| -> Vec<String> {
            of_gpu(best, 132, 10).unwrap().into_iter().map(|check| check.name).collect()
        };
        let on_hopper = names(Core::Wgmma);
        for part in ["f16 (wgmma)", "bf16 (mma)", "f16 (plain)", "edges (wgmma)", "ring of 1 to 9"]
        {
            assert!(on_hopper.iter().any(|name| name.contains(part)), "{part}: {on_hopper:?}");
        }
        assert!(!names(Core::Mfma).iter().any(|name| name.contains("TMA")));
        assert_eq!(of_cpu(10).unwrap().len(), FAMILIES.len());
        let checks = of_gpu(Core::Mma, 10, 10_000).unwrap();
        let launches_of = |part: &str| {
            let check = checks.iter().find(|check| check.name.contains(part)).unwrap();
            check.task.launches
        };
        assert_eq!(launches_of("all blocks wait"), 100_000);
        assert_eq!(launches_of("a launch and a wait"), 10_000);
    }

    #[test]
    fn what_was_not_examined_is_said() {
        let checks = of_gpu(Core::Wgmma, 2, 1).unwrap();
        let lack = |name: &str| checks[0].lacks(&[name.to_owned()]);
        assert_eq!(lack("linear_wgmma_128x64"), None);
        assert!(lack("linear_128x64").unwrap().contains("wgmma is not used here"));
    }
}
