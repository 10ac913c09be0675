//! A model run in several ways for people, as text and as Markdown.

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::{mebibytes, milliseconds, percent, ratio, three_digits};
use cli_support::width::Width;
use fusion_cost_model::calibration::Verdict;

use super::gains::{Gain, Times};
use super::{Apart, Known, Measurement, Memory, Operator, Speed, WayReport, WorkloadReport};
use crate::judge::causes_of;
use crate::plan::workload::Way;
use crate::report::block::Block;
use crate::report::estimated::{Range, short, signed};

const WAYS: [Column; 6] = [
    Column::numbers("predicted [95 %]", 0),
    Column::numbers("measured [95 %]", 0),
    Column::numbers("error", 0),
    Column::numbers("kernels", 3),
    Column::numbers("against unfused [95 %]", 1),
    Column::words("verdict", 2),
];

const PREDICTED_WAYS: [Column; 3] = [
    Column::numbers("predicted [95 %]", 0),
    Column::numbers("kernels", 0),
    Column::numbers("against unfused", 0),
];

const GAINS: [Column; 5] = [
    Column::numbers("times", 0),
    Column::numbers("unfused", 1),
    Column::numbers("best", 1),
    Column::numbers("gain", 0),
    Column::numbers("predicted", 2),
];

const OPERATORS: [Column; 5] = [
    Column::numbers("times", 0),
    Column::words("evidence", 1),
    Column::numbers("predicted", 0),
    Column::numbers("measured", 0),
    Column::numbers("error", 0),
];

impl WorkloadReport {
    /// The page as text. Lists have `top` entries.
    #[must_use]
    pub fn text(&self, top: usize, width: Width) -> String {
        let long = width == Width::Unlimited;
        self.blocks(top, long).iter().map(|block| block.text(width)).collect()
    }

    /// The page in Markdown.
    #[must_use]
    pub fn markdown(&self, top: usize) -> String {
        self.blocks(top, true).iter().map(Block::markdown).collect()
    }

    fn blocks(&self, top: usize, long: bool) -> Vec<Block> {
        let mut blocks = self.head();
        blocks.extend([Block::Gap, Block::Table(self.ways_table())]);
        if !self.gains.is_empty() {
            blocks.extend([Block::Gap, Block::Table(self.gains_table(top, long))]);
        }
        if self.measurement.is_some() {
            blocks.extend([Block::Gap, Block::Table(self.operators_table(top, long))]);
        }
        let mut foot = self.invalid();
        foot.extend(self.foot(top));
        if let Some(measurement) = &self.measurement {
            foot.extend(measurement.speed.as_ref().map(|speed| self.now(speed)));
            foot.extend(procedure(measurement));
        }
        if !foot.is_empty() {
            blocks.push(Block::Gap);
            blocks.extend(foot);
        }
        blocks
    }

    fn head(&self) -> Vec<Block> {
        let question = &self.question;
        let dims: String =
            question.dims.iter().map(|(name, size)| format!(", {name}={size}")).collect();
        let what = question.description.iter().map(|text| format!("; {text}")).collect::<String>();
        let model = format!("{}{dims}: {} ops{what}", question.workload, question.ops);
        vec![
            Block::line("workload", model),
            Block::line("profile", question.profile.clone()),
            Block::line("target", question.target.to_string()),
            Block::line("problems", known(&self.known)),
            Block::line("memory", memory(&self.memory)),
        ]
    }

    fn ways_table(&self) -> RankedTable {
        if self.measurement.is_none() {
            let mut table = RankedTable::new("way", &PREDICTED_WAYS);
            for way in &self.ways {
                let speedup = way.predicted_speedup.map(|speedup| format!("{speedup:.3}"));
                table.row(
                    way.way.words(),
                    [time(way.predicted_ms), way.kernels.to_string(), speedup.unwrap_or_else(dash)],
                );
            }
            return table;
        }
        let mut table = RankedTable::new("way", &WAYS);
        for way in &self.ways {
            table.row(way.way.words(), measured_way(way));
        }
        table
    }

    fn gains_table(&self, top: usize, long: bool) -> RankedTable {
        let total = |of: fn(&WayReport) -> Option<Range>| {
            let time = |way| self.ways.iter().find(|one| one.way == way).and_then(of);
            Some(time(Way::Unfused)?.value - time(Way::BestPartition)?.value)
        };
        let measured = self.measurement.is_some();
        let total =
            if measured { total(|way| way.measured_ms) } else { total(|way| way.predicted_ms) };
        let title = total.map_or_else(
            || "where best differs".to_owned(),
            |total| format!("where the {} come from", signed(total)),
        );
        // What is predicted stands by itself where nothing was measured.
        let columns = if measured { GAINS.len() } else { GAINS.len() - 1 };
        let mut table = RankedTable::new(title, &GAINS[..columns]);
        for gain in self.gains.iter().take(top) {
            table.row(gain_name(gain, long), gain_cells(gain).into_iter().take(columns));
        }
        let rest = self.gains.get(top..).unwrap_or_default();
        if !rest.is_empty() {
            let sum = |of: fn(&Gain) -> Option<Times>| {
                let all: Option<Vec<Times>> = rest.iter().map(of).collect();
                all.map(|all| all.iter().map(|times| times.gain_ms).sum::<f64>())
            };
            let cell = |ms: Option<f64>| ms.map_or_else(dash, signed);
            let predicted = sum(|gain| gain.predicted);
            let gained = sum(|gain| gain.measured).or(predicted);
            let name = counted(rest.len(), "other", "others");
            let cells = [dash(), dash(), dash(), cell(gained), cell(predicted)];
            table.row(name, cells.into_iter().take(columns));
        }
        table
    }

