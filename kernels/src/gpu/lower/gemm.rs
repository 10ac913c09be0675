//! GEMMs with a pointwise tail: the phase that linear layers, attention and convolutions
//! are made of.

use std::fmt::Write as _;
use std::ops::Range;

use fusion_cost_model::DType;

use super::Builder;
use super::gemm_tiles::TileShape;
use super::image::Image;
use super::operand::{Given, Operand, vector_width};
use super::phase::{Parameters, Phase, THREADS};
use crate::gpu::tensors::TensorId;

/// The left operand of a GEMM.
#[derive(Debug, Clone, Copy)]
pub(super) enum Left {
    /// A matrix, which has `m` rows of `k` numbers.
    Matrix(Operand),
    /// The parts of an image that a filter covers, for every pixel of the output.
    Image(Image),
}

/// A max-pool of the results, where each window is in the part of the output of one warp.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    /// The step.
    pub(super) step: usize,
    /// Side and stride of its windows.
    pub(super) window: u64,
    /// The pointwise steps that follow it.
    pub(super) tail: Range<usize>,
}

/// `C[m, n] = scale A[m, k] B[k, n]` for every batch, with a pointwise tail.
///
/// Batches are numbered by two indices: outer ones lie below each other in the output, inner ones
/// side by side.
#[derive(Debug, Clone)]
pub(super) struct Gemm {
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
    pub(super) a: Left,
    /// The right operand.
    pub(super) b: Operand,
    /// How that is given.
    pub(super) given: Given,
    /// Whether large tiles may be by the wide core, if there is one: only of rows of B, and where the
    /// kernels of both variants compute it in the same way.
    pub(super) wide: bool,
    /// What sums are multiplied by.
    pub(super) scale: f32,
    /// The pointwise steps that follow.
    pub(super) tail: Range<usize>,
    /// The max-pool that follows these; only of images, and without a scale.
    pub(super) pool: Option<Pool>,
    /// Where the results go: a matrix with `m` rows for every outer batch and `n` columns for
    /// every inner one.
    pub(super) output: TensorId,
}

impl Builder<'_> {
    /// A phase that computes a GEMM.
    pub(super) fn gemm_phase(&self, gemm: &Gemm, parameters: &mut Parameters) -> Phase {
        let dtype = self.problem.dtype();
        let Gemm { m, n, k, batches: [outer, inner], b, given, .. } = *gemm;
        let shape = TileShape::choose(self.device, dtype, gemm.wide, [m, n], outer * inner);
        let sizes = Sizes {
            m: parameters.size(m),
            n: parameters.size(n),
            k: parameters.size(k),
            inner: (outer * inner > 1).then(|| parameters.size(inner)),
        };
        let Sizes { m: m_size, n: n_size, k: k_size, .. } = &sizes;
        let mut tile = shape.text(dtype, given);
        let _ =
            write!(tile, "const auto place = port::gemm_place<Tile>(tile, {m_size}, {n_size}); ");
        if let Some(inner) = &sizes.inner {
            let _ = write!(
                tile,
                "const i64 outer = port::quotient(place.batch, {inner}), \
                 inner = place.batch - outer * {inner}; "
            );
        }
        let left = match &gemm.a {
            Left::Matrix(a) => {
                let width = vector_width(dtype, &[k, a.stride, a.steps[0], a.steps[1]]);
                sizes.matrix(a, width, m_size, k_size, parameters)
            }
            Left::Image(image) => sizes.image(image, dtype, parameters),
        };
        let (row_of_b, most, rows, cols) = match given {
            Given::Rows => (n, shape.widest_rows_of_b(dtype), k_size, n_size),
            Given::Columns => (k, u64::MAX, n_size, k_size),
        };
        let width = vector_width(dtype, &[row_of_b, b.stride, b.steps[0], b.steps[1]]).min(most);
        let right = sizes.matrix(&b, width, rows, cols, parameters);
        let (definitions, finish) = self.finish(gemm, &sizes, parameters);
        let given = given.name();
        let _ = write!(
            tile,
            "const {left}; const {right}; {finish} \
             port::gemm<Tile, port::Given::{given}>(place, {k_size}, a, b, finish);",
            left = left.named("a"),
            right = right.named("b"),
        );
        Phase {
            cluster: 1,
            name: format!("{}_{}", gemm.name, shape.name()),
            headers: vec![match gemm.a {
                Left::Matrix(_) => "gemm.h",
                Left::Image(_) => "conv.h",
            }],
            definitions,
            tile: format!("{{ {tile} }}"),
            tiles: outer * inner * shape.tiles([m, n]),
            threads: THREADS,
            shared_bytes: shape.shared_bytes(dtype, gemm.given),
        }
    }

    /// What is done with sums: definitions, and statements that make it as `finish`.
    fn finish(&self, gemm: &Gemm, sizes: &Sizes, parameters: &mut Parameters) -> (String, String) {
        let Gemm { name, n, batches: [outer, inner], scale, .. } = gemm;
        let (m_size, n_size) = (&sizes.m, &sizes.n);
        let tail = self.tail_text(&format!("{name}_tail"), gemm.tail.clone(), parameters);
        let output = parameters.write(gemm.output);
        let width = vector_width(self.problem.dtype(), &[*n]);
        let cols = parameters.size(inner * n);
        let first_row = if *outer > 1 { format!("outer * {m_size}") } else { "0".to_owned() };
        let first_col = if *inner > 1 { format!("inner * {n_size}") } else { "0".to_owned() };
        let before = format!("const {name}_tail tail = {}; ", tail.construct);
        if let (Some(pool), Left::Image(image)) = (&gemm.pool, &gemm.a) {
            let after = self.tail_text(&format!("{name}_pooled"), pool.tail.clone(), parameters);
            let pixels = image.pixels(parameters);
            let window = pool.window;
            let finish = format!(
                "{before}const {name}_pooled pooled = {construct}; \
                 const port::StorePooled<T, {width}, {window}, {name}_tail, {name}_pooled> \
                 finish = {{{output}, {m_size}, {n_size}, {first_col}, {cols}, {pixels}, tail, \
                 pooled}};",
                construct = after.construct,
            );
            return (tail.definition + &after.definition, finish);
        }
        let scale = scale_text(*scale, parameters);
        let finish = format!(
            "{before}const port::StoreGemm<T, {width}, {name}_tail> finish = {{{output}, \
             {m_size}, {n_size}, {first_row}, {first_col}, {cols}, {scale}, tail}};"
        );
        (tail.definition, finish)
    }
}

