//! The tables of a comparison, for programs.

use cli_support::sheet::{Sheet, number};
use fusion_cost_model::compare::{
    Comparison, Figure, Group, Measured, Pair, PairVerdict, SideCeilings,
};

use super::CompareTable;

pub(super) fn sheet(comparison: &Comparison, table: CompareTable) -> Sheet {
    match table {
        CompareTable::Records => records(comparison, |_| true),
        CompareTable::Undecided => {
            records(comparison, |pair| pair.verdict == PairVerdict::Undecided)
        }
        CompareTable::Moved => records(comparison, |pair| pair.moved.is_some()),
        CompareTable::Families => groups(comparison, &comparison.families),
        CompareTable::Patterns => groups(comparison, &comparison.patterns),
        CompareTable::Ceilings => ceilings(comparison),
        CompareTable::SingleOps => single_ops(comparison),
        CompareTable::NotCompared => not_compared(comparison),
    }
}

/// The names of columns, where `{}` stands for each side.
fn header(names: &[&str]) -> Vec<String> {
    let of_sides = |name: &&str| match name.strip_prefix("{}") {
        Some(rest) => ["first", "second"].map(|side| format!("{side}{rest}")).to_vec(),
        None => vec![(*name).to_owned()],
    };
    names.iter().flat_map(of_sides).collect()
}

/// The word that JSON has for it.
fn word(value: impl serde::Serialize) -> String {
    let text = serde_json::to_string(&value).unwrap_or_default();
    text.trim_matches('"').to_owned()
}

fn figure(figure: &Figure) -> [String; 3] {
    let ends = figure.interval.map_or([None; 2], |ends| ends.map(Some));
    [number(figure.value), number(ends[0]), number(ends[1])]
}

fn label(comparison: &Comparison, side: usize) -> String {
    comparison.sides[side].facts.label.clone()
}

fn records(comparison: &Comparison, is: fn(&Pair) -> bool) -> Sheet {
    let names = [
        "problem",
        "pattern",
        "family",
        "cache_state",
        "first",
        "second",
        "verdict",
        "ratio",
        "ratio_low",
        "ratio_high",
        "p",
        "adjusted_p",
        "could_hide",
        "{}_speedup",
        "{}_speedup_low",
        "{}_speedup_high",
        "{}_verdict",
        "{}_decision",
        "{}_ceiling",
        "{}_processes",
        "{}_unfused_ms",
        "{}_fused_ms",
        "unfused_time_ratio",
        "fused_time_ratio",
        "moved",
    ];
    let row = |pair: &Pair| {
        let both = [&pair.first, &pair.second];
        let each = |of: &dyn Fn(&Measured) -> String| both.map(of).to_vec();
        let speedups = both.map(|one| figure(&one.speedup));
        let names = [
            pair.problem.to_string(),
            pair.problem.chain().name(),
            pair.family.to_string(),
            pair.cache_state.to_string(),
            label(comparison, 0),
            label(comparison, pair.side),
            word(pair.verdict),
        ];
        let chances = [number(pair.p), number(pair.adjusted_p), number(pair.could_hide)];
        let speedups = (0..3).flat_map(|which| speedups.each_ref().map(|one| one[which].clone()));
        [
            names.to_vec(),
            figure(&pair.ratio).to_vec(),
            chances.to_vec(),
            speedups.collect(),
            each(&|one| one.verdict.map_or_else(String::new, |verdict| verdict.to_string())),
            pair.choices.map(word).to_vec(),
            each(&|one| number(one.ceiling_speedup)),
            each(&|one| one.processes.map_or_else(String::new, |count| count.to_string())),
            each(&|one| number(one.unfused_ms.value)),
            each(&|one| number(one.fused_ms.value)),
            pair.times.map(|time| number(time.value)).to_vec(),
            vec![number(pair.moved)],
        ]
        .concat()
    };
    let rows = comparison.pairs.iter().filter(|pair| is(pair)).map(row);
    Sheet { header: header(&names), rows: rows.collect() }
}

