//! `calibrate compare A B`: on which machine fusion gains more, and whether it changed.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use cli_support::input;
use cli_support::output::{Destination, Replace, Target};
use cli_support::plain;
use cli_support::width::Width;
use fusion_cost_model::MeasuredFile;
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::compare::{
    CompareOptions, Comparison, Relation, Side, SideFacts, SideTarget, TargetParts, WhyNot,
};

use crate::cli::{CompareArgs, CompareBy, CompareFormat};
use crate::exit::{self, UsageError};
use crate::report::{CompareReport, CompareTable};

/// Compares calibrations.
///
/// # Errors
///
/// When a file cannot be read, or there is nothing in it to compare.
pub fn compare(args: &CompareArgs) -> anyhow::Result<u8> {
    let format = args.format();
    if args.table.is_some() && matches!(format, CompareFormat::Json | CompareFormat::Html) {
        let message = "--table is for the other formats; JSON and HTML have all of it";
        return Err(UsageError(message.to_owned()).into());
    }
    let replace = Replace::if_told(args.overwrite);
    let output = args.output.as_deref().map(|path| Target::new(path, replace)).transpose()?;
    let sides = without_each_other(sides(args)?);
    let (first, others) = against(sides, &args.against)?;
    let (threshold, across_dtypes) = (args.threshold, args.across_dtypes);
    let comparison = Comparison::of(&first, &others, &CompareOptions { threshold, across_dtypes });
    check_common(&comparison)?;
    if args.fail_on_regression.is_some() {
        check_same_machine(&comparison)?;
        check_judged(&comparison)?;
    }
    let top = usize::try_from(args.top)?;
    let fail_on = args.fail_on_regression;
    let report = CompareReport { comparison: &comparison, top, fail_on };
    exit::if_read(write(&report, args, output))?;
    let is_found = fail_on.is_some_and(|share| comparison.regressions(share).next().is_some());
    Ok(if is_found { exit::FOUND } else { exit::DONE })
}

fn write(
    report: &CompareReport<'_>,
    args: &CompareArgs,
    output: Option<Target>,
) -> anyhow::Result<()> {
    let format = args.format();
    let mut out = match format {
        CompareFormat::Csv => Destination::for_csv(output, args.raw_cells)?,
        _ => Destination::new(output)?,
    };
    let width = if args.output.is_some() { Width::Unlimited } else { Width::of_stdout() };
    match format {
        CompareFormat::Text => out.write_text(&report.text(args.table, width))?,
        CompareFormat::Markdown => {
            out.write_all(plain::text(&report.markdown(args.table)).as_bytes())?;
        }
        CompareFormat::Csv => {
            out.write_all(&report.csv(args.table.unwrap_or(CompareTable::Records))?)?;
        }
        CompareFormat::Html => out.write_all(report.html().as_bytes())?,
        CompareFormat::Json => out.write_all(plain::json(&report.json()?).as_bytes())?,
    }
    out.finish()
}

fn sides(args: &CompareArgs) -> anyhow::Result<Vec<Side>> {
    let [first, others @ ..] = &args.files[..] else { return Ok(Vec::new()) };
    match (args.by, others) {
        (Some(by), []) => sides_within(args, first, by),
        (Some(_), _) => {
            let message = "--by compares within one file; leave it out, or name only one";
            Err(UsageError(message.to_owned()).into())
        }
        (None, []) => {
            let message = "name a second file, or compare within this one with --by implementation";
            Err(UsageError(message.to_owned()).into())
        }
        (None, _) => sides_of_files(args),
    }
}

/// A target that is a side is not among the other ones of its file.
fn without_each_other(sides: Vec<Side>) -> Vec<Side> {
    let of = |side: &Side| (side.facts().file.clone(), side.facts().target);
    let all: Vec<(String, SideTarget)> = sides.iter().map(of).collect();
    let beside = |side: Side| {
        let file = side.facts().file.clone();
        side.beside(|target| all.iter().any(|one| (&one.0, &one.1) == (&file, target)))
    };
    sides.into_iter().map(beside).collect()
}

