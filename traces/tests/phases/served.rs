//! What servers run without marks has its phases or none, and other mixes of them have no headline.

use kernel_traces::Vendor;
use kernel_traces::compare::{Answer, CompareOptions, Comparison, Headline, WorkAspect};
use kernel_traces::segment::{Phase, PhaseEvidence};

use super::program::server::{Batch, Kernels};
use super::program::training::Checkpoint;
use super::program::{Attention, Program};
use super::{Loaded, PREFILL, VENDORS, findings, known_share};

fn run(vendor: Vendor, kernels: Kernels, has_sizes: bool, steps: &[Batch]) -> (Program, Loaded) {
    let mut program = Program::new(vendor);
    program.has_sizes = has_sizes;
    steps.iter().for_each(|batch| program.step(kernels, batch));
    let loaded = Loaded::made(&program);
    (program, loaded)
}

/// Steps of all kinds, in an order.
fn steps(prefills: usize, mixed: usize, decodes: usize) -> Vec<Batch> {
    let mut all = vec![Batch::prompts(&[700]); prefills];
    all.extend(vec![Batch::mixed(&[500], 31); mixed]);
    all.extend(vec![Batch::decode(32); decodes]);
    all
}

/// How much of the time is known depends on what the kernels show; nothing is wrong.
#[test]
fn phases_of_servers_are_right_or_unknown() {
    let all = steps(2, 3, 7);
    for vendor in VENDORS {
        for kernels in Kernels::ALL {
            for has_sizes in [true, false] {
                let (program, loaded) = run(vendor, kernels, has_sizes, &all);
                let share = known_share(&program, &loaded);
                let found = findings(&loaded);
                let of = |phase| found.iter().find(|one| one.0 == phase).map(|one| (one.1, one.2));
                let context = format!("{vendor:?} {kernels:?} {has_sizes}: {share} {found:?}");
                let sizes = PhaseEvidence::Sizes;
                match (kernels, has_sizes) {
                    (Kernels::Library, true) => {
                        assert_eq!(of(Phase::Prefill), Some((sizes, 2)), "{context}");
                        assert_eq!(of(Phase::Mixed), Some((sizes, 3)), "{context}");
                        assert_eq!(of(Phase::Decode), Some((sizes, 7)), "{context}");
                        assert!(share > 0.99, "{context}");
                    }
                    (Kernels::Server | Kernels::Pieces, true) => {
                        let outputs = PhaseEvidence::Outputs;
                        assert_eq!(of(Phase::Prefill), Some((outputs, 2)), "{context}");
                        assert_eq!(of(Phase::Decode), Some((outputs, 7)), "{context}");
                        assert_eq!(of(Phase::Mixed), None, "{context}");
                    }
                    (Kernels::TwoNames, _) => {
                        assert_eq!(of(Phase::Decode), Some((PhaseEvidence::Names, 7)), "{context}");
                        assert_eq!(found.len(), 1, "{context}");
                    }
                    (_, false) => assert_eq!(found, [], "{context}"),
                }
            }
        }
    }
}

/// Several prompts, and drafts of a few tokens, are not told from what is decoded with them.
#[test]
fn what_runs_together_may_be_anything() {
    for vendor in VENDORS {
        for kernels in Kernels::ALL {
            let batches = [
                Batch::prompts(&[300, 200, 100]),
                Batch::mixed(&[300, 200], 9),
                Batch::prompts(&[5; 20]),
                Batch::prompts(&[40]),
                Batch::decode(20),
            ];
            let steps: Vec<Batch> = batches.iter().cycle().take(15).cloned().collect();
            let (program, loaded) = run(vendor, kernels, true, &steps);
            known_share(&program, &loaded);
        }
    }
}