    /// The problems of the best partition.
    fn operators_table(&self, top: usize, long: bool) -> RankedTable {
        let of_best = || self.operators.iter().filter(|one| one.way == Way::BestPartition);
        let title =
            format!("best partition, {} of {}", of_best().count().min(top), of_best().count());
        let mut table = RankedTable::new(title, &OPERATORS);
        for operator in of_best().take(top) {
            let Operator { problem, times, evidence, predicted_ms, measured_ms, .. } = operator;
            let cells = [
                times.to_string(),
                short(*evidence).to_owned(),
                predicted_ms.map_or_else(dash, |time| milliseconds(time.value)),
                measured_ms.map_or_else(dash, milliseconds),
                error(operator.error_pct),
            ];
            table.row(named(&problem.to_string(), long), cells);
        }
        table
    }

    /// What must not be used.
    fn invalid(&self) -> Vec<Block> {
        let is_invalid =
            |way: &&WayReport| way.verdict == Some(Verdict::Invalid) && way.same_as.is_none();
        let ways: Vec<&str> =
            self.ways.iter().filter(is_invalid).map(|way| way.way.words()).collect();
        if ways.is_empty() {
            return Vec::new();
        }
        let text = format!(
            "most pairs of unfused against {} were disturbed: do not use their times",
            ways.join(" and ")
        );
        vec![Block::line("INVALID", text)]
    }

    /// How fast the machine was, and what that leaves of the errors.
    fn now(&self, speed: &Speed) -> Block {
        let Speed { factor: Range { value, low, high }, families, problems, .. } = speed;
        let families = families.iter().map(|(name, factor)| format!("{name} {:.3}", factor.value));
        let families = match families.collect::<Vec<_>>() {
            few if few.len() < 2 => String::new(),
            several => format!(" ({})", several.join(", ")),
        };
        let meaning = if speed.is_another() {
            let errors = self.ways.iter().filter(|way| way.same_as.is_none());
            let errors: Vec<String> = errors
                .map(|way| format!("{} ({})", error(way.error_now_pct), way.way.words()))
                .collect();
            let others: Vec<&str> = speed.others().collect();
            format!(
                "at this speed of {} the predictions are off by {}",
                others.join(" and "),
                errors.join(", ")
            )
        } else {
            "that is no other speed as far as this can tell".to_owned()
        };
        let text = format!(
            "{}, measured again alone, took {}{families} of the time in the profile; {meaning}",
            counted(problems.len(), "problem", "problems"),
            ratio(*value, *low, *high),
        );
        Block::line("now", text)
    }

    fn foot(&self, top: usize) -> Vec<Block> {
        let mut blocks = Vec::new();
        if !self.apart.is_empty() {
            let shown: Vec<String> = self.apart.iter().take(top).map(apart).collect();
            let more = match self.apart.len() - shown.len() {
                0 => String::new(),
                rest => format!(", and {}", counted(rest, "other", "others")),
            };
            blocks.push(Block::line("left apart", format!("{}{more}", shown.join(", "))));
        }
        for (index, opaque) in self.opaque.iter().enumerate() {
            let label = if index == 0 { "opaque" } else { "" };
            let line = format!("{} x {}: {}", opaque.nodes, opaque.op, opaque.reason);
            blocks.push(Block::line(label, line));
        }
        if !self.opaque.is_empty() {
            blocks.push(Block::line("", "they run in none of the ways".to_owned()));
        }
        blocks
    }
}

fn dash() -> String {
    "-".to_owned()
}

/// A time with its interval, all in the unit that suits the time.
fn time(range: Option<Range>) -> String {
    let Some(Range { value, low, high }) = range else { return dash() };
    let (factor, unit) = match value.abs() {
        ms if ms < 1e-3 => (1e6, "ns"),
        ms if ms < 1.0 => (1e3, "us"),
        ms if ms < 1e3 => (1.0, "ms"),
        _ => (1e-3, "s"),
    };
    let [value, low, high] = [value, low, high].map(|ms| three_digits(ms * factor));
    format!("{value} {unit} [{low}, {high}]")
}

fn error(pct: Option<f64>) -> String {
    pct.map_or_else(dash, |pct| format!("{pct:+.1} %"))
}

