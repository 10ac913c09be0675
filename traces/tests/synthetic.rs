//! The truth of synthetic traces is true: by a plain parser, and by brute force.

use std::collections::HashMap;
use std::ops::Range;

use kernel_traces::classify::{Class, classify_with};
use kernel_traces::synthetic::{
    self, Annotation, Communication, KernelTruth, Launching, Model, Oddity, Phase, Plan, Timing,
    Truth, Variation,
};
use kernel_traces::{DeviceWork, Options, Trace, Vendor, trace_files};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// An event as a plain parser gives it, with times as they are written: floats would round them.
#[derive(Deserialize)]
struct Event {
    ph: String,
    #[serde(default)]
    cat: String,
    name: String,
    ts: Box<RawValue>,
    dur: Option<Box<RawValue>>,
    args: Option<HashMap<String, Value>>,
}

impl Event {
    fn time(&self) -> Range<u64> {
        let start = nanoseconds(self.ts.get());
        start..start + nanoseconds(self.dur.as_ref().unwrap().get())
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.args.as_ref()?.get(key)?.as_u64()
    }

    fn work(&self) -> Option<DeviceWork> {
        match self.cat.to_lowercase().as_str() {
            "kernel" => Some(DeviceWork::Kernel),
            "gpu_memcpy" | "memcpy" => Some(DeviceWork::Memcpy),
            "gpu_memset" | "memset" => Some(DeviceWork::Memset),
            _ => None,
        }
    }
}

fn nanoseconds(text: &str) -> u64 {
    let text = text.trim_matches('"');
    if let Some(ns) = text.strip_suffix("e-3") {
        return ns.parse().unwrap();
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, "000"));
    whole.parse::<u64>().unwrap() * 1000 + part.parse::<u64>().unwrap()
}

fn events(text: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(text);
    if text.starts_with('[') {
        return serde_json::from_str(&text).unwrap();
    }
    let top: HashMap<String, Box<RawValue>> = serde_json::from_str(&text).unwrap();
    let list = top["traceEvents"].get();
    serde_json::from_str(list).unwrap_or_else(|_| {
        let lists: HashMap<String, Vec<Event>> = serde_json::from_str(list).unwrap();
        lists.into_values().flatten().collect()
    })
}

/// Plans of every kind, with the oddities that a plain parser can read.
fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    let variations =
        [Variation::None, Variation::SlidingWindow, Variation::FirstDense, Variation::OneExtra];
    let communications = [Communication::None, Communication::SameStream, Communication::OwnStream];
    let mut number = 0;
    for vendor in [Vendor::Nvidia, Vendor::Amd] {
        for model in Model::ALL {
            for launching in Launching::ALL {
                for timing in Timing::ALL {
                    number += 1;
                    plans.push(Plan {
                        vendor,
                        model,
                        launching,
                        timing,
                        layers: 5,
                        variation: variations[number % variations.len()],
                        steps: 4,
                        phases: vec![Phase::Prefill, Phase::Decode, Phase::Mixed],
                        annotations: vec![Annotation::ALL[number % Annotation::ALL.len()]],
                        communication: communications[number / 3 % communications.len()],
                        copies: number % 2 == 0,
                        frames: number as u64 % 3,
                        operators: number % 5 != 0,
                        seed: number as u64,
                        ..Plan::default()
                    });
                }
            }
        }
    }
    let unreadable = [Oddity::UnescapedQuotes, Oddity::ControlCharacters];
    for oddity in Oddity::ALL {
        if !unreadable.contains(&oddity) {
            plans.push(Plan {
                layers: 3,
                copies: true,
                communication: Communication::OwnStream,
                oddities: vec![oddity],
                ..Plan::default()
            });
        }
    }
    plans.push(Plan { steps: 0, ..Plan::default() });
    plans.push(Plan { layers: 0, ..Plan::default() });
    plans.push(Plan { layers: 0, model: Model::Bag, ..Plan::default() });
    plans
}

