//! Real traces whose marks are the truth, and are removed before phases are looked for.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use kernel_traces::segment::Phase;
use kernel_traces::{Options, Trace};
use serde_json::Value;

use crate::loaded::Loaded;
use crate::real;

/// Times of kernels by what was found: right, wrong, and unknown; with what is of no phase by the
/// marks and has one.
#[derive(Debug, Default)]
struct Agreement {
    right_ns: u64,
    wrong_ns: u64,
    unknown_ns: u64,
    extra_ns: u64,
}

impl Agreement {
    fn add(&mut self, found: Option<Phase>, truth: Option<Phase>, ns: u64) {
        match (found, truth) {
            (None, None) => {}
            (Some(_), None) => self.extra_ns += ns,
            (None, Some(_)) => self.unknown_ns += ns,
            (Some(found), Some(truth)) if found == truth => self.right_ns += ns,
            (Some(_), Some(_)) => self.wrong_ns += ns,
        }
    }

    fn of_known(&self) -> f64 {
        self.right_ns as f64 / (self.right_ns + self.wrong_ns).max(1) as f64
    }

    fn known(&self) -> f64 {
        let known = self.right_ns + self.wrong_ns;
        known as f64 / (known + self.unknown_ns).max(1) as f64
    }
}

fn path(name: &str) -> PathBuf {
    real::folder().join(format!("{name}.json.gz"))
}

