//! Phases where no mark tells them are right, or unknown.

mod marked;
mod partly;
pub(crate) mod program;
mod served;
mod twins;
mod updates;

use crate::loaded::Loaded;
use kernel_traces::Vendor;
use kernel_traces::compare::{Answer, Basis, CompareOptions, Comparison, Headline, WorkAspect};
use kernel_traces::segment::{Phase, PhaseEvidence};
use program::training::Checkpoint;
use program::{Attention, Program};

impl Loaded {
    fn made(program: &Program) -> Self {
        let loaded = Self::read(program.text());
        assert_eq!(loaded.trace.warnings, []);
        assert_eq!(loaded.trace.kernels.len(), program.truth.len());
        loaded
    }

    fn name(&self, kernel: usize) -> &str {
        self.trace.names.text(self.trace.kernels.name[kernel])
    }
}

const VENDORS: [Vendor; 2] = [Vendor::Nvidia, Vendor::Amd];

/// No phase is wrong; the share of the kernels that have one of those that are of one.
fn known_share(program: &Program, loaded: &Loaded) -> f64 {
    let (mut known, mut all) = (0_u32, 0_u32);
    for (kernel, truth) in program.truth.iter().enumerate() {
        let found = loaded.segments.steps.phase(kernel);
        let name = loaded.name(kernel);
        assert!(
            found.is_none() || found == *truth,
            "kernel {kernel}, {name}: {found:?}, {truth:?}"
        );
        all += u32::from(truth.is_some());
        known += u32::from(found.is_some());
    }
    f64::from(known) / f64::from(all.max(1))
}

fn findings(loaded: &Loaded) -> Vec<(Phase, PhaseEvidence, usize)> {
    let findings = loaded.segments.steps.findings.iter();
    findings.map(|found| (found.phase, found.by, found.runs)).collect()
}

fn served(vendor: Vendor, passes: &[(Attention, Option<Phase>)]) -> (Program, Loaded) {
    let mut program = Program::new(vendor);
    passes.iter().for_each(|(attention, phase)| program.serve(*attention, *phase));
    let loaded = Loaded::made(&program);
    (program, loaded)
}

const PREFILL: Option<Phase> = Some(Phase::Prefill);
const DECODE: Option<Phase> = Some(Phase::Decode);
const MIXED: Option<Phase> = Some(Phase::Mixed);

fn generation(batch: u64, prompt: u64, tokens: u64) -> Vec<(Attention, Option<Phase>)> {
    let decode = |token| (Attention::Plain(batch, 1, prompt + token, false), DECODE);
    let prefill = (Attention::Plain(batch, prompt, prompt, true), PREFILL);
    [prefill].into_iter().chain((1..=tokens).map(decode)).collect()
}

#[test]
fn sizes_of_attention_tell_prompts_from_tokens() {
    for vendor in VENDORS {
        let mut passes = generation(4, 100, 5);
        let (program, loaded) = served(vendor, &passes);
        // What chooses a token, before a pass of another phase, may be of that.
        assert!(known_share(&program, &loaded) > 0.99, "{vendor:?}");
        let sizes = PhaseEvidence::Sizes;
        assert_eq!(findings(&loaded), [(Phase::Prefill, sizes, 1), (Phase::Decode, sizes, 5)]);
        // Whichever comes first.
        passes.reverse();
        let (program, loaded) = served(vendor, &passes);
        assert!(known_share(&program, &loaded) > 0.99, "{vendor:?}");
        assert_eq!(findings(&loaded), [(Phase::Prefill, sizes, 1), (Phase::Decode, sizes, 5)]);
    }
}

#[test]
fn sizes_of_pages_tell_what_they_can() {
    for vendor in VENDORS {
        let passes = [
            (Attention::Pages(2048, 1), PREFILL),
            (Attention::Pages(32, 32), DECODE),
            (Attention::Pages(32, 32), DECODE),
            // Prompts, with others or without.
            (Attention::Pages(2048, 9), MIXED),
            (Attention::Pages(32, 32), DECODE),
        ];
        let (program, loaded) = served(vendor, &passes);
        let share = known_share(&program, &loaded);
        assert!((0.75..0.85).contains(&share), "{share}");
        let of_mixed = program.truth.iter().enumerate().filter(|(_, truth)| **truth == MIXED);
        let steps = &loaded.segments.steps;
        assert!(of_mixed.into_iter().all(|(kernel, _)| steps.phase(kernel).is_none()));
    }
}

