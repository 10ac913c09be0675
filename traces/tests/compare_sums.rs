//! Any two traces: every split of the gap adds up, and exchanging the sides mirrors it.

use crate::loaded::Loaded;
use kernel_traces::compare::{CompareOptions, Comparison, Part};
use kernel_traces::segment;
use kernel_traces::synthetic::{
    self, Annotation, Communication, Launching, Model, Phase, Plan, Timing, Variation,
};
use kernel_traces::{Vendor, device_times};
use proptest::prelude::*;

fn plans() -> impl Strategy<Value = Plan> {
    let vendor = prop_oneof![Just(Vendor::Amd), Just(Vendor::Nvidia)];
    let model = prop::sample::select(Model::ALL.to_vec());
    let launching = prop::sample::select(Launching::ALL.to_vec());
    let timing = prop::sample::select(Timing::ALL.to_vec());
    let communication = prop::sample::select(vec![
        Communication::None,
        Communication::SameStream,
        Communication::OwnStream,
    ]);
    let marks =
        prop::sample::select(vec![vec![], vec![Annotation::ProfilerStep], vec![Annotation::Vllm]]);
    let phase = prop::sample::select(vec![Phase::Prefill, Phase::Decode, Phase::Mixed]);
    let phases = prop::collection::vec(phase, 0..4);
    let how = (vendor, model, launching, timing, communication);
    let what = (1..6_u64, 1..6_u64, phases, marks, any::<bool>(), any::<u64>());
    (how, what).prop_map(|((vendor, model, launching, timing, communication), what)| {
        let (layers, steps, phases, annotations, copies, seed) = what;
        Plan {
            vendor,
            model,
            launching,
            timing,
            communication,
            layers,
            steps,
            phases,
            annotations,
            copies,
            seed,
            variation: if seed % 3 == 0 { Variation::OneExtra } else { Variation::None },
            ..Plan::default()
        }
    })
}

fn read(plan: &Plan) -> Loaded {
    let (text, _) = synthetic::text(plan).unwrap();
    Loaded::read(&text)
}

/// The sums of a split of the gap: kernels and owned time of both sides, and the gap.
fn sums<'p>(parts: impl Iterator<Item = &'p Part>) -> ([u64; 2], [u64; 2], f64) {
    parts.fold(Default::default(), |(counts, own, gap), part| {
        let [first, second] = [part.first_amount, part.second_amount];
        (
            [counts[0] + first.count, counts[1] + second.count],
            [own[0] + first.own_ns, own[1] + second.own_ns],
            gap + part.gap_ns,
        )
    })
}

