//! The tables of a comparison, for people.

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::{counted, three_digits};
use fusion_cost_model::compare::{Group, Pair, PairVerdict, SideCeilings};
use fusion_cost_model::{CacheState, Problem};

use super::words::{chance, change, choices, figure, hidden, nothing, slower, verdict};
use super::{CompareTable, View};

/// A table with all its rows, for each side.
pub(super) fn all_of(view: View<'_>, table: CompareTable) -> Vec<RankedTable> {
    let comparison = view.comparison;
    let sides = 1..comparison.sides.len();
    let of_pairs = |is: fn(&Pair) -> bool| {
        move |side: usize| {
            let pairs = comparison.pairs.iter().filter(move |pair| pair.side == side && is(pair));
            records(view, side, &view.ratio_of(side), pairs)
        }
    };
    match table {
        CompareTable::Records => sides.map(of_pairs(|_| true)).collect(),
        CompareTable::Undecided => {
            sides.map(of_pairs(|pair| pair.verdict == PairVerdict::Undecided)).collect()
        }
        CompareTable::Moved => sides
            .map(|side| {
                let pairs = comparison.pairs.iter().filter(|pair| pair.side == side);
                moved(view, &view.ratio_of(side), pairs)
            })
            .collect(),
        CompareTable::Families => vec![families(view)],
        CompareTable::Patterns => sides.map(|side| patterns(view, side)).collect(),
        CompareTable::Ceilings => vec![ceilings(view)],
        CompareTable::SingleOps => sides.map(|side| single_ops(view, "single ops", side)).collect(),
        CompareTable::NotCompared => sides.map(|side| not_compared(view, side)).collect(),
    }
}

/// A problem's heading and its sizes.
pub(super) fn named(problem: &Problem, cache_state: CacheState) -> (String, String) {
    let name = problem.to_string();
    let (heading, sizes) = name.rsplit_once('/').unwrap_or(("", &name));
    (heading.to_owned(), format!("{sizes}{}", cache_state.mark()))
}

/// Rows below the headings of their problems, or with whole names. Rows with the same heading need
/// not follow each other.
fn grouped<'p, T>(
    view: View<'_>,
    mut table: RankedTable,
    rows: impl IntoIterator<Item = (&'p Problem, CacheState, T)>,
    cells: impl Fn(T) -> Vec<String>,
) -> RankedTable {
    let mut groups: Vec<(String, Vec<(String, T)>)> = Vec::new();
    for (problem, cache_state, row) in rows {
        let (heading, sizes) = named(problem, cache_state);
        if view.has_whole_names {
            table.row(format!("{heading}/{sizes}"), cells(row));
            continue;
        }
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, group)) => group.push((sizes, row)),
            None => groups.push((heading, vec![(sizes, row)])),
        }
    }
    for (heading, group) in groups {
        table.heading(heading);
        for (sizes, row) in group {
            table.row(sizes, cells(row));
        }
    }
    table
}

/// The ratio and the verdict stay to the last. A difference that was found hides nothing.
pub(super) fn records<'p>(
    view: View<'_>,
    side: usize,
    title: &str,
    pairs: impl IntoIterator<Item = &'p Pair>,
) -> RankedTable {
    let sides = view.both(side);
    let [first, second] = view.labels(side);
    let pairs: Vec<&Pair> = pairs.into_iter().collect();
    let hides = pairs.iter().any(|pair| !pair.verdict.differs());
    let columns = [
        (format!("{first} [95 %]"), Column::numbers("", 4)),
        (format!("{second} [95 %]"), Column::numbers("", 4)),
        (format!("{second} / {first} [95 %]"), Column::numbers("", 0)),
        ("adj. p".to_owned(), Column::numbers("", 2)),
        ("verdict".to_owned(), Column::words("", 0)),
    ];
    let could_hide = hides.then(|| ("could hide".to_owned(), Column::numbers("", 3)));
    let decision = ("decision".to_owned(), Column::words("", 1));
    let (heads, columns): (Vec<String>, Vec<Column>) =
        columns.into_iter().chain(could_hide).chain([decision]).unzip();
    let rows = pairs.into_iter().map(|pair| (&pair.problem, pair.cache_state, pair));
    let table = RankedTable::new(title, &columns).with_heads(heads);
    grouped(view, table, rows, |pair| {
        let mut cells = vec![
            figure(&pair.first.speedup),
            figure(&pair.second.speedup),
            figure(&pair.ratio),
            chance(pair.adjusted_p),
            verdict(pair.verdict, sides),
        ];
        if hides {
            cells.push(hidden(pair.could_hide.filter(|_| !pair.verdict.differs())));
        }
        cells.push(choices(pair));
        cells
    })
}