#[test]
fn counts_and_times_are_those_of_a_plain_parser() {
    for plan in plans() {
        let (text, truth) = synthetic::text(&plan).unwrap();
        let events = events(&text);
        assert_eq!(events.len() as u64, truth.counts.events, "{plan:?}");
        let of = |categories: &[&str]| {
            let is_one = |event: &&Event| {
                event.ph == "X" && categories.contains(&event.cat.to_lowercase().as_str())
            };
            events.iter().filter(is_one).count() as u64
        };
        let counts = truth.counts;
        assert_eq!(of(&["cuda_runtime", "cuda_driver", "runtime"]), counts.launches, "{plan:?}");
        assert_eq!(of(&["cpu_op", "operator"]), counts.ops, "{plan:?}");
        assert_eq!(of(&["user_annotation", "gpu_user_annotation"]), counts.annotations);
        assert_eq!(of(&["python_function"]), counts.frames);
        let kernels: Vec<&Event> = events.iter().filter(|event| event.work().is_some()).collect();
        assert_eq!(kernels.len() as u64, counts.kernels);
        assert_eq!(kernels.len(), truth.kernels.len());
        for (event, kernel) in kernels.iter().zip(&truth.kernels) {
            let end = kernel.start_ns + kernel.duration_ns;
            assert_eq!(event.time(), kernel.start_ns..end, "{plan:?}");
            assert_eq!(event.number("stream"), Some(kernel.stream));
            assert_eq!(event.work(), Some(kernel.work));
        }
        let times: Vec<Range<u64>> = kernels.iter().map(|event| event.time()).collect();
        let sum: u128 = times.iter().map(|time| u128::from(time.end - time.start)).sum();
        assert_eq!(sum, counts.kernel_ns);
        check_shares(&truth, &times);
    }
}

/// Busy, idle and exposed time, from each moment at which something begins or ends to the next.
fn check_shares(truth: &Truth, times: &[Range<u64>]) {
    let mut moments: Vec<u64> = times.iter().flat_map(|time| [time.start, time.end]).collect();
    moments.sort_unstable();
    let (mut busy, mut idle, mut exposed) = (0, 0, 0);
    for pair in moments.windows(2) {
        let length = pair[1] - pair[0];
        let mut running =
            times.iter().zip(&truth.kernels).filter(|(time, _)| time.contains(&pair[0])).peekable();
        if running.peek().is_none() {
            idle += length;
        } else {
            busy += length;
            let is_communication = running.all(|(_, kernel)| kernel.class == Class::Comm);
            exposed += if is_communication { length } else { 0 };
        }
    }
    assert_eq!((truth.busy_ns, truth.idle_ns), (busy, idle));
    assert_eq!(truth.exposed_communication_ns, exposed);
}

#[test]
fn names_have_the_classes_of_the_truth() {
    for plan in plans() {
        let (text, truth) = synthetic::text(&plan).unwrap();
        let events = events(&text);
        let operators: HashMap<u64, &str> = events
            .iter()
            .filter(|event| event.cat == "cpu_op")
            .map(|event| (event.number("External id").unwrap(), event.name.as_str()))
            .collect();
        let kernels = events.iter().filter(|event| event.work().is_some());
        for (event, kernel) in kernels.zip(&truth.kernels) {
            let op = event.number("External id").and_then(|id| operators.get(&id).copied());
            assert_eq!(classify_with(&event.name, op, None).main, kernel.class, "{}", event.name);
        }
    }
}

/// The marks on the host, one for each step.
fn marks(events: &[Event]) -> Vec<(String, Range<u64>)> {
    let marks = events.iter().filter(|event| event.cat == "user_annotation");
    marks.map(|event| (event.name.clone(), event.time())).collect()
}

