//! In which order a queue calls its driver, and what it gives back.

use super::*;
use crate::gpu::cache::CodeCache;
use crate::gpu::loaded::Loader;
use crate::gpu::lower::probes;
use crate::gpu::memory::DeviceTensors;
use crate::gpu::tensors::TensorTable;
use crate::gpu::tests::scripted::{GRAPH_START, NoCompiler, Scripted};

/// A queue with a variant of two kernels and one of one.
fn queue(driver: &Rc<Scripted>) -> (Queue, Work, DeviceTensors) {
    let shared: Rc<dyn Driver> = Rc::clone(driver) as Rc<dyn Driver>;
    let loader = Loader::new(Rc::clone(&shared), Rc::new(NoCompiler), CodeCache::default());
    let tensors = DeviceTensors::allocate(&shared, TensorTable::default(), 3).unwrap();
    let kernel = || {
        let mut kernel = loader.load(probes::nothing()).unwrap();
        kernel.locate(&tensors).unwrap();
        Box::new(kernel) as Box<dyn Launch>
    };
    let work = Work { unfused: vec![kernel(), kernel()], fused: vec![kernel()] };
    (Queue::new(&shared).unwrap(), work, tensors)
}

fn calls_of(driver: &Scripted, run: impl FnOnce()) -> Vec<String> {
    driver.calls.borrow_mut().clear();
    run();
    driver.calls.borrow().clone()
}

const SETS: Sets = Sets { first: 1, count: 3 };

/// Finds out what starting a graph takes, and forgets what was recorded for that.
fn find_starts(queue: &mut Queue, work: &Work) {
    for variant in Variant::ALL {
        // SAFETY: the kernels were located where the tensors are.
        let found = unsafe { queue.start_of_graph(work, variant, SETS) };
        assert_eq!(found.unwrap(), Duration::from_micros(GRAPH_START));
    }
    queue.forget();
}

#[test]
fn the_time_is_that_of_kernels_without_the_start_of_graphs() {
    let driver = Rc::new(Scripted::new());
    let (mut queue, work, _tensors) = queue(&driver);
    // One graph, and several.
    for runs in [1, 2, 7, MOST_KERNELS as u32 * 3] {
        for (variant, kernels) in [(Variant::Unfused, 2), (Variant::Fused, 1)] {
            // SAFETY: as above.
            let time = unsafe { queue.device_time(&work, variant, runs, SETS, true) };
            assert_eq!(time.unwrap(), Duration::from_micros(u64::from(runs) * kernels));
        }
    }
    // It is found out once.
    let calls = calls_of(&driver, || {
        // SAFETY: as above.
        unsafe { queue.device_time(&work, Variant::Fused, 7, SETS, true) }.unwrap();
    });
    assert_eq!(calls.iter().filter(|call| *call == "synchronize").count(), 1);
}

/// What was poisoned is run once, and not by runs that find out something else.
#[test]
fn without_a_lead_nothing_runs_before() {
    let driver = Rc::new(Scripted::new());
    let (mut queue, work, _tensors) = queue(&driver);
    let calls = calls_of(&driver, || {
        // SAFETY: as above.
        unsafe { queue.device_time(&work, Variant::Fused, 1, SETS, false) }.unwrap();
    });
    assert_eq!(calls.iter().filter(|call| *call == "graph").count(), 1);
}

#[test]
fn the_first_event_comes_after_a_lead_and_all_recording() {
    let driver = Rc::new(Scripted::new());
    let (mut queue, work, _tensors) = queue(&driver);
    find_starts(&mut queue, &work);
    let calls = calls_of(&driver, || {
        // SAFETY: the kernels were located where the tensors are.
        let time = unsafe { queue.device_time(&work, Variant::Unfused, 2, SETS, true) };
        assert_eq!(time.unwrap(), Duration::from_micros(4));
    });
    let launches = ["launch 1"; 4];
    let mut expected = vec!["begin"];
    expected.extend(launches);
    expected.extend(["end", "begin"]);
    expected.extend(launches);
    expected.extend(["end", "graph", "record", "graph", "record", "synchronize", "elapsed"]);
    assert_eq!(calls, expected);
    // What was recorded serves again, until the tensors move.
    let calls = calls_of(&driver, || {
        // SAFETY: as above.
        let time = unsafe { queue.device_time(&work, Variant::Unfused, 2, SETS, true) };
        assert!(time.is_ok());
    });
    assert_eq!(calls, ["graph", "record", "graph", "record", "synchronize", "elapsed"]);
    assert_eq!(calls_of(&driver, || queue.forget()), ["destroy graph"; 2]);
}

#[test]
fn a_runtime_that_records_nothing_gets_kernels_one_by_one() {
    for failing in ["begin_capture", "end_capture"] {
        let driver = Rc::new(Scripted::new());
        let (mut queue, work, _tensors) = queue(&driver);
        driver.failing.borrow_mut().push(failing);
        for _ in 0..2 {
            // SAFETY: as above.
            let time = unsafe { queue.device_time(&work, Variant::Fused, 5, SETS, true) };
            assert_eq!(time.unwrap(), Duration::from_micros(5));
        }
        assert!(!queue.records());
        let calls = driver.calls.borrow();
        assert_eq!(calls.iter().filter(|call| *call == "begin").count(), 1, "{failing}");
    }
}

