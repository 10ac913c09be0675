//! One side of a comparison: its kernels, their device, and what they add to its time.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::attribution::Attribution;
use super::linears::Linears;
use crate::classify::{AttnPhase, Class};
use crate::launched::{NONE, launches, operators};
use crate::segment::{Pass, Phase};
use crate::{Classes, Segments, Trace, at_once};

/// One of the two traces that are compared.
#[derive(Debug, Clone, Copy)]
pub struct Side<'t> {
    /// The trace.
    pub trace: &'t Trace,
    /// The classes of its kernels.
    pub classes: &'t Classes,
    /// Its steps and layers.
    pub segments: &'t Segments,
    /// What to call the file.
    pub name: &'t str,
}

/// What of two traces is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompareOptions {
    /// Only the kernels of this phase.
    pub phase: Option<Phase>,
    /// Only the kernels of this layer of the model.
    pub layer: Option<u32>,
}

/// A side with what is compared of it.
pub(super) struct Chosen<'t> {
    pub(super) side: Side<'t>,
    /// The device that is compared: that with the longest durations.
    pub(super) device: i64,
    /// How many devices ran something.
    pub(super) devices: usize,
    /// The kernels that are compared, in the order of the trace.
    pub(super) rows: Vec<u32>,
    pub(super) attribution: Attribution,
    /// The phase of each layer, in the order of the trace's list: that of its first kernel.
    layer_phases: Vec<Option<Phase>>,
    /// Whether all kernels of the device are compared.
    pub(super) is_whole: bool,
    operators: OnceLock<Vec<u32>>,
    linears: OnceLock<Linears>,
}

impl<'t> Chosen<'t> {
    pub(super) fn of(side: Side<'t>, options: &CompareOptions) -> Self {
        let Side { trace, classes, segments, .. } = side;
        let (device, devices) = busiest_device(trace);
        let on_device: Vec<bool> = trace.lanes.iter().map(|lane| lane.device == device).collect();
        let lanes = trace.kernels.lane.iter();
        let is_here = |lane: &u32| on_device.get(*lane as usize).copied().unwrap_or_default();
        let all: Vec<u32> =
            (0_u32..).zip(lanes).filter(|(_, lane)| is_here(lane)).map(|(row, _)| row).collect();
        let attribution = Attribution::of(trace, classes, &all);
        let layers = &segments.layers;
        let layer_phases = layers
            .list
            .iter()
            .map(|layer| segments.steps.phase(*layers.kernels(layer).first()? as usize))
            .collect();
        let is_whole = *options == CompareOptions::default();
        let mut chosen = Self {
            side,
            device,
            devices,
            rows: all,
            attribution,
            layer_phases,
            is_whole,
            operators: OnceLock::new(),
            linears: OnceLock::new(),
        };
        if !is_whole {
            let rows = std::mem::take(&mut chosen.rows);
            chosen.rows = rows.into_iter().filter(|row| chosen.fits(*row, options)).collect();
        }
        chosen
    }

    /// For each kernel of the trace the row of the operator that launched it, or [`NONE`].
    pub(super) fn operators(&self) -> &[u32] {
        let trace = self.side.trace;
        self.operators.get_or_init(|| operators(trace, &launches(trace)))
    }

    /// The row of the operator that launched a kernel.
    pub(super) fn operator(&self, kernel: usize) -> Option<usize> {
        let row = self.operators().get(kernel).copied().filter(|row| *row != NONE);
        row.map(|row| row as usize)
    }

    /// Whether an operator, by its row, was called by `aten::linear`.
    pub(super) fn is_in_linear(&self, operator: usize) -> bool {
        let ops = &self.side.trace.ops;
        let linears = self.linears.get_or_init(|| Linears::of(self.side.trace));
        let moment = ops.thread.get(operator).zip(ops.start_ns.get(operator));
        moment.is_some_and(|(thread, start_ns)| linears.contain(*thread, *start_ns))
    }

    /// Of each kernel of the trace whether it is compared.
    pub(super) fn is_compared(&self) -> Vec<bool> {
        let mut is_compared = vec![false; self.side.trace.kernels.len()];
        for row in &self.rows {
            if let Some(place) = is_compared.get_mut(*row as usize) {
                *place = true;
            }
        }
        is_compared
    }

    fn fits(&self, row: u32, options: &CompareOptions) -> bool {
        let layers = &self.side.segments.layers;
        let number = || {
            let layer = layers.list.get(layers.layer(row as usize)?)?;
            Some(layer.number)
        };
        options.phase.is_none_or(|phase| self.phase(row as usize) == Some(phase))
            && options.layer.is_none_or(|layer| number() == Some(layer))
    }

