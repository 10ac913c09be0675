//! Traces of profilers in every form, their heads, their indices, and names of kernels.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;
use kernel_traces::classify::families;
use kernel_traces::index::{Checksums, read_bytes, to_bytes};
use kernel_traces::synthetic::{self, Launching, Model, Oddity, Plan};
use kernel_traces::{Options, Trace, TraceError};

use super::{file_with, random_seeds, said_of};
use crate::Target;

#[allow(dead_code, reason = "each user needs some of the checks")]
#[path = "../../../traces/tests/checks/mod.rs"]
pub(super) mod checks;

use checks::Choices;

/// Both parsers agree, and sums are consistent.
pub(super) const TRACE: Target = Target {
    name: "trace",
    seeds: traces,
    run: |bytes| {
        checks::load(bytes);
        checks::summarise(bytes);
        said(Trace::from_json(bytes, &Options::default()))
    },
};

/// The same of a synthetic trace with changes, whichever way it is cut between threads.
pub(super) const TRACE_CHANGED: Target = Target {
    name: "trace_changed",
    seeds: || random_seeds(13..77),
    run: |bytes| {
        let text = checks::changed_trace(bytes);
        checks::load(&text);
        // Eight megabytes of spaces are slow, so not always.
        if let [.., b'0'..=b'7', low] = bytes {
            checks::load_cut_at(&text, usize::from(*low) * text.len() / 256);
        }
        checks::summarise(&text);
        String::new()
    },
};

/// The same of events that come again and then with changes, which the reader knows by then.
pub(super) const TRACE_REPEATED: Target = Target {
    name: "trace_repeated",
    seeds: || random_seeds(13..77),
    run: |bytes| {
        let text = checks::repeated_trace(bytes);
        checks::load(&text);
        said(Trace::from_json(&text, &Options::default()))
    },
};

/// What is compressed is a trace or is none, and no error of the system.
pub(super) const TRACE_COMPRESSED: Target = Target {
    name: "trace_compressed",
    seeds: || traces().iter().map(|text| compress(text)).collect(),
    run: |bytes| {
        let path = file_with("trace.json.gz", bytes);
        let loaded = Trace::load(&path, &Options::default(), &mut |_, _| {});
        assert!(matches!(loaded, Ok(_) | Err(TraceError::NotATrace { .. })), "{loaded:?}");
        said_of(&path, &said(loaded))
    },
};

/// Reading only the head gives the same as reading all.
pub(super) const TRACE_HEAD: Target = Target {
    name: "trace_head",
    seeds: || {
        let members = |text: &Vec<u8>| {
            let devices = text.split(|&byte| byte == b'[').nth(1).unwrap_or_default();
            [b"\"deviceProperties\": [", devices].concat()
        };
        [&[HEAD.into()], &traces().iter().map(members).collect::<Vec<_>>()[..]].concat()
    },
    run: |bytes| {
        checks::metadata(bytes);
        String::new()
    },
};

/// With checksums only an intact index is read; without them, what is read can be summed up.
pub(super) const TRACE_INDEX: Target =
    Target { name: "trace_index", seeds: || random_seeds(13..77), run: index };

/// Every name has a class, and only one.
pub(super) const KERNEL_NAME: Target = Target {
    name: "kernel_name",
    seeds: || {
        let names = families().map(|(_, _, example)| example);
        names.map(|name| [name, "aten::mm", "nn.Module: RMSNorm_3"].join("\n").into()).collect()
    },
    run: |bytes| {
        checks::classify(bytes);
        String::new()
    },
};

const HEAD: &str = r#""schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "AMD Instinct",
    "totalGlobalMem": 206141652992, "computeMajor": 9, "warpSize": 64, "numSms": 304}],
    "roctracer_version": 4.1, "cupti_version": 22, "hip_runtime_version": "70051831",
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "with_stack": 1,
    "record_shapes": true, "traceName": "data/\u00e9.json", "trace_id": null,
    "baseTimeNanoseconds": 1751410836000000000"#;

pub(super) fn said(loaded: Result<Trace, TraceError>) -> String {
    match loaded {
        Ok(trace) => trace.warnings.iter().map(|warning| warning.code()).collect(),
        Err(error) => error.to_string(),
    }
}

/// Small traces of every model, every way to launch kernels, and every oddity.
fn traces() -> Vec<Vec<u8>> {
    let small = Plan { layers: 1, steps: 1, ..Plan::default() };
    let models = Model::ALL.map(|model| Plan { model, ..small.clone() });
    let launching = Launching::ALL.map(|launching| Plan { launching, ..small.clone() });
    let oddities = Oddity::ALL.map(|oddity| Plan { oddities: vec![oddity], ..small.clone() });
    let plans = models.into_iter().chain(launching).chain(oddities);
    plans.map(|plan| synthetic::text(&plan).unwrap().0).collect()
}

fn compress(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The index of a synthetic trace, which is made and read once for all inputs that ask for it.
fn intact_index(plan: &Plan) -> Option<Rc<[u8]>> {
    /// Inputs that were changed one after the other ask for few of them.
    const MOST: usize = 256;
    thread_local! {
        static MADE: RefCell<HashMap<String, Option<Rc<[u8]>>>> = RefCell::default();
    }
    let make = || {
        let (text, _) = synthetic::text(plan).ok()?;
        let trace = Trace::from_json(&text, &Options::default()).ok()?;
        let whole = to_bytes(&trace).ok()?;
        assert!(read_bytes(&whole, Checksums::Verified).is_ok_and(|read| read == trace));
        Some(whole.into())
    };
    MADE.with_borrow_mut(|made| {
        if made.len() > MOST {
            made.clear();
        }
        made.entry(format!("{plan:?}")).or_insert_with(make).clone()
    })
}

/// Bytes that are not an index, and the index of a synthetic trace with changes at any places.
fn index(bytes: &[u8]) -> String {
    let _ = read_bytes(bytes, Checksums::Ignored);
    let mut choices = Choices::new(bytes);
    let Some(whole) = intact_index(&choices.plan()) else { return String::new() };
    let mut changed = whole.to_vec();
    while !choices.is_empty() && !changed.is_empty() {
        if choices.below(2) == 0 {
            choices.change(&mut changed);
        } else {
            // Another length is seen at once; another value is not.
            let at = choices.below(changed.len());
            changed[at] = choices.below(256).to_le_bytes()[0];
        }
    }
    let verified = read_bytes(&changed, Checksums::Verified);
    assert!(changed == *whole || verified.is_err(), "a changed index was read");
    match read_bytes(&changed, Checksums::Ignored) {
        Ok(read) => {
            checks::analyse(&read);
            String::new()
        }
        Err(error) => error.to_string(),
    }
}