/// The sizes of a GEMM as expressions.
struct Sizes {
    m: String,
    n: String,
    k: String,
    /// Inner batches, if there is more than one batch.
    inner: Option<String>,
}

/// An operand in C++: its type, and what it is made of.
struct SourceText {
    class: String,
    fields: String,
}

impl SourceText {
    fn named(&self, name: &str) -> String {
        format!("{} {name} = {{{}}}", self.class, self.fields)
    }
}

impl Sizes {
    /// Where the numbers of a batch begin.
    fn base(&self, operand: &Operand, parameters: &mut Parameters) -> String {
        let base = parameters.read(operand.tensor);
        if self.inner.is_none() {
            return base;
        }
        if operand.sharing > 1 {
            let [outer, inner] = operand.steps;
            let step = parameters.size(if inner > 0 { inner } else { outer });
            let sharing = parameters.size(operand.sharing);
            return format!("{base} + port::quotient(place.batch, {sharing}) * {step}");
        }
        let [outer, inner] = operand.steps.map(|step| parameters.size(step));
        format!("{base} + outer * {outer} + inner * {inner}")
    }

    fn matrix(
        &self,
        operand: &Operand,
        width: u64,
        rows: &str,
        cols: &str,
        parameters: &mut Parameters,
    ) -> SourceText {
        let base = self.base(operand, parameters);
        let stride = parameters.size(operand.stride);
        SourceText {
            class: format!("port::MatrixSource<T, {width}>"),
            fields: format!("{base}, {rows}, {cols}, {stride}"),
        }
    }

    fn image(&self, image: &Image, dtype: DType, parameters: &mut Parameters) -> SourceText {
        let group = image.sizes.c / image.sizes.groups;
        let (tensor, stride) = (image.tensor, image.sizes.c);
        let operand = Operand { tensor, stride, steps: [0, group], sharing: 1 };
        let base = self.base(&operand, parameters);
        let width = vector_width(dtype, &[group]);
        SourceText {
            class: format!("port::ImageSource<T, {width}, {}>", image.window),
            fields: format!("{base}, {}, {}, {}", self.m, self.k, image.fields(parameters)),
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
