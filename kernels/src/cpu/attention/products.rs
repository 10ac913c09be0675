//! The two products of attention: queries times keys, and probabilities times values.

use pulp::Arch;

use super::few_queries::FewQueries;
use super::rooms::convert;
use super::{AttentionKernel, Scores, Shape};
use crate::cpu::element::Uniform;
use crate::cpu::epilogue::Epilogue;
use crate::cpu::factors::Factors;
use crate::cpu::strip::{Cut, Source, Strip};

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
            let strip = Strip {
                factors: Factors::all(&raw const scale),
                ..whole([rows, d], Source::rows(queries.cast_const(), d), held, (panel, stride))
            };
            // SAFETY: the caller's guarantee.
            unsafe {
                times_panels(arch, cut, used, |col| (col * d, cut.packed_cols(keys, col)), strip)
            };
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
        let cut = self.cut;
        let strip = Strip {
            factors: Factors::all(&raw const scale),
            ..whole([rows, d], Source::rows(source, d), held, (panel, stride))
        };
        // SAFETY: as above.
        unsafe {
            times_panels(arch, cut, used, |col| (col * d, cut.packed_cols(keys, col)), strip)
        };
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
        let strip = Strip {
            factors: shares.map_or(Factors::one(), |one| Factors::each(one)),
            is_padded: false,
            ..whole([rows, used], Source::rows(panel, stride), values, (target, target_stride))
        };
        // SAFETY: the caller's guarantee.
        unsafe { times_panels(arch, cut, d, |col| (col, d), strip) };
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
        let place = |col| packed.map_or((col, d), |panels| panels.place(col));
        let source = Source::rows(probabilities.cast_const(), stride);
        let strip = Strip {
            is_padded: packed.is_some(),
            ..whole([rows, used], source, values.cast_const(), (target, target_stride))
        };
        // SAFETY: the caller's guarantee.
        unsafe { times_panels(arch, cut, d, place, strip) };
    }
}

/// Some rows times the panels of a matrix. [`times_panels`] takes one panel after the other.
fn whole<L: Uniform>(
    [rows, k]: [usize; 2],
    source: Source<L>,
    panel: *const L,
    (target, target_stride): (*mut f32, usize),
) -> Strip<L> {
    Strip {
        rows,
        k,
        cols: 0,
        source,
        panel,
        panel_stride: 0,
        is_padded: true,
        target,
        target_stride,
        factors: Factors::one(),
        epilogue: Epilogue::NONE,
        depth: 0,
    }
}

/// Multiplies with `n` columns. `place` says where the panel that begins at a column lies, and how many
/// numbers there are from one of its rows to the next.
///
/// # Safety
///
/// As for [`Strip::compute`], for each panel.
unsafe fn times_panels<L: Uniform>(
    arch: Arch,
    cut: Cut,
    n: usize,
    place: impl Fn(usize) -> (usize, usize),
    whole: Strip<L>,
) {
    for col in (0..n).step_by(cut.width) {
        let (first, panel_stride) = place(col);
        let strip = Strip {
            cols: cut.cols(n, col),
            panel: whole.panel.wrapping_add(first),
            panel_stride,
            target: whole.target.wrapping_add(col),
            depth: cut.depth,
            ..whole
        };
        // SAFETY: the caller's guarantee.
        unsafe { L::compute(strip, arch, cut) };
    }
}
