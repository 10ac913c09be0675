//! The two products of attention: queries times keys, and probabilities times values.

use pulp::Arch;

use super::few_queries::FewQueries;
use super::rooms::convert;
use super::{AttentionKernel, Scores, Shape};
use crate::cpu::element::Uniform;
use crate::cpu::epilogue::Epilogue;
use crate::cpu::strip::{Factors, Source, Strip};

/// Where a product with values goes, and how large it is.
pub(super) struct Product {
    pub(super) target: *mut f32,
    pub(super) target_stride: usize,
    pub(super) rows: usize,
    /// Keys that are of use.
    pub(super) used: usize,
}

impl<E: Uniform> AttentionKernel<E> {
    /// Computes rows of scores against the first `used` keys, if they are not given. Those of the panel
    /// are `stride` numbers apart.
    ///
    /// # Safety
    ///
    /// The panel must be valid for the rows and belong to this thread, and the room hold the keys.
    pub(super) unsafe fn scores(
        &self,
        arch: Arch,
        thread: usize,
        [of_keys, held, first_row]: [usize; 3],
        [rows, used]: [usize; 2],
        (panel, stride): (*mut f32, usize),
    ) {
        let Scores::Gemm { queries, keys: located, scale } = &self.scores else { return };
        let Shape { keys, d, .. } = self.shape;
        let room = self.rooms[thread];
        // SAFETY: the caller's guarantee.
        let scale = unsafe { scale.number() };
        let queries = queries.at(first_row * d);
        if self.multiplies_pairs() {
            let held = room.packed_keys.at(held * self.packed_keys_numbers()).cast_const();
            let cut = self.cut_of_stored;
            for col in (0..used).step_by(cut.width) {
                let strip = Strip {
                    rows,
                    k: d,
                    cols: cut.cols(used, col),
                    source: Source::rows(queries.cast_const(), d),
                    panel: held.wrapping_add(col * d),
                    panel_stride: cut.packed_cols(keys, col),
                    target: panel.wrapping_add(col),
                    target_stride: stride,
                    factors: Factors::all(&raw const scale),
                    epilogue: Epilogue::NONE,
                    depth: cut.depth,
                };
                // SAFETY: the caller's guarantee.
                unsafe { E::compute(strip, arch, cut) };
            }
            return;
        }
        let source = E::as_f32(queries).unwrap_or_else(|| {
            let widened = room.queries.at(0);
            // SAFETY: the caller's guarantee; the room holds the queries of a block.
            unsafe { convert(arch, queries.cast_const(), widened, rows * d) };
            widened
        });
        let source = source.cast_const();
        if !self.packs_keys() {
            let few = FewQueries {
                queries: source,
                rows,
                keys: located.at(of_keys * keys * d).cast_const(),
                used,
                d,
                scale,
                target: panel,
                target_stride: stride,
            };
            // SAFETY: the caller's guarantee.
            unsafe { few.compute(arch) };
            return;
        }
        let held = room.keys.at(held * self.keys_numbers()).cast_const();
        for col in (0..used).step_by(self.cut.width) {
            let strip = Strip {
                rows,
                k: d,
                cols: self.cut.cols(used, col),
                source: Source::rows(source, d),
                panel: held.wrapping_add(col * d),
                panel_stride: self.cut.packed_cols(keys, col),
                target: panel.wrapping_add(col),
                target_stride: stride,
                factors: Factors::all(&raw const scale),
                epilogue: Epilogue::NONE,
                depth: self.cut.depth,
            };
            // SAFETY: as above.
            unsafe { strip.compute(arch) };
        }
    }

    /// Multiplies rows of probabilities, `stride` numbers apart, with the values of a head, and with what
    /// the softmax has left for each row.
    ///
    /// # Safety
    ///
    /// The panel must be valid, the target too and belong to this thread, and the room hold the values.
    pub(super) unsafe fn times_values(
        &self,
        arch: Arch,
        thread: usize,
        [of_keys, held]: [usize; 2],
        (panel, stride): (*const f32, usize),
        shares: Option<*mut f32>,
        product: &Product,
    ) {
        let Product { target, target_stride, rows, used } = *product;
        let (d, cut) = (self.shape.d, self.cut);
        let Some(values) = self.values_of(thread, of_keys, held) else { return };
        for col in (0..d).step_by(cut.width) {
            let strip = Strip {
                rows,
                k: used,
                cols: cut.cols(d, col),
                source: Source::rows(panel, stride),
                panel: values.wrapping_add(col),
                panel_stride: d,
                target: target.wrapping_add(col),
                target_stride,
                factors: shares.map_or(Factors::one(), |one| Factors::each(one)),
                epilogue: Epilogue::NONE,
                depth: cut.depth,
            };
            // SAFETY: the caller's guarantee.
            unsafe { strip.compute(arch) };
        }
    }

    /// The same with probabilities and values as they are stored: packed in pairs, or where they lie.
    ///
    /// # Safety
    ///
    /// As for [`Self::times_values`].
    pub(super) unsafe fn times_stored_values(
        &self,
        arch: Arch,
        thread: usize,
        [of_keys, held]: [usize; 2],
        (probabilities, stride): (*mut E, usize),
        product: &Product,
    ) {
        let Some(located) = self.values else { return };
        let Product { target, target_stride, rows, used } = *product;
        let Shape { keys, d, .. } = self.shape;
        let packed = self.multiplies_pairs().then(|| self.panels_of_values());
        let (values, cut) = match &packed {
            Some(panels) => {
                (self.rooms[thread].packed_values.at(held * panels.numbers()), panels.cut)
            }
            None => (located.at(of_keys * keys * d), self.cut_of_stored.one_by_one()),
        };
        for col in (0..d).step_by(cut.width) {
            let (place, panel_stride) = packed.map_or((col, d), |panels| panels.place(col));
            let strip = Strip {
                rows,
                k: used,
                cols: cut.cols(d, col),
                source: Source::rows(probabilities.cast_const(), stride),
                panel: values.wrapping_add(place).cast_const(),
                panel_stride,
                target: target.wrapping_add(col),
                target_stride,
                factors: Factors::one(),
                epilogue: Epilogue::NONE,
                depth: cut.depth,
            };
            // SAFETY: the caller's guarantee.
            unsafe { E::compute(strip, arch, cut) };
        }
    }
}