fn groups(comparison: &Comparison, groups: &[Group]) -> Sheet {
    let names = [
        "family",
        "pattern",
        "first",
        "second",
        "pairs",
        "invalid",
        "{}_speedup",
        "ratio",
        "{}_ceiling",
        "fused_time_ratio",
        "{}_fuse",
        "{}_open",
        "flips",
        "more_on_first",
        "more_on_second",
        "same",
        "undecided",
        "conclusion",
    ];
    let row = |group: &Group| {
        let pair = |values: Option<[f64; 2]>| {
            values.map_or([None; 2], |values| values.map(Some)).map(number).to_vec()
        };
        let counts = |counts: &[usize]| counts.iter().map(ToString::to_string).collect::<Vec<_>>();
        [
            vec![group.family.to_string(), group.pattern.clone().unwrap_or_default()],
            vec![label(comparison, 0), label(comparison, group.side)],
            counts(&[group.pairs, group.invalid]),
            pair(group.speedups),
            vec![number(group.ratio())],
            pair(group.ceilings),
            vec![number(group.fused_time)],
            counts(&group.fuse),
            counts(&group.open),
            counts(&[group.flips]),
            counts(&group.verdicts),
            vec![group.conclusion.clone().unwrap_or_default()],
        ]
        .concat()
    };
    Sheet { header: header(&names), rows: groups.iter().map(row).collect() }
}

fn ceilings(comparison: &Comparison) -> Sheet {
    let names = [
        "side",
        "file",
        "machine",
        "target",
        "records",
        "peak_gflops",
        "in_cache_gb_per_s",
        "in_memory_gb_per_s",
        "launch_us",
    ];
    let rows = comparison.sides.iter().map(|side| {
        let facts = &side.facts;
        let rate =
            |of: fn(&SideCeilings) -> Option<f64>| number(facts.ceilings.as_ref().and_then(of));
        vec![
            facts.label.clone(),
            facts.file.clone(),
            facts.machine.clone(),
            facts.target.to_string(),
            facts.records.to_string(),
            rate(|one| Some(one.peak_gflops)),
            rate(|one| one.in_cache_gb_per_s),
            rate(|one| one.in_memory_gb_per_s),
            rate(|one| one.launch_us),
        ]
    });
    Sheet { header: header(&names), rows: rows.collect() }
}

fn single_ops(comparison: &Comparison) -> Sheet {
    let names = [
        "problem",
        "cache_state",
        "first",
        "second",
        "{}_ms",
        "ratio",
        "ratio_low",
        "ratio_high",
        "moved",
    ];
    let rows = comparison.single_ops.iter().map(|single| {
        let sides = [label(comparison, 0), label(comparison, single.side)];
        [
            vec![single.problem.to_string(), single.cache_state.to_string()],
            sides.to_vec(),
            single.ms.map(|ms| number(ms.value)).to_vec(),
            figure(&single.ratio).to_vec(),
            vec![number(single.moved)],
        ]
        .concat()
    });
    Sheet { header: header(&names), rows: rows.collect() }
}

fn not_compared(comparison: &Comparison) -> Sheet {
    let names = ["problem", "cache_state", "first", "second", "why", "reason"];
    let problems = comparison.not_compared.iter().map(|one| {
        vec![
            one.problem.to_string(),
            one.cache_state.to_string(),
            label(comparison, 0),
            label(comparison, one.side),
            word(one.why),
            one.reason.clone(),
        ]
    });
    // Not one by one: nothing says which of them the other side would have.
    let other_targets = (0..comparison.sides.len()).flat_map(|side| {
        let facts = &comparison.sides[side].facts;
        facts.other_targets.iter().map(move |other| {
            let reason = format!("{} of {} in {}", other.records, other.target, facts.label);
            let sides = [label(comparison, 0), label(comparison, side)];
            let [first, second] = sides;
            vec![String::new(), String::new(), first, second, "other-target".to_owned(), reason]
        })
    });
    Sheet { header: header(&names), rows: problems.chain(other_targets).collect() }
}