fn sides_of_files(args: &CompareArgs) -> anyhow::Result<Vec<Side>> {
    let has_own_targets = args.a.is_some() && args.b.is_some() && args.a != args.b;
    for (index, file) in args.files.iter().enumerate().filter(|_| !has_own_targets) {
        let is_same = |other: &&std::path::PathBuf| {
            let names = [other, file].map(|path| path.canonicalize().ok());
            names[0].is_some() && names[0] == names[1]
        };
        if args.files[..index].iter().any(|other| is_same(&other)) {
            let file = file.display();
            cli_support::say!(
                "warning: same-file: {file} is compared with itself; name another file"
            );
        }
    }
    let files: Vec<MeasuredFile> = args
        .files
        .iter()
        .map(|file| MeasuredFile::load(input::expect(file)))
        .collect::<Result<_, _>>()?;
    let parts_of = |index: usize| {
        let parts = if index == 0 { args.a } else { args.b.or(args.a) };
        parts.unwrap_or_default()
    };
    let candidates = |index: usize, file: &MeasuredFile| match file {
        MeasuredFile::Calibration(one) => targets(one, parts_of(index)),
        MeasuredFile::Imported(_) => Vec::new(),
    };
    // What the first file that has only one is about is what is meant of the others.
    let meant =
        files.iter().enumerate().find_map(|(index, file)| match candidates(index, file)[..] {
            [(target, _)] => Some(target),
            _ => None,
        });
    let mut sides = Vec::new();
    for (index, (path, file)) in args.files.iter().zip(&files).enumerate() {
        let (label, name) = (letter(index), path.display().to_string());
        sides.push(match file {
            MeasuredFile::Calibration(calibration) => {
                let option = if index == 0 { "--a" } else { "--b" };
                let target = chosen(&name, calibration, parts_of(index), meant, option)?;
                Side::of(label, name, calibration, target)
            }
            MeasuredFile::Imported(profile) => Side::of_imported(label, name, profile),
        });
    }
    Ok(sides)
}

/// A, B, C and so on.
fn letter(index: usize) -> String {
    ('A'..='Z').nth(index).map_or_else(|| index.to_string(), String::from)
}

fn targets(calibration: &HardwareCalibration, parts: TargetParts) -> Vec<(SideTarget, usize)> {
    let all = SideTarget::all_of(calibration).into_iter();
    all.filter(|(target, _)| parts.are_of(target)).collect()
}

/// The only target with these parts, or the one that is meant.
fn chosen(
    file: &str,
    calibration: &HardwareCalibration,
    parts: TargetParts,
    meant: Option<SideTarget>,
    option: &str,
) -> Result<SideTarget, UsageError> {
    let found = targets(calibration, parts);
    if let [(target, _)] = found[..] {
        return Ok(target);
    }
    if let Some((target, _)) = found.iter().find(|(target, _)| Some(*target) == meant) {
        return Ok(*target);
    }
    let all = targets(calibration, TargetParts::default());
    Err(UsageError(match (&all[..], &found[..]) {
        ([], _) => format!("{file} has no records"),
        (_, []) => format!("{file} has no such target; it has {}", list(&all)),
        _ => format!(
            "{file} has several targets: {}; choose one with {option}, such as {option} {}",
            list(&found),
            found[0].0
        ),
    }))
}