/// Some servers give the probabilities of all tokens of a prompt, or none of a part of one; and
/// some do not show how many sequences there are.
#[test]
fn outputs_alone_tell_no_phase() {
    let batches = [
        (Batch::prompts(&[300]), 300),
        (Batch::prompts(&[40, 40]), 80),
        (Batch::mixed(&[300], 1), 1),
        (Batch::mixed(&[300], 5), 1),
        (Batch::mixed(&[300], 5), 5),
    ];
    for vendor in VENDORS {
        for kernels in Kernels::ALL {
            for (batch, outputs) in &batches {
                let mut program = Program::new(vendor);
                for _ in 0..3 {
                    program.step_with(kernels, batch, *outputs);
                    program.step(kernels, &Batch::decode(32));
                }
                let loaded = Loaded::made(&program);
                known_share(&program, &loaded);
                assert!(!findings(&loaded).is_empty(), "{vendor:?} {kernels:?} {batch:?}");
            }
        }
        for batch in [Batch::prompts(&[300]), Batch::decode(32)] {
            let mut program = Program::new(vendor);
            program.has_tables = false;
            (0..3).for_each(|_| program.step(Kernels::Server, &batch));
            let loaded = Loaded::made(&program);
            assert_eq!(findings(&loaded), [], "{vendor:?} {batch:?}");
        }
    }
}

fn decoding(vendor: Vendor, kernels: Kernels, cached: u64, sequences: usize) -> Loaded {
    let mut program = Program::new(vendor);
    program.cached = cached;
    (0..5).for_each(|_| program.step(kernels, &Batch::decode(sequences)));
    Loaded::made(&program)
}

/// Attention over a longer context takes longer: what shows it makes the work another one, and
/// where nothing does, neither side is called faster for it.
#[test]
fn another_context_is_other_work() {
    let options = CompareOptions::default();
    let [nvidia, _] = VENDORS;
    for kernels in Kernels::ALL {
        for sequences in [1, 32] {
            let [near, far] =
                [700, 20_000].map(|cached| decoding(nvidia, kernels, cached, sequences));
            for [first, second] in [[&near, &far], [&far, &near]] {
                let sides = [first.side("a.json"), second.side("b.json")];
                let found = Comparison::of(sides[0], sides[1], &options).unwrap();
                let verdict = found.verdict();
                let context = format!("{kernels:?} {sequences}: {verdict}");
                if kernels == Kernels::Library {
                    let answer = answer(&found, WorkAspect::Context);
                    assert_eq!(answer, Some(Answer::Different), "{context}");
                    assert!(verdict.contains("20001"), "{context}");
                    assert_eq!(found.same_work.headline, Headline::Withheld, "{context}");
                } else if sequences == 32 {
                    assert_eq!(found.same_work.headline, Headline::Withheld, "{context}");
                    assert!(verdict.contains("how far attention looks back"), "{context}");
                }
                assert_ne!(found.same_work.headline, Headline::OfAStep, "{context}");
            }
        }
    }
}

/// The longest sequence bounds the others; one sequence has the context that it has.
#[test]
fn as_long_a_context_is_the_same_work() {
    let options = CompareOptions::default();
    for (sequences, expected) in [(1, Headline::OfAStep), (32, Headline::Unconfirmed)] {
        let [first, second] =
            VENDORS.map(|vendor| decoding(vendor, Kernels::Library, 20_000, sequences));
        let found = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
        assert_eq!(found.same_work.headline, expected, "{}", found.verdict());
        if expected == Headline::Unconfirmed {
            assert!(found.doubt().contains("whether context is the same"), "{}", found.doubt());
        }
    }
}

/// The same work by another library of attention has other operators, with other sizes.
#[test]
fn other_attention_is_the_same_work() {
    let options = CompareOptions::default();
    for cached in [700, 2000] {
        let [first, second] = [(VENDORS[0], Kernels::Library), (VENDORS[1], Kernels::Server)]
            .map(|(vendor, kernels)| decoding(vendor, kernels, cached, 32));
        for [first, second] in [[&first, &second], [&second, &first]] {
            let sides = [first.side("a.json"), second.side("b.json")];
            let found = Comparison::of(sides[0], sides[1], &options).unwrap();
            let sizes = answer(&found, WorkAspect::Sizes);
            assert_eq!(sizes, Some(Answer::Same), "{}", found.verdict());
            assert_eq!(found.same_work.headline, Headline::Unconfirmed, "{}", found.verdict());
        }
    }
}

