//! Matrix products with a pointwise tail: the phase that linear layers, attention and convolutions
//! are made of.

use std::fmt::Write as _;
use std::ops::Range;

use fusion_cost_model::DType;

use super::Builder;
use super::phase::{Parameters, Phase, THREADS};
use super::product_tiles::TileShape;
use crate::gpu::tensors::TensorId;

/// A matrix in memory, or one for each batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    /// The tensor.
    pub(super) tensor: TensorId,
    /// Numbers between its rows.
    pub(super) stride: u64,
    /// Numbers between outer and inner batches.
    pub(super) steps: [u64; 2],
}

/// How B is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// `k` rows of `n` numbers, such as weights.
    Rows,
    /// `n` columns of `k` numbers, such as keys.
    Columns,
}

/// `C[m, n] = scale A[m, k] B[k, n]` for every batch, with a pointwise tail.
///
/// Batches are numbered by two indices: outer ones lie below each other in the output, inner ones
/// side by side.
#[derive(Debug, Clone)]
pub(super) struct Product {
    /// What it is for, in letters, digits and underscores; unique in its kernel.
    pub(super) name: String,
    /// Rows of C.
    pub(super) m: u64,
    /// Columns of C.
    pub(super) n: u64,
    /// What is summed.
    pub(super) k: u64,
    /// How many outer and inner batches there are.
    pub(super) batches: [u64; 2],
    /// The left operand.
    pub(super) a: Operand,
    /// The right operand.
    pub(super) b: Operand,
    /// How that is given.
    pub(super) given: Given,
    /// What sums are multiplied by.
    pub(super) scale: f32,
    /// The pointwise steps that follow.
    pub(super) tail: Range<usize>,
    /// Where the results go: a matrix with `m` rows for every outer batch and `n` columns for
    /// every inner one.
    pub(super) output: TensorId,
}

/// How many numbers are accessed at once: as many as 16 bytes hold if everything is a multiple of
/// that, else half as many, and so on.
pub(super) fn vector_width(dtype: DType, multiples: &[u64]) -> u64 {
    let most = 16 / dtype.bytes();
    let fits = |width: &u64| multiples.iter().all(|value| value.is_multiple_of(*width));
    [most, most / 2, most / 4].into_iter().find(|width| *width > 1 && fits(width)).unwrap_or(1)
}

impl Builder<'_> {
    /// A phase that computes a product.
    pub(super) fn product_phase(&self, product: &Product, parameters: &mut Parameters) -> Phase {
        let dtype = self.problem.dtype();
        let Product { m, n, k, batches, a, b, .. } = *product;
        let [outer, inner] = batches;
        let shape = TileShape::choose(self.device, dtype, [m, n], outer * inner);
        let width_a = vector_width(dtype, &[k, a.stride, a.steps[0], a.steps[1]]);
        let (row_of_b, b_sizes) = match product.given {
            Given::Rows => (n, "Rows"),
            Given::Columns => (k, "Columns"),
        };
        let width_b = vector_width(dtype, &[row_of_b, b.stride, b.steps[0], b.steps[1]]);
        let width_b = match product.given {
            Given::Rows => width_b.min(shape.widest_rows_of_b(dtype)),
            Given::Columns => width_b,
        };
        let width = vector_width(dtype, &[n]);

        let tail =
            self.tail_text(&format!("{}_tail", product.name), product.tail.clone(), parameters);
        let [m_size, n_size, k_size] = [m, n, k].map(|size| parameters.size(size));
        let mut tile = shape.text();
        let _ = write!(
            tile,
            "const auto place = port::product_place<Tile>(tile, {m_size}, {n_size}); "
        );
        let batched = outer * inner > 1;
        if batched {
            let count = parameters.size(inner);
            let _ = write!(
                tile,
                "const i64 outer = port::quotient(place.batch, {count}), \
                 inner = place.batch - outer * {count}; "
            );
        }
        let mut source = |name: &str, operand: &Operand, width: u64, rows: &str, cols: &str| {
            let mut base = parameters.read(operand.tensor);
            if batched {
                let [outer, inner] = operand.steps.map(|step| parameters.size(step));
                let _ = write!(base, " + outer * {outer} + inner * {inner}");
            }
            let stride = parameters.size(operand.stride);
            format!(
                "const port::MatrixSource<T, {width}> {name} = {{{base}, {rows}, {cols}, {stride}}}; "
            )
        };
        tile.push_str(&source("a", &a, width_a, &m_size, &k_size));
        tile.push_str(&match product.given {
            Given::Rows => source("b", &b, width_b, &k_size, &n_size),
            Given::Columns => source("b", &b, width_b, &n_size, &k_size),
        });
        let output = parameters.write(product.output);
        let (first_row, first_col, cols) = if batched {
            (format!("outer * {m_size}"), format!("inner * {n_size}"), parameters.size(inner * n))
        } else {
            ("0".to_owned(), "0".to_owned(), n_size.clone())
        };
        let scale = scale_text(product.scale, parameters);
        let _ = write!(
            tile,
            "const {name}_tail what_follows = {construct}; \
             const port::StoreProduct<T, {width}, {name}_tail> finish = {{{output}, {m_size}, \
             {n_size}, {first_row}, {first_col}, {cols}, {scale}, what_follows}}; \
             port::product<Tile, port::Given::{given}>(place, {k_size}, a, b, finish);",
            name = product.name,
            construct = tail.construct,
            given = b_sizes.to_uppercase(),
        );
        Phase {
            name: product.name.clone(),
            headers: vec!["product.h"],
            definitions: tail.definition,
            tile: format!("{{ {tile} }}"),
            tiles: outer * inner * shape.tiles([m, n]),
            threads: THREADS,
            shared_bytes: shape.shared_bytes(dtype, product.given),
        }
    }
}

/// A factor as an expression. It is a parameter like sizes, and its bits are exact.
pub(super) fn scale_text(scale: f32, parameters: &mut Parameters) -> String {
    if scale.to_bits() == 1.0_f32.to_bits() {
        return "1.0f".to_owned();
    }
    let bits = parameters.size(scale.to_bits().into());
    format!("port::float_of_bits(static_cast<u32>({bits}))")
}
