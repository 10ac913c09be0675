//! How panels are cut into parts, and what is read of them.

use super::*;
#[cfg(all(target_os = "linux", not(miri)))]
use crate::cpu::Vectors;

#[test]
fn no_part_of_a_panel_has_only_a_few_rows() {
    let source = Source::rows(std::ptr::null::<f32>(), 0);
    let whole = Strip {
        rows: 6,
        k: 0,
        cols: 16,
        source,
        panel: std::ptr::null(),
        panel_stride: 16,
        is_padded: true,
        target: std::ptr::null_mut(),
        target_stride: 16,
        factors: Factors::one(),
        epilogue: Epilogue::NONE,
        depth: 0,
    };
    for (k, depth) in (0..2000).flat_map(|k| [32, 84, 340].map(|depth| (k, depth))) {
        let strip = Strip { k, depth, ..whole };
        for together in [1, 2] {
            let mut next = 0;
            let mut lengths = Vec::new();
            for part in (0..strip.parts()).map(|index| strip.part(index, together)) {
                assert_eq!(part.start, next);
                assert!(part.start.is_multiple_of(together) && part.len() <= depth);
                lengths.push(part.len());
                next = part.end;
            }
            assert_eq!((next, lengths.len()), (k, k.div_ceil(depth)));
            let range = lengths.iter().max().zip(lengths.iter().min());
            let is_even = range.is_none_or(|(most, least)| most - least < 2 * together);
            assert!(is_even, "{k} in parts of {depth}: {lengths:?}");
        }
    }
}

/// Columns of a matrix that ends where its page does, and the next page must not be read: those of a group
/// of a convolution are fewer than its rows are apart.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn nothing_is_read_behind_the_columns_of_a_panel_that_is_not_padded() {
    for arch in Vectors::all() {
        for (rows, cols) in (1..=8).flat_map(|rows| (1..=20).map(move |cols| (rows, cols))) {
            for stride in [cols, cols + 4, 32] {
                assert_reads_columns::<f32>(arch, rows, cols, stride);
                assert_reads_columns::<half::bf16>(arch, rows, cols, stride);
                assert_reads_columns::<half::f16>(arch, rows, cols, stride);
                assert_reads_columns::<u8>(arch, rows, cols, stride);
            }
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn assert_reads_columns<E: Left>(arch: Arch, rows: usize, cols: usize, stride: usize) {
    const PAGE: usize = 64 << 10;
    const K: usize = 5;
    let cut = Cut::new::<E>(arch, 32 << 10, 1);
    if cols > cut.width {
        return;
    }
    let numbers: Vec<E> = (0..rows * K).map(|at| E::narrow((at % 7) as f32)).collect();
    let mut target = vec![f32::NAN; rows * cols];
    let size = (K - 1) * stride + cols;
    // SAFETY: the pages are those of the mapping, in which the panel lies, and the strip has the numbers
    // that its sizes say.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let pages = libc::mmap(std::ptr::null_mut(), 2 * PAGE, access, flags, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(pages.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
        let panel = pages.byte_add(PAGE - size * size_of::<E::Weight>()).cast::<E::Weight>();
        for at in 0..size {
            panel.add(at).write_unaligned(E::Weight::narrow((at % 5) as f32));
        }
        let strip = Strip {
            rows,
            k: K,
            cols,
            source: Source::rows(numbers.as_ptr(), K),
            panel: panel.cast_const(),
            panel_stride: stride,
            is_padded: false,
            target: target.as_mut_ptr(),
            target_stride: cols,
            factors: Factors::one(),
            epilogue: Epilogue::NONE,
            depth: cut.depth,
        };
        strip.compute(arch);
        assert_eq!(libc::munmap(pages, 2 * PAGE), 0);
    }
    for (at, &found) in target.iter().enumerate() {
        let (row, col) = (at / cols, at % cols);
        let terms = (0..K).map(|term| ((row * K + term) % 7) * ((term * stride + col) % 5));
        assert_eq!(found, terms.sum::<usize>() as f32, "{arch:?}, {rows} x {cols}, {stride}");
    }
}