#[test]
fn launches_tell_the_steps_and_times_of_kernels_do_not() {
    for plan in plans().into_iter().filter(|plan| plan.oddities.is_empty() && plan.steps > 0) {
        let (text, truth) = synthetic::text(&plan).unwrap();
        let events = events(&text);
        let marks = marks(&events);
        assert_eq!(marks.len() as u64, plan.steps);
        let launches: HashMap<u64, u64> = events
            .iter()
            .filter(|event| event.cat == "cuda_runtime" || event.cat == "cuda_driver")
            .map(|event| (event.number("correlation").unwrap(), event.time().start))
            .collect();
        let mut outside = 0;
        let kernels = events.iter().filter(|event| event.work().is_some());
        for (event, kernel) in kernels.zip(&truth.kernels) {
            let correlation = event.number("correlation").unwrap();
            assert_eq!(kernel.is_linked, correlation != 0);
            if !kernel.is_linked {
                assert!(plan.vendor == Vendor::Amd && kernel.class == Class::Comm);
                continue;
            }
            let launch = launches[&correlation];
            let step = marks.iter().position(|(_, mark)| mark.contains(&launch));
            assert_eq!(step, kernel.step.map(|step| step as usize), "{plan:?}");
            let Some(step) = step else { continue };
            let told = marks[step].0.as_str();
            let phase = match kernel.phase {
                Some(Phase::Prefill) => {
                    ["_generation_0(", "EXTEND", "prefill["].iter().any(|word| told.contains(word))
                }
                Some(Phase::Decode) => {
                    ["_context_0(", "DECODE", "decode["].iter().any(|word| told.contains(word))
                }
                Some(Phase::Mixed) => {
                    told.contains("MIXED")
                        || (told.contains("_context_")
                            && !told.contains("_context_0(")
                            && !told.contains("_generation_0("))
                }
                None => {
                    plan.model == Model::Training
                        || told.contains('#')
                        || told.contains("diffusion")
                        || told.contains("prefill[")
                }
            };
            assert!(phase, "{:?} in {told}", kernel.phase);
            outside += usize::from(!marks[step].1.contains(&kernel.start_ns));
        }
        let inside = truth.kernels.iter().filter(|k| k.step.is_some() && k.is_linked).count();
        match plan.timing {
            Timing::Synchronous => assert_eq!(outside, 0, "{plan:?}"),
            Timing::Overlapping => assert!(outside > 0 && outside < inside, "{plan:?}"),
            Timing::Behind => assert_eq!(outside, inside, "{plan:?}"),
        }
    }
}

#[test]
fn layers_begin_at_their_markers() {
    for plan in plans().into_iter().filter(|plan| plan.layers > 0 && plan.steps > 0) {
        let (_, truth) = synthetic::text(&plan).unwrap();
        let layers = match plan.model {
            Model::Bag => 0,
            Model::Training => plan.layers * 2,
            _ => plan.layers,
        };
        let count = |patterns: Vec<synthetic::Pattern>| -> u64 {
            patterns.iter().map(|pattern| pattern.count).sum()
        };
        assert_eq!(count(truth.layer_patterns()), layers * plan.steps, "{plan:?}");
        assert_eq!(count(truth.block_patterns()), layers * plan.steps, "{plan:?}");
        for pattern in truth.layer_patterns() {
            let marker = match plan.model {
                Model::StateSpace => [Class::Ssm].as_slice(),
                Model::Hybrid => &[Class::Ssm, Class::KvCache],
                Model::Training => &[Class::Attn],
                _ => &[Class::KvCache],
            };
            assert!(marker.contains(&pattern.classes[0]), "{pattern:?}");
        }
        // A layer goes from its block into the next one, never back and never further.
        for kernel in &truth.kernels {
            if let (Some(block), Some(layer)) = (kernel.block, kernel.layer) {
                let layers = plan.layers as u32;
                let is_backward = layer >= layers || block + 1 < layer;
                let block = if is_backward { 2 * layers - 1 - block } else { block };
                assert!(block == layer || block == layer + 1, "{plan:?}");
            }
        }
    }
}

fn classes(names: &str) -> Vec<Class> {
    names.split(' ').map(|name| Class::from_name(name).unwrap()).collect()
}