fn answer(found: &Comparison, about: WorkAspect) -> Option<Answer> {
    found.same_work.questions.iter().find(|one| one.about == about).map(|one| one.answer)
}

/// Recordings of other mixes have no headline of a step, whatever shows the phases, in both orders.
#[test]
fn other_mixes_have_no_headline() {
    let [nvidia, amd] = VENDORS;
    let options = CompareOptions::default();
    for kernels in Kernels::ALL {
        for has_sizes in [true, false] {
            let of = |vendor, steps: &[Batch]| run(vendor, kernels, has_sizes, steps).1;
            let first = of(nvidia, &steps(2, 3, 7));
            for vendor in [nvidia, amd] {
                for other in [steps(1, 1, 20), steps(6, 0, 1), steps(0, 9, 2), steps(0, 0, 9)] {
                    let second = of(vendor, &other);
                    let [there, back] = [[&first, &second], [&second, &first]].map(|[a, b]| {
                        Comparison::of(a.side("a.json"), b.side("b.json"), &options).unwrap()
                    });
                    assert_eq!(there.same_work.headline, back.same_work.headline);
                    for found in [there, back] {
                        let context =
                            format!("{kernels:?} {has_sizes} {other:?}: {}", found.verdict());
                        let headline = found.same_work.headline;
                        assert!(!headline.is_of_a_step(), "{context}");
                        assert_eq!(found.gap.ratio, None, "{context}");
                        assert_eq!(found.warnings[0].code, "different-work", "{context}");
                        assert_eq!(calls_none_faster(&found), headline == Headline::Withheld);
                    }
                }
            }
        }
    }
}

/// Prompts alone against tokens alone.
#[test]
fn decode_against_prefill_has_no_headline() {
    let [nvidia, amd] = VENDORS;
    for kernels in Kernels::ALL {
        for has_sizes in [true, false] {
            let first = run(nvidia, kernels, has_sizes, &steps(5, 0, 0)).1;
            for vendor in [nvidia, amd] {
                let second = run(vendor, kernels, has_sizes, &steps(0, 0, 5)).1;
                for [first, second] in [[&first, &second], [&second, &first]] {
                    let options = CompareOptions::default();
                    let sides = [first.side("a.json"), second.side("b.json")];
                    let found = Comparison::of(sides[0], sides[1], &options).unwrap();
                    let context = format!("{kernels:?} {has_sizes}: {}", found.verdict());
                    assert_eq!(found.same_work.headline, Headline::Withheld, "{context}");
                }
            }
        }
    }
}

/// One process generates text, and the profiler writes no sizes: prompts choose other kernels and
/// take longer than tokens do, so the passes of a recording are not alike.
#[test]
fn text_that_is_generated_without_sizes_has_no_headline() {
    let of = |vendor, prompts, tokens| {
        let mut program = Program::new(vendor);
        program.has_sizes = false;
        for _ in 0..prompts {
            let passes = super::generation(4, 1000, tokens);
            passes.into_iter().for_each(|(attention, phase)| program.serve(attention, phase));
        }
        let loaded = Loaded::made(&program);
        known_share(&program, &loaded);
        loaded
    };
    let [nvidia, amd] = VENDORS;
    for (prompts, tokens) in [(3, 5), (2, 12), (2, 3)] {
        let (first, second) = (of(nvidia, 2, 5), of(amd, prompts, tokens));
        for [first, second] in [[&first, &second], [&second, &first]] {
            let options = CompareOptions::default();
            let found =
                Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
            assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
        }
    }
}

