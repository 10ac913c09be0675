//! A page that lists calibrations, a row for each target of each file, so that many machines can be
//! compared at a glance.

use std::collections::BTreeSet;

use cli_support::page;
use cli_support::units::three_digits;
use fusion_cost_model::Family;
use fusion_cost_model::calibration::FusionRecord;
use fusion_cost_model::compare::{Choice, Side, SideCeilings};
use fusion_cost_model::imported::ImportedProfile;
use maud::{Markup, html};

use super::part::Part;
use super::{heat, strip};

/// What only the pages of calibrations have.
const STYLE: &str = include_str!("report.css");

/// What only this page has.
const OWN_STYLE: &str = include_str!("index.css");

/// A target of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRow {
    machine: String,
    target: String,
    ceilings: Option<SideCeilings>,
    /// Of chains; `None` of an imported profile, which has none.
    verdicts: Option<[usize; strip::VERDICTS.len()]>,
    /// Chains, but for invalid ones, that would be fused.
    fuse: Option<usize>,
    chains: usize,
    /// The geometric mean of the speedups of each family that has chains.
    families: [Option<f64>; Family::ALL.len()],
    program: String,
    /// When the run began; the day of it is shown.
    began: String,
    file: String,
    /// Where the file is, as seen from the page.
    link: Option<String>,
}

impl IndexRow {
    /// A target of a calibration, decided at a threshold.
    #[must_use]
    pub fn of(part: &Part<'_>, threshold: f64) -> Self {
        let calibration = part.calibration();
        let count = |verdict| part.chains().iter().filter(|one| one.verdict == verdict).count();
        // A rewrite gains by other means than fusion.
        let fused = || part.valid().filter(|record| record.rewrite.is_none());
        let family = |record: &FusionRecord| Family::of(record.problem.chain().form());
        let mut program = format!("{} {}", calibration.tool.name, calibration.tool.version);
        for (is_so, word) in
            [(calibration.settings.quick, ", quick"), (calibration.settings.forced, ", forced")]
        {
            program += if is_so { word } else { "" };
        }
        Self {
            machine: part.facts().machine.clone(),
            target: part.target().to_string(),
            ceilings: part.facts().ceilings,
            verdicts: Some(strip::VERDICTS.map(count)),
            fuse: Some(
                part.valid().filter(|one| strip::choice(one, threshold) == Choice::Fuse).count(),
            ),
            chains: part.chains().len(),
            families: Family::ALL.map(|wanted| {
                let of_family = fused().filter(|record| family(record) == wanted);
                geometric_mean(of_family.map(|record| record.speedup_factor))
            }),
            program,
            began: calibration.tool.started_at.clone(),
            file: part.facts().file.clone(),
            link: None,
        }
    }

    /// An imported profile, which is a side of comparisons too.
    #[must_use]
    pub fn of_imported(side: &Side, profile: &ImportedProfile) -> Self {
        let facts = side.facts();
        let families = Family::ALL.map(|wanted| {
            let family = |form| Family::of(form) == wanted;
            let of_family = profile.records.iter().filter(|one| family(one.problem.chain().form()));
            geometric_mean(of_family.map(|record| record.speedup_factor))
        });
        Self {
            machine: facts.machine.clone(),
            target: facts.target.to_string(),
            ceilings: facts.ceilings,
            verdicts: None,
            fuse: None,
            chains: profile.records.len(),
            families,
            program: format!("{}, imported", profile.source.framework),
            began: profile.source.measured_at.clone(),
            file: facts.file.clone(),
            link: None,
        }
    }

    /// The same row with a link to its file.
    #[must_use]
    pub fn linked(self, link: Option<String>) -> Self {
        Self { link, ..self }
    }