fn measured_way(way: &WayReport) -> [String; WAYS.len()] {
    let speedup =
        way.speedup.map_or_else(dash, |Range { value, low, high }| ratio(value, low, high));
    let verdict = match (way.same_as, way.verdict) {
        (Some(same), _) => format!("the same as {}", same.words()),
        (None, verdict) => verdict.map_or_else(dash, |verdict| verdict.to_string()),
    };
    [
        time(way.predicted_ms),
        time(way.measured_ms),
        error(way.error_pct),
        way.kernels.to_string(),
        speedup,
        verdict,
    ]
}

/// How much is known.
fn known(known: &Known) -> String {
    let Known { problems, measured, interpolated, roofline, unknown, .. } = known;
    let mut text = format!("{measured} of {problems} measured");
    for (count, what) in
        [(interpolated, "estimated"), (roofline, "by roofline"), (unknown, "unknown")]
    {
        if *count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    if measured < problems {
        text += " (--missing prints the command that measures the rest)";
    }
    text
}

fn memory(memory: &Memory) -> String {
    let Memory { bytes, extra_ms, layers, by_bandwidth } = *memory;
    let what = format!("{} of weights and results, each touched once in a run", mebibytes(bytes));
    let longer = match extra_ms {
        None => {
            return format!(
                "{what}: the profile has no ceilings that tell how much longer every way takes for it"
            );
        }
        Some(0.0) => "as fast as each problem finds its own".to_owned(),
        Some(extra) => {
            format!("every way takes {} longer for it than its problems", milliseconds(extra))
        }
    };
    if by_bandwidth == 0 {
        return format!("{what}: {longer}");
    }
    // Loads that wait take longer than a stream of the same bytes.
    format!(
        "{what}: {longer}, by bandwidth alone for {by_bandwidth} of {layers} layers: records of \
         --cache cold would tell more"
    )
}

/// A problem without its dtype where there is little room.
fn named(problem: &str, long: bool) -> String {
    match problem.split('/').collect::<Vec<_>>()[..] {
        [chain, _, sizes] if !long => format!("{chain} {sizes}"),
        _ => problem.to_owned(),
    }
}

fn gain_name(gain: &Gain, long: bool) -> String {
    let all: Vec<String> = gain.problems.iter().map(|problem| named(problem, long)).collect();
    all.join(" & ")
}

fn gain_cells(gain: &Gain) -> [String; GAINS.len()] {
    let shown = gain.measured.or(gain.predicted);
    let cell = |of: fn(&Times) -> f64, times: &Option<Times>| {
        times.as_ref().map_or_else(dash, |times| signed(of(times)))
    };
    [
        gain.times.to_string(),
        cell(|times| times.unfused_ms, &shown),
        cell(|times| times.best_ms, &shown),
        cell(|times| times.gain_ms, &shown),
        cell(|times| times.gain_ms, &gain.predicted),
    ]
}

fn apart(Apart { problem, times, speedup, evidence }: &Apart) -> String {
    let times = if *times > 1 { format!(" x{times}") } else { String::new() };
    let speedup = speedup.map_or_else(dash, |speedup| format!("{:.3}", speedup.value));
    format!("{problem}{times} ({speedup}, {})", evidence.name())
}

/// How it was measured.
fn procedure(measurement: &Measurement) -> Vec<Block> {
    let Measurement { machine, processes, pairs, pairs_kept, seed, .. } = measurement;
    let causes = match causes_of(measurement.disturbed) {
        causes if causes.is_empty() => causes,
        causes => format!(" ({causes})"),
    };
    let mut text = format!(
        "{} for each pair of ways, {pairs_kept} of {pairs} pairs undisturbed{causes}, seed {seed}, on {machine}",
        counted(*processes, "process", "processes")
    );
    if !measurement.is_of_profile {
        text += " (the profile is of another machine)";
    }
    if measurement.states > 1 {
        text += &format!("; the machine was in {} states", measurement.states);
    }
    if measurement.services_count
        && let Some(busy) = measurement.others_busy
    {
        text += &format!(
            "; services of the system, which kept {busy:.2} processors busy, disturbed most pairs of \
             some ways: all pairs of these count"
        );
    }
    let mut blocks = vec![Block::line("measured", text)];
    if let Some(Range { value, low, high }) = measurement.against_itself {
        let floor = percent_of(measurement.noise_floor);
        let itself = ratio(value, low, high);
        blocks.push(Block::line(
            "",
            format!("unfused against a copy: {itself}; noise floor {floor}"),
        ));
    }
    let results = match measurement.results_apart {
        0.0 => "results that are the same in all ways, bit for bit".to_owned(),
        apart => {
            format!("results that differ by {apart:.0e} of their size at most between the ways")
        }
    };
    let kernels = counted(measurement.proved, "problem", "problems");
    blocks.push(Block::line("proved", format!("the kernels of {kernels}, and {results}")));
    blocks
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn percent_of(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", 100.0 * share) } else { percent(share) }
}
