//! Comparisons of traces that show their phases in different ways, or only those of some passes.

use kernel_traces::Vendor;
use kernel_traces::compare::{Answer, Basis, CompareOptions, Comparison, Headline, WorkAspect};
use kernel_traces::segment::Phase;

use super::program::{Attention, MAIN, Program};
use super::{DECODE, Loaded, MIXED, PREFILL, VENDORS, generation, program_kernels, served};

/// Steps of one GEMM, inside marks that are nested: each lies in the one before.
fn steps(marks: &[&str]) -> Loaded {
    let mut program = Program::new(Vendor::Nvidia);
    (0..3).for_each(|_| step(&mut program, marks));
    Loaded::made(&program)
}

fn step(program: &mut Program, marks: &[&str]) {
    match marks {
        [] => {
            let mm = ("aten::mm", "[[4, 512], [512, 512]]", r#"["float", "float"]"#, r#"["", ""]"#);
            program.op(MAIN, mm, &["nvjet_tst_one"], 4000, DECODE);
        }
        [mark, marks @ ..] => {
            program.around("user_annotation", mark, MAIN, |program| step(program, marks));
        }
    }
}

/// Compares one phase in both orders: how many steps there are, and the times of one.
fn compare(first: &Loaded, second: &Loaded, phase: Phase) -> (Basis, [f64; 2], [f64; 2]) {
    let options = CompareOptions { phase: Some(phase), layer: None };
    let [there, back] = [[first, second], [second, first]].map(|[first, second]| {
        let found = Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
        for (side, loaded) in [(&found.first, first), (&found.second, second)] {
            assert_eq!(side.kernels, program_kernels(loaded, Some(phase)));
        }
        found
    });
    assert_eq!(there.gap.first_ns, back.gap.second_ns);
    assert_eq!(there.gap.second_ns, back.gap.first_ns);
    assert!(there.gap.rounding_ns < 1.0);
    let steps = [there.first.steps, there.second.steps];
    (there.basis, steps, [there.gap.first_ns, there.gap.second_ns])
}

/// By marks of steps without layers on one side, and by layers without marks on the other.
#[test]
fn a_phase_that_is_known_in_two_ways_is_compared_in_all() {
    let marked = steps(&["decode[bs=4]"]);
    let (_, layered) = served(Vendor::Amd, &generation(4, 100, 5));
    let (basis, steps, times) = compare(&marked, &layered, Phase::Decode);
    assert_eq!((basis, steps), (Basis::Recording, [1.0; 2]));
    // The kernels, and the waiting between them.
    assert!(times[0] >= 3.0 * 4000.0 && times[1] > times[0], "{times:?}");
}

/// A step of requests of both kinds says of its parts what they are.
#[test]
fn a_phase_of_marks_within_others_has_their_steps() {
    let mixed = steps(&["execute_context_1(64)_generation_3(3)", "decode[bs=3]"]);
    let plain = steps(&["decode[bs=3]"]);
    for (first, second) in [(&mixed, &plain), (&mixed, &mixed)] {
        let (basis, steps, times) = compare(first, second, Phase::Decode);
        assert_eq!((basis, steps), (Basis::MarkedSteps, [3.0; 2]));
        assert!(times.iter().all(|time| *time >= 4000.0), "{times:?}");
    }
}

/// As many tokens of the same sizes in each pass, and other shares of what the passes are for. Where
/// all passes show that, each phase is compared; where some do not, nothing is confirmed.
#[test]
fn shares_of_phases_that_not_all_passes_show_are_unknown() {
    let passes = |prefills, decodes, others| {
        let prefill = (Attention::Pages(256, 1), PREFILL);
        let decode = (Attention::Pages(256, 256), DECODE);
        let other = (Attention::Pages(256, 9), MIXED);
        [vec![prefill; prefills], vec![decode; decodes], vec![other; others]].concat()
    };
    let of =
        |vendor, prefills, decodes, others| served(vendor, &passes(prefills, decodes, others)).1;
    let [nvidia, amd] = VENDORS;
    let first = of(nvidia, 6, 2, 1);
    for second in [of(amd, 2, 6, 1), of(amd, 2, 6, 0), of(amd, 0, 8, 0)] {
        for [first, second] in [[&first, &second], [&second, &first]] {
            let options = CompareOptions::default();
            let found =
                Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap();
            let question = &found.same_work.questions[1];
            assert_eq!((question.about, question.answer), (WorkAspect::Phase, Answer::Unknown));
            assert_ne!(found.same_work.headline, Headline::OfAStep, "{}", found.verdict());
        }
    }
    // One phase alone is no mix.
    let [one, other] = [of(nvidia, 0, 8, 0), of(amd, 0, 5, 0)];
    let found =
        Comparison::of(one.side("a.json"), other.side("b.json"), &CompareOptions::default());
    assert_eq!(found.unwrap().same_work.questions[1].answer, Answer::Same);
}

/// What is fetched for the next pass runs among the layers of this one, which may be of another
/// phase. It counts in its own, and the parts add up.
#[test]
fn parts_add_up_where_inputs_are_fetched_for_passes_of_another_phase() {
    let of = |vendor, prompts, tokens| {
        let mut program = Program::new(vendor);
        program.runs_ahead = true;
        for _ in 0..prompts {
            let passes = generation(4, 100, tokens);
            passes.into_iter().for_each(|(attention, phase)| program.serve(attention, phase));
        }
        let loaded = Loaded::made(&program);
        assert!(super::known_share(&program, &loaded) > 0.95);
        let is_fetched = |row: usize| loaded.name(row) == "fetch_inputs_kernel";
        let layers = &loaded.segments.layers;
        let fetched: Vec<usize> = (0..program.truth.len()).filter(|row| is_fetched(*row)).collect();
        let is_in_another = |row: &usize| {
            let layer = layers.layer(*row).map(|layer| &layers.list[layer]);
            let steps = &loaded.segments.steps;
            layer.is_some_and(|layer| {
                steps.phase(layers.kernels(layer)[0] as usize) != steps.phase(*row)
            })
        };
        assert!(fetched.iter().any(is_in_another), "nothing is fetched during another phase");
        loaded
    };
    let [nvidia, amd] = VENDORS;
    let (first, second) = (of(nvidia, 2, 6), of(amd, 3, 2));
    let options = CompareOptions::default();
    let [there, back] = [[&first, &second], [&second, &first]].map(|[first, second]| {
        Comparison::of(first.side("a.json"), second.side("b.json"), &options).unwrap()
    });
    for found in [&there, &back] {
        assert!(found.gap.rounding_ns < 1.0, "{}", found.gap.rounding_ns);
        assert_eq!(found.same_work.headline, Headline::OfEachPhase, "{}", found.verdict());
    }
    assert_eq!(there.gap.gap_ns, -back.gap.gap_ns);
}
