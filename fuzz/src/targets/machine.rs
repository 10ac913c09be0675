//! What is kept of a machine between runs, and the libraries that are found there.

use std::fs;

use calibrate::machine::KnownStates;
use fused_kernels::gpu::{is_cut_library, read_compiled};
use fusion_cost_model::calibration::{Fingerprint, HardwareCalibration, MachineState};
use twox_hash::XxHash3_64;

use super::file_with;
use crate::Target;

/// States that cannot be read are left out, and the next one is kept beside the others.
pub(super) const MACHINE_STATES: Target = Target {
    name: "machine_states",
    seeds: || {
        let folder = super::folder();
        let known = || KnownStates::in_folder(Some(folder.path()), &fingerprint(), 2);
        known().remember(&[state(0.11, 57.0)]);
        known().remember(&[state(0.57, 112.0)]);
        let text = fs::read_to_string(folder.path().join(STATES)).unwrap();
        // Whenever they are read, they are not too old.
        let lines = text.lines().map(|line| {
            let (before, after) = line.split_once("\"seen_at\":\"20").unwrap();
            format!("{before}\"seen_at\":\"29{after}\n")
        });
        vec![lines.collect::<String>().into()]
    },
    run: |bytes| {
        let path = file_with(STATES, bytes);
        let known = || KnownStates::in_folder(path.parent(), &fingerprint(), 2);
        let met = state(0.2, 3.0);
        let before = known().other_than(std::slice::from_ref(&met)).len();
        known().remember(std::slice::from_ref(&met));
        assert!(known().other_than(&[met]).len() <= before);
        assert!(!known().other_than(&[state(0.2, 3000.0)]).is_empty(), "it was not kept");
        if before == 0 { "none" } else { "some" }.to_owned()
    },
};

const STATES: &str = "machine-states.jsonl";

fn fingerprint() -> Fingerprint {
    let example = include_str!("../../../tests/data/example.toml");
    HardwareCalibration::from_toml(example).unwrap().fingerprint
}

fn state(handoff_us: f64, triad_gb_per_s: f64) -> MachineState {
    let triad_range = [triad_gb_per_s; 2];
    MachineState { id: 1, handoff_us: Some(handoff_us), triad_gb_per_s, triad_range, processes: 5 }
}

/// A compiled kernel is what was written, or is compiled again. Of most inputs the checksum is
/// corrected, or none would be read.
pub(super) const COMPILED_KERNEL: Target = Target {
    name: "compiled_kernel",
    seeds: || [0, 1].map(|mode| [&[mode][..], &compiled(b"machine code")].concat()).to_vec(),
    run: |bytes| {
        let Some((mode, file)) = bytes.split_first() else { return String::new() };
        let mut file = file.to_vec();
        if let (true, Some((head, code))) = (mode % 4 != 0, file.split_at_mut_checked(HEAD)) {
            head[8..].copy_from_slice(&XxHash3_64::oneshot(code).to_le_bytes());
        }
        match read_compiled(&file_with("kernel.bin", &file)) {
            Some(code) => assert_eq!(file, compiled(&code)),
            None => return "not read".to_owned(),
        }
        String::new()
    },
};

/// The bytes before the code.
const HEAD: usize = 16;

fn compiled(code: &[u8]) -> Vec<u8> {
    [b"FCMCODE1", &XxHash3_64::oneshot(code).to_le_bytes()[..], code].concat()
}

/// A library that is whole is so with more behind its end, too.
pub(super) const GPU_LIBRARY: Target = Target {
    name: "gpu_library",
    seeds: || vec![library(), library()[..100].to_vec()],
    run: |bytes| {
        let is_cut = |bytes: &[u8]| is_cut_library(&file_with("libcuda.so.1", bytes));
        let was_cut = is_cut(bytes);
        let has_header = bytes.len() >= 64;
        let longer = [bytes, &[0; 64]].concat();
        assert!(was_cut || !has_header || !is_cut(&longer), "more makes it shorter");
        was_cut.to_string()
    },
};

/// The header of a library and of two segments, and what they hold.
fn library() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[32] = 64;
    bytes[54] = 56;
    bytes[56] = 2;
    for offset in [0_u64, 200] {
        let mut segment = [0; 56];
        segment[0] = 1;
        segment[8..16].copy_from_slice(&offset.to_le_bytes());
        segment[32..40].copy_from_slice(&56_u64.to_le_bytes());
        bytes.extend(segment);
    }
    bytes.resize(256, 7);
    bytes
}