/// An evaluation computes the probabilities of all tokens; who generates needs those of the last.
#[test]
fn an_evaluation_is_no_prefill() {
    const TOKENS: u64 = 8 * 300;
    for vendor in VENDORS {
        for (scored, truth) in [(TOKENS, None), (8 * 299, None), (8, PREFILL), (0, PREFILL)] {
            for (op, keys) in [("aten::_log_softmax", 300), ("aten::_softmax", 300)] {
                let mut program = Program::new(vendor);
                for _ in 0..2 {
                    program.serve(Attention::Plain(8, keys, keys, true), truth);
                    if scored > 0 {
                        program.score(op, scored, truth);
                    }
                }
                let loaded = Loaded::made(&program);
                known_share(&program, &loaded);
                let found = loaded.segments.steps.have_phases();
                assert_eq!(found, truth.is_some(), "{vendor:?} {op} {scored}");
            }
        }
    }
}

/// Steps of training against passes of the same model that only go forward, with gradients that
/// operators show, and with or without sizes.
#[test]
fn training_against_inference_has_no_headline() {
    for (first, second) in [(0, 0), (0, 1), (1, 0)] {
        for has_sizes in [true, false] {
            let mut training = Program::new(VENDORS[first]);
            training.has_sizes = has_sizes;
            (0..3).for_each(|_| training.train(Checkpoint::None));
            let mut inference = Program::new(VENDORS[second]);
            inference.has_sizes = has_sizes;
            (0..3).for_each(|_| inference.serve(Attention::Plain(4, 64, 64, true), None));
            let [training, inference] = [&training, &inference].map(Loaded::made);
            for [first, second] in [[&training, &inference], [&inference, &training]] {
                let options = CompareOptions::default();
                let sides = [first.side("a.json"), second.side("b.json")];
                let found = Comparison::of(sides[0], sides[1], &options).unwrap();
                assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
                assert_eq!(found.warnings[0].code, "different-work");
            }
        }
    }
}

/// Whether the words of a comparison call no side faster.
fn calls_none_faster(found: &Comparison) -> bool {
    !found.verdict().contains("as fast") && !found.verdict().contains("no difference")
}

/// Where all phases are known, servers of two vendors are compared, and one faster by half is so.
#[test]
fn the_same_mix_is_compared() {
    for (kernels, batches) in [
        (Kernels::Library, steps(2, 3, 7)),
        (Kernels::Server, steps(2, 0, 7)),
        (Kernels::Pieces, steps(2, 0, 7)),
        (Kernels::TwoNames, steps(0, 0, 7)),
    ] {
        let [first, second] = VENDORS.map(|vendor| run(vendor, kernels, true, &batches).1);
        let options = CompareOptions::default();
        for [first, second] in [[&first, &second], [&second, &first]] {
            let found =
                Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
            let phase = &found.same_work.questions[1];
            assert_eq!((phase.about, phase.answer), (WorkAspect::Phase, Answer::Same), "{phase:?}");
            let headline = found.same_work.headline;
            assert!(headline.is_of_a_step(), "{kernels:?} {}", found.verdict());
        }
    }
}

/// Decoding in both, and passes that nothing shows in other numbers.
#[test]
fn passes_of_unknown_phases_leave_the_mix_open() {
    let of = |vendor, others| {
        let mut all = steps(0, 0, 8);
        all.extend(vec![Batch::prompts(&[300, 200]); others]);
        run(vendor, Kernels::TwoNames, false, &all).1
    };
    let [nvidia, amd] = VENDORS;
    for others in [[6, 1], [1, 6], [0, 6], [6, 0]] {
        let (first, second) = (of(nvidia, others[0]), of(amd, others[1]));
        let options = CompareOptions::default();
        let found = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
        assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
        assert!(found.verdict().contains("how much of it is prefill"), "{}", found.verdict());
        // One phase alone is compared.
        let options = CompareOptions { phase: Some(Phase::Decode), layer: None };
        let found = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
        assert!(found.same_work.headline.is_of_a_step(), "{}", found.verdict());
    }
}