#[test]
fn what_sizes_do_not_show_is_unknown() {
    let unknown = [
        // An encoder, and what was drafted: attention of several tokens that may be anything.
        Attention::Plain(4, 100, 100, false),
        Attention::Plain(4, 5, 105, true),
        Attention::Pages(96, 32),
    ];
    for vendor in VENDORS {
        for attention in unknown {
            let (_, loaded) = served(vendor, &[(attention, None), (attention, None)]);
            assert!(!loaded.segments.steps.have_phases(), "{vendor:?}");
        }
        // Without sizes, the names of these kernels say nothing.
        let mut program = Program::new(vendor);
        program.has_sizes = false;
        for (attention, phase) in generation(4, 100, 5) {
            program.serve(attention, phase);
        }
        assert!(!Loaded::made(&program).segments.steps.have_phases());
    }
}

/// The last blocks of some encoders attend from one token to all.
#[test]
fn one_query_is_no_decoding_where_other_tokens_go_through_the_pass() {
    let mut program = Program::new(Vendor::Nvidia);
    for _ in 0..3 {
        program.serve(Attention::Plain(4, 100, 100, false), None);
        program.attention(Attention::Plain(4, 1, 101, false), None);
    }
    assert!(!Loaded::made(&program).segments.steps.have_phases());
}

#[test]
fn names_of_attention_tell_what_they_can() {
    let decode: [&[&str]; 2] = [
        &["flashinfer::BatchDecodeWithPagedKVCacheKernel"],
        &["paged_attention_ll4mi_QKV_mfma16_kernel", "paged_attention_ll4mi_reduce_kernel"],
    ];
    // These also verify drafts, and decode large batches.
    let prompts: [&[&str]; 2] = [
        &["flashinfer::BatchPrefillWithPagedKVCacheKernel"],
        &["_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelIiEEEEvDpT1_"],
    ];
    let both: [&[&str]; 2] = [
        &[
            "flashinfer::BatchPrefillWithPagedKVCacheKernel",
            "flashinfer::BatchDecodeWithPagedKVCacheKernel",
        ],
        &["context_attention_fwd_kernel", "paged_attention_ll4mi_QKV_mfma16_kernel"],
    ];
    for (vendor, place) in VENDORS.into_iter().zip(0..) {
        let [decode, prompts, both] = [decode, prompts, both].map(|of| Attention::Named(of[place]));
        for several in [prompts, both] {
            // Prompts, or the verification of drafts: decoding.
            for truth in [PREFILL, DECODE] {
                let passes =
                    [(several, truth), (decode, DECODE), (decode, DECODE), (several, truth)];
                let (program, loaded) = served(vendor, &passes);
                let share = known_share(&program, &loaded);
                assert!((0.45..0.55).contains(&share), "{vendor:?} {share}");
            }
            let (_, loaded) = served(vendor, &[(several, None), (several, None)]);
            assert!(!loaded.segments.steps.have_phases());
        }
    }
}

/// A query over a list of one length, and text that is only encoded, have no cache.
#[test]
fn without_a_cache_nothing_is_decoded() {
    for vendor in VENDORS {
        let list = (Attention::Plain(64, 1, 200, false), None);
        let (_, loaded) = served(vendor, &[list; 3]);
        assert!(!loaded.segments.steps.have_phases(), "{:?}", findings(&loaded));
        let mut encoder = Program::new(vendor);
        encoder.has_head = false;
        (0..3).for_each(|_| encoder.serve(Attention::Plain(8, 77, 77, true), None));
        let loaded = Loaded::made(&encoder);
        assert!(!loaded.segments.steps.have_phases(), "{:?}", findings(&loaded));
        // A model that predicts tokens of its table reads a prompt, unless it computes a loss.
        for (has_loss, truth) in [(false, PREFILL), (true, None)] {
            let mut program = Program::new(vendor);
            for _ in 0..2 {
                program.serve(Attention::Plain(8, 77, 77, true), truth);
                if has_loss {
                    program.loss();
                }
            }
            let loaded = Loaded::made(&program);
            known_share(&program, &loaded);
            assert_eq!(loaded.segments.steps.have_phases(), !has_loss);
        }
    }
}

const CHECKPOINTS: [Checkpoint; 4] =
    [Checkpoint::None, Checkpoint::Function, Checkpoint::Hook, Checkpoint::Unseen];

#[test]
fn parts_of_training_steps() {
    for (vendor, has_numbers) in
        VENDORS.into_iter().flat_map(|vendor| [(vendor, true), (vendor, false)])
    {
        for checkpoint in CHECKPOINTS {
            let mut program = Program::new(vendor);
            program.has_numbers = has_numbers;
            (0..3).for_each(|_| program.train(checkpoint));
            let loaded = Loaded::made(&program);
            // Behind a second run that no frame shows, nothing shows whose kernels are next.
            let least = if checkpoint == Checkpoint::Unseen { 0.9 } else { 1.0 };
            let share = known_share(&program, &loaded);
            assert!(share >= least, "{vendor:?}, {checkpoint:?}: {share}");
            let of = |phase| {
                let found = findings(&loaded);
                found.iter().find(|one| one.0 == phase).map(|one| one.2)
            };
            assert_eq!(of(Phase::Forward), Some(3), "{checkpoint:?}");
            let times = (checkpoint != Checkpoint::None).then_some(18);
            assert_eq!(of(Phase::Recompute), times, "{checkpoint:?}");
            // Loading inputs and clipping are not part of these.
            let others = (0..program.truth.len()).filter(|at| program.truth[*at].is_none());
            assert!(others.into_iter().all(|at| loaded.segments.steps.phase(at).is_none()));
        }
    }
}