/// What one side fuses and the other one keeps apart.
pub(super) fn flips<'p>(
    view: View<'_>,
    side: usize,
    title: &str,
    pairs: impl IntoIterator<Item = &'p Pair>,
) -> RankedTable {
    const COLUMNS: [Column; 4] = [
        Column::numbers("", 1),
        Column::numbers("", 1),
        Column::words("verdict", 2),
        Column::words("decision", 0),
    ];
    let sides = view.both(side);
    let [first, second] = view.labels(side).map(|label| format!("{label} [95 %]"));
    let heads = [first, second, "verdict".to_owned(), "decision".to_owned()];
    let rows = pairs.into_iter().map(|pair| (&pair.problem, pair.cache_state, pair));
    let table = RankedTable::new(title, &COLUMNS).with_heads(heads);
    grouped(view, table, rows, |pair| {
        let [first, second] = [&pair.first, &pair.second].map(|one| figure(&one.speedup));
        vec![first, second, verdict(pair.verdict, sides), choices(pair)]
    })
}

/// What changed on one machine: the times say in which variant.
pub(super) fn changes<'p>(
    view: View<'_>,
    side: usize,
    title: &str,
    pairs: impl IntoIterator<Item = &'p Pair>,
) -> RankedTable {
    const COLUMNS: [Column; 6] = [
        Column::numbers("unfused", 1),
        Column::numbers("fused", 1),
        Column::numbers("speedup [95 %]", 0),
        Column::numbers("adj. p", 2),
        Column::words("verdict", 0),
        Column::words("decision", 3),
    ];
    let sides = view.both(side);
    let rows = pairs.into_iter().map(|pair| (&pair.problem, pair.cache_state, pair));
    grouped(view, RankedTable::new(title, &COLUMNS), rows, |pair| {
        let Pair { first, second, .. } = pair;
        vec![
            change(&first.unfused_ms, &second.unfused_ms),
            change(&first.fused_ms, &second.fused_ms),
            figure(&pair.ratio),
            chance(pair.adjusted_p),
            verdict(pair.verdict, sides),
            choices(pair),
        ]
    })
}

/// Records whose times changed by themselves, in both variants alike.
pub(super) fn moved<'p>(
    view: View<'_>,
    title: &str,
    pairs: impl IntoIterator<Item = &'p Pair>,
) -> RankedTable {
    const COLUMNS: [Column; 3] = [
        Column::numbers("unfused", 1),
        Column::numbers("fused", 1),
        Column::numbers("both, beyond the others", 0),
    ];
    let rows = pairs
        .into_iter()
        .filter_map(|pair| Some((&pair.problem, pair.cache_state, (pair, pair.moved?))));
    grouped(view, RankedTable::new(title, &COLUMNS), rows, |(pair, moved)| {
        vec![
            change(&pair.first.unfused_ms, &pair.second.unfused_ms),
            change(&pair.first.fused_ms, &pair.second.fused_ms),
            slower(moved),
        ]
    })
}

/// One ceiling of a side; `None` where it was not measured.
type CeilingOf = fn(&SideCeilings) -> Option<f64>;