fn check(found: &Comparison) {
    let [first, second] = [&found.first, &found.second];
    let expected = ([first.kernels, second.kernels], [first.busy_ns, second.busy_ns]);
    let gap = &found.gap;
    let near = |sum: f64| assert!((sum - gap.gap_ns).abs() < 1e-3, "{sum}, not {}", gap.gap_ns);
    let (counts, own, sum) = sums(gap.causes.iter().map(|cause| &cause.part));
    assert_eq!((counts, own), expected);
    near(sum);
    let (counts, own, sum) = sums(gap.classes.iter().map(|class| &class.part));
    assert_eq!((counts, own), expected);
    near(sum);
    let (counts, own, sum) = sums(gap.roles.iter().map(|role| &role.part));
    assert_eq!((counts, own), expected);
    let others = ["IDLE", "PHASE_MIX"];
    let without_role = gap.classes.iter().filter(|class| others.contains(&class.class.as_str()));
    near(sum + without_role.map(|class| class.part.gap_ns).sum::<f64>());
    // Idle time by cause is that of the class.
    let idle = gap.classes.iter().filter(|class| class.class == "IDLE");
    let idle = idle
        .fold([0.0; 2], |sum, class| [sum[0] + class.part.first_ns, sum[1] + class.part.second_ns]);
    let by_cause = found
        .idle
        .rows
        .iter()
        .fold([0.0; 2], |sum, row| [sum[0] + row.first_ns, sum[1] + row.second_ns]);
    assert!(idle.iter().zip(by_cause).all(|(idle, sum)| (idle - sum).abs() < 1e-3), "{by_cause:?}");
    let places = found.layers.kinds.iter();
    for kind in places {
        let (counts, ..) = sums(kind.slots.iter().map(|slot| &slot.part));
        assert_eq!(counts[0], kind.part.first_amount.count);
        assert_eq!(counts[1], kind.part.second_amount.count);
    }
    let codes: Vec<&str> = found.warnings.iter().map(|warning| warning.code).collect();
    assert!(!codes.contains(&"parts-do-not-add-up"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_split_adds_up(first in plans(), second in plans()) {
        let (first, second) = (read(&first), read(&second));
        let options = CompareOptions::default();
        let found = Comparison::of(first.side("trace"), second.side("trace"), &options).unwrap();
        check(&found);
        for (side, read) in [(&found.first, &first), (&found.second, &second)] {
            let device = &device_times(&read.trace, &read.classes)[0];
            prop_assert_eq!(side.span_ns, device.span_ns);
            prop_assert_eq!(side.busy_ns, device.busy_ns);
            prop_assert_eq!(side.idle_ns, device.idle.total_ns);
        }
        let back = Comparison::of(second.side("trace"), first.side("trace"), &options).unwrap();
        check(&back);
        let gaps = |found: &Comparison, sign: f64| {
            let gaps = found.gap.causes.iter().map(|cause| sign * cause.part.gap_ns);
            let mut gaps: Vec<f64> = gaps.collect();
            gaps.sort_by(f64::total_cmp);
            gaps
        };
        let (one, other) = (gaps(&found, 1.0), gaps(&back, -1.0));
        prop_assert_eq!(one.len(), other.len());
        for (a, b) in one.iter().zip(&other) {
            prop_assert!((a - b).abs() < 1e-3, "{} and {}", a, b);
        }
    }

    #[test]
    fn phases_and_layers_alone_add_up_too(plan in plans(), seed in any::<u64>()) {
        let (first, second) = (read(&plan), read(&Plan { seed, ..plan }));
        let phases = segment::Phase::ALL.map(Some).into_iter().chain([None]);
        let mut by_phase = 0;
        for phase in phases {
            for layer in [None, Some(0), Some(2)] {
                let options = CompareOptions { phase, layer };
                if let Ok(found) = Comparison::of(first.side("trace"), second.side("trace"), &options) {
                    check(&found);
                    if phase.is_some() && layer.is_none() {
                        by_phase += found.first.kernels;
                    }
                }
            }
        }
        prop_assert!(by_phase <= first.trace.kernels.len() as u64);
    }
}

/// Kernels of a week each in two phases, by two operators and of no class: more than 64 bits hold.
#[test]
fn sums_that_no_number_holds_end_at_the_largest() {
    let kernels = u64::MAX / (7 * 24 * 3600 * 1_000_000_000) + 1;
    let mut events = Vec::new();
    let mut add = |category: &str, name: &str, (ts, dur): (u64, u64), args: &str| {
        events.push(format!(
            "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": 1, \"tid\": 7, \
             \"ts\": {ts}, \"dur\": {dur}, \"args\": {{{args}}}}}"
        ));
    };
    for (step, mark, sizes, count) in
        [(1, "prefill[bs=1]", "[512, 512]", kernels), (2, "decode[bs=1]", "[512, 256]", 1)]
    {
        let at = 100 * step;
        add("user_annotation", mark, (at, 50), "");
        let dims = format!("\"External id\": {step}, \"Input Dims\": [[4, 512], {sizes}]");
        add("cpu_op", "aten::mm", (at + 1, 20), &dims);
        let of_op = format!("\"External id\": {step}, \"correlation\": {step}");
        add("cuda_runtime", "cudaLaunchKernel", (at + 2, 5), &of_op);
        let alone = format!("\"correlation\": {}", step + 10);
        add("cuda_runtime", "cudaLaunchKernel", (at + 30, 5), &alone);
        for (name, args) in [("nvjet_tst_one", of_op), ("zzz", alone)] {
            let args = format!("\"device\": 0, \"stream\": 7, {args}");
            let week = (at + 60, 7 * 24 * 3600 * 1_000_000);
            (0..count).for_each(|_| add("kernel", name, week, &args));
        }
    }
    let text = format!("[{}]", events.join(","));
    let loaded = Loaded::read(text);
    let [first, second] = ["a.json", "b.json"].map(|name| loaded.side(name));
    let found = Comparison::of(first, second, &CompareOptions::default()).unwrap();
    assert!(found.warnings.iter().any(|warning| warning.code == "overflow"));
    assert!((0.0..=1.0).contains(&found.first.unclassified_share));
    assert!(found.first.unclassified_share > 0.0);
    assert!(found.kernels.iter().all(|kernel| (0.0..=1.0).contains(&kernel.share)));
}
