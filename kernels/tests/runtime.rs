//! Runtimes that do as they should, and ones that do not. They are written in plain Python.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fused_kernels::cpu::counters_of_this_thread;
use fused_kernels::runtime::{Runtime, RuntimeProgram};
use fused_kernels::{
    Backend, BackendError, Expected, Inputs, OutputDigest, Prepared, Setup, Unsupported, Variant,
};
use fusion_cost_model::{CacheState, Problem};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/runtime/tiny.py");

fn program(folder: &Path, flaw: &str) -> RuntimeProgram {
    RuntimeProgram {
        name: "tiny".to_owned(),
        command: ["python3", PROGRAM, flaw].map(Into::into).to_vec(),
        folder: folder.to_owned(),
        cache: None,
    }
}

fn setup() -> Setup {
    CacheState::Warm.into()
}

fn problem() -> Problem {
    "mul+relu/f32/m16.n100".parse().unwrap()
}

/// Runs a variant, and says how long that took.
type Runs = fn(&mut dyn Prepared, Variant) -> Result<(), BackendError>;

const RUN: Runs = |prepared, variant| prepared.run(variant, 8).map(|_| ());
const RUN_BEHIND: Runs = |prepared, variant| prepared.run_behind(variant, 3, 8).map(|_| ());

/// Proves a problem as often as it takes to notice a flaw, and what became of that.
fn proved(flaw: &str, (count, run): (u32, Runs)) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let message = |error: BackendError| error.to_string();
    let mut runtime = Runtime::start(&program(folder.path(), flaw), 1, true).map_err(message)?;
    let problem = problem();
    let inputs = Inputs::random(&problem, 7);
    let expected = Expected::compute(&problem, &inputs, u64::MAX);
    let prepared = runtime.prepare(&problem, &inputs, setup()).map_err(message)?;
    let mut prepared = prepared.ok_or("it has no kernels")?;
    for variant in Variant::ALL {
        prepared.poison().map_err(message)?;
        for _ in 0..count {
            run(&mut *prepared, variant).map_err(message)?;
            prepared.counters();
        }
        let output = prepared.output().map_err(message)?;
        let error = expected.error(&output);
        if error.is_nan() || error > expected.tolerance() {
            return Err(format!("wrong result of {variant}"));
        }
    }
    Ok(())
}

#[test]
fn a_runtime_is_a_backend_like_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut runtime = Runtime::start(&program(folder.path(), "none"), 1, true).unwrap();
    let said = runtime.introduction().clone();
    assert_eq!((said.name.as_str(), said.version.as_str()), ("tiny", "1.2"));
    assert_eq!((runtime.threads(), runtime.pinned().map(<[u32]>::len)), (1, Some(1)));
    assert!(runtime.look_at_machine().unwrap().is_some());

    let problem = problem();
    assert!(runtime.requirements(&problem, setup()).unwrap().memory_bytes >= 3 * 4 * 1600);
    let add: Problem = "add_relu/f32/m4.n4".parse().unwrap();
    let refused = runtime.requirements(&add, setup()).unwrap_err();
    assert_eq!(refused.to_string(), "tiny does not run it: it has no add");
    let cold = runtime.requirements(&problem, CacheState::Cold.into()).unwrap_err();
    assert!(matches!(cold, Unsupported::Runtime { .. }), "{cold}");
    let inputs = Inputs::random(&problem, 3);
    assert!(runtime.prepare(&add, &Inputs::random(&add, 3), setup()).unwrap().is_none());

    let expected = Expected::compute(&problem, &inputs, u64::MAX);
    let mut copies =
        runtime.prepare_copies(&problem, &inputs, setup(), Variant::Fused).unwrap().unwrap();
    assert_eq!(copies.kernels(Variant::Unfused), ["mul+relu"]);
    // The names of all tensors are gone, and so nothing is left however it ends.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    for side in Variant::ALL {
        copies.new_layout(5).unwrap();
        copies.poison().unwrap();
        assert!(copies.output().unwrap().iter().all(|number| number.is_nan()));
        let time = copies.run(side, 3).unwrap();
        assert!(time > Duration::ZERO);
        let output = copies.output().unwrap();
        assert!(expected.error(&output) <= expected.tolerance());
        assert_eq!(copies.output_digest().unwrap(), OutputDigest::of(&output));
    }
    let before = copies.counters();
    copies.run(Variant::Fused, 1).unwrap();
    let after = copies.counters();
    assert_eq!(before.len(), after.len());
    assert!(!after.is_empty() && after.iter().all(|thread| thread.run_delay.is_some()));
}

