//! A comparison as a page, from the whole to the parts: the sides, their ceilings, what to conclude
//! of each family, and the records that the conclusions rest on.

use cli_support::ranked::RankedTable;
use cli_support::units::counted;
use fusion_cost_model::compare::{
    CommonChange, ComparedSide, NotCompared, Pair, PairVerdict, Relation, WhyNot,
};

use super::super::block::Block;
use super::View;
use super::tables;
use super::words::{hidden, slower, verdict};

pub(super) fn page(view: View<'_>) -> Vec<Block> {
    let comparison = view.comparison;
    let mut blocks: Vec<Block> = comparison.sides.iter().flat_map(side).collect();
    let others = 1..comparison.sides.len();
    blocks.extend(others.clone().map(|other| {
        let label = if view.is_pair() { "joined" } else { view.labels(other)[1] };
        let listed = if comparison.not_compared.is_empty() {
            ""
        } else {
            " (--table not-compared lists what is left out)"
        };
        Block::line(label, joined(view, other) + listed)
    }));
    blocks.extend(
        others.clone().filter_map(|other| Some(Block::line("machine", machine(view, other)?))),
    );
    let tables = [tables::ceilings(view), tables::families(view)];
    for table in tables.into_iter().filter(|table| !table.is_empty()) {
        blocks.extend([Block::Gap, Block::Table(table)]);
    }
    blocks.push(Block::Gap);
    blocks.extend(conclusions(view).map(Block::Item));
    for other in others.clone() {
        let tables = [
            flips(view, other),
            differing(view, other),
            moved(view, other),
            undecided(view, other),
        ];
        for table in tables.into_iter().flatten() {
            blocks.push(Block::Gap);
            blocks.extend(table);
        }
    }
    blocks.push(Block::Gap);
    for other in others {
        blocks.extend(times(view, other).map(|times| Block::line("times", times)));
        let label = if view.is_pair() { "verdicts" } else { view.labels(other)[1] };
        blocks.push(Block::line(label, verdicts(view, other)));
    }
    blocks
}

fn side(side: &ComparedSide) -> Vec<Block> {
    let facts = &side.facts;
    let what = format!("{}, {}, {}", facts.machine, facts.target, run_of(side));
    let mut blocks = vec![
        Block::line(&facts.label, what),
        Block::line("", format!("{}; {}", facts.file, facts.run)),
    ];
    blocks.extend(
        facts.warnings.iter().map(|warning| Block::line("", format!("warning: {warning}"))),
    );
    blocks
}

/// How many records a side has, over how many processes each.
pub(super) fn run_of(side: &ComparedSide) -> String {
    let processes = match side.facts.processes {
        None => String::new(),
        Some([least, most]) if least == most => format!(", {} each", counted_processes(least)),
        Some([least, most]) => format!(", {least} to {most} processes each"),
    };
    counted(side.facts.records, "record") + &processes
}

fn counted_processes(count: u32) -> String {
    format!("{count} {}", if count == 1 { "process" } else { "processes" })
}

/// How much is in both files, and what is not.
pub(super) fn joined(view: View<'_>, side: usize) -> String {
    let comparison = view.comparison;
    let [first, second] = view.both(side).map(|side| &side.facts);
    let count = |why: WhyNot| {
        let is_so = |one: &&NotCompared| (one.side, one.why) == (side, why);
        comparison.not_compared.iter().filter(is_so).count()
    };
    let pairs = comparison.pairs.iter().filter(|pair| pair.side == side).count();
    let singles = comparison.single_ops.iter().filter(|single| single.side == side).count();
    let mut parts = vec![format!("{} in both", counted(pairs, "chain"))];
    for (count, what) in [
        (
            singles,
            format!(
                "single op{} (only their times are compared)",
                if singles == 1 { "" } else { "s" }
            ),
        ),
        (count(WhyNot::Invalid), "INVALID on a side".to_owned()),
        (count(WhyNot::Rewrite), "rewritten".to_owned()),
        (count(WhyNot::OnlyOnFirst), format!("only in {}", first.label)),
        (count(WhyNot::OnlyOnSecond), format!("only in {}", second.label)),
        (first.other_targets.iter().map(|one| one.records).sum(), of_targets(&first.label)),
        (second.other_targets.iter().map(|one| one.records).sum(), of_targets(&second.label)),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    parts.join(", ")
}

fn of_targets(label: &str) -> String {
    format!("of other targets in {label}")
}

/// What the machines of two sides have to do with each other, unless their names show that they
/// are different ones.
pub(super) fn machine(view: View<'_>, side: usize) -> Option<String> {
    let [first, second] = view.both(side);
    let [a, b] = view.labels(side);
    let but_for = |what: &[String]| match what {
        [] => String::new(),
        what => format!(", but for: {}", what.join("; ")),
    };
    if second.relation == Relation::Same {
        return Some(format!("{a} and {b} are of the same machine{}", but_for(&second.changes)));
    }
    let targets = [first.facts.target, second.facts.target];
    let is_unknown = targets.iter().any(|target| target.threads.is_none());
    let is_only_target = (targets[0] != targets[1] || is_unknown) && second.differences.len() == 1;
    if is_only_target && is_unknown {
        return Some(format!(
            "{a} and {b} have the same name, but how many processors there are is not known of both; \
             {}",
            second.differences[0]
        ));
    }
    if is_only_target {
        return Some(format!(
            "{a} and {b} are of the same machine{}",
            but_for(&second.differences)
        ));
    }
    let is_shown = first.facts.machine != second.facts.machine;
    let what = second.differences.join("; ");
    (!is_shown).then(|| format!("{a} and {b} are of different machines: {what}"))
}

/// What to conclude of each family.
pub(super) fn conclusions(view: View<'_>) -> impl Iterator<Item = String> {
    view.comparison.families.iter().filter_map(move |group| {
        let conclusion = group.conclusion.as_ref()?;
        let [first, second] = view.labels(group.side);
        let of = if view.is_pair() { String::new() } else { format!(", {second} against {first}") };
        Some(format!("{}{of}: {conclusion}", group.family))
    })
}

/// The first entries of a list, and a line about the rest.
fn shortened<'p>(
    view: View<'_>,
    mut pairs: Vec<&'p Pair>,
    by: impl Fn(&Pair) -> f64,
    table: &str,
    make: impl FnOnce(&[&'p Pair]) -> RankedTable,
) -> Option<Vec<Block>> {
    if pairs.is_empty() {
        return None;
    }
    pairs.sort_by(|a, b| by(b).total_cmp(&by(a)));
    let all = pairs.len();
    pairs.truncate(view.top);
    let mut blocks = vec![Block::Table(make(&pairs))];
    if all > pairs.len() {
        let more = all - pairs.len();
        let advice = format!("{more} more: --table {table} lists all, --top {all} shows them here");
        blocks.push(Block::Sentence(advice));
    }
    Some(blocks)
}

fn of_side<'c>(view: View<'c>, side: usize, is: impl Fn(&Pair) -> bool) -> Vec<&'c Pair> {
    view.comparison.pairs.iter().filter(|pair| pair.side == side && is(pair)).collect()
}