    fn html(&self) -> Markup {
        let rate = |rate: Option<f64>| rate.map(three_digits).unwrap_or_default();
        let ceilings = self.ceilings;
        html! {
            tr {
                th scope="row" {
                    b { (self.machine) }
                    div { code { (self.target) } }
                    div.file {
                        @match &self.link {
                            Some(link) => { a href=(link) { (self.file) } }
                            None => { (self.file) }
                        }
                    }
                }
                @for (family, mean) in Family::ALL.iter().zip(self.families) {
                    @match mean {
                        Some(mean) => {
                            td.number.mean.(heat::class(mean)) title=(family) { (format!("{mean:.3}")) }
                        }
                        None => { td {} }
                    }
                }
                td.number { (self.chains) }
                @match self.verdicts {
                    Some(verdicts) => {
                        @for (verdict, count) in strip::VERDICTS.iter().zip(verdicts) {
                            td.number title=(verdict) { (count) }
                        }
                    }
                    None => { td.none colspan=(strip::VERDICTS.len()) { "no intervals, no verdicts" } }
                }
                td.number { @if let Some(fuse) = self.fuse { (fuse) } }
                td.number { (rate(ceilings.map(|one| one.peak_gflops))) }
                td.number { (rate(ceilings.and_then(|one| one.in_memory_gb_per_s))) }
                td.number { (rate(ceilings.and_then(|one| one.launch_us))) }
                td.word {
                    (self.program)
                    div {
                        time datetime=(self.began) {
                            (self.began.get(..10).unwrap_or(&self.began))
                        }
                    }
                }
            }
        }
    }
}

/// A page with a row for each target of each file.
#[derive(Debug, Clone)]
pub struct IndexPage {
    /// The rows.
    pub rows: Vec<IndexRow>,
    /// How many machines they are of. Two may have the same name.
    pub machines: usize,
    /// The speedup from which fusing is worth it.
    pub threshold: f64,
}

impl IndexPage {
    /// The page: machines by name, and the latest run of each first.
    #[must_use]
    pub fn html(mut self) -> String {
        self.rows.sort_by(|a, b| {
            let key = |row: &IndexRow| (row.machine.to_lowercase(), row.target.clone());
            key(a).cmp(&key(b)).then_with(|| b.began.cmp(&a.began))
        });
        let count =
            |all: usize, one: &str| format!("{all} {one}{}", if all == 1 { "" } else { "s" });
        let files: BTreeSet<&str> = self.rows.iter().map(|row| &*row.file).collect();
        let title =
            format!("{} of {}", count(files.len(), "calibration"), count(self.machines, "machine"));
        let body = html! {
            header {
                h1 { "What fusion gains, by machine" }
                p.verdict { (title) }
            }
            main {
                section #calibrations {
                    h2 { "Calibrations" }
                    (page::scrolling("Calibrations", &self.table()))
                    ul.legend.heat-key { (heat::scale()) }
                }
                (self.reading())
            }
        };
        page::page(&title, &[STYLE, OWN_STYLE].concat(), &body)
    }

    fn table(&self) -> Markup {
        html! {
            table.index {
                thead {
                    tr {
                        th rowspan="2" scope="col" { "Machine, target and file" }
                        th colspan=(Family::ALL.len()) scope="colgroup" { "Mean speedup" }
                        th colspan=(strip::VERDICTS.len() + 2) scope="colgroup" { "Chains" }
                        th colspan="3" scope="colgroup" { "Measured ceilings" }
                        th rowspan="2" scope="col" { "Program and day" }
                    }
                    tr {
                        @for family in Family::ALL { th.number scope="col" { (family) } }
                        th.number scope="col" { "all" }
                        @for verdict in strip::VERDICTS {
                            th.number scope="col" { (verdict.name().to_lowercase()) }
                        }
                        th.number scope="col" { "to fuse" }
                        th.number scope="col" { "GFLOP/s" }
                        th.number scope="col" { "GB/s" }
                        th.number scope="col" { "us" }
                    }
                }
                tbody { @for row in &self.rows { (row.html()) } }
            }
        }
    }

    fn reading(&self) -> Markup {
        let threshold = self.threshold;
        html! {
            section #reading {
                h2 { "How to read this" }
                ul {
                    li {
                        "A row is a target of a file: what its records have in common. Machines are \
                         in the order of their names, the latest run of each first."
                    }
                    li {
                        "Ceilings are measured: the peak rate, the bandwidth in memory, and the time \
                         of an empty launch."
                    }
                    li {
                        "Chains to fuse have their whole 95 % interval at or above a speedup of "
                        (threshold) "."
                    }
                    li {
                        "Means are geometric, of chains with a valid record, without rewrites. Files \
                         differ in their problems, so do not compare the means of two rows: "
                        code { "calibrate compare" }
                        " joins the problems that both files have, and judges each."
                    }
                }
            }
        }
    }
}

/// `None` without values.
fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) =
        values.fold((0.0, 0.0), |(sum, count), value| (sum + value.ln(), count + 1.0));
    (count > 0.0).then(|| f64::exp(sum / count))
}