/// Of a problem in bf16, whose numbers it reads and writes as their bits, of an odd count. What it
/// does not compute in is refused before it is asked.
#[test]
fn a_runtime_computes_in_the_dtypes_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut runtime = Runtime::start(&program(folder.path(), "none"), 1, true).unwrap();
    let problem: Problem = "mul+relu/bf16/m3.n7001".parse().unwrap();
    let memory = runtime.requirements(&problem, setup()).unwrap().memory_bytes;
    let in_f32: Problem = "mul+relu/f32/m3.n7001".parse().unwrap();
    assert_eq!(2 * memory, runtime.requirements(&in_f32, setup()).unwrap().memory_bytes);
    let inputs = Inputs::random(&problem, 3);
    let expected = Expected::compute(&problem, &inputs, u64::MAX);
    let mut prepared = runtime.prepare(&problem, &inputs, setup()).unwrap().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    for variant in Variant::ALL {
        prepared.poison().unwrap();
        assert!(prepared.output().unwrap().iter().all(|number| number.is_nan()));
        prepared.run(variant, 1).unwrap();
        assert!(expected.error(&prepared.output().unwrap()) <= expected.tolerance());
    }
    drop(prepared);
    let refusal = |dtype: &str| {
        let problem = format!("mul+relu/{dtype}/m3.n7").parse().unwrap();
        runtime.requirements(&problem, setup()).unwrap_err().to_string()
    };
    assert_eq!(refusal("f16"), "tiny does not run it: it does not compute in f16");
    assert_eq!(refusal("i8"), "tiny does not run it: runtimes are not measured in i8");
}

/// The processors on which this thread may run, as the system writes them.
fn processors_of_this_thread() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

#[test]
fn a_runtime_on_all_processors_shares_one_with_the_thread_that_measures() {
    let before = processors_of_this_thread();
    let folder = tempfile::tempdir().unwrap();
    let all = std::thread::available_parallelism().unwrap().get();
    for bound in [true, false] {
        let mut runtime = Runtime::start(&program(folder.path(), "none"), all, bound).unwrap();
        let first = runtime.pinned().map(|processors| processors[0].to_string());
        assert_eq!(first.is_some(), bound);
        let aside = first.unwrap_or_else(|| before.clone());
        assert_eq!(processors_of_this_thread(), aside);
        // Our own kernels have all of them, and no less afterwards.
        assert!(runtime.look_at_machine().unwrap().is_some());
        assert_eq!(processors_of_this_thread(), aside);
        drop(runtime);
        assert_eq!(processors_of_this_thread(), before);
    }
}

#[test]
fn runs_behind_others_are_timed_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let mut runtime = Runtime::start(&program(folder.path(), "none"), 1, true).unwrap();
    let (problem, inputs) = (problem(), Inputs::random(&problem(), 3));
    let expected = Expected::compute(&problem, &inputs, u64::MAX);
    let mut prepared = runtime.prepare(&problem, &inputs, setup()).unwrap().unwrap();
    for (untimed, runs) in [(1, 200), (200, 1)] {
        let [first, second] = prepared.run_behind(Variant::Fused, untimed, runs).unwrap();
        // A machine that holds both up holds up the longer one more.
        assert_eq!(first < second, untimed < runs, "{first:?} {second:?}");
        assert!(first > Duration::ZERO && second > Duration::ZERO);
        assert!(expected.error(&prepared.output().unwrap()) <= expected.tolerance());
    }
    // It is asked for something else as if nothing had been.
    assert!(prepared.run(Variant::Unfused, 1).unwrap() > Duration::ZERO);
}

