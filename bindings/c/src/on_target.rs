//! The questions that a partitioner asks, on one target.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

use fusion_cost_model as fcm;
use fusion_cost_model::FusionCostModel;

use crate::decision::{Decision, Policy};
use crate::error::{Error, Status, ask, call, given, make};
use crate::estimate::Estimate;
use crate::model::Model;
use crate::partition::{GraphNode, Partition, nodes};
use crate::problem::Problem;
use crate::target::Target;
use crate::text::{array, c_string};

/// What a model knows about one target. It keeps what it needs of the model.
#[derive(Debug)]
pub struct OnTarget {
    model: Arc<FusionCostModel>,
    target: fcm::Target,
    state: Option<u32>,
    text: OnceLock<CString>,
}

impl OnTarget {
    const fn new(model: Arc<FusionCostModel>, target: fcm::Target, state: Option<u32>) -> Self {
        Self { model, target, state, text: OnceLock::new() }
    }

    pub(crate) fn view(&self) -> fcm::OnTarget<'_> {
        let on = self.model.on(self.target);
        // A state that is bound is one that the calibration has.
        self.state.and_then(|state| on.in_state(state).ok()).unwrap_or(on)
    }
}

/// Binds a target, once for all questions. One that the file has no records for can be bound too, and
/// answers `FCM_EVIDENCE_UNKNOWN`. Free it with `fcm_on_target_free`.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_model_on(
    model: Option<&Model>,
    target: Target,
    on: Option<&mut MaybeUninit<Option<Box<OnTarget>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(on, error, || {
        let model = Arc::clone(&given(model, "model")?.model);
        Ok(OnTarget::new(model, target.meaning()?, None))
    })
}

/// The same target in one state of the machine, by its number in the file. One that the file does not
/// have is `FCM_INVALID_QUESTION`.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_on_target_in_state(
    on: Option<&OnTarget>,
    state: u32,
    in_state: Option<&mut MaybeUninit<Option<Box<OnTarget>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(in_state, error, || {
        let on = given(on, "on")?;
        on.model.on(on.target).in_state(state)?;
        Ok(OnTarget::new(Arc::clone(&on.model), on.target, Some(state)))
    })
}

/// Frees a bound target.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_on_target_free(on: Option<Box<OnTarget>>) {
    drop(on);
}

/// The target in words, such as `cpu, 8 threads, warm caches`. Belongs to the bound target; empty of
/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_on_target_text(on: Option<&OnTarget>) -> *const c_char {
    ask(c"".as_ptr(), || {
        let OnTarget { target, text, .. } = on?;
        Some(text.get_or_init(|| c_string(target.to_string())).as_ptr())
    })
}

/// What is known about a problem, from the most trusted evidence that there is.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_on_target_estimate(
    on: Option<&OnTarget>,
    problem: Option<&Problem>,
    estimate: Option<&mut MaybeUninit<Estimate>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    call(estimate, error, || {
        let (on, problem) = (given(on, "on")?, given(problem, "problem")?);
        Estimate::of(&on.view().estimate(&problem.problem))
    })
}

/// The problem of one of the records that an estimate rests on most, by a number below its
/// `num_nearest`. Free it with `fcm_problem_free`.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_on_target_nearest(
    on: Option<&OnTarget>,
    problem: Option<&Problem>,
    number: u32,
    nearest: Option<&mut MaybeUninit<Option<Box<Problem>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(nearest, error, || {
        let (on, problem) = (given(on, "on")?, given(problem, "problem")?);
        let estimate = on.view().estimate(&problem.problem);
        let (record, _) =
            estimate.nearest().zip(0..).find(|(_, known)| *known == number).ok_or_else(|| {
                Error::argument(format!("number is {number}; the estimate has fewer records"))
            })?;
        Ok(Problem::of(record.problem))
    })
}

/// Whether to make one kernel of a problem.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_on_target_decide(
    on: Option<&OnTarget>,
    problem: Option<&Problem>,
    policy: Policy,
    decision: Option<&mut MaybeUninit<Decision>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    call(decision, error, || {
        let (on, problem) = (given(on, "on")?, given(problem, "problem")?);
        Decision::of(&on.view().decide(&problem.problem, &policy.meaning()?)?)
    })
}

/// The best split of a chain into kernels. Free it with `fcm_partition_free`.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_on_target_partition(
    on: Option<&OnTarget>,
    problem: Option<&Problem>,
    policy: Policy,
    partition: Option<&mut MaybeUninit<Option<Box<Partition>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(partition, error, || {
        let (on, problem) = (given(on, "on")?, given(problem, "problem")?);
        Partition::of(&on.view().partition(&problem.problem, &policy.meaning()?)?)
    })
}

