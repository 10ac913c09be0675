//! The description of each side.

use super::basis::Steps;
use super::kinds::Kinds;
use super::ledger::Ledger;
use super::places::places;
use super::result::SideSummary;
use super::side::Chosen;
use super::tally::{Both, Tally};
use crate::Vendor;
use crate::classify::Class;
use crate::ratio::ratio;

/// The name of the device that is compared; empty if the trace has none.
pub(super) fn gpu(side: &Chosen<'_>) -> String {
    let devices = &side.side.trace.metadata.devices;
    let own = devices.iter().find(|device| device.id == side.device);
    own.or(devices.first()).map(|device| device.name.clone()).unwrap_or_default()
}

/// A short name for each side: the device's model, or else its maker; if both have the same, what
/// tells their files apart.
pub(super) fn labels(sides: &[Chosen<'_>; 2]) -> [String; 2] {
    let label = |side: &Chosen<'_>| {
        let gpu = gpu(side);
        let maker = |word: &&str| {
            let makers = ["amd", "nvidia", "instinct", "tesla", "geforce", "radeon", "graphics"];
            !makers.contains(&word.to_ascii_lowercase().as_str())
        };
        let words: Vec<&str> = gpu.split([' ', '-', '_']).filter(maker).collect();
        match (words.first(), side.side.trace.vendor()) {
            (Some(model), _) if model.chars().any(|c| c.is_ascii_digit()) => (*model).to_owned(),
            (Some(_), _) => gpu.clone(),
            (None, Vendor::Unknown) => String::new(),
            (None, vendor) => vendor.name().to_owned(),
        }
    };
    let labels = sides.each_ref().map(label);
    if labels[0] == labels[1] || labels.iter().any(String::is_empty) {
        super::files::labels(sides.each_ref().map(|side| side.side.name))
    } else {
        labels
    }
}

/// Sums up a side.
pub(super) fn summary(
    index: usize,
    side: &Chosen<'_>,
    label: &str,
    steps: &Steps,
    kinds: &Kinds,
    ledger: &Ledger,
) -> SideSummary {
    let mut all = Tally::default();
    ledger.phases[index].iter().for_each(|tally| all.merge(tally));
    let unclassified =
        ledger.works.iter().filter(|((work, _), _)| work.main == Class::Unclassified);
    let unclassified_ns =
        unclassified.map(|(_, both)| both.0[index].total_ns).fold(0, u64::saturating_add);
    let [covered_ns, by_class_ns] = covered(index, kinds, ledger);
    let segments = side.side.segments;
    SideSummary {
        label: label.to_owned(),
        name: side.side.name.to_owned(),
        vendor: side.side.trace.vendor().name(),
        gpu: gpu(side),
        device: side.device,
        kernels: all.count,
        total_ns: all.total_ns,
        span_ns: all.own_ns.saturating_add(all.wait_ns),
        busy_ns: all.own_ns,
        idle_ns: all.wait_ns,
        marked_steps: segments.steps.list.len() as u64,
        steps: steps.counts[index],
        layers: segments.layers.count,
        marker: segments.layers.marker,
        family: segments.family.name(),
        covered_share: ratio(covered_ns, all.own_ns),
        by_class_share: ratio(by_class_ns, all.own_ns),
        unclassified_share: ratio(unclassified_ns, all.total_ns),
    }
}

/// The time that is in places of layers of both sides or is named as of one side, and the time
/// that is compared by class.
fn covered(index: usize, kinds: &Kinds, ledger: &Ledger) -> [u64; 2] {
    let (mut covered, mut by_class) = (0, 0);
    for (kind, slots) in kinds.list.iter().zip(&ledger.slots) {
        for place in places(kind, slots) {
            let is_known = place.works[index].is_some_and(|work| work.main != Class::Unclassified);
            if place.is_paired() || is_known {
                covered += place.sums.both.0[index].own_ns;
            }
        }
    }
    for (key, both) in &ledger.outside {
        let is_known = key.work.main != Class::Unclassified && !key.is_outside_steps;
        let Both(tallies) = both;
        match tallies[1 - index].count {
            0 if is_known => covered += tallies[index].own_ns,
            _ if is_known => by_class += tallies[index].own_ns,
            _ => {}
        }
    }
    [covered, by_class]
}
