//! What the states of the machine, and its surroundings, say.

use fused_kernels::MachineReading;

use super::*;
use crate::measure::StateEstimate;

fn state(id: u32, handoff_us: f64, triad_gb_per_s: f64) -> MachineState {
    let triad_range = [triad_gb_per_s; 2];
    MachineState { id, handoff_us: Some(handoff_us), triad_gb_per_s, triad_range, processes: 5 }
}

#[test]
fn a_speedup_that_depends_on_the_state_is_said_with_every_state() {
    let of_state = |state, processes, ratio: f64| StateEstimate {
        state,
        processes,
        ratio,
        low: ratio - 0.05,
        high: ratio + 0.05,
    };
    let mut estimate = estimate([1.42, 1.73, 2.04]);
    estimate.states = vec![1, 2];
    let (states, controls) = ([state(1, 0.11, 57.0), state(2, 0.57, 112.0)], quiet_controls());
    let judged = |estimate: &Estimate| {
        let case = Case { states: &states, controls: &controls, ..good(estimate) };
        judge(&Case { ceiling: None, ..case })
    };
    assert!(codes(&judged(&estimate)).is_empty(), "it met two, and they agree");
    estimate.by_state = vec![of_state(1, 9, 1.47), of_state(2, 1, 1.99)];
    let judgement = judged(&estimate);
    assert_eq!((judgement.verdict, codes(&judgement)), (Verdict::Faster, vec!["state-changed"]));
    let text = judgement.reasons[0].to_string();
    assert!(
        text.contains(
            "the state of the machine: 1.470 [1.420, 1.520] in 9 processes with a hand-off of 0.11 \
             us and 57 GB/s, 1.990 [1.940, 2.040] in 1 process with a hand-off of 0.57 us"
        ),
        "{text}"
    );
}

#[test]
fn what_the_surroundings_say_is_named() {
    let around = |began_s: f64, others_busy: f64| {
        let reading = Some(MachineReading { handoff_us: None, triad_gb_per_s: 40.0 });
        Surroundings { began_s, readings: [reading; 2], others_busy: Some(others_busy) }
    };
    let (estimate, controls) = (estimate([1.15, 1.2, 1.25]), quiet_controls());
    let judged = |surroundings: &[Surroundings]| {
        codes(&judge(&Case { surroundings, controls: &controls, ..good(&estimate) }))
    };
    assert!(judged(&[around(1000.0, 0.1), around(1110.0, 0.1)]).is_empty());
    assert_eq!(judged(&[around(1000.0, 0.1), around(1090.0, 0.1)]), ["short-span"]);
    assert_eq!(judged(&[around(1000.0, 1.0), around(1120.0, 0.0)]), ["neighbour"]);
    // One process has no span, and a system without counters shows no neighbour.
    assert!(judged(&[around(1000.0, 0.0)]).is_empty());
    assert!(judged(&[Surroundings::default(); 2]).is_empty());
}