fn assert_reasons(run: Runs, reasons: &[(&str, &str)]) {
    /// A clock is wrong if fifteen runs in a row say so: a machine that disturbs one of them begins
    /// the count anew.
    const COUNT: u32 = 60;
    assert_eq!(proved("none", (COUNT, run)), Ok(()));
    for (flaw, reason) in reasons {
        let found = proved(flaw, (COUNT, run)).err().unwrap_or_default();
        assert!(found.contains(reason), "{flaw}: {found}");
    }
}

#[test]
fn each_flaw_has_its_reason_where_runs_follow_each_other() {
    let reasons = [
        ("crash", "tiny: its process failed: out of ideas (at `run`)"),
        ("late-crash", "tiny: its process was ended by signal 6 (at `run`)"),
        ("raises", "tiny: its `run` failed: run 2"),
        ("leaves-at-run", "its process ended without an answer (exit status: 0) (at `run`)"),
        ("fast-clock", "its clock cannot be right: it says"),
        ("slow-clock", "its clock cannot be right: it says"),
        ("swaps-times", "its clock cannot be right: it says"),
        ("holds-back", "it must answer each request as soon as its runs are done"),
        ("repeats-run", "out of turn at `run`: it has n = "),
        ("many-threads", "threads busy and was given 1"),
    ];
    assert_reasons(RUN_BEHIND, &reasons);
}

#[test]
fn unknown_names_of_dtypes_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::start(&program(folder.path(), "other-names"), 1, false).unwrap();
    let refused = runtime.requirements(&problem(), setup()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "tiny does not run it: it does not compute in f32; of its `dtypes`, [\"float32\"] are unknown, \
         and f32, bf16, f16 are known"
    );
}

#[test]
fn other_processes_that_compute_are_found() {
    for run in [RUN, RUN_BEHIND] {
        let reasons = ["children", "short-children"]
            .map(|flaw| (flaw, "tiny: processes that it has started took "));
        assert_reasons(run, &reasons);
    }
}

/// Whether two threads get a processor each.
fn has_two_processors() -> bool {
    let spins = || {
        let time = || counters_of_this_thread().processor_time.unwrap();
        let (before, began) = (time(), Instant::now());
        while began.elapsed() < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        (time() - before).as_secs_f64() > 0.95 * began.elapsed().as_secs_f64()
    };
    [(); 2].map(|()| std::thread::spawn(spins)).into_iter().all(|one| one.join().unwrap())
}

/// They are found where they have more than a processor. Other programs may have it instead.
#[test]
fn threads_that_end_before_they_are_looked_at_are_found() {
    for run in [RUN, RUN_BEHIND] {
        let began = Instant::now();
        let mut believed = 0;
        while began.elapsed() < Duration::from_secs(10) {
            let is_free = has_two_processors();
            let found = proved("short-threads", (20, run)).err().unwrap_or_default();
            if found.contains("of processor time in ") {
                break;
            }
            assert_eq!(found, "");
            believed += u32::from(is_free && has_two_processors());
            assert!(believed < 4);
        }
    }
}

/// One that says why it failed is asked further.
#[test]
fn a_failure_of_the_first_runs_takes_the_answer_about_the_second_along() {
    let folder = tempfile::tempdir().unwrap();
    let mut runtime = Runtime::start(&program(folder.path(), "raises"), 1, true).unwrap();
    let inputs = Inputs::random(&problem(), 3);
    let mut prepared = runtime.prepare(&problem(), &inputs, setup()).unwrap().unwrap();
    prepared.run(Variant::Fused, 1).unwrap();
    let error = prepared.run_behind(Variant::Fused, 1, 1).unwrap_err().to_string();
    assert_eq!(error, "tiny: its `run` failed: run 2", "and not run 3");
    assert!(prepared.run_behind(Variant::Fused, 1, 1).is_ok());
}

