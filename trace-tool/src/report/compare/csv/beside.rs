//! What stands beside the gap: rates and idle times.

use cli_support::sheet::{Sheet, number};
use kernel_traces::compare::{Comparison, IdleRow, RateRow, SideRate};

/// The columns of a side's rates, behind its prefix.
const RATES: [&str; 10] = [
    "step_ns",
    "known_ns",
    "flops",
    "bytes",
    "tflop_per_s",
    "gb_per_s",
    "of_peak",
    "of_bandwidth",
    "of_roofline",
    "bound",
];

pub(super) fn rates(comparison: &Comparison) -> Sheet {
    let sides = ["first", "second"].into_iter();
    let columns = sides.flat_map(|side| RATES.map(|name| format!("{side}_{name}")));
    let row = |row: &RateRow| {
        let mut cells = vec![row.class.clone(), row.dtype.unwrap_or_default().to_owned()];
        cells.extend([&row.first, &row.second].into_iter().flat_map(|side| rate(side.as_ref())));
        cells
    };
    Sheet {
        header: ["class".to_owned(), "dtype".to_owned()].into_iter().chain(columns).collect(),
        rows: comparison.rates.rows.iter().map(row).collect(),
    }
}

fn rate(side: Option<&SideRate>) -> Vec<String> {
    let Some(side) = side else { return vec![String::new(); RATES.len()] };
    let bound = side.bound.map_or("", |bound| bound.name());
    vec![
        number(side.step_ns),
        side.known_ns.to_string(),
        number(side.flops),
        number(side.bytes),
        number(side.tflop_per_s),
        number(side.gb_per_s),
        number(side.of_peak),
        number(side.of_bandwidth),
        number(side.of_roofline),
        bound.to_owned(),
    ]
}

pub(super) fn idle(comparison: &Comparison) -> Sheet {
    let header = [
        "cause",
        "first_gaps",
        "second_gaps",
        "first_ns",
        "second_ns",
        "gap_ns",
        "first_doing",
        "second_doing",
    ];
    let row = |row: &IdleRow| {
        vec![
            row.cause.name().to_owned(),
            row.first_gaps.to_string(),
            row.second_gaps.to_string(),
            number(row.first_ns),
            number(row.second_ns),
            number(row.gap_ns),
            row.first_doing.clone().unwrap_or_default(),
            row.second_doing.clone().unwrap_or_default(),
        ]
    };
    Sheet {
        header: header.map(str::to_owned).to_vec(),
        rows: comparison.idle.rows.iter().map(row).collect(),
    }
}
