//! What becomes of operators and their times.

use serde_json::{Value, json};

use super::*;

#[test]
fn every_status() {
    let events = json!([
        event("aten.mm", 30, json!({"kernel_type": "MatMul"})),
        event("aten.add", 5, json!({})),
        event("aten.mul", 4, json!({"kernel_type": "Mul"})),
        event("torch.ops.aten.mul", 2, json!({"kernel_type": "?"})),
        event("torch.ops.own.op", 1, json!({"kernel_type": ""})),
        event("aten.view", 7, json!({})),
    ]);
    let map = "aten.mul: {kernel_type: Mul}\naten.view: {zero_cost: yes}\n";
    let csv = format!("{HEADER}MatMul,20,1\nMul,8,2\nNorm,12,3\n");
    let found = compare(&events, map, &csv, Rules::Own);
    let statuses: Vec<_> =
        found.rows.iter().map(|row| (row.kernel_type.as_str(), row.status)).collect();
    assert_eq!(
        statuses,
        [
            ("MatMul", Status::Hit),
            ("Norm", Status::Unmodelled),
            ("Mul", Status::Partial),
            ("aten.add", Status::Miss),
            ("own.op", Status::Miss),
        ]
    );
    assert_eq!(row(&found, "MatMul").error_pct, Some(50.0));
    let partial = row(&found, "Mul");
    assert_eq!((partial.hit_us, partial.miss_us, partial.predicted_count), (4.0, 2.0, 2));
    assert_eq!(partial.operators, ["aten.mul"]);
    assert_eq!(row(&found, "Norm").error_pct, Some(-100.0));
    assert_eq!(row(&found, "aten.add").error_pct, None);
    assert_eq!(found.zero_cost_events, 1);
    let counts = RowCounts { rows: 5, hit: 1, miss: 2, partial: 1, unmodelled: 1, model_only: 2 };
    assert_eq!(found.counts, counts);
    // 10 and 2 in rows with both times, 12 unmodelled, 5 and 1 that only the model has, of 40.
    let totals = found.totals;
    assert_eq!((totals.predicted_us, totals.measured_us), (42.0, 40.0));
    assert_eq!((totals.error_us, totals.error_pct), (2.0, Some(5.0)));
    assert_eq!(totals.wmape_pct, Some(75.0));
    assert_eq!(totals.wmape_matched_pct, Some(30.0));
    assert_eq!(totals.wmape_unmodelled_pct, Some(30.0));
    assert_eq!(totals.wmape_model_only_pct, Some(15.0));
    let worst: Vec<_> =
        found.worst().iter().map(|row| (row.kernel_type.as_str(), row.error_us)).collect();
    assert_eq!(worst[..2], [("Norm", -12.0), ("MatMul", 10.0)]);
    assert_eq!(row(&found, "Norm").error_share_pct, 40.0);
    assert_eq!(codes(&found.warnings), ["process-by-default"]);
}

#[test]
fn nothing_is_no_negative_zero() {
    let events = json!([event("aten.view", 3, json!({}))]);
    let found = compare(&events, "aten.view: {zero_cost: true}", HEADER, Rules::Own);
    assert_eq!(found.counts.rows, 0);
    let totals = found.totals;
    for zero in [totals.predicted_us, totals.measured_us, totals.absolute_error_us] {
        assert_eq!(zero.to_bits(), 0.0_f64.to_bits());
    }
    let found = compare(&events, "", &format!("{HEADER}A,1,1\n"), Rules::Own);
    assert_eq!(found.totals.wmape_matched_pct.map(f64::to_bits), Some(0));
}

#[test]
fn splits_of_operators() {
    let split = |durations: Value| {
        let args = json!({"kernel_type": "A, B ,", "sub_kernel_durations": durations});
        let events = json!([event("op", 10, args)]);
        let found = compare(&events, "", HEADER, Rules::Own);
        let rows: Vec<_> =
            found.rows.iter().map(|row| (row.kernel_type.clone(), row.predicted_us)).collect();
        let bad = found.warnings.iter().find_map(|warning| match warning {
            InputWarning::BadSplit { operator, reason, .. } => {
                Some((operator.clone(), reason.clone()))
            }
            _ => None,
        });
        (rows, bad)
    };
    let pairs = |pairs: &[(&str, f64)]| -> Vec<(String, f64)> {
        pairs.iter().map(|(name, us)| ((*name).to_owned(), *us)).collect()
    };
    assert_eq!(split(json!("[('A', 7.5), ('C', 2)]")), (pairs(&[("A", 7.5), ("C", 2.0)]), None));
    assert_eq!(split(json!([["A", 7.5], ["B", 2]])), (pairs(&[("A", 7.5), ("B", 2.0)]), None));
    let equal = pairs(&[("A", 5.0), ("B", 5.0)]);
    for nothing in [json!(null), json!(""), json!("[]"), json!([])] {
        assert_eq!(split(nothing), (equal.clone(), None));
    }
    for (broken, reason) in [
        (json!("garbage"), "at byte 0: expected a list, a string or a number"),
        (json!("[10, 20]"), "it is not a list of pairs of a kernel and a duration"),
        (json!("{'A': 1}"), "at byte 0: expected a list, a string or a number"),
        (json!("[('A', 1), ('B', -1)]"), "`B` takes -1 us"),
        (json!("[('', 1)]"), "`` takes 1 us"),
        (json!(12), "it is not a list of pairs of a kernel and a duration"),
    ] {
        assert_eq!(split(broken), (equal.clone(), Some(("op".to_owned(), reason.to_owned()))));
    }
}