fn title(view: View<'_>, side: usize, what: &str) -> String {
    if view.is_pair() { what.to_owned() } else { format!("{what}, {}", view.ratio_of(side)) }
}

fn flips(view: View<'_>, side: usize) -> Option<Vec<Block>> {
    let pairs = of_side(view, side, Pair::flips);
    shortened(view, pairs, Pair::distance, "records", |pairs| {
        let what = format!("flips at {}", view.comparison.threshold);
        tables::flips(view, side, &title(view, side, &what), pairs.iter().copied())
    })
}

fn differing(view: View<'_>, side: usize) -> Option<Vec<Block>> {
    let pairs = of_side(view, side, |pair| pair.verdict.differs());
    shortened(view, pairs, Pair::distance, "records", |pairs| {
        let pairs = pairs.iter().copied();
        if view.is_check(side) {
            tables::changes(view, side, &title(view, side, "changed"), pairs)
        } else {
            tables::records(view, side, &title(view, side, "different"), pairs)
        }
    })
}

fn moved(view: View<'_>, side: usize) -> Option<Vec<Block>> {
    let is_watched = |pair: &Pair| pair.moved.is_some() && !pair.verdict.differs();
    let by = |pair: &Pair| pair.moved.map_or(0.0, |ratio| ratio.ln().abs());
    shortened(view, of_side(view, side, is_watched), by, "moved", |pairs| {
        let title = title(view, side, "the machine, not fusion");
        tables::moved(view, &title, pairs.iter().copied())
    })
}

fn undecided(view: View<'_>, side: usize) -> Option<Vec<Block>> {
    let is_undecided = |pair: &Pair| pair.verdict == PairVerdict::Undecided;
    let by = |pair: &Pair| pair.could_hide.unwrap_or(f64::INFINITY);
    shortened(view, of_side(view, side, is_undecided), by, "undecided", |pairs| {
        let title = title(view, side, "undecided, widest first");
        tables::records(view, side, &title, pairs.iter().copied())
    })
}

/// What happened to the times: of the same machine all together, of another one by family.
pub(super) fn times(view: View<'_>, side: usize) -> Option<String> {
    let comparison = view.comparison;
    let label = &comparison.sides[side].facts.label;
    let of_side = |one: &&CommonChange| one.side == side;
    let common = comparison.common.iter().find(of_side)?;
    let [low, high] = common.quartiles.map(slower);
    let singles = comparison.single_ops.iter().filter(|single| single.side == side);
    let moved = singles.filter(|single| single.moved.is_some()).count();
    let singles = match moved {
        0 => String::new(),
        _ => format!("; {} changed beyond that (--table single-ops)", counted(moved, "single op")),
    };
    Some(format!(
        "{label} is {}, the median of {} (quartiles: {low}, {high}): the machine, not \
         fusion{singles}",
        slower(common.ratio),
        counted(common.records, "record"),
    ))
}

/// How many pairs have which verdict.
pub(super) fn verdicts(view: View<'_>, side: usize) -> String {
    let comparison = view.comparison;
    let sides = view.both(side);
    let pairs = of_side(view, side, |_| true);
    let mut parts = Vec::new();
    for one in PairVerdict::ALL {
        let count = comparison.count(side, one);
        if count == 0 {
            continue;
        }
        let mut part = format!("{count} {}", verdict(one, sides));
        let beyond = view.fail_on.filter(|_| one == PairVerdict::MoreOnFirst);
        if let Some(share) = beyond.filter(|_| view.is_check(side)) {
            let count = comparison.regressions(share).filter(|pair| pair.side == side).count();
            part += &format!(" ({count} by {:.1} % or more)", 100.0 * share);
        }
        if one == PairVerdict::Undecided {
            let undecided = pairs.iter().filter(|pair| pair.verdict == one);
            let most = undecided.filter_map(|pair| pair.could_hide).reduce(f64::max);
            part += &most.map_or_else(
                || " (no interval to judge by)".to_owned(),
                |most| format!(" (could hide up to {})", hidden(Some(most))),
            );
        }
        parts.push(part);
    }
    let of = counted(pairs.len(), "chain");
    let colon = if parts.is_empty() { "" } else { ": " };
    format!("{of}{colon}{}", parts.join(", "))
}
