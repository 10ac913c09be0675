//! The verdicts at a glance, and what to decide by them.

use fusion_cost_model::calibration::{FusionRecord, Verdict};
use fusion_cost_model::compare::{Choice, Figure};
use maud::{Markup, html};

use super::Part;

/// The verdicts of chains, in the order in which they stand.
pub(super) const VERDICTS: [Verdict; 5] =
    [Verdict::Faster, Verdict::Same, Verdict::Ambiguous, Verdict::Slower, Verdict::Invalid];

fn count(part: &Part<'_>, verdict: Verdict) -> usize {
    part.chains().iter().filter(|record| record.verdict == verdict).count()
}

fn class(verdict: Verdict) -> String {
    verdict.name().to_lowercase()
}

/// `Of 90 chains, fusion makes 52 FASTER and 12 SLOWER`.
pub(super) fn sentence(part: &Part<'_>, threshold: f64) -> String {
    let chains = part.chains().len();
    if chains == 0 {
        return "Only single ops were measured, which have nothing to fuse".to_owned();
    }
    let valid = chains - count(part, Verdict::Invalid);
    let fused = part.valid().filter(|record| choice(record, threshold) == Choice::Fuse).count();
    format!(
        "Fusion makes {} of {chains} chains faster and {} slower; {fused} of {valid} are to be fused \
         at a threshold of {threshold}",
        count(part, Verdict::Faster),
        count(part, Verdict::Slower),
    )
}

/// What a record decides by itself.
pub(super) fn choice(record: &FusionRecord, threshold: f64) -> Choice {
    Choice::of(&figure(record), threshold)
}

/// The speedup of a record.
pub(super) fn figure(record: &FusionRecord) -> Figure {
    let FusionRecord { speedup_factor, speedup_low, speedup_high, .. } = *record;
    Figure { value: speedup_factor, interval: Some([speedup_low, speedup_high]) }
}

pub(super) fn strip(part: &Part<'_>, threshold: f64) -> Markup {
    let counts: Vec<(Verdict, usize)> = VERDICTS
        .into_iter()
        .map(|verdict| (verdict, count(part, verdict)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let choices = [Choice::Fuse, Choice::Keep, Choice::TooClose].map(|wanted| {
        (wanted, part.valid().filter(|record| choice(record, threshold) == wanted).count())
    });
    html! {
        @if part.chains().is_empty() {
            p { "Only single ops were measured, which have nothing to fuse." }
        } @else {
            div.strip role="list" aria-label="Verdicts" {
                @for (verdict, count) in &counts {
                    div.verdict-of.(class(*verdict)) role="listitem" style={ "flex-grow:" (count) } {
                        b { (count) } " " (verdict)
                    }
                }
            }
            p.decisions {
                "At a threshold of " (threshold) ": "
                @for (index, (choice, count)) in choices.iter().enumerate() {
                    @if index > 0 { ", " }
                    (choice) " " b { (count) }
                }
                ". A chain is fused if its whole interval is at or above the threshold."
            }
        }
    }
}