#[test]
fn collectives_in_operators() {
    let events = json!([
        event("tp.Matmul_All_Reduce", 10, json!({"kernel_type": "MatMul"})),
        event("all_reduce", 3, json!({"kernel_type": "hcom_allReduce_"})),
        event(
            "all_reduce",
            9,
            json!({"kernel_type": "X",
            "sub_kernel_durations": "[('X', 9.0)]"})
        ),
        event("all_reduce", 1, json!({})),
    ]);
    let found = compare(&events, "", HEADER, Rules::Own);
    let reduce = row(&found, "hcom_allReduce_");
    assert_eq!((reduce.predicted_us, reduce.predicted_count), (3.0, 2));
    assert_eq!(row(&found, "all_reduce").status, Status::Miss);
    let expected = ["empty-map", "process-by-default", "nothing-measured"];
    assert_eq!(codes(&found.warnings), expected);
    assert_eq!((found.totals.wmape_pct, found.totals.error_pct), (None, None));
}

#[test]
fn kernel_types_of_any_kind() {
    let events = json!([
        event("a", 1, json!({"kernel_type": 7})),
        event("b", "2.5", json!({"kernel_type": ["list"]})),
        event("c", 4, json!({"kernel_type": " , "})),
        event("d", 8, json!("no object")),
        event("e", 16, json!({"kernel_type": null})),
    ]);
    let found = compare(&events, "", HEADER, Rules::Own);
    assert_eq!(row(&found, "7").status, Status::Hit);
    assert_eq!((row(&found, "b").status, row(&found, "b").predicted_us), (Status::Miss, 2.5));
    for name in ["c", "d", "e"] {
        assert_eq!(row(&found, name).status, Status::Miss, "{name}");
    }
    assert_eq!(found.totals.predicted_us, 31.5);
}

#[test]
fn predicted_durations_that_cannot_be() {
    for bad in [json!(-1), json!("nan"), json!("x"), json!(null), json!([1]), json!("inf")] {
        let found =
            model(&json!([event("good", 3, json!({})), event("op", bad.clone(), json!({}))]));
        let times: Vec<f64> = found.events.iter().map(|event| event.duration_us).collect();
        assert_eq!(times, [3.0, 0.0], "{bad}");
        let warning = InputWarning::BadPredictedDurations { count: 1, first: "op".to_owned() };
        assert!(found.warnings.contains(&warning), "{bad}");
    }
    let zero = model(&json!([event("op", 0, json!({}))]));
    assert_eq!(codes(&zero.warnings), ["process-by-default"]);
}

#[test]
fn rounding_is_pythons() {
    for (value, expected) in [
        (0.25, 0.2),
        (0.35, 0.3),
        (0.75, 0.8),
        (25.75, 25.8),
        (2.675, 2.7),
        (-0.25, -0.2),
        (1.05, 1.1),
        (1e15 + 0.5, 1e15 + 0.5),
        (132.563, 132.6),
        (-0.04, -0.0),
        (0.05, 0.1),
        (0.15, 0.1),
        (0.45, 0.5),
        (1e300, 1e300),
    ] {
        assert_eq!(original::rounded(value).to_bits(), f64::to_bits(expected), "{value}");
    }
}

#[test]
fn the_oddities_of_the_original() {
    let events = json!([
        event("torch.ops.own.op", 1, json!({})),
        event("a", 2, json!({"kernel_type": "A"})),
        event("b", 4, json!({"kernel_type": ","})),
        event("aten.mm", 8, json!({})),
        event("c", 0.25, json!({"kernel_type": "C"})),
    ]);
    let map = "operator_mappings: {aten.mm: {kernel_type: MatMul}}\n";
    let csv = format!("{HEADER}Z,0.25,1\nA,3,1\n");
    let found = original::rows(&compare(&events, map, &csv, Rules::Original));
    let rows: Vec<_> = found
        .iter()
        .map(|row| {
            let (predicted, error) = (row.tc_total_us.to_string(), row.error_pct.to_string());
            (row.kernel_type.as_str(), row.tc_funcs.as_str(), predicted, error, row.status)
        })
        .collect();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        rows,
        [
            ("aten.mm", "aten.mm", text("8.0"), text("0"), "MISS"),
            ("A", "a", text("2.0"), text("-33.3"), "HIT"),
            ("torch.ops.own.op", "own.op", text("1.0"), text("0"), "MISS"),
            ("C", "c", text("0.2"), text("0"), "HIT"),
            ("Z", "", text("0"), text("-100.0"), "TC未建模"),
        ]
    );
    let own = compare(&events, map, &csv, Rules::Own);
    assert_eq!(row(&own, "MatMul").status, Status::Miss);
    assert_eq!(row(&own, "b").predicted_us, 4.0);
}