#[test]
fn each_flaw_has_one_clear_reason() {
    // One that ends before it has said what it is, is started once more.
    assert_eq!(proved("dies-once", (20, RUN)), Ok(()));
    let reasons = [
        ("no-kernels", "a variant without kernels computes nothing"),
        ("wrong", "wrong result of unfused"),
        ("wrong-fused", "wrong result of fused"),
        ("crash", "tiny: its process failed: out of ideas (at `run`)"),
        ("late-crash", "tiny: its process was ended by signal 6 (at `run`)"),
        ("dies", "tiny: its process was ended by signal 9; "),
        ("rubbish", "its answer to `hello` cannot be read"),
        ("huge", "its answer to `hello` has more than 1 MiB and no end of a line"),
        (
            "out-of-turn",
            "it answered out of turn at `hello`: it has n = 2, and request 1 was asked",
        ),
        ("talks", "out of turn at `supports`: it wrote more behind its answer to `hello`"),
        ("refuses", "tiny: its `prepare` failed: no kernels today"),
        ("missing", "tiny: No module named 'tiny'"),
        ("fast-clock", "its clock cannot be right: it says"),
        ("slow-clock", "its clock cannot be right: it says"),
        ("silent-output", "wrong result of unfused"),
        ("unpoisoned", "after `poison`, 1600 of 1600 numbers of its output are not NaN"),
        ("short-output", "its output has 4 bytes, and 6400 were expected"),
        ("many-threads", "threads busy and was given 1"),
    ];
    assert_reasons(RUN, &reasons);
}

#[test]
fn one_that_dies_when_it_is_asked_about_a_problem_is_asked_about_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::start(&program(folder.path(), "dies-at-tanh"), 1, true).unwrap();
    for _ in 0..2 {
        let tanh = "mul+tanh/f32/m2.n10".parse().unwrap();
        let refused = runtime.requirements(&tanh, setup()).unwrap_err().to_string();
        let reason = "tiny failed when it was asked whether it runs it: \
                      its process was ended by signal 6 (at `supports`)";
        assert_eq!(refused, reason);
        assert!(runtime.requirements(&problem(), setup()).is_ok());
    }
}

#[test]
fn what_it_does_behind_an_answer_costs_no_other_problem() {
    for flaw in ["dies-behind-tanh", "repeats-tanh"] {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::start(&program(folder.path(), flaw), 1, true).unwrap();
        for _ in 0..2 {
            let tanh = "mul+tanh/f32/m2.n10".parse().unwrap();
            let refused = runtime.requirements(&tanh, setup()).unwrap_err().to_string();
            assert_eq!(refused, "tiny does not run it: it has no tanh", "{flaw}");
            let found = runtime.requirements(&problem(), setup());
            assert!(found.is_ok(), "{flaw}: {}", found.unwrap_err());
        }
    }
}

#[test]
fn a_runtime_that_never_stops_writing_is_ended_too() {
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = ended.send(proved("chatters", (1, RUN)));
    });
    // It is given seconds to leave; only a minute shows that it is never ended.
    assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(Ok(())));
}

#[test]
fn a_runtime_that_hangs_is_killed_with_all_that_it_started() {
    // Its limits are minutes; whoever measures has one of its own and drops it.
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let runtime = Runtime::start(&program(folder.path(), "leaves"), 1, false).unwrap();
    let sleepers = || processes_in(folder.path());
    assert!(sleepers() >= 2, "the runtime and what it has started");
    drop(runtime);
    // The group is gone at once, whoever its leader left behind.
    while sleepers() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many processes work in a folder.
fn processes_in(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let works_there = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(works_there).count()
}

#[test]
fn what_is_no_program_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut none = program(folder.path(), "none");
    none.command = vec!["no-such-program".into(), "x".into()];
    let error = Runtime::start(&none, 1, false).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("tiny: `no-such-program` cannot be started"), "{error}");
    let script = folder.path().join("script");
    for (first_line, expected) in [
        (
            "#!/no/such/python3 -u\n",
            Some(r#"the interpreter "/no/such/python3", which is missing"#),
        ),
        ("#! /bin/sh\r\n", Some(r#"the interpreter "/bin/sh\r", which is missing"#)),
        ("#!/bin/sh\n", None),
    ] {
        std::fs::write(&script, format!("{first_line}exit 3\n")).unwrap();
        std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
        none.command = vec![script.clone().into()];
        let error = Runtime::start(&none, 1, false).map(|_| ()).unwrap_err().to_string();
        match expected {
            Some(expected) => assert!(error.contains(expected), "{error}"),
            None => assert!(error.contains("exit status: 3"), "{error}"),
        }
    }
    none.command = vec!["true".into()];
    let error = Runtime::start(&none, 1, false).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("its process ended without an answer"), "{error}");
}
