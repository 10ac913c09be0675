use fusion_cost_model::AttentionSizes;
use pulp::Arch;

use super::*;

/// Of rows of `len` numbers, from row `first` of the matrix on.
fn applied(mask: Option<CausalMask>, first: usize, rows: &[f32], len: usize) -> Vec<f32> {
    let mut rows = rows.to_vec();
    let count = rows.len() / len;
    let data = rows.as_mut_ptr();
    let (source, target) = (data.cast_const(), Target::plain(data));
    let arch = Arch::new();
    let piece = Piece { arch, first_row: first, rows: count, cols: len, ahead: [source; 2] };
    let op = RowOp::<f32>::Softmax { mask };
    // SAFETY: source and target are the rows themselves, as is allowed.
    unsafe { op.apply(piece, source, target, &RowSums::NONE) };
    rows
}

fn softmax_of(row: &[f32]) -> Vec<f32> {
    applied(None, 0, row, row.len())
}

/// Two heads of three queries: what a query does not see does not enter its sum, not even NaN.
#[test]
fn a_causal_softmax_sees_the_keys_up_to_its_own() {
    for keys in [3, 4, 18, 35] {
        let (q, kv) = (3, keys as u64);
        let sizes = AttentionSizes { b: 1, h: 2, q, kv, d: 1, kvh: 2, causal: true };
        let mask = CausalMask::of(sizes);
        let numbers: Vec<f32> = (0..6 * keys).map(|index| (index % 7) as f32 / 4.0).collect();
        let mut given = numbers.clone();
        for (row, numbers) in given.chunks_exact_mut(keys).enumerate() {
            numbers[keys - 2 + row % 3..].fill(f32::NAN);
        }
        for first in [0, 2] {
            let rows = applied(mask, first, &given[first * keys..], keys);
            for (row, found) in (first..).zip(rows.chunks_exact(keys)) {
                let seen = keys - 2 + row % 3;
                let expected = softmax_of(&numbers[row * keys..][..seen]);
                assert_eq!(found[..seen], expected, "{keys} keys, row {row}");
                assert!(found[seen..].iter().all(|x| *x == 0.0), "{keys} keys, row {row}");
            }
        }
    }
}

/// What PyTorch gives for rows with infinities and NaN, at lengths with and without a rest.
#[test]
fn softmax_at_the_edges() {
    for len in [1, 3, 16, 35] {
        let mut row = vec![0.0; len];
        row[0] = f32::NEG_INFINITY;
        let expected = if len == 1 { f32::NAN } else { 0.0 };
        let first = softmax_of(&row)[0];
        assert!(first == expected || first.is_nan() && expected.is_nan(), "{len}: {first}");
        for bad in [f32::NAN, f32::INFINITY] {
            for at in [0, len - 1] {
                let mut row = vec![0.5; len];
                row[at] = bad;
                let result = softmax_of(&row);
                assert!(result[at].is_nan(), "{bad} at {at} of {len}: {result:?}");
            }
        }
        // Large scores must not overflow.
        let result = softmax_of(&vec![1e30; len]);
        assert!((result[0] - 1.0 / len as f32).abs() < 1e-6);
    }
}