/// Whatever the passes without gradients come before or after, and whatever the profiler writes of
/// gradients.
#[test]
fn passes_without_gradients_are_no_forward_passes() {
    for (vendor, has_numbers) in
        VENDORS.into_iter().flat_map(|vendor| [(vendor, true), (vendor, false)])
    {
        for checkpoint in [Checkpoint::None, Checkpoint::Function, Checkpoint::Hook] {
            let mut program = Program::new(vendor);
            program.has_numbers = has_numbers;
            for evaluations in [1, 0, 3, 2] {
                (0..evaluations).for_each(|_| program.evaluate());
                program.train(checkpoint);
            }
            program.evaluate();
            let loaded = Loaded::made(&program);
            assert_eq!(known_share(&program, &loaded), 1.0, "{has_numbers} {checkpoint:?}");
            let others = (0..program.truth.len()).filter(|at| program.truth[*at].is_none());
            assert!(others.into_iter().all(|at| loaded.segments.steps.phase(at).is_none()));
            assert!(findings(&loaded).contains(&(Phase::Forward, PhaseEvidence::Gradients, 4)));
        }
    }
}

/// The passes that an optimizer runs are none of its own, and what else it runs then is unknown.
#[test]
fn an_optimizer_with_a_closure_runs_the_passes() {
    for (vendor, has_numbers) in [(VENDORS[0], true), (VENDORS[1], true), (VENDORS[0], false)] {
        let mut program = Program::new(vendor);
        program.has_numbers = has_numbers;
        (0..3).for_each(|_| program.train_in_closure());
        let loaded = Loaded::made(&program);
        let share = known_share(&program, &loaded);
        let passes = findings(&loaded);
        let forward = (Phase::Forward, PhaseEvidence::Gradients, 3);
        assert!(passes.contains(&forward), "{has_numbers} {passes:?}");
        assert!(passes.iter().any(|one| one.0 == Phase::Backward));
        assert!(share > 0.9, "{has_numbers} {share}");
    }
}

/// A device that decodes faster and reads prompts more slowly says so, phase by phase, in both
/// orders, though nothing is marked.
#[test]
fn layers_are_compared_phase_by_phase() {
    let [(_, first), (_, second)] = VENDORS.map(|vendor| served(vendor, &generation(4, 100, 5)));
    let options = CompareOptions::default();
    let [there, back] = [[&first, &second], [&second, &first]].map(|[first, second]| {
        Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap()
    });
    for (found, phases) in [(&there, &there.gap.phases), (&back, &back.gap.phases)] {
        let phases: Vec<_> = phases.iter().map(|part| (part.phase, part.first_steps)).collect();
        assert_eq!(phases, [(Phase::Prefill, 1.0), (Phase::Decode, 5.0)]);
        let kinds = found.layers.kinds.iter().filter(|kind| !kind.is_outside);
        let kinds: Vec<_> = kinds.map(|kind| (kind.phase, kind.first_layers)).collect();
        assert!(kinds.contains(&(PREFILL, 6)) || kinds.contains(&(PREFILL, 5)), "{kinds:?}");
        assert!(kinds.iter().any(|(phase, _)| *phase == DECODE), "{kinds:?}");
        assert!(kinds.iter().all(|(phase, _)| phase.is_some()), "{kinds:?}");
    }
    for (one, other) in there.gap.phases.iter().zip(&back.gap.phases) {
        assert_eq!((one.first_ns, one.second_ns), (other.second_ns, other.first_ns));
    }
    let question = &there.same_work.questions[1];
    assert_eq!(question.first.as_deref(), Some("prefill, decode"));
    assert_eq!(question.evidence, "sizes of attention");
    // One phase alone.
    let options = CompareOptions { phase: DECODE, layer: None };
    let decode = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
    let of_decode = program_kernels(&first, DECODE);
    assert_eq!(decode.first.kernels, of_decode);
    assert_eq!(decode.first.steps, 5.0);
}