/// A trace as it is, and without the annotations for which `is_mark` holds.
fn both(name: &str, is_mark: impl Fn(&str) -> bool) -> [Loaded; 2] {
    let marked = Trace::load(path(name), &Options::default(), &mut |_, _| {}).unwrap();
    let text = GzDecoder::new(File::open(path(name)).unwrap());
    let mut json: Value = serde_json::from_reader(text).unwrap();
    let events = json["traceEvents"].as_array_mut().unwrap();
    let before = events.len();
    events.retain(|event| {
        let is_annotation =
            event["cat"].as_str().is_some_and(|category| category.contains("user_annotation"));
        !(is_annotation && event["name"].as_str().is_some_and(&is_mark))
    });
    assert!(events.len() < before, "{name}");
    let bare = serde_json::to_vec(&json).unwrap();
    let bare = Trace::from_json(&bare, &Options::default()).unwrap();
    assert_eq!(bare.kernels.len(), marked.kernels.len(), "{name}");
    [Loaded::of(marked), Loaded::of(bare)]
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn serving_agrees_with_its_marks() {
    let is_mark = |name: &str| {
        ["execute_", "step[", "prefill[", "decode["].iter().any(|mark| name.starts_with(mark))
    };
    for name in ["mi300x_gpt-oss-20b_vllm_prefilldecode", "mi300x_qwen3-8b_sglang_decode_graph"] {
        let [marked, bare] = both(name, is_mark);
        let mut agreement = Agreement::default();
        for (kernel, ns) in bare.trace.kernels.duration_ns.iter().enumerate() {
            let [truth, found] = [&marked, &bare].map(|one| one.segments.steps.phase(kernel));
            agreement.add(found, truth, *ns);
        }
        println!("{name}: {agreement:?}; {:?}", super::findings(&bare));
        assert_eq!(agreement.wrong_ns, 0, "{name}");
    }
}

/// The window of an annotation: thread, beginning and end.
type Window = (u32, i64, i64);

/// The parts that a program marked itself, with `## backward ##` and the like. They are not read as
/// marks, so they need not be removed.
#[test]
#[ignore = "needs the public traces in ../shared/traces and ../shared/more_traces"]
fn training_agrees_with_what_programs_mark() {
    let names = [
        "a100_nccl_train",
        "a100_dlrm_train_control",
        "../more_traces/dlrm_8ranks/rank0",
        "../more_traces/dlrm_8ranks/rank7",
    ];
    for name in names {
        let loaded =
            Loaded::of(Trace::load(path(name), &Options::default(), &mut |_, _| {}).unwrap());
        let trace = &loaded.trace;
        let windows = |mark: &str| -> Vec<Window> {
            let table = &trace.annotations;
            (0..table.len())
                .filter(|row| !table.on_device[*row] && trace.names.text(table.name[*row]) == mark)
                .map(|row| {
                    let start = table.start_ns[row];
                    (table.thread[row], start, start + table.duration_ns[row] as i64)
                })
                .collect()
        };
        let marks = [
            ("## forward ##", Phase::Forward),
            ("## backward ##", Phase::Backward),
            ("## optimizer ##", Phase::Optimizer),
        ];
        let marks = marks.map(|(mark, phase)| (windows(mark), phase));
        assert!(marks.iter().all(|(windows, _)| !windows.is_empty()), "{name}");
        let launches: HashMap<u64, (u32, i64)> = (0..trace.launches.len())
            .map(|row| {
                let table = &trace.launches;
                (table.correlation[row], (table.thread[row], table.start_ns[row]))
            })
            .collect();
        let mut agreement = Agreement::default();
        for kernel in 0..trace.kernels.len() {
            let Some(&(thread, time)) = launches.get(&trace.kernels.correlation[kernel]) else {
                continue;
            };
            // The thread of the backward pass has no marks of its own.
            let truth = marks.iter().find_map(|(windows, phase)| {
                let is_here = |window: &&Window| {
                    (window.0 == thread || *phase == Phase::Backward)
                        && (window.1..=window.2).contains(&time)
                };
                windows.iter().find(is_here).map(|_| *phase)
            });
            let found = loaded.segments.steps.phase(kernel);
            agreement.add(found, truth, trace.kernels.duration_ns[kernel]);
        }
        println!(
            "{name}: {agreement:?}; right {:.4} of known, known {:.4}; {:?}",
            agreement.of_known(),
            agreement.known(),
            super::findings(&loaded)
        );
        assert!(agreement.of_known() > 0.995, "{name}: {agreement:?}");
        assert!(agreement.known() > 0.99, "{name}: {agreement:?}");
    }
}

/// What is known of the other traces: images and videos have no prompts, and what is not trained
/// has no gradients.
#[test]
#[ignore = "needs the public traces in ../shared/traces and ../shared/more_traces"]
fn other_traces_have_their_phases_or_none() {
    use Phase::{Backward, Forward, Optimizer, Prefill};
    let cases: [(&str, &[Phase]); 10] = [
        ("h100_qwen1.5-0.5b_eager", &[Prefill]),
        ("mi300x_qwen1.5-0.5b_eager", &[Prefill]),
        ("h100_bert-small_eager", &[]),
        ("mi300x_bert-small_eager", &[]),
        ("h100_timesformer_eager", &[]),
        ("mi300x_torch_compile_triton", &[]),
        ("../more_traces/a100_particle-transformer_forward_bs2", &[]),
        ("../more_traces/mi300x_flux_aiter", &[]),
        ("../more_traces/mi300x_resnet18_ddp_train", &[Forward, Backward, Optimizer]),
        ("../more_traces/v100_resnet50_train_rank0", &[Forward, Backward, Optimizer]),
    ];
    for (name, phases) in cases {
        let loaded =
            Loaded::of(Trace::load(path(name), &Options::default(), &mut |_, _| {}).unwrap());
        let found = super::findings(&loaded);
        let durations = loaded.trace.kernels.duration_ns.iter().enumerate();
        let all: u64 = durations.clone().map(|(_, ns)| ns).sum();
        let steps = &loaded.segments.steps;
        let known: u64 =
            durations.filter(|(kernel, _)| steps.phase(*kernel).is_some()).map(|(_, ns)| ns).sum();
        println!("{name}: {:.4} known; {found:?}", known as f64 / all.max(1) as f64);
        let mut names: Vec<Phase> = found.iter().map(|one| one.0).collect();
        names.dedup();
        assert_eq!(names, phases, "{name}");
    }
}
