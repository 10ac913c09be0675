//! The A/A runs that every run begins with.

use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{Clock, Family, Implementation, Problem};

use super::subject::{Comparison, Subject, clocks_of};

/// What the noise floor of a CPU is measured on: for each family a problem of a few microseconds and
/// one of some hundred, or one that streams through memory.
const CPU_CONTROLS: [(Family, [&str; 2]); 4] = [
    (Family::Linear, ["linear_bias_relu/f32/m64.k64.n64", "linear_bias_relu/f32/m256.k256.n256"]),
    (
        Family::Conv,
        [
            "conv_bn_relu/f32/n1.c16.h8.w8.k16.r3.s3.pad1",
            "conv_bn_relu/f32/n1.c32.h28.w28.k32.r3.s3.pad1",
        ],
    ),
    (Family::Attention, ["attention_head/f32/b1.h2.q32.d32", "attention_head/f32/b1.h4.q128.d64"]),
    (Family::Elementwise, ["add_relu/f32/m64.n1024", "add_relu/f32/m4096.n1024"]),
];

/// What the noise floor of a GPU is measured on first: mostly its launches, yet large enough to be
/// rotated through the caches.
const SMALL_GPU_CONTROL: &str = "add_relu/f32/m512.n1024";

/// The A/A runs of a run, for each implementation that has its own: on a CPU two for each family that
/// is measured, each against a copy with tensors of its own, which is as hard as comparing two
/// variants; on a GPU two for each clock, which depend on its second-level cache.
///
/// # Errors
///
/// Never, since the texts are fixed; they are parsed like any other.
pub fn controls(subjects: &[Subject], l2_bytes: Option<u64>) -> anyhow::Result<Vec<Subject>> {
    let mut controls = Vec::new();
    let yardstick = |one: &Subject| one.implementation.yardstick();
    let mut yardsticks: Vec<Implementation> = subjects.iter().map(yardstick).collect();
    yardsticks.sort_unstable();
    yardsticks.dedup();
    let clocks = clocks_of(subjects).into_iter();
    let kinds = clocks.flat_map(|clock| yardsticks.iter().map(move |&one| (clock, one)));
    for kind in kinds {
        let (clock, whose) = kind;
        let (problems, comparison) = match l2_bytes {
            Some(l2_bytes) => (of_gpu(l2_bytes)?, Comparison::UnfusedUnfused),
            None if whose.runtime().is_some() => {
                (of_runtime(subjects, kind), Comparison::UnfusedCopy)
            }
            None => (of_cpu(subjects)?, Comparison::UnfusedCopy),
        };
        let control = |problem| Subject { comparison, ..Subject::of(problem, clock, whose) };
        controls.extend(problems.into_iter().map(control));
    }
    Ok(controls)
}

/// For the kernels of this project, which run every problem.
fn of_cpu(subjects: &[Subject]) -> anyhow::Result<Vec<Problem>> {
    let is_measured = |family: Family| subjects.iter().any(|subject| subject.family() == family);
    let measured = CPU_CONTROLS.iter().filter(|(family, _)| is_measured(*family));
    measured.flat_map(|(_, texts)| texts).map(|text| Ok(text.parse()?)).collect()
}

/// For a runtime, which need not run any problem but those that it is measured in: of each family
/// the chains with the least and the median work. The single ops are measured against copies anyway.
fn of_runtime(subjects: &[Subject], (clock, whose): (Clock, Implementation)) -> Vec<Problem> {
    let is_its = |one: &&Subject| {
        (one.clock, one.implementation) == (clock, whose) && !one.problem.chain().is_single()
    };
    let problems_of = |family: Family| {
        let of_family = subjects.iter().filter(is_its).filter(|one| one.family() == family);
        let mut problems: Vec<Problem> = of_family.map(|one| one.problem).collect();
        // A run that is resumed chooses the same ones, in whatever order they were asked for.
        problems.sort_by_cached_key(|problem| (work(problem), problem.to_string()));
        problems.dedup();
        let [least, median] = [0, problems.len() / 2];
        let median = problems.get(median).filter(|_| median > least).copied();
        problems.first().copied().into_iter().chain(median)
    };
    Family::ALL.into_iter().flat_map(problems_of).collect()
}

/// Operations and bytes together: whichever a kernel is bound by.
fn work(problem: &Problem) -> u64 {
    let Traffic { flops, unfused_bytes, .. } = Traffic::of(problem);
    flops.saturating_add(unfused_bytes)
}

fn of_gpu(l2_bytes: u64) -> anyhow::Result<Vec<Problem>> {
    Ok(vec![SMALL_GPU_CONTROL.parse()?, large_gpu_control(l2_bytes).parse()?])
}