/// A step with checkpoints is one step, however often its layers run.
#[test]
fn checkpoints_add_no_steps() {
    let steps = |checkpoint| {
        let mut program = Program::new(Vendor::Nvidia);
        (0..3).for_each(|_| program.train(checkpoint));
        Loaded::made(&program)
    };
    let plain = steps(Checkpoint::None);
    for checkpoint in CHECKPOINTS {
        let other = steps(checkpoint);
        let options = CompareOptions::default();
        let compare = |first: &Loaded, second: &Loaded, options| {
            Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap()
        };
        let (there, back) = (compare(&plain, &other, options), compare(&other, &plain, options));
        for found in [&there, &back] {
            assert_eq!([found.first.steps, found.second.steps], [3.0; 2], "{checkpoint:?}");
            assert_eq!(found.basis, Basis::Layers);
        }
        assert_eq!(
            (there.gap.first_ns, there.gap.second_ns),
            (back.gap.second_ns, back.gap.first_ns)
        );
        // More kernels of the same pace take longer.
        let is_longer = there.gap.second_ns > 1.1 * there.gap.first_ns;
        assert_eq!(is_longer, checkpoint != Checkpoint::None, "{checkpoint:?}");
        for phase in [Phase::Forward, Phase::Backward] {
            let options = CompareOptions { phase: Some(phase), layer: None };
            let found = compare(&plain, &other, options);
            let ratio = found.gap.first_ns / found.gap.second_ns;
            let is_alike = (0.8..1.25).contains(&ratio);
            assert!(
                is_alike || checkpoint == Checkpoint::Unseen,
                "{checkpoint:?} {phase:?} {ratio}"
            );
        }
    }
}

/// An evaluation between steps of training makes none of them faster.
#[test]
fn evaluations_are_no_steps_of_training() {
    let steps = |evaluations| {
        let mut program = Program::new(Vendor::Nvidia);
        for _ in 0..3 {
            (0..evaluations).for_each(|_| program.evaluate());
            program.train(Checkpoint::None);
        }
        Loaded::made(&program)
    };
    let [none, two] = [0, 2].map(steps);
    let options = CompareOptions::default();
    for [first, second] in [[&none, &two], [&two, &none]] {
        let found = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
        assert_eq!([found.first.steps, found.second.steps], [3.0; 2]);
        assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
        assert!(found.verdict().contains("2 other passes a step"), "{}", found.verdict());
        let model = &found.same_work.questions[0];
        assert_eq!((model.about, model.answer), (WorkAspect::Model, Answer::Same));
    }
    // As many on both sides are no difference.
    let found = Comparison::of(two.side("a.json"), two.side("b.json"), &options).unwrap();
    assert_ne!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
}

/// All parts of a step of training have the tokens of the step.
#[test]
fn batches_of_training_are_compared_by_token() {
    let [small, large] = [256, 768].map(|tokens| {
        let mut program = Program::new(Vendor::Nvidia);
        program.tokens = tokens;
        (0..3).for_each(|_| program.train(Checkpoint::None));
        Loaded::made(&program)
    });
    let options = CompareOptions::default();
    for ([first, second], units) in
        [([&small, &large], [256.0, 768.0]), ([&large, &small], [768.0, 256.0])]
    {
        let found = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
        assert_eq!(found.same_work.headline, Headline::ForAToken, "{}", found.verdict());
        let [rate] = found.same_work.rates[..] else { panic!("{:?}", found.same_work.rates) };
        assert_eq!(([rate.first_units, rate.second_units], rate.phase), (units, None));
        assert!(found.verdict().contains("for a token"), "{}", found.verdict());
    }
}

fn program_kernels(loaded: &Loaded, phase: Option<Phase>) -> u64 {
    let steps = &loaded.segments.steps;
    (0..loaded.trace.kernels.len()).filter(|kernel| steps.phase(*kernel) == phase).count() as u64
}

/// The parts of a step of training are parts of each, and no mix of steps.
#[test]
fn training_is_compared_part_by_part() {
    let [first, second] = VENDORS.map(|vendor| {
        let mut program = Program::new(vendor);
        (0..3).for_each(|_| program.train(Checkpoint::None));
        Loaded::made(&program)
    });
    let options = CompareOptions::default();
    let found = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
    let parts: Vec<Phase> = found.gap.phases.iter().map(|part| part.phase).collect();
    assert_eq!(parts, [Phase::Forward, Phase::Backward, Phase::Optimizer]);
    assert!(found.gap.classes.iter().all(|class| class.class != "PHASE_MIX"));
    let sum: f64 = found.gap.phases.iter().filter_map(|part| part.first_ns).sum();
    assert!(sum <= found.gap.first_ns && sum > 0.8 * found.gap.first_ns, "{sum}");
    assert!(found.gap.rounding_ns < 1.0);
    for phase in parts {
        let options = CompareOptions { phase: Some(phase), layer: None };
        let part = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
        assert_eq!(part.first.kernels, program_kernels(&first, Some(phase)));
        let of_whole = found.gap.phases.iter().find(|one| one.phase == phase).unwrap();
        assert!((part.gap.first_ns - of_whole.first_ns.unwrap()).abs() < 1.0, "{phase:?}");
    }
}
