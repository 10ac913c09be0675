//! Generated traces without marks have the phases that their twins are marked with, or none.

use kernel_traces::Vendor;
use kernel_traces::segment;
use kernel_traces::synthetic::{
    self, Annotation, Communication, Launching, Model, Phase, Plan, Timing,
};

use super::Loaded;

fn same(found: segment::Phase, truth: Phase) -> bool {
    matches!(
        (found, truth),
        (segment::Phase::Prefill, Phase::Prefill)
            | (segment::Phase::Decode, Phase::Decode)
            | (segment::Phase::Mixed, Phase::Mixed)
    )
}

#[test]
fn no_phase_of_serving_is_wrong() {
    let mut known = [0; 2];
    for (number, model) in (0..).zip(Model::ALL) {
        for (launching, timing) in
            Launching::ALL.into_iter().flat_map(|one| Timing::ALL.map(|timing| (one, timing)))
        {
            for vendor in [Vendor::Nvidia, Vendor::Amd] {
                let plan = Plan {
                    vendor,
                    model,
                    launching,
                    timing,
                    layers: 4,
                    steps: 6,
                    phases: vec![Phase::Prefill, Phase::Decode, Phase::Decode, Phase::Mixed],
                    annotations: vec![Annotation::Vllm],
                    communication: Communication::SameStream,
                    seed: number,
                    ..Plan::default()
                };
                let (_, truth) = synthetic::text(&plan).unwrap();
                let (text, _) =
                    synthetic::text(&Plan { annotations: vec![], ..plan.clone() }).unwrap();
                let loaded = Loaded::read(&text);
                assert_eq!(loaded.trace.kernels.len(), truth.kernels.len());
                for (kernel, truth) in truth.kernels.iter().enumerate() {
                    let Some(found) = loaded.segments.steps.phase(kernel) else { continue };
                    if model == Model::Training {
                        let expected = match truth.role {
                            "optimizer" => segment::Phase::Optimizer,
                            role if role == "gradient" || role.ends_with("backward") => {
                                segment::Phase::Backward
                            }
                            // The sum of gradients, among them.
                            "all_reduce" => continue,
                            _ => segment::Phase::Forward,
                        };
                        assert_eq!(found, expected, "kernel {kernel}, {}, of {plan:?}", truth.role);
                    } else if let Some(truth) = truth.phase {
                        assert!(same(found, truth), "kernel {kernel}: {found:?} of {plan:?}");
                        known[usize::from(vendor == Vendor::Amd)] += 1;
                    }
                }
            }
        }
    }
    // AMD's kernels for decoding are called so, those of NVIDIA here are not.
    assert!(known[1] > 1000, "{known:?}");
}
