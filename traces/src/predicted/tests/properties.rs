//! What must hold of all comparisons.

use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn events() -> impl Strategy<Value = Vec<(u8, f64, u8)>> {
    prop::collection::vec((0_u8..6, 0.0..1e6, 0_u8..5), 0..40)
}

fn kernels() -> impl Strategy<Value = Vec<(u8, f64)>> {
    prop::collection::vec((0_u8..6, 0.0..1e6), 0..40)
}

proptest! {
    #[test]
    fn rows_are_a_partition_and_the_wmape_lies_where_it_must(
        predicted in events(),
        rows in kernels(),
        passes in 1_u64..5,
    ) {
        let name = |type_: u8| format!("K{type_}");
        let mut list = vec![of_process(1)];
        list[0]["dur"] = json!(0);
        for (kernel, us, kind) in &predicted {
            let other = name((kernel + 1) % 6);
            let args = match kind {
                0 => json!({}),
                1 => json!({"kernel_type": "?"}),
                2 => json!({"kernel_type": name(*kernel)}),
                3 => json!({"kernel_type": format!("{}, {other}", name(*kernel))}),
                _ => json!({"kernel_type": "x", "sub_kernel_durations":
                    format!("[('{}', {:?}), ('{other}', {:?})]", name(*kernel), us * 0.75, us * 0.25)}),
            };
            // Also operators that are called like a type.
            list.push(event(&name(*kernel), *us, args));
        }
        let mut csv = HEADER.to_owned();
        for (kernel, us) in &rows {
            csv.push_str(&format!("{},{us:?},1\n", name(kernel + 2)));
        }
        let found = Comparison::of(&model(&json!(list)), &OpMap::default(), &measured(&csv),
            Passes::new(passes), Rules::Own);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs() + b.abs());
        let all: f64 = predicted.iter().map(|(_, us, _)| us).sum();
        let both: f64 = found.rows.iter().map(|row| row.hit_us + row.miss_us).sum();
        prop_assert!(close(all, found.totals.predicted_us) && close(all, both), "{all} {both}");
        let all: f64 = rows.iter().map(|(_, us)| us).sum();
        prop_assert!(close(all / passes as f64, found.totals.measured_us));
        let counts = found.counts;
        prop_assert_eq!(counts.hit + counts.miss + counts.partial + counts.unmodelled, counts.rows);
        let totals = found.totals;
        prop_assert_eq!(totals.wmape_pct.is_some(), totals.measured_us > 0.0);
        let Some(wmape) = totals.wmape_pct else { return Ok(()) };
        // At least what does not cancel, at most as if nothing were predicted right.
        let most = (totals.predicted_us + totals.measured_us) / totals.measured_us * 100.0;
        let least = totals.error_pct.unwrap_or_default().abs();
        prop_assert!(wmape >= least - 1e-6 * (1.0 + least), "{wmape} {least}");
        prop_assert!(wmape <= most + 1e-6 * most, "{wmape} {most}");
        let parts = [totals.wmape_matched_pct, totals.wmape_unmodelled_pct, totals.wmape_model_only_pct];
        prop_assert!(close(parts.iter().flatten().sum(), wmape));
        prop_assert!(totals.wmape_unmodelled_pct <= Some(100.0 + 1e-9));
        let shares: f64 = found.rows.iter().map(|row| row.error_share_pct).sum();
        let has_errors = totals.absolute_error_us > 0.0;
        prop_assert!(close(shares, 100.0 * f64::from(u8::from(has_errors))));
        let sizes: Vec<f64> =
            found.rows.iter().map(|row| row.predicted_us.max(row.measured_us)).collect();
        prop_assert!(sizes.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn any_bytes_as_a_table(bytes in prop::collection::vec(any::<u8>(), 0..200), tail in ".{0,80}") {
        for head in ["", HEADER, "kind,name,class,duration_ns\n"] {
            let csv = [head.as_bytes(), &bytes, tail.as_bytes()].concat();
            for rules in [Rules::Own, Rules::Original] {
                if let Ok(found) = Measured::from_csv(&csv, Path::new("k"), None, rules) {
                    let kept: u64 = found.kernels.iter().map(|kernels| kernels.count).sum();
                    prop_assert_eq!(kept + found.skipped.sum(), found.rows);
                }
            }
        }
    }
}