/// The convention by which the layers of real traces were cut by hand.
#[test]
fn layers_are_cut_like_those_of_real_traces() {
    let plan = Plan {
        model: Model::MixtureOfExperts,
        layers: 4,
        steps: 3,
        phases: vec![Phase::Prefill],
        variation: Variation::FirstDense,
        ..Plan::default()
    };
    let (_, truth) = synthetic::text(&plan).unwrap();
    let experts = "KVCACHE ATTN GEMM NORM GEMM MOE_ROUTING MOE_ROUTING MOE_ROUTING MOE_ROUTING \
                   MOE_GEMM MOE_GEMM MOE_FINALIZE";
    let next = "NORM GEMM ROPE";
    let dense = "KVCACHE ATTN GEMM NORM GEMM ACT GEMM";
    let expected =
        [(format!("{dense} {next}"), 3), (format!("{experts} {next}"), 6), (experts.to_owned(), 3)];
    let expected =
        expected.map(|(names, count)| synthetic::Pattern { classes: classes(&names), count });
    assert_eq!(truth.layer_patterns(), expected);
    let expected = [(format!("{next} {dense}"), 3), (format!("{next} {experts}"), 9)];
    let expected =
        expected.map(|(names, count)| synthetic::Pattern { classes: classes(&names), count });
    assert_eq!(truth.block_patterns(), expected);
    let of = |part: fn(&KernelTruth) -> bool| {
        let first = truth.kernels.iter().filter(|kernel| kernel.step == Some(0));
        let roles: Vec<&str> = first.filter(|k| part(k)).map(|kernel| kernel.role).collect();
        roles.join(" ")
    };
    assert_eq!(of(|k| k.block.is_none()), "embedding norm select lm_head cast sampling");
    assert_eq!(
        of(|k| k.layer.is_none()),
        "embedding norm qkv rope norm select lm_head cast sampling"
    );
}

#[test]
fn graphs_share_their_correlation_ids() {
    let groups = |launching| {
        let plan = Plan { layers: 6, steps: 1, launching, ..Plan::default() };
        let (text, _) = synthetic::text(&plan).unwrap();
        let trace = Trace::from_json(&text, &Options::default()).unwrap();
        let mut ids: HashMap<u64, (usize, u64)> = HashMap::new();
        for (id, node) in trace.kernels.correlation.iter().zip(&trace.kernels.graph_node) {
            let group = ids.entry(*id).or_default();
            group.0 += 1;
            group.1 = group.1.max(*node);
        }
        let mut sizes: Vec<usize> = ids.values().map(|group| group.0).collect();
        for (size, node) in ids.into_values() {
            assert_eq!(node, if size > 1 { size as u64 } else { node.min(1) });
        }
        sizes.sort_unstable();
        sizes
    };
    // A prefill step of 6 layers of 10 kernels, with 1 before and 5 behind.
    assert_eq!(groups(Launching::Eager), [1; 66]);
    assert_eq!(groups(Launching::StepGraph), [1, 1, 64]);
    assert_eq!(groups(Launching::LayerGraphs), [1, 1, 1, 1, 1, 1, 10, 10, 10, 10, 10, 10]);
    let pieces = [vec![1; 14], vec![4], vec![8; 6]].concat();
    assert_eq!(groups(Launching::Piecewise), pieces);
}

#[test]
fn a_step_without_layers_never_repeats() {
    let plan = Plan { model: Model::Bag, layers: 12, steps: 2, ..Plan::default() };
    let (_, truth) = synthetic::text(&plan).unwrap();
    assert_eq!(truth.layers, 0);
    let of = |step| -> Vec<&str> {
        let kernels = truth.kernels.iter().filter(|kernel| kernel.step == Some(step));
        kernels.map(|kernel| kernel.role).collect()
    };
    let (first, second) = (of(0), of(1));
    assert_eq!(first.len(), 96);
    assert_ne!(first, second);
    for period in 1..48 {
        assert!(first.iter().zip(first.iter().skip(period)).any(|(a, b)| a != b), "{period}");
    }
}

#[test]
fn every_rank_has_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { communication: Communication::OwnStream, ..Plan::default() };
    let written = synthetic::write_ranks(&plan, folder.path(), 11).unwrap();
    let paths: Vec<_> = written.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(trace_files(folder.path()).unwrap(), paths);
    for (rank, (path, truth)) in (0..).zip(&written) {
        let trace = Trace::load(path, &Options::default(), &mut |_, _| {}).unwrap();
        let distributed = trace.metadata.distributed.as_ref().unwrap();
        assert_eq!((distributed.rank, distributed.world_size), (Some(rank), Some(11)));
        assert_eq!(trace.kernels.total_ns(), truth.counts.kernel_ns);
    }
    assert_ne!(written[0].1.busy_ns, written[1].1.busy_ns);
    assert!(synthetic::write_ranks(&plan, folder.path(), 0).unwrap().is_empty());
}
