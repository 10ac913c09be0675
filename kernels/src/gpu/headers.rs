//! The headers of kernels, as every compiler gets them: by name, from memory.

/// Name, as kernels include it, and text.
pub(crate) const HEADERS: &[(&str, &str)] = &[
    ("port.h", include_str!("../../gpu/port.h")),
    ("functions.h", include_str!("../../gpu/functions.h")),
    ("together.h", include_str!("../../gpu/together.h")),
    ("number.h", include_str!("../../gpu/number.h")),
    ("attention.h", include_str!("../../gpu/attention.h")),
    ("attention/copy.h", include_str!("../../gpu/attention/copy.h")),
    ("attention/store.h", include_str!("../../gpu/attention/store.h")),
    ("hopper/attend.h", include_str!("../../gpu/hopper/attend.h")),
    ("hopper/barrier.h", include_str!("../../gpu/hopper/barrier.h")),
    ("hopper/tma.h", include_str!("../../gpu/hopper/tma.h")),
    ("hopper/gemm.h", include_str!("../../gpu/hopper/gemm.h")),
    ("hopper/output.h", include_str!("../../gpu/hopper/output.h")),
    ("hopper/probe.h", include_str!("../../gpu/hopper/probe.h")),
    ("hopper/wgmma.h", include_str!("../../gpu/hopper/wgmma.h")),
    ("pointwise.h", include_str!("../../gpu/pointwise.h")),
    ("rows.h", include_str!("../../gpu/rows.h")),
    ("max_pool.h", include_str!("../../gpu/max_pool.h")),
    ("matrix_core.h", include_str!("../../gpu/matrix_core.h")),
    ("matrix_core/plain.h", include_str!("../../gpu/matrix_core/plain.h")),
    ("matrix_core/mma.h", include_str!("../../gpu/matrix_core/mma.h")),
    ("matrix_core/mfma.h", include_str!("../../gpu/matrix_core/mfma.h")),
    ("matrix_core/mfma_wide.h", include_str!("../../gpu/matrix_core/mfma_wide.h")),
    ("matrix_core/wmma.h", include_str!("../../gpu/matrix_core/wmma.h")),
    ("gemm/operands.h", include_str!("../../gpu/gemm/operands.h")),
    ("gemm.h", include_str!("../../gpu/gemm.h")),
    ("conv.h", include_str!("../../gpu/conv.h")),
    ("probes.h", include_str!("../../gpu/probes.h")),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// All files of `kernels/gpu/`, by their names from there.
    fn files(folder: &Path, prefix: &str) -> Vec<String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                names.extend(files(&entry.path(), &format!("{name}/")));
            } else {
                names.push(name);
            }
        }
        names
    }

    #[test]
    fn every_header_is_there() {
        let mut expected = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("gpu"), "");
        let mut names: Vec<&str> = HEADERS.iter().map(|(name, _)| *name).collect();
        expected.sort();
        names.sort_unstable();
        assert_eq!(names, expected);
    }
}
