//! What a partitioner should conclude of a family, in a sentence.

use super::group::Group;
use super::machine::Relation;
use super::pair::{Pair, PairVerdict};
use super::side::SideFacts;

/// Ratios closer to 1 than this explain nothing.
const LEAST_EXPLANATION: f64 = 0.02;

/// What a group's sentence is made from.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) group: &'a Group,
    pub(super) pairs: &'a [&'a Pair],
    pub(super) sides: [&'a SideFacts; 2],
    pub(super) relation: Relation,
    pub(super) threshold: f64,
}

pub(super) fn conclusion(found: &Found<'_>) -> String {
    let Found { group, sides: [first, second], .. } = found;
    if group.pairs == 0 {
        let are = if group.invalid == 1 { "problem is" } else { "problems are" };
        return format!("nothing can be compared: {} {are} INVALID on a side", group.invalid);
    }
    let more = [PairVerdict::MoreOnFirst, PairVerdict::MoreOnSecond].map(|one| group.count(one));
    let outcome = match (found.relation, more) {
        (Relation::Same, [0, 0]) => "no change is found".to_owned(),
        (Relation::Same, [lost, 0]) => format!("{} less from fusion now{}", gains(lost), of(found)),
        (Relation::Same, [0, gained]) => {
            format!("{} more from fusion now{}", gains(gained), of(found))
        }
        (Relation::Same, [lost, gained]) => {
            format!("{} less from fusion now, and {gained} more{}", gains(lost), of(found))
        }
        (Relation::Other, [0, 0]) => gains_the_same(group),
        (Relation::Other, [a, 0]) => pays_more(found, &first.label, a),
        (Relation::Other, [0, b]) => pays_more(found, &second.label, b),
        (Relation::Other, [a, b]) => format!(
            "it depends on the problem: fusing pays more on {} for {a}, and more on {} for {b}, of \
             {}{}",
            first.label,
            second.label,
            counted(group.pairs),
            of(found)
        ),
    };
    let because = match (found.relation, more) {
        (Relation::Same, _) | (_, [0, 0]) => String::new(),
        _ => because(found),
    };
    format!("{outcome}{because}{}{}", undecided(found), decisions(found))
}

/// Where nothing is known to differ.
fn gains_the_same(group: &Group) -> String {
    match group.count(PairVerdict::Same) {
        0 => "these measurements do not tell on which fusing pays more".to_owned(),
        same if same == group.pairs => "fusing gains the same on both".to_owned(),
        same => format!("fusing gains the same on both for {same} of {}", counted(group.pairs)),
    }
}

fn counted(problems: usize) -> String {
    format!("{problems} {}", if problems == 1 { "problem" } else { "problems" })
}

fn gains(problems: usize) -> String {
    let verb = if problems == 1 { "gains" } else { "gain" };
    format!("{} {verb}", counted(problems))
}

fn pays_more(found: &Found<'_>, label: &str, count: usize) -> String {
    let all = found.group.pairs;
    let of_all = match count {
        1 if all == 1 => "the only".to_owned(),
        _ if count == all => "all".to_owned(),
        _ => format!("{count} of"),
    };
    let problems = if all == 1 { "problem".to_owned() } else { counted(all) };
    format!("fusing pays more on {label} for {of_all} {problems}{}", of(found))
}

/// The pair that differs most.
fn of(found: &Found<'_>) -> String {
    let differing = found.pairs.iter().filter(|pair| pair.verdict.differs());
    let most = if differing.clone().count() > 1 { "most for " } else { "" };
    let farthest = differing.max_by(|a, b| a.distance().total_cmp(&b.distance()));
    let [first, second] = found.sides.map(|side| &side.label);
    farthest.map_or_else(String::new, |pair| {
        let (problem, mark) = (pair.problem, pair.cache_state.mark());
        format!(", {most}{problem}{mark} ({second} / {first} {:.3})", pair.ratio.value)
    })
}

/// What the ceilings say of the difference.
fn because(found: &Found<'_>) -> String {
    let Found { group, sides: [first, second], .. } = found;
    let Some((measured, [low, high])) = group.ratio().zip(group.ceilings) else {
        return String::new();
    };
    let allowed = high / low;
    let [of_measured, of_allowed] = [measured.ln(), allowed.ln()];
    let least = LEAST_EXPLANATION.ln_1p();
    if of_measured.abs() < least {
        return String::new();
    }
    if of_allowed.abs() < least || of_measured.signum() != of_allowed.signum() {
        return "; the ceilings do not explain it, so look at the kernels".to_owned();
    }
    let label = if allowed > 1.0 { &second.label } else { &first.label };
    let allow =
        format!("; the ceilings allow {:.2} times as much on {label}", of_allowed.abs().exp());
    let [balance, launch] = [
        (
            first.ceilings.and_then(|one| one.balance()),
            second.ceilings.and_then(|one| one.balance()),
        ),
        (
            first.ceilings.and_then(|one| one.launch_us),
            second.ceilings.and_then(|one| one.launch_us),
        ),
    ]
    .map(|(first, second)| Some((second? / first?).powf(of_allowed.signum())));
    // Fusion saves bytes and launches: it pays where flops are cheap against them.
    match (balance, launch) {
        (Some(balance), _) if balance > 1.1 => {
            format!("{allow}, which has {balance:.1} times the flops per byte of memory traffic")
        }
        (_, Some(launch)) if launch > 1.1 => {
            format!("{allow}, where a launch takes {launch:.1} times as long")
        }
        _ => allow,
    }
}

fn undecided(found: &Found<'_>) -> String {
    let undecided = found.pairs.iter().filter(|pair| pair.verdict == PairVerdict::Undecided);
    let hidden = undecided.clone().filter_map(|pair| pair.could_hide).reduce(f64::max);
    let verb = if undecided.clone().count() == 1 { "is" } else { "are" };
    match (undecided.count(), hidden) {
        (0, _) => String::new(),
        (count, None) => format!("; {count} {verb} undecided, without an interval"),
        (count, Some(hidden)) => {
            let percent = 100.0 * hidden;
            format!("; {count} {verb} undecided, and could hide up to {percent:.1} %")
        }
    }
}

fn decisions(found: &Found<'_>) -> String {
    let Found { group, threshold, .. } = found;
    match group.flips {
        0 => String::new(),
        1 => format!("; 1 decision at a threshold of {threshold} flips"),
        flips => format!("; {flips} decisions at a threshold of {threshold} flip"),
    }
}
