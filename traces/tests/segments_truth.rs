//! Steps, phases and layers of synthetic traces are those that were generated.

use kernel_traces::segment::{self, Assignments, Marker, NoLayers};
use kernel_traces::synthetic::{
    self, Annotation, Communication, Launching, Model, Phase, Plan, Timing, Truth, Variation,
};
use kernel_traces::{Classes, DeviceWork, Options, Segments, Trace, Vendor};

/// Every model, launched in every way, at every time, under every mark and under none.
fn plans() -> impl Iterator<Item = Plan> {
    let variations =
        [Variation::None, Variation::SlidingWindow, Variation::FirstDense, Variation::OneExtra];
    let communications = [Communication::None, Communication::SameStream, Communication::OwnStream];
    let marks: Vec<Vec<Annotation>> = Annotation::ALL
        .into_iter()
        .map(|annotation| vec![annotation])
        .chain([
            vec![],
            vec![Annotation::ProfilerStep, Annotation::VllmDetailed, Annotation::Sglang],
        ])
        .collect();
    let mut number = 0;
    let mut plans = Vec::new();
    for model in Model::ALL {
        for launching in Launching::ALL {
            for timing in Timing::ALL {
                for annotations in &marks {
                    number += 1;
                    plans.push(Plan {
                        vendor: [Vendor::Nvidia, Vendor::Amd][number % 2],
                        model,
                        launching,
                        timing,
                        annotations: annotations.clone(),
                        layers: 2 + number as u64 % 7,
                        variation: variations[number % variations.len()],
                        steps: 1 + number as u64 % 5,
                        phases: vec![Phase::Prefill, Phase::Decode, Phase::Mixed],
                        communication: communications[number / 2 % communications.len()],
                        copies: number % 3 == 0,
                        frames: number as u64 / 3 % 2,
                        operators: number % 5 != 0,
                        seed: number as u64,
                        ..Plan::default()
                    });
                }
            }
        }
    }
    plans.into_iter()
}

fn generate(plan: &Plan) -> (Trace, Segments, Truth) {
    let (text, truth) = synthetic::text(plan).unwrap();
    let trace = Trace::from_json(&text, &Options::default()).unwrap();
    let segments = Segments::of(&trace, &Classes::of(&trace));
    (trace, segments, truth)
}

fn same_phase(found: Option<segment::Phase>, truth: Option<Phase>) -> bool {
    matches!(
        (found, truth),
        (Some(segment::Phase::Prefill), Some(Phase::Prefill))
            | (Some(segment::Phase::Decode), Some(Phase::Decode))
            | (Some(segment::Phase::Mixed), Some(Phase::Mixed))
            | (None, None)
    )
}

#[test]
fn steps_and_phases() {
    for plan in plans() {
        let (_, segments, truth) = generate(&plan);
        let steps = &segments.steps;
        if plan.annotations.is_empty() {
            assert!(steps.list.is_empty() && steps.assignments == Assignments::default());
            continue;
        }
        assert_eq!(steps.list.len() as u64, plan.steps, "{plan:?}");
        let has = |annotation| plan.annotations.contains(&annotation);
        let mut unlinked = 0;
        for (index, kernel) in truth.kernels.iter().enumerate() {
            let step = steps.step(index).map(|step| step as u32);
            if step.is_none() && !kernel.is_linked {
                // Nothing else shows the step, and nothing is guessed.
                unlinked += 1;
                continue;
            }
            assert_eq!(step, kernel.step, "kernel {index} of {plan:?}");
            // Training and diffusion have no phases of serving, whatever the marks are called, and
            // ATOM calls mixed steps prefill.
            let tells = plan.model != Model::Training && !has(Annotation::Diffusion);
            // Where no mark tells a phase, the trace itself may show the one that was planned.
            if steps.are_derived() && plan.model != Model::Training {
                let planned = step.map(|step| plan.phases[step as usize % plan.phases.len()]);
                let found = steps.phase(index);
                assert!(
                    found.is_none() || same_phase(found, planned),
                    "kernel {index}, {}, {found:?} and not {planned:?}, of {plan:?}",
                    kernel.role
                );
            } else if tells && (kernel.phase.is_some() || !has(Annotation::Atom)) {
                assert!(same_phase(steps.phase(index), kernel.phase), "kernel {index} of {plan:?}");
            }
        }
        assert_eq!(steps.assignments.unknown, unlinked, "{plan:?}");
    }
}

#[test]
fn layers_and_families() {
    for plan in plans() {
        let (trace, segments, truth) = generate(&plan);
        let layers = &segments.layers;
        if plan.model == Model::Bag {
            assert_eq!(layers.none_because, Some(NoLayers::NoMarker), "{plan:?}");
            assert_eq!(segments.family.name(), "unknown");
            continue;
        }
        let (family, marker) = match plan.model {
            Model::MixtureOfExperts => ("mixture of experts", Marker::CacheWrite),
            Model::StateSpace => ("state space", Marker::StateSpace),
            Model::Hybrid => ("hybrid", Marker::StateSpace),
            Model::Training => ("dense", Marker::Attention),
            _ => ("dense", Marker::CacheWrite),
        };
        assert_eq!(segments.family.name(), family, "{plan:?}");
        // Two layers that differ do not repeat.
        let differs = plan.model == Model::Hybrid
            || (plan.model == Model::MixtureOfExperts && plan.variation == Variation::FirstDense);
        if differs && plan.layers == 2 {
            continue;
        }
        assert_eq!(layers.marker, Some(marker), "{:?} {plan:?}", layers.none_because);
        assert_eq!(u64::from(layers.count), plan.layers, "{:?} {plan:?}", layers.passes);
        let each = if plan.model == Model::Training { 2 } else { 1 };
        assert_eq!(layers.passes.len() as u64, plan.steps * each, "{plan:?}");
        let first = truth.kernels.iter().find(|kernel| kernel.layer.is_some()).unwrap();
        for (index, kernel) in truth.kernels.iter().enumerate() {
            // What runs alongside the stream that computes, and what the runtime does, may be taken
            // for the layer that it runs in.
            if kernel.stream != first.stream || kernel.work != DeviceWork::Kernel {
                continue;
            }
            // Behind the last layer, it may as well be the first of what follows the layers.
            let last = plan.layers as u32 - 1;
            if kernel.role == "extra" && kernel.block == Some(last) {
                continue;
            }
            let found = layers.layer(index).map(|layer| {
                let layer = &layers.list[layer];
                let is_backward = layers.passes[layer.pass as usize].is_backward;
                if is_backward { 2 * layers.count - 1 - layer.number } else { layer.number }
            });
            // The truth of training goes from marker to marker; here the forward pass ends with its
            // last layer, and the backward pass begins with its first marker.
            let is_between = plan.model == Model::Training
                && kernel.layer == Some(last)
                && (kernel.block.is_none()
                    || kernel.role == "gradient"
                    || kernel.role.ends_with("backward"));
            let expected = if is_between { None } else { kernel.layer };
            let name = trace.names.text(trace.kernels.name[index]);
            assert_eq!(found, expected, "kernel {index}, {name}, of {plan:?}");
        }
    }
}
