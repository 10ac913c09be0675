//! A part of the page: what was measured on one target, from one file.

use fusion_cost_model::Family;
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::compare::{Side, SideFacts, SideTarget, TargetParts};
use maud::{Markup, html};

use crate::report::figures::{self, Arrow, Roofline, problem_name};

/// What was measured on one target, from one file.
#[derive(Debug, Clone)]
pub struct Part<'c> {
    facts: SideFacts,
    calibration: &'c HardwareCalibration,
    target: SideTarget,
    /// How many targets of the file the page has.
    targets: usize,
    records: Vec<&'c FusionRecord>,
    chains: Vec<&'c FusionRecord>,
}

impl<'c> Part<'c> {
    /// A part for each target of files, as far as a target has what is asked for.
    #[must_use]
    pub fn all_of(files: &'c [(String, HardwareCalibration)], asked: TargetParts) -> Vec<Self> {
        let mut parts = Vec::new();
        for (name, calibration) in files {
            let all = SideTarget::all_of(calibration).into_iter().map(|(target, _)| target);
            let targets: Vec<SideTarget> = all.filter(|target| asked.are_of(target)).collect();
            for target in &targets {
                let label = ('A'..='Z').nth(parts.len());
                let label = label.map_or_else(|| (parts.len() + 1).to_string(), String::from);
                let side = Side::of(label, name.clone(), calibration, *target);
                let of_target = |record: &&FusionRecord| SideTarget::of(record) == *target;
                let records: Vec<_> = calibration.records.iter().filter(of_target).collect();
                let chains = records.iter().copied().filter(|one| !one.problem.chain().is_single());
                parts.push(Self {
                    facts: side.facts().clone(),
                    calibration,
                    target: *target,
                    targets: targets.len(),
                    chains: chains.collect(),
                    records,
                });
            }
        }
        parts
    }

    /// The letter it is called by.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.facts.label
    }

    /// The machine and the target.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}, {}", self.facts.machine, self.target)
    }

    /// The facts about the file and the target.
    #[must_use]
    pub const fn facts(&self) -> &SideFacts {
        &self.facts
    }

    pub(super) const fn calibration(&self) -> &'c HardwareCalibration {
        self.calibration
    }

    /// What its records have in common.
    #[must_use]
    pub const fn target(&self) -> SideTarget {
        self.target
    }

    /// Whether the file has other targets that are on the page too.
    pub(super) const fn has_others(&self) -> bool {
        self.targets > 1
    }

    /// All of its records.
    pub(super) fn records(&self) -> &[&'c FusionRecord] {
        &self.records
    }

    /// Its records, but for those of single ops, which have nothing to fuse.
    #[must_use]
    pub fn chains(&self) -> &[&'c FusionRecord] {
        &self.chains
    }

    /// Those of them that may be used.
    pub(super) fn valid(&self) -> impl Iterator<Item = &'c FusionRecord> {
        self.chains.iter().copied().filter(|record| record.verdict != Verdict::Invalid)
    }

    /// A name of something of this part that no other part has.
    #[must_use]
    pub fn id(&self, of: &str) -> String {
        format!("{of}-{}", self.label().to_lowercase())
    }

    /// The roofline, where ceilings were measured.
    #[must_use]
    pub fn roofline(&self) -> Option<Roofline> {
        let ceilings = self.facts.ceilings?;
        let arrow = |record: &FusionRecord| Arrow {
            name: problem_name(&heading(record), &name(record)),
            kind: kind(record),
            unfused: [record.arithmetic_intensity_unfused, record.unfused_gflops],
            fused: [record.arithmetic_intensity_fused, record.fused_gflops],
        };
        let bandwidths =
            [("in cache", ceilings.in_cache_gb_per_s), ("in memory", ceilings.in_memory_gb_per_s)];
        let rate = |(name, rate): (&'static str, Option<f64>)| Some((name, rate?));
        Some(Roofline {
            title: format!("Roofline of {}", self.name()),
            id: self.id("roofline"),
            peak_gflops: ceilings.peak_gflops,
            bandwidths: bandwidths.into_iter().filter_map(rate).collect(),
            arrows: self.valid().map(arrow).collect(),
        })
    }

    pub(super) fn roofline_legend(&self, roofline: &Roofline) -> Markup {
        let has = |family: usize| self.valid().any(|record| kind(record) == family);
        html! {
            p {
                "Each chain goes from its unfused variant, a dot, to its fused one: to the right by \
                 the bytes that fusion saves, and up by the time. Lines are the measured ceilings."
                @if roofline.left_out() > 0 {
                    " " (roofline.left_out()) " without flops are not drawn."
                }
            }
            ul.legend {
                @for (index, family) in Family::ALL.iter().enumerate().filter(|(index, _)| has(*index)) {
                    li { (figures::sample(index)) " " (family) }
                }
            }
        }
    }
}

/// The place of a record's family among all.
fn kind(record: &FusionRecord) -> usize {
    let family = Family::of(record.problem.chain().form());
    Family::ALL.iter().position(|one| *one == family).unwrap_or(0)
}

/// The chain, its dtype and what became of its ops.
pub(super) fn heading(record: &FusionRecord) -> String {
    let problem = record.problem.to_string();
    let heading = problem.rsplit_once('/').map_or("", |(heading, _)| heading);
    let rewrite = record.rewrite.map(|rewrite| format!(", {rewrite}")).unwrap_or_default();
    format!("{heading}{rewrite}")
}

/// The sizes and the state of the caches.
pub(super) fn name(record: &FusionRecord) -> String {
    let problem = record.problem.to_string();
    let sizes = problem.rsplit_once('/').map_or(&problem[..], |(_, sizes)| sizes);
    format!("{sizes}{}", record.cache_state.mark())
}