#[test]
fn long_stretches_are_recorded_in_parts() {
    let driver = Rc::new(Scripted::new());
    let (mut queue, work, _tensors) = queue(&driver);
    let runs = 3 * (MOST_KERNELS as u32 / 2) + 7;
    find_starts(&mut queue, &work);
    driver.calls.borrow_mut().clear();
    // SAFETY: as above.
    unsafe { queue.device_time(&work, Variant::Unfused, runs, SETS, true) }.unwrap();
    let calls = driver.calls.borrow();
    let of = |name: &str| calls.iter().filter(|call| call.starts_with(name)).count();
    // The three whole parts begin at the same set, as many runs are a multiple of three sets
    // away or not; what is launched is all of them and the lead.
    assert_eq!(of("graph"), 3 + 1 + 1);
    assert_eq!(of("record"), 2);
    let parts = Queue::split(&work, Variant::Unfused, runs, SETS);
    assert_eq!(parts.iter().map(|part| part.runs).sum::<u32>(), runs);
    let mut set = SETS.first;
    for part in parts {
        assert_eq!(part.first_set, set);
        set = (set + part.runs as usize) % SETS.count;
    }
}

/// 513 kernels are a graph of 512 and one of a single kernel, which is over at once.
#[test]
fn the_lead_is_as_long_as_the_longest_part() {
    let driver = Rc::new(Scripted::new());
    let (mut queue, work, _tensors) = queue(&driver);
    let runs = MOST_KERNELS as u32 + 1;
    find_starts(&mut queue, &work);
    let calls = calls_of(&driver, || {
        // SAFETY: as above.
        unsafe { queue.device_time(&work, Variant::Fused, runs, SETS, true) }.unwrap();
    });
    let recorded: Vec<usize> = calls
        .split(|call| call == "begin")
        .map(|part| part.iter().filter(|call| call.starts_with("launch")).count())
        .filter(|kernels| *kernels > 0)
        .collect();
    assert_eq!(recorded, [MOST_KERNELS, MOST_KERNELS, 1]);
}

#[test]
fn the_hosts_time_is_of_each_run_by_itself() {
    let driver = Rc::new(Scripted::new());
    let (mut queue, work, _tensors) = queue(&driver);
    let calls = calls_of(&driver, || {
        // SAFETY: as above.
        let time = unsafe { queue.launch_inclusive_time(&work, Variant::Unfused, 2, SETS) };
        assert!(time.is_ok());
    });
    let run = ["launch 1", "launch 1", "synchronize"];
    assert_eq!(calls, [&["synchronize"][..], &run, &run].concat());
}

#[test]
fn kernels_are_timed_one_by_one_behind_a_lead() {
    let driver = Rc::new(Scripted::new());
    let (mut queue, work, _tensors) = queue(&driver);
    let calls = calls_of(&driver, || {
        // SAFETY: as above.
        let seconds = unsafe { queue.step_times(&work, 2, SETS) }.unwrap();
        assert_eq!(seconds.len(), 2);
        assert!(seconds.iter().all(|one| (one - 1e-6).abs() < 1e-12), "{seconds:?}");
    });
    let graph = calls.iter().position(|call| call == "graph").unwrap();
    let run = ["launch 1", "record"];
    assert_eq!(
        calls[graph + 1..][..10],
        [&["record"][..], &run, &run, &run, &run, &["synchronize"]].concat()
    );
    assert_eq!(calls[graph + 11..], [["elapsed"; 4].as_slice(), &["destroy event"; 5]].concat());
}

#[test]
fn events_of_steps_are_given_back_whatever_fails() {
    for failing in ["create_event", "launch", "record", "synchronize", "elapsed"] {
        let driver = Rc::new(Scripted::new());
        let (mut queue, work, tensors) = queue(&driver);
        driver.failing.borrow_mut().push(failing);
        // SAFETY: as above.
        assert!(unsafe { queue.step_times(&work, 2, SETS) }.is_err(), "{failing}");
        drop((queue, work, tensors));
        assert_eq!(driver.alive.get(), 0, "{failing}");
    }
}

#[test]
fn everything_is_given_back_whatever_fails() {
    for failing in ["launch", "record", "synchronize", "elapsed", "launch_graph", "begin_capture"] {
        let driver = Rc::new(Scripted::new());
        let (mut queue, work, tensors) = queue(&driver);
        driver.failing.borrow_mut().push(failing);
        // SAFETY: as above.
        let time = unsafe { queue.device_time(&work, Variant::Unfused, 2, SETS, true) };
        assert_eq!(time.is_ok(), failing == "begin_capture", "{failing}");
        drop((queue, work, tensors));
        assert_eq!(driver.alive.get(), 0, "{failing}");
    }
}

#[test]
fn a_time_that_cannot_be_is_an_error_of_the_driver() {
    for runs in [1, 1000] {
        for milliseconds in [f64::NAN, f64::INFINITY, -0.001] {
            let error = passed(milliseconds, runs).unwrap_err().to_string();
            assert!(error.contains(&format!("took {milliseconds} ms")), "{error}");
        }
        assert_eq!(passed(0.25, runs).unwrap(), Duration::from_micros(250));
    }
    // The clock of a device moves in steps.
    assert_eq!(passed(0.0, 1).unwrap(), Duration::ZERO);
    let error = passed(0.0, 1000).unwrap_err().to_string();
    assert!(error.contains("1000 runs took 0 ms"), "{error}");
}