/// The best split of a graph into kernels; a node reads only nodes before it. Free it with
/// `fcm_partition_free`.
///
/// # Safety
///
/// `graph` leads to `num_nodes` nodes, and what they lead to is as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_on_target_partition_graph(
    on: Option<&OnTarget>,
    graph: *const GraphNode<'_>,
    num_nodes: usize,
    policy: Policy,
    partition: Option<&mut MaybeUninit<Option<Box<Partition>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(partition, error, || {
        let on = given(on, "on")?;
        // SAFETY: what the caller of this function promises.
        let graph = unsafe { nodes(array(graph, num_nodes, "graph")?) }?;
        Partition::of(&on.view().partition_graph(&graph, &policy.meaning()?)?)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ptr::null;

    use super::*;
    use crate::constants::{
        FCM_EVIDENCE_INTERPOLATED, FCM_EVIDENCE_MEASURED, FCM_EVIDENCE_UNKNOWN, FCM_REASON_FASTER,
        FCM_REASON_UNKNOWN, FCM_WHEN_UNKNOWN_CONSERVATIVE, FCM_WHEN_UNKNOWN_ERROR,
    };
    use crate::decision::fcm_policy_new;
    use crate::error::{FCM_INVALID_ARGUMENT, FCM_INVALID_QUESTION, FCM_OK, FCM_UNDECIDED};
    use crate::model::Model;
    use crate::model::fcm_model_free;
    use crate::model::tests::{EXAMPLE, example, load};
    use crate::partition::fcm_partition_free;
    use crate::problem::fcm_problem_text;
    use crate::problem::tests::problem;
    use crate::target::fcm_target_cpu;
    use crate::text::tests::read;

    fn on(target: Target) -> Box<OnTarget> {
        on_of(example(), target)
    }

    fn on_of(model: Box<Model>, target: Target) -> Box<OnTarget> {
        let mut on = MaybeUninit::uninit();
        assert_eq!(fcm_model_on(Some(&model), target, Some(&mut on), None), FCM_OK);
        // What is bound outlives its model.
        fcm_model_free(Some(model));
        // SAFETY: the call wrote it.
        unsafe { on.assume_init() }.unwrap()
    }

    pub(crate) fn on_cpu() -> Box<OnTarget> {
        on(fcm_target_cpu(2))
    }

    fn estimate(on: &OnTarget, text: &str) -> Estimate {
        let (problem, mut estimate) = (problem(text), MaybeUninit::uninit());
        let status = fcm_on_target_estimate(Some(on), Some(&problem), Some(&mut estimate), None);
        assert_eq!(status, FCM_OK);
        // SAFETY: the call wrote it.
        unsafe { estimate.assume_init() }
    }

    fn decide(on: &OnTarget, text: &str, policy: Policy) -> Result<Decision, Status> {
        let (problem, mut decision) = (problem(text), MaybeUninit::uninit());
        let status =
            fcm_on_target_decide(Some(on), Some(&problem), policy, Some(&mut decision), None);
        // SAFETY: the call wrote it if it said so.
        if status == FCM_OK { Ok(unsafe { decision.assume_init() }) } else { Err(status) }
    }

    const MEASURED: &str = "add_relu/f32/m4096.n1024";
    const BETWEEN: &str = "linear_bias_relu/f32/m1024.k300.n400";
    const UNKNOWN: &str = "tanh+mul/f64/m3.n5";

    #[test]
    fn answers_are_those_of_the_crate_to_the_last_bit() {
        let on = on_cpu();
        for (text, evidence) in [
            (MEASURED, FCM_EVIDENCE_MEASURED),
            (BETWEEN, FCM_EVIDENCE_INTERPOLATED),
            (UNKNOWN, FCM_EVIDENCE_UNKNOWN),
        ] {
            let ours = estimate(&on, text);
            assert_eq!(ours.evidence, evidence, "{text}");
            let theirs = on.view().estimate(&text.parse().unwrap());
            let pairs = [
                (ours.unfused_ms, theirs.unfused_ms()),
                (ours.fused_ms, theirs.fused_ms()),
                (ours.speedup, theirs.speedup()),
            ];
            for (ours, theirs) in pairs {
                let theirs = theirs.map(|it| [it.value, it.low, it.high].map(f64::to_bits));
                let known = (!ours.value.is_nan()).then_some(ours);
                assert_eq!(known.map(|it| [it.value, it.low, it.high].map(f64::to_bits)), theirs);
            }
            assert_eq!(ours.num_nearest as usize, theirs.nearest().count());
        }
    }

    #[test]
    fn an_estimate_names_the_records_that_it_rests_on() {
        let (on, asked) = (on_cpu(), problem(BETWEEN));
        let nearest = |number| {
            let mut nearest = MaybeUninit::uninit();
            let place = Some(&mut nearest);
            let status = fcm_on_target_nearest(Some(&on), Some(&asked), number, place, None);
            // SAFETY: the call writes a problem, or none.
            (status, unsafe { nearest.assume_init() })
        };
        let (status, first) = nearest(0);
        assert_eq!(status, FCM_OK);
        assert!(read(fcm_problem_text(first.as_deref())).starts_with("linear_bias_relu/f32/m"));
        let (status, none) = nearest(estimate(&on, BETWEEN).num_nearest);
        assert!(status == FCM_INVALID_ARGUMENT && none.is_none());
    }

    #[test]
    fn decisions_follow_the_policy() {
        let on = on_cpu();
        let conservative = fcm_policy_new(FCM_WHEN_UNKNOWN_CONSERVATIVE);
        let measured = decide(&on, MEASURED, conservative).unwrap();
        assert!(measured.should_fuse && measured.reason == FCM_REASON_FASTER);
        let picky = Policy { threshold: 9.0, ..conservative };
        assert!(!decide(&on, MEASURED, picky).unwrap().should_fuse);
        let unknown = decide(&on, UNKNOWN, conservative).unwrap();
        assert!(!unknown.should_fuse && unknown.reason == FCM_REASON_UNKNOWN);
        let strict = fcm_policy_new(FCM_WHEN_UNKNOWN_ERROR);
        assert_eq!(decide(&on, UNKNOWN, strict).unwrap_err(), FCM_UNDECIDED);
        for bad in [fcm_policy_new(0), Policy { threshold: f64::NAN, ..conservative }] {
            assert_eq!(decide(&on, MEASURED, bad).unwrap_err(), FCM_INVALID_ARGUMENT);
        }
    }

    #[test]
    fn a_target_is_asked_as_it_was_bound() {
        let (on, elsewhere) = (on_cpu(), on(fcm_target_cpu(64)));
        assert_eq!(read(fcm_on_target_text(Some(&on))), "cpu, 2 threads, warm caches");
        assert_eq!(estimate(&elsewhere, MEASURED).evidence, FCM_EVIDENCE_UNKNOWN);
        let bound = |on: &OnTarget, state| {
            let mut in_state = MaybeUninit::uninit();
            let status = fcm_on_target_in_state(Some(on), state, Some(&mut in_state), None);
            // SAFETY: the call wrote it.
            (status, unsafe { in_state.assume_init() })
        };
        let (status, none) = bound(&on, 7);
        assert_eq!(status, FCM_INVALID_QUESTION);
        assert!(none.is_none());
        let state = "[[state]]\nid = 1\nhandoff_us = 0.5\ntriad_gb_per_s = 55.0\n\
                     triad_range = [50.0, 60.0]\nprocesses = 5\n";
        let model = load(&format!("{EXAMPLE}\n{state}"), None).unwrap();
        let with_a_state = on_of(model, fcm_target_cpu(2));
        let (status, in_state) = bound(&with_a_state, 1);
        assert_eq!(status, FCM_OK);
        let in_state = in_state.unwrap();
        assert_eq!(in_state.state, Some(1));
        assert_eq!(estimate(&in_state, MEASURED).evidence, FCM_EVIDENCE_MEASURED);
        fcm_on_target_free(Some(in_state));
        let nowhere = Target { clock: 9, ..fcm_target_cpu(1) };
        let status =
            fcm_model_on(Some(&example()), nowhere, Some(&mut MaybeUninit::uninit()), None);
        assert_eq!(status, FCM_INVALID_ARGUMENT);
    }

    fn partition(on: &OnTarget, graph: &[GraphNode<'_>]) -> Result<Box<Partition>, Status> {
        let policy = fcm_policy_new(FCM_WHEN_UNKNOWN_CONSERVATIVE);
        let (first, mut best) = (graph.as_ptr(), MaybeUninit::uninit());
        // SAFETY: it is a slice, and its nodes have the operands that they say.
        let status = unsafe {
            let place = Some(&mut best);
            fcm_on_target_partition_graph(Some(on), first, graph.len(), policy, place, None)
        };
        // SAFETY: the call writes a partition, or none.
        unsafe { best.assume_init() }.ok_or(status)
    }

    /// Node, first op, and the op after the last one.
    type Ops = Vec<(usize, usize, usize)>;

    /// The segments of a partition with their ops and problems, read as C reads them.
    fn segments(best: &Partition) -> Vec<(Ops, String)> {
        // SAFETY: a partition has as many segments as it says, and they as many ops.
        let segments = unsafe { array(best.segments, best.num_segments, "segments") }.unwrap();
        let read_segment = |segment: &crate::partition::Segment| {
            // SAFETY: as above; and a problem belongs to the partition.
            let (parts, problem) = unsafe {
                let parts = array(segment.ops.parts, segment.ops.count, "parts").unwrap();
                (parts, segment.problem.as_ref())
            };
            let parts = parts.iter().map(|part| (part.node, part.begin, part.end)).collect();
            (parts, read(fcm_problem_text(problem)))
        };
        segments.iter().map(read_segment).collect()
    }

    fn node<'a>(problem: &'a Problem, input: Option<usize>, operands: &[usize]) -> GraphNode<'a> {
        GraphNode {
            problem: Some(problem),
            has_input: input.is_some(),
            is_output: false,
            input: input.unwrap_or_default(),
            operands: if operands.is_empty() { null() } else { operands.as_ptr() },
            num_operands: operands.len(),
        }
    }

    #[test]
    fn a_graph_is_split_as_by_the_crate() {
        let on = on_cpu();
        let linear = problem("linear/f32/m4096.k64.n256");
        let tail = problem("bias+relu/f32/m4096.n256");
        let add = problem("add/f32/m4096.n256");
        let graph =
            [node(&linear, None, &[]), node(&tail, Some(0), &[]), node(&add, Some(1), &[0])];
        let best = partition(&on, &graph).unwrap();
        // The linear op is read twice, and ends a kernel.
        let expected = {
            let texts =
                ["linear/f32/m4096.k64.n256", "bias+relu/f32/m4096.n256", "add/f32/m4096.n256"];
            let node = |text: &str| fcm::GraphNode::new(text.parse().unwrap());
            let [linear, tail, add] = texts.map(node);
            let graph = [linear, tail.reading(0), add.reading(1).with_operands([0])];
            let policy = fcm::Policy::new(fcm::WhenUnknown::Conservative);
            on.view().partition_graph(&graph, &policy).unwrap()
        };
        let parts = |segment: &fcm::Segment<'_>| {
            let parts = segment.parts.iter();
            let parts = parts.map(|part| (part.node, part.ops.start, part.ops.end)).collect();
            (parts, segment.problem.map_or_else(String::new, |problem| problem.to_string()))
        };
        assert_eq!(segments(&best), expected.segments.iter().map(parts).collect::<Vec<_>>());
        assert_eq!(best.saved_ms.value.to_bits(), expected.saved_ms.value.to_bits());
        assert_eq!(best.total_ms.value.is_nan(), expected.total_ms.is_none());
        assert_eq!(best.peak_bytes, expected.peak_bytes);
        // SAFETY: the alternatives belong to the partition.
        let others =
            unsafe { [best.never.as_ref(), best.always.as_ref(), best.runner_up.as_ref()] };
        let theirs = [Some(&expected.never), Some(&expected.always), expected.runner_up.as_ref()];
        for (ours, theirs) in others.into_iter().zip(theirs) {
            assert_eq!(ours.map(|it| it.num_segments), theirs.map(|it| it.segments.len()));
            let slower = ours.map(|it| it.slower_by_ms.value.to_bits());
            assert_eq!(slower, theirs.map(|it| it.slower_by_ms.value.to_bits()));
            assert_eq!(ours.map(|it| it.peak_bytes), theirs.map(|it| it.peak_bytes));
        }
        fcm_partition_free(Some(best));
    }

    #[test]
    fn a_chain_is_split_by_itself() {
        let (on, chain) = (on_cpu(), problem("linear_bias_relu/f32/m4096.k64.n256"));
        let policy = fcm_policy_new(FCM_WHEN_UNKNOWN_CONSERVATIVE);
        let mut best = MaybeUninit::uninit();
        let status =
            fcm_on_target_partition(Some(&on), Some(&chain), policy, Some(&mut best), None);
        assert_eq!(status, FCM_OK);
        // SAFETY: the call wrote it.
        let best = unsafe { best.assume_init() }.unwrap();
        let whole = (vec![(0, 0, 3)], "linear_bias_relu/f32/m4096.k64.n256".to_owned());
        assert_eq!(segments(&best), [whole]);
    }

    #[test]
    fn bad_graphs_are_refused() {
        let (on, relu) = (on_cpu(), problem("relu/f32/m4.n4"));
        let ahead = partition(&on, &[node(&relu, Some(0), &[])]);
        assert_eq!(ahead.unwrap_err(), FCM_INVALID_QUESTION);
        let nothing = GraphNode { problem: None, ..node(&relu, None, &[]) };
        assert_eq!(partition(&on, &[nothing]).unwrap_err(), FCM_INVALID_ARGUMENT);
        let lost = GraphNode { num_operands: 2, ..node(&relu, None, &[]) };
        assert_eq!(partition(&on, &[lost]).unwrap_err(), FCM_INVALID_ARGUMENT);
        assert_eq!(partition(&on, &[]).unwrap().num_segments, 0);
    }
}
