use std::fs::{self, File};
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::synthetic::{self, Oddity, Plan};
use crate::{Classes, NameClasses, Summary, Taxonomy};

/// A folder with a trace, plain and compressed.
fn files(text: &[u8]) -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let files = ["t.json", "t.json.gz"].map(|name| folder.path().join(name));
    fs::write(&files[0], text).unwrap();
    let mut encoder = GzEncoder::new(File::create(&files[1]).unwrap(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap();
    (folder, files)
}

/// The parts of a stream, put together again, and how many they were.
fn collected(path: &Path, options: &Options) -> Result<(Trace, usize), TraceError> {
    let mut whole = Trace::default();
    let mut parts = 0;
    let mut last = 0;
    let streamed = Trace::stream(
        path,
        options,
        &mut |part| {
            parts += 1;
            let same: Vec<_> = part.names.iter().map(|(id, _)| id).collect();
            whole.kernels.append(&part.kernels, &same, 1);
            whole.launches.append(&part.launches, &same, 1);
            whole.annotations.append(&part.annotations, &same, 1);
            whole.ops.append(&part.ops, &same, 1);
            whole.frames.append(&part.frames, &same, 1);
            whole.names = part.names.clone();
            whole.threads = part.threads.clone();
            whole.lanes = part.lanes.clone();
            whole.shapes = part.shapes.clone();
            ControlFlow::Continue(())
        },
        &mut |done, total| {
            assert!(last <= done && done <= total);
            last = done;
        },
    )?;
    assert!(streamed.is_complete);
    assert_eq!(last, fs::metadata(path).unwrap().len());
    let Streamed { metadata, events, bytes, warnings, .. } = streamed;
    Ok((Trace { metadata, events, bytes, warnings, ..whole }, parts))
}

fn threads(count: usize) -> Options {
    Options { threads: NonZero::new(count), ..Options::default() }
}

/// Long enough for many parts.
fn long(oddities: &[Oddity]) -> Vec<u8> {
    let plan = Plan { layers: 40, steps: 90, oddities: oddities.to_vec(), ..Plan::default() };
    synthetic::text(&plan).unwrap().0
}

#[test]
fn the_parts_make_the_whole() {
    for oddity in [Oddity::Graphs, Oddity::UnescapedQuotes, Oddity::DictOfLists, Oddity::HugeIds] {
        let (_folder, files) = files(&long(&[oddity]));
        for (file, count) in [(&files[0], 1), (&files[0], 3), (&files[1], 1)] {
            let whole = Trace::load(file, &threads(count), &mut |_, _| {}).unwrap();
            let (parts_together, parts) = collected(file, &threads(count)).unwrap();
            assert!(parts > 3, "{parts}");
            assert_eq!(parts_together, whole, "{oddity:?} on {count} threads");
        }
    }
}

#[test]
fn every_oddity_and_every_cut_as_loaded_whole() {
    for oddity in Oddity::ALL {
        let plan = Plan { layers: 4, oddities: vec![oddity], ..Plan::default() };
        let text = synthetic::text(&plan).unwrap().0;
        for cut in [text.len(), text.len() - 3, text.len() / 2, text.len() / 50, 1, 0] {
            let (_folder, files) = files(&text[..cut]);
            for file in &files {
                let whole = Trace::load(file, &Options::default(), &mut |_, _| {});
                match (whole, collected(file, &Options::default())) {
                    (Ok(whole), Ok((parts, _))) => assert_eq!(parts, whole, "{oddity:?} {cut}"),
                    (Err(whole), Err(parts)) => assert_eq!(parts.to_string(), whole.to_string()),
                    (whole, parts) => panic!("{whole:?} but {parts:?}"),
                }
            }
        }
    }
}

#[test]
fn the_caller_may_end_it() {
    let (_folder, files) = files(&long(&[]));
    for (file, count) in [(&files[0], 1), (&files[0], 3), (&files[1], 1)] {
        for wanted in [1, 2] {
            let mut parts = 0;
            let streamed = Trace::stream(
                file,
                &threads(count),
                &mut |_| {
                    parts += 1;
                    if parts == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
                &mut |_, _| {},
            )
            .unwrap();
            assert_eq!(parts, wanted);
            assert!(!streamed.is_complete && streamed.warnings.is_empty(), "{streamed:?}");
            let size = fs::metadata(&files[0]).unwrap().len();
            assert!(streamed.bytes > 0 && streamed.bytes < size, "{}", streamed.bytes);
        }
    }
}

fn check_against(summary: &Summary, totals: &Totals) {
    let found = totals.summary();
    assert_eq!((found.kernels, found.total_ns), (summary.kernels, summary.total_ns));
    assert_eq!(found.unclassified_share, summary.unclassified_share);
    assert_eq!(found.by_class, summary.by_class);
    assert_eq!(found.by_kernel, summary.by_kernel);
    assert_eq!(totals.span_ns(), summary.span_ns);
}

#[test]
fn totals_of_parts_are_those_of_the_whole() {
    let (_folder, files) = files(&long(&[]));
    for taxonomy in [Taxonomy::Classes, Taxonomy::Legacy] {
        let mut totals = Totals::new(taxonomy);
        let mut classes = NameClasses::default();
        let options = Options { frames: false, ..threads(2) };
        let mut add = |part: &Trace| {
            totals.add(part, &classes.of(part));
            ControlFlow::Continue(())
        };
        Trace::stream(&files[0], &options, &mut add, &mut |_, _| {}).unwrap();
        let whole = Trace::load(&files[0], &options, &mut |_, _| {}).unwrap();
        check_against(&Summary::of(&whole, taxonomy), &totals);
    }
}

/// A bare list of kernels with these names, starts and durations.
fn kernels(rows: &[(u8, u32, u32)]) -> Trace {
    let names = ["gemm", "what_is_this", "layer_norm", "", "kernel_1"];
    let events = rows.iter().map(|&(name, start, duration)| {
        let name = names[usize::from(name) % names.len()];
        format!(
            "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": 0, \"tid\": 7, \
             \"ts\": {start}, \"dur\": {duration}}}"
        )
    });
    let text = format!("[{}]", events.collect::<Vec<_>>().join(","));
    Trace::from_json(text.as_bytes(), &Options::default()).unwrap()
}

proptest! {
    #[test]
    fn totals_of_ranks_are_those_of_all_kernels(
        rows in prop::collection::vec((0_u8..5, 0_u32..1000, 0_u32..9), 0..40),
        at in 0_usize..40,
    ) {
        let (one, other) = rows.split_at(at.min(rows.len()));
        let mut totals = Totals::new(Taxonomy::Classes);
        for part in [one, other] {
            let part = kernels(part);
            let mut rank = Totals::new(Taxonomy::Classes);
            rank.add(&part, &Classes::of(&part));
            totals.absorb(rank);
        }
        check_against(&Summary::of(&kernels(&rows), Taxonomy::Classes), &totals);
    }
}