fn list(targets: &[(SideTarget, usize)]) -> String {
    let name = |(target, records): &(SideTarget, usize)| {
        format!("{target} ({records} {})", if *records == 1 { "record" } else { "records" })
    };
    targets.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A side for each value of a part of the target.
fn sides_within(args: &CompareArgs, path: &Path, by: CompareBy) -> anyhow::Result<Vec<Side>> {
    let name = path.display().to_string();
    let MeasuredFile::Calibration(calibration) = MeasuredFile::load(input::expect(path))? else {
        return Err(UsageError(format!("{name} is an imported profile, of one target")).into());
    };
    let found = targets(&calibration, args.a.unwrap_or_default());
    // The target with the part that may differ made the same.
    let rest = |target: &SideTarget| {
        let mut rest = *target;
        if let Some((first, _)) = found.first() {
            match by {
                CompareBy::Implementation => rest.implementation = first.implementation,
                CompareBy::Clock => rest.clock = first.clock,
                CompareBy::Threads => rest.threads = first.threads,
            }
        }
        rest
    };
    if let Some(((first, _), (other, _))) = found
        .iter()
        .zip(found.iter().skip(1))
        .find(|((first, _), (other, _))| rest(first) != rest(other))
    {
        return Err(UsageError(format!(
            "{name} has targets that differ in more than that, such as {first} and {other}; choose \
             with --a what they have in common, such as --a {}",
            parts_unlike(&rest(first), &rest(other))
        ))
        .into());
    }
    if found.len() < 2 {
        let all = list(&SideTarget::all_of(&calibration));
        let all = if all.is_empty() { "no records" } else { &all };
        let message = format!("{name} has nothing to compare by that; it has {all}");
        return Err(UsageError(message).into());
    }
    let side = |(index, (target, _)): (usize, &(SideTarget, usize))| {
        Side::of(letter(index), name.clone(), &calibration, *target)
    };
    Ok(found.iter().enumerate().map(side).collect())
}

/// The parts of a target that another one has differently, as `--a` reads them.
fn parts_unlike(target: &SideTarget, other: &SideTarget) -> String {
    let parts = |one: &SideTarget| {
        let SideTarget { backend, threads, clock, dtype, implementation } = one;
        let threads = threads.map(|threads| threads.to_string()).unwrap_or_default();
        let [backend, clock] = [backend.to_string(), clock.to_string()];
        [backend, threads, clock, dtype.to_string(), implementation.to_string()]
    };
    let pairs = parts(target).into_iter().zip(parts(other));
    let unlike = pairs.filter(|(one, other)| one != other && !one.is_empty());
    unlike.map(|(one, _)| one).collect::<Vec<_>>().join("/")
}

/// The side that the others are compared with, and the others.
fn against(mut sides: Vec<Side>, label: &str) -> Result<(Side, Vec<Side>), UsageError> {
    let wanted = label.to_ascii_uppercase();
    match sides.iter().position(|side| side.facts().label == wanted) {
        Some(index) => {
            let first = sides.remove(index);
            Ok((first, sides))
        }
        None => {
            let last = sides.last().map_or("A", |side| &side.facts().label);
            Err(UsageError(format!("--against {label}: the files are called A to {last}")))
        }
    }
}

/// Fails if a side has no problem in common with the first one.
fn check_common(comparison: &Comparison) -> Result<(), UsageError> {
    for (index, side) in comparison.sides.iter().enumerate().skip(1) {
        let is_joined = comparison.pairs.iter().any(|pair| pair.side == index)
            || comparison.single_ops.iter().any(|single| single.side == index)
            || comparison.families.iter().any(|group| group.side == index);
        if is_joined {
            continue;
        }
        let [first, second] = [&comparison.sides[0].facts, &side.facts];
        let caches = [WhyNot::OnlyOnFirst, WhyNot::OnlyOnSecond]
            .map(|why| caches_of(comparison, index, why));
        let why = if first.target.dtype != second.target.dtype {
            "--across-dtypes joins problems that differ only in their dtype".to_owned()
        } else if caches[0] == caches[1] {
            "calibrate both with the same --shapes".to_owned()
        } else {
            format!(
                "{} has {} caches and {} has {}, and records are compared with the same; calibrate \
                 both with the same --cache",
                first.label, caches[0], second.label, caches[1]
            )
        };
        let has = |facts: &SideFacts| {
            format!("{} ({}) has {} of {}", facts.label, facts.file, facts.records, facts.target)
        };
        return Err(UsageError(format!(
            "no problem is in both files: {}, {}; {why}",
            has(first),
            has(second)
        )));
    }
    Ok(())
}

/// What the caches held in the records that only one of two sides has.
fn caches_of(comparison: &Comparison, side: usize, why: WhyNot) -> String {
    let of_side = comparison.not_compared.iter().filter(|one| (one.side, one.why) == (side, why));
    let states: BTreeSet<&str> = of_side.map(|one| one.cache_state.name()).collect();
    states.into_iter().collect::<Vec<_>>().join(" and ")
}

fn check_same_machine(comparison: &Comparison) -> Result<(), UsageError> {
    let Some(other) = comparison.sides.iter().find(|side| side.relation == Relation::Other) else {
        return Ok(());
    };
    let first = &comparison.sides[0].facts;
    // What a file gives may have lines.
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is = |facts: &SideFacts| {
        format!("{} is {}, {}", facts.label, on_one_line(&facts.machine), facts.target)
    };
    Err(UsageError(format!(
        "--fail-on-regression is for one machine and one target: {}; {}; they differ in {}",
        is(first),
        is(&other.facts),
        on_one_line(&other.differences.join("; "))
    )))
}

/// Fails where no regression could be found on some side: a check that judges nothing must not pass.
fn check_judged(comparison: &Comparison) -> Result<(), UsageError> {
    for (index, side) in comparison.sides.iter().enumerate().skip(1) {
        let of_side = || comparison.pairs.iter().filter(|pair| pair.side == index);
        if of_side().any(|pair| pair.p.is_some()) {
            continue;
        }
        let [first, second] = [&comparison.sides[0].facts, &side.facts];
        let why = match of_side().count() {
            0 => "no chain is valid in both".to_owned(),
            count => format!(
                "{count} {} in both, and none has an interval over three processes or more on both \
                 sides",
                if count == 1 { "chain is" } else { "chains are" }
            ),
        };
        return Err(UsageError(format!(
            "--fail-on-regression has nothing to judge in {} and {}: {why}; calibrate both without \
             --processes",
            first.file, second.file
        )));
    }
    Ok(())
}
