use super::*;
use crate::{Classes, Options, Segments};

/// An event: category, name, thread, beginning and end in microseconds, and arguments.
type Row<'r> = (&'r str, &'r str, u64, u64, u64, &'r str);

fn idle(rows: &[Row<'_>]) -> IdleTimes {
    let events: Vec<String> = rows
        .iter()
        .map(|(category, name, thread, start, end, args)| {
            format!(
                "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": 1, \"tid\": \
                 {thread}, \"ts\": {start}, \"dur\": {}, \"args\": {{{args}}}}}",
                end - start
            )
        })
        .collect();
    let text = format!("[{}]", events.join(","));
    let trace = Trace::from_json(text.as_bytes(), &Options::default()).unwrap();
    IdleTimes::of(&trace, &Segments::steps_of(&trace, &Classes::default()))
}

fn causes(idle: &IdleTimes) -> Vec<(Cause, u64, u64)> {
    let device = &idle.devices[0];
    let sum: u64 = device.by_cause.iter().map(|one| one.total_ns).sum();
    assert_eq!(sum, device.idle_ns);
    device.by_cause.iter().map(|one| (one.cause, one.count, one.total_ns)).collect()
}

const ON_7: &str = "\"device\": 0, \"stream\": 7, \"correlation\": ";

fn on_7(correlation: u64) -> String {
    format!("{ON_7}{correlation}")
}

#[test]
fn each_gap_is_laid_to_its_cause() {
    let [one, two, three, five, six] = [1, 2, 3, 5, 6].map(on_7);
    let on_8 = "\"device\": 0, \"stream\": 8, \"correlation\": 4";
    let id = |number: u64| format!("\"correlation\": {number}");
    let ids = [1, 2, 3, 4, 5, 6].map(id);
    let rows: &[Row<'_>] = &[
        ("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, &ids[0]),
        ("kernel", "a", 7, 10, 100, &one),
        // The host loads data for 180 of 200 us, and then launches.
        ("python_function", "loader.py(7): next", 1, 80, 290, ""),
        ("python_function", "train.py(1): main", 1, 0, 5000, ""),
        ("cuda_runtime", "cudaLaunchKernel", 1, 295, 300, &ids[1]),
        ("kernel", "b", 7, 300, 400, &two),
        // Launched in time: the device's own delay.
        ("cuda_runtime", "cudaLaunchKernel", 1, 310, 320, &ids[2]),
        ("kernel", "c", 7, 403, 500, &three),
        // Launched in time, but behind another stream.
        ("cuda_runtime", "cudaLaunchKernel", 1, 330, 340, &ids[3]),
        ("kernel", "d", 8, 520, 600, on_8),
        // The host waits until 650 us, and launches at 700.
        ("cuda_runtime", "cudaDeviceSynchronize", 1, 350, 650, ""),
        ("cpu_op", "aten::item", 1, 652, 699, ""),
        ("cuda_runtime", "cudaLaunchKernel", 1, 700, 705, &ids[4]),
        ("kernel", "e", 7, 710, 800, &five),
        // Nobody launched this one.
        ("kernel", "f", 7, 840, 900, &six),
    ];
    let idle = idle(rows);
    assert_eq!(
        causes(&idle),
        [
            (Cause::Host, 2, 195_000 + 50_000),
            (Cause::Synchronisation, 1, 50_000),
            (Cause::Unknown, 1, 40_000),
            (Cause::OtherStream, 1, 20_000),
            (Cause::Launch, 2, 5_000 + 10_000),
            (Cause::Queued, 1, 3_000),
        ]
    );
    let device = &idle.devices[0];
    assert_eq!((device.gaps, device.span_ns), (5, 890_000));
    let loader = &device.places[0];
    assert_eq!(loader.doing.as_deref(), Some("loader.py(7): next"));
    assert_eq!((loader.doing_kind, loader.before.as_str()), (Some(Doing::Frame), "b"));
    assert_eq!((loader.steps, loader.at), (None, None));
    let waiting = device.places.iter().find(|one| one.cause == Cause::Synchronisation).unwrap();
    assert_eq!(waiting.doing.as_deref(), Some("cudaDeviceSynchronize"));
}

/// A call that loads code holds its kernel up, and what it launched is not in a queue before it
/// returns.
#[test]
fn what_is_still_being_launched_is_not_queued() {
    let [one, two, three, four] = [1, 2, 3, 4].map(on_7);
    let ids = [1, 2, 3, 4].map(|number| format!("\"correlation\": {number}"));
    let idle = idle(&[
        ("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, &ids[0]),
        ("kernel", "a", 7, 10, 100, &one),
        // Begins before the gap, and returns within it: 900 us of 950.
        ("cuda_runtime", "cudaLaunchKernel", 1, 20, 1000, &ids[1]),
        ("kernel", "b", 7, 1050, 1100, &two),
        // Returns behind the kernel.
        ("cuda_runtime", "cudaLaunchKernel", 1, 1060, 1140, &ids[2]),
        ("kernel", "c", 7, 1120, 1200, &three),
        // Waits for its copy, which is in the queue from the beginning.
        ("cuda_runtime", "cudaMemcpy", 1, 1150, 1300, &ids[3]),
        ("gpu_memcpy", "Memcpy DtoH", 7, 1203, 1290, &four),
    ]);
    assert_eq!(causes(&idle), [(Cause::Launch, 2, 920_000), (Cause::Queued, 2, 53_000)]);
    let place = &idle.devices[0].places[0];
    assert_eq!((place.cause, place.total_ns, place.before.as_str()), (Cause::Launch, 900_000, "b"));
    assert_eq!(
        (place.doing.as_deref(), place.doing_kind),
        (Some("cudaLaunchKernel"), Some(Doing::Call))
    );
}

/// One gap in each of ten steps, in the middle of its kernels.
#[test]
fn gaps_that_recur_are_placed_in_their_steps() {
    let mut rows: Vec<(String, String, u64, u64, u64, String)> = Vec::new();
    let mut id = 0;
    for step in 0..10_u64 {
        let begin = step * 1000;
        let mark = format!("ProfilerStep#{step}");
        rows.push(("user_annotation".into(), mark, 1, begin, begin + 990, String::new()));
        for (place, start) in [100, 150, 700, 750].into_iter().enumerate() {
            id += 1;
            let args = format!("\"correlation\": {id}");
            let launched = begin + start - 20;
            rows.push((
                "cuda_runtime".into(),
                "cudaLaunchKernel".into(),
                1,
                launched,
                launched + 2,
                args,
            ));
            let name = ["a", "b", "c", "d"][place].to_owned();
            rows.push(("kernel".into(), name, 7, begin + start, begin + start + 50, on_7(id)));
        }
        let name = "data.py(3): augment".to_owned();
        rows.push(("python_function".into(), name, 1, begin + 200, begin + 680, String::new()));
    }
    let rows: Vec<Row<'_>> = rows
        .iter()
        .map(|(cat, name, thread, start, end, args)| {
            (cat.as_str(), name.as_str(), *thread, *start, *end, args.as_str())
        })
        .collect();
    let idle = idle(&rows);
    let place = &idle.devices[0].places[0];
    assert_eq!((place.cause, place.count, place.steps), (Cause::Host, 10, Some(10)));
    assert_eq!((place.total_ns, place.at), (4_800_000, Some(0.5)));
    assert_eq!(place.doing.as_deref(), Some("data.py(3): augment"));
}

#[test]
fn nothing_is_idle_without_gaps() {
    assert!(idle(&[]).devices.is_empty());
    let both = idle(&[
        ("kernel", "a", 7, 0, 100, "\"device\": 0, \"stream\": 7"),
        ("kernel", "b", 8, 50, 120, "\"device\": 0, \"stream\": 8"),
        ("kernel", "c", 7, 100, 110, "\"device\": 0, \"stream\": 7"),
    ]);
    assert_eq!((both.devices[0].idle_ns, both.devices[0].span_ns), (0, 120_000));
    assert!(both.devices[0].places.is_empty());
}