/// The same problem with tensors that are four times the cache together: it streams through memory.
fn large_gpu_control(l2_bytes: u64) -> String {
    const COLS: u64 = 4096;
    /// An addition has two inputs and an output, of four bytes each.
    const BYTES_OF_ROW: u64 = 3 * 4 * COLS;
    let rows = l2_bytes.saturating_mul(4).div_ceil(BYTES_OF_ROW).clamp(256, 16384);
    format!("add_relu/f32/m{}.n{COLS}", rows.next_multiple_of(64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str, clock: Clock) -> Subject {
        Subject::of(text.parse().unwrap(), clock, Implementation::Native)
    }

    #[test]
    fn every_family_has_two_controls_of_its_own_on_a_cpu() {
        let subjects = [
            subject("mlp/f32/m3.k4.n5.o6", Clock::Host),
            subject("mul_add/f32/m3.n4", Clock::Host),
        ];
        let cpu = controls(&subjects, None).unwrap();
        let families: Vec<Family> = cpu.iter().map(Subject::family).collect();
        assert_eq!(&families[..2], [Family::Linear; 2]);
        assert_eq!(&families[2..], [Family::Elementwise; 2]);
        assert!(cpu.iter().all(|control| control.comparison.has_copy()));
        for (family, texts) in CPU_CONTROLS {
            for text in texts {
                assert_eq!(subject(text, Clock::Host).family(), family);
            }
        }
    }

    #[test]
    fn every_clock_of_a_gpu_has_two_controls() {
        let clocks = [Clock::Device, Clock::LaunchInclusive];
        let subjects = clocks.map(|clock| subject("add_relu/f32/m1.n1", clock));
        let gpu = controls(&subjects, Some(50 << 20)).unwrap();
        assert_eq!(gpu.len(), 4);
        assert_eq!(clocks_of(&gpu), clocks);
        assert!(gpu.iter().all(|control| control.comparison == Comparison::UnfusedUnfused));
        assert_eq!(gpu[1].problem.to_string(), "add_relu/f32/m4288.n4096");
        for l2_bytes in [0, u64::MAX] {
            assert!(controls(&subjects, Some(l2_bytes)).is_ok());
        }
    }

    #[test]
    fn a_runtime_has_controls_of_its_own() {
        let problem = "mul_add/f32/m3.n4".parse().unwrap();
        let runtime: Implementation = "pytorch@2.9.1".parse().unwrap();
        let of = |whose| Subject::of(problem, Clock::Host, whose);
        let both = controls(&[of(runtime), of(Implementation::Native)], None).unwrap();
        let whose: Vec<_> = both.iter().map(|control| control.implementation).collect();
        assert_eq!(whose, [Implementation::Native, Implementation::Native, runtime]);
        let vendor = controls(&[of(Implementation::Vendor)], None).unwrap();
        assert!(vendor.iter().all(|control| control.implementation.is_native()));
    }

    /// Those that a runtime has for problems that it is measured in.
    fn of_tiny(texts: &[&str]) -> Vec<String> {
        let tiny: Implementation = "tiny@1.2".parse().unwrap();
        let subject = |text: &&str| Subject::of(text.parse().unwrap(), Clock::Host, tiny);
        let subjects: Vec<Subject> = texts.iter().map(subject).collect();
        let controls = controls(&subjects, None).unwrap();
        assert!(controls.iter().all(|one| one.implementation == tiny));
        assert!(controls.iter().all(|one| one.comparison == Comparison::UnfusedCopy));
        controls.iter().map(|one| one.problem.to_string()).collect()
    }

    #[test]
    fn the_controls_of_a_runtime_are_problems_that_it_runs() {
        // One that lacks f32, and `add`.
        let only = "mul+relu/bf16/m3.n4";
        assert_eq!(of_tiny(&[only]), [only]);
        assert_eq!(of_tiny(&[only, only, "relu/bf16/m9.n9"]), [only]);
        // Its single ops have copies of their own.
        assert!(of_tiny(&["relu/bf16/m3.n4"]).is_empty());
    }

    #[test]
    fn they_have_the_least_and_the_median_work_of_each_family_in_whatever_order() {
        let mut texts = [
            "mul+relu/bf16/m8.n64",
            "linear+relu/bf16/m8.k8.n8",
            "mul+relu/bf16/m4.n64",
            "mul+relu/bf16/m64.n64",
            "linear+relu/bf16/m8.k64.n8",
            "mul+relu/bf16/m2.n64",
            "mul+relu/bf16/m1.n64",
        ];
        let expected = of_tiny(&texts);
        let [linear, elementwise] = [["m8.k8.n8", "m8.k64.n8"], ["m1.n64", "m4.n64"]];
        let sizes = |text: &String| text.rsplit('/').next().unwrap().to_owned();
        let found: Vec<String> = expected.iter().map(sizes).collect();
        assert_eq!(found, [linear, elementwise].concat());
        texts.reverse();
        assert_eq!(of_tiny(&texts), expected);
    }
}