/// The ceilings, a column for each side.
pub(super) fn ceilings(view: View<'_>) -> RankedTable {
    let sides = &view.comparison.sides;
    let columns: Vec<Column> = sides.iter().map(|_| Column::numbers("", 0)).collect();
    let of_others = (1..sides.len()).map(|side| view.ratio_of(side));
    let heads: Vec<String> =
        sides.iter().map(|side| side.facts.label.clone()).chain(of_others).collect();
    let columns = [&columns[..], &vec![Column::numbers("", 1); sides.len() - 1]].concat();
    let mut table = RankedTable::new("ceilings", &columns).with_heads(heads);
    let rows: [(&str, CeilingOf); 5] = [
        ("peak, GFLOP/s", |one| Some(one.peak_gflops)),
        ("in cache, GB/s", |one| one.in_cache_gb_per_s),
        ("in memory, GB/s", |one| one.in_memory_gb_per_s),
        ("peak / memory, flops per byte", SideCeilings::balance),
        ("launch, us", |one| one.launch_us),
    ];
    for (name, of) in rows {
        let values: Vec<Option<f64>> =
            sides.iter().map(|side| side.facts.ceilings.as_ref().and_then(of)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let shown = values.iter().map(|value| value.map_or_else(nothing, three_digits));
        let over = values[1..].iter().map(|value| match (values[0], value) {
            (Some(first), Some(value)) => format!("{:.2}", value / first),
            _ => nothing(),
        });
        table.row(name, shown.chain(over));
    }
    table
}

/// Families, all sides below each other.
pub(super) fn families(view: View<'_>) -> RankedTable {
    groups(view, "what fusion gains", view.comparison.families.iter(), |group| {
        if view.is_pair() {
            return group.family.to_string();
        }
        format!("{}, {}", group.family, view.ratio_of(group.side))
    })
}

fn patterns(view: View<'_>, side: usize) -> RankedTable {
    let of_side = view.comparison.patterns.iter().filter(|group| group.side == side);
    groups(view, &view.ratio_of(side), of_side, |group| group.pattern.clone().unwrap_or_default())
}

fn groups<'g>(
    view: View<'_>,
    title: &str,
    groups: impl Iterator<Item = &'g Group>,
    name: impl Fn(&Group) -> String,
) -> RankedTable {
    const COLUMNS: [Column; 8] = [
        Column::numbers("problems", 0),
        Column::numbers("", 1),
        Column::numbers("", 1),
        Column::numbers("", 0),
        Column::numbers("", 4),
        Column::numbers("", 2),
        Column::numbers("", 3),
        Column::numbers("flips", 1),
    ];
    let [first, second] = if view.is_pair() {
        view.labels(1)
    } else {
        [view.comparison.sides[0].facts.label.as_str(), "other"]
    };
    let heads = [
        "problems".to_owned(),
        first.to_owned(),
        second.to_owned(),
        format!("{second} / {first}"),
        format!("fused time {second} / {first}"),
        format!("fuse at {} ({first}, {second})", view.comparison.threshold),
        format!("open ({first}, {second})"),
        "flips".to_owned(),
    ];
    let mut table = RankedTable::new(title, &COLUMNS).with_heads(heads);
    let value = |value: Option<f64>| value.map_or_else(nothing, |value| format!("{value:.3}"));
    for group in groups {
        let counts = |[first, second]: [usize; 2]| format!("{first}, {second}");
        table.row(
            name(group),
            [
                group.pairs.to_string(),
                value(group.speedups.map(|[first, _]| first)),
                value(group.speedups.map(|[_, second]| second)),
                value(group.ratio()),
                value(group.fused_time),
                counts(group.fuse),
                counts(group.open),
                group.flips.to_string(),
            ],
        );
    }
    table
}

pub(super) fn single_ops(view: View<'_>, title: &str, side: usize) -> RankedTable {
    const COLUMNS: [Column; 3] = [
        Column::numbers("time", 1),
        Column::numbers("", 0),
        Column::numbers("beyond the others", 2),
    ];
    let ratio = format!("{} [95 %]", view.ratio_of(side));
    let heads = ["time".to_owned(), ratio, "beyond the others".to_owned()];
    let of_side = view.comparison.single_ops.iter().filter(|single| single.side == side);
    let rows = of_side.map(|single| (&single.problem, single.cache_state, single));
    let table = RankedTable::new(title, &COLUMNS).with_heads(heads);
    grouped(view, table, rows, |single| {
        vec![
            change(&single.ms[0], &single.ms[1]),
            figure(&single.ratio),
            single.moved.map_or_else(nothing, slower),
        ]
    })
}

pub(super) fn not_compared(view: View<'_>, side: usize) -> RankedTable {
    let comparison = view.comparison;
    let of_side = comparison.not_compared.iter().filter(|one| one.side == side);
    let rows = of_side.map(|one| (&one.problem, one.cache_state, one));
    let table = RankedTable::new("not compared", &[Column::words("why", 0)]);
    let mut table = grouped(view, table, rows, |one| vec![one.reason.clone()]);
    let with_first = (side == 1).then_some(0);
    for side in with_first.into_iter().chain([side]) {
        let facts = &comparison.sides[side].facts;
        for other in &facts.other_targets {
            let records = counted(other.records, "record");
            let why = format!("{records} of {}: another target", facts.label);
            table.row(other.target.to_string(), [why]);
        }
    }
    table
}