    /// The phase of a kernel; by marks, all kernels of a layer have that of their layer.
    pub(super) fn phase(&self, kernel: usize) -> Option<Phase> {
        let Segments { steps, layers, .. } = self.side.segments;
        match layers.layer(kernel) {
            Some(layer) if !steps.are_derived() => self.layer_phase(layer),
            _ => steps.phase(kernel),
        }
    }

    /// The phase of a layer, by its place in the list.
    pub(super) fn layer_phase(&self, layer: usize) -> Option<Phase> {
        self.layer_phases.get(layer).copied().flatten()
    }

    /// Whether the phase of each pass is known: by the marks, or else of all layers.
    pub(super) fn knows_all_phases(&self) -> bool {
        let is_known = |(layer, _)| self.layer_phase(layer).is_some();
        !self.side.segments.steps.are_derived() || self.layers().all(is_known)
    }

    /// Whether its kernels show a cache of keys and values: they write it, or decode from it.
    pub(super) fn has_cache(&self) -> bool {
        self.rows.iter().any(|row| {
            let class = self.side.classes.get(*row as usize);
            class.parts().contains(Class::KvCache) || class.phase == AttnPhase::Decode
        })
    }

    /// Whether passes through all layers choose other kernels for GEMMs and attention, and take
    /// times that differ by much: they have other sizes, as those of prompts and single tokens do.
    pub(super) fn has_unlike_passes(&self) -> bool {
        const MUCH: u64 = 2;
        let layers = &self.side.segments.layers;
        let kernels = &self.side.trace.kernels;
        let is_chosen_by_size = |row: &usize| {
            matches!(self.side.classes.get(*row).main, Class::Gemm | Class::MoeGemm | Class::Attn)
        };
        let whole = layers.passes.iter().filter(|pass| {
            pass.device == self.device
                && !pass.is_backward
                && pass.layers.len() == layers.count as usize
        });
        let look = |pass: &Pass| {
            let of_pass = layers.list.get(pass.layers.clone()).unwrap_or_default();
            let total_ns = of_pass.iter().map(|layer| layer.total_ns).fold(0, u64::saturating_add);
            let rows = of_pass.iter().flat_map(|layer| layers.kernels(layer));
            let chosen = rows.map(|row| *row as usize).filter(is_chosen_by_size);
            let mut names: Vec<_> = chosen.filter_map(|row| kernels.name.get(row)).collect();
            names.sort_unstable();
            names.dedup();
            (total_ns, names)
        };
        let looks: Vec<_> = whole.map(look).collect();
        let Some((least_ns, names)) = looks.iter().min() else { return false };
        let is_other = |(total_ns, others): &(u64, Vec<_>)| {
            *total_ns >= least_ns.saturating_mul(MUCH) && others != names
        };
        looks.iter().any(is_other)
    }

    /// The places in the list of the layers of the device, backward ones too.
    pub(super) fn layers(&self) -> impl Iterator<Item = (usize, bool)> {
        let layers = &self.side.segments.layers;
        let here = layers.passes.iter().filter(|pass| pass.device == self.device);
        here.flat_map(|pass| pass.layers.clone().map(|layer| (layer, pass.is_backward)))
    }
}

/// Does something for both sides at once.
pub(super) fn on_both<T: Send>(of_side: &(impl Fn(usize) -> T + Sync)) -> [T; 2] {
    at_once(|| of_side(0), || of_side(1)).into()
}

/// The device whose kernels take longest together, of equals the one with the lowest number; and
/// how many devices ran something.
fn busiest_device(trace: &Trace) -> (i64, usize) {
    let mut totals: FxHashMap<i64, u64> = FxHashMap::default();
    let mut by_lane = vec![0_u64; trace.lanes.len()];
    let mut is_used = vec![false; trace.lanes.len()];
    for (&lane, &duration) in trace.kernels.lane.iter().zip(trace.kernels.duration_ns.iter()) {
        let lane = lane as usize;
        if let (Some(total), Some(used)) = (by_lane.get_mut(lane), is_used.get_mut(lane)) {
            *total = total.saturating_add(duration);
            *used = true;
        }
    }
    for ((lane, total), _) in trace.lanes.iter().zip(by_lane).zip(is_used).filter(|(_, used)| *used)
    {
        let sum = totals.entry(lane.device).or_default();
        *sum = sum.saturating_add(total);
    }
    let busiest =
        totals.iter().max_by_key(|(device, total)| (**total, std::cmp::Reverse(**device)));
    (busiest.map_or(-1, |(device, _)| *device), totals.len())
}
