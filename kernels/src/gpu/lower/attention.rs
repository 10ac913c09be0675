//! Attention and its parts.

use std::ops::Range;

use fusion_cost_model::{AttentionSizes, Op, Pointwise};

use super::Builder;
use super::attention_tiles::{TileShape, Work};
use super::gemm::{Gemm, Left, scale_text};
use super::hopper_attention::Attention;
use super::operand::{Given, Operand};
use super::phase::{self, Parameters, Phase, THREADS};
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::{Role, TensorId};
use crate::inputs::attention_scale;

/// The steps of a chain of attention.
#[derive(Debug, Clone)]
struct Parts {
    /// Queries and keys; without them the chain begins with scores.
    qk: Option<usize>,
    softmax: usize,
    /// Probabilities and values; without them the probabilities are the result.
    pv: Option<usize>,
    /// Where the output of attention is done.
    end: usize,
}

impl Parts {
    /// Pointwise steps on scores.
    fn on_scores(&self) -> Range<usize> {
        self.qk.map_or(self.softmax, |qk| qk + 1)..self.softmax
    }

    /// Those on probabilities that are multiplied with values.
    fn on_probabilities(&self) -> Range<usize> {
        self.softmax + 1..self.pv.unwrap_or(self.softmax + 1)
    }

    /// Those on the result.
    fn on_output(&self) -> Range<usize> {
        self.pv.unwrap_or(self.softmax) + 1..self.end
    }
}

/// Whether `f(c x) = c f(x)` for every positive `c`, so that a step may come before the division
/// by a row's sum.
const fn commutes_with_division(op: Pointwise) -> bool {
    use Pointwise::{Dropout, LeakyRelu, Mul, Relu, Scale};
    matches!(op, Dropout | Mul | Scale | Relu | LeakyRelu)
}

impl Builder<'_> {
    /// `Q K^T` of every head alone.
    pub(super) fn scores_kernel(
        &mut self,
        step: usize,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let mut parameters = Parameters::default();
        let scores = self.scores_phase(step, step + 1..step + 1, input, output, &mut parameters)?;
        Some(phase::kernel(vec![scores], parameters, self.problem.dtype(), &mut self.table))
    }

    /// `P V` of every head alone.
    pub(super) fn attention_output_kernel(
        &mut self,
        step: usize,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let mut parameters = Parameters::default();
        let values = self.values_phase(step, step + 1..step + 1, input, output, &mut parameters)?;
        Some(phase::kernel(vec![values], parameters, self.problem.dtype(), &mut self.table))
    }

    /// A whole chain of attention, and the projection after it as a second phase.
    pub(super) fn attention_kernel(
        &mut self,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let count = self.steps.len();
        let Some(parts) = self.attention_parts() else {
            return self.half_of_attention_kernel(input, output);
        };
        let linear = (parts.end < count).then_some(parts.end);
        let target = match linear {
            Some(_) => self.intermediate(parts.end - 1, Role::Scratch),
            None => output,
        };
        let mut parameters = Parameters::default();
        let mut phases = if self.on_hopper() {
            let attention = self.hopper_attention_of(&parts, input, target)?;
            vec![self.hopper_attention(&attention, &mut parameters)]
        } else {
            let threads = linear.map(|_| THREADS);
            match self.attention_phase(&parts, input, target, threads, &mut parameters) {
                Some(phase) => vec![phase],
                None => self.attention_phases(&parts, input, target, &mut parameters)?,
            }
        };
        if let Some(linear) = linear {
            let steps = linear..count;
            phases.extend(self.linear_phases(steps, target, output, &mut parameters)?);
        }
        Some(phase::kernel(phases, parameters, self.problem.dtype(), &mut self.table))
    }

    /// A chain without a softmax: scores, or values with given probabilities, each with what follows
    /// it, and the projection as a second phase.
    fn half_of_attention_kernel(
        &mut self,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let count = self.steps.len();
        let end = self.steps.iter().position(|step| step.op == Op::Linear).unwrap_or(count);
        let target = if end < count { self.intermediate(end - 1, Role::Scratch) } else { output };
        let mut parameters = Parameters::default();
        let half = match self.steps[0].op {
            Op::Qk => self.scores_phase(0, 1..end, input, target, &mut parameters)?,
            _ => self.values_phase(0, 1..end, input, target, &mut parameters)?,
        };
        let mut phases = vec![half];
        if end < count {
            phases.extend(self.linear_phases(end..count, target, output, &mut parameters)?);
        }
        Some(phase::kernel(phases, parameters, self.problem.dtype(), &mut self.table))
    }

    /// `None` without a softmax.
    fn attention_parts(&self) -> Option<Parts> {
        let position = |op| self.steps.iter().position(|step| step.op == op);
        Some(Parts {
            qk: position(Op::Qk),
            softmax: position(Op::Softmax)?,
            pv: position(Op::Pv),
            end: position(Op::Linear).unwrap_or(self.steps.len()),
        })
    }

    /// Whether attention may be computed by `wgmma`, if the problem has any. With steps between the
    /// GEMMs, not all of it fits into registers. One of the GEMMs without a softmax is computed as it
    /// is in the whole.
    pub(super) fn attention_suits_hopper(&self) -> bool {
        let Some(sizes) = self.problem.sizes().attention() else { return true };
        let suits = self.attention_parts().is_none_or(|parts| {
            let between = !parts.on_scores().is_empty() || !parts.on_probabilities().is_empty();
            let whole = parts.qk.is_some() && parts.pv.is_some();
            whole && !between
        });
        suits && self.suits_hopper_attention(&sizes)
    }

    /// Attention by `wgmma`.
    fn hopper_attention_of(
        &self,
        parts: &Parts,
        input: TensorId,
        output: TensorId,
    ) -> Option<Attention> {
        let sizes = self.problem.sizes().attention()?;
        let (qk, pv) = (parts.qk?, parts.pv?);
        Some(Attention {
            sizes,
            queries: input,
            keys: *self.operands[qk].first()?,
            values: *self.operands[pv].first()?,
            output,
            scale: self.scores_scale(Some(qk), &sizes),
            on_output: parts.on_output(),
        })
    }

    /// Whether probabilities must be divided by the sums of rows before they are used.
    fn needs_sums_first(&self, parts: &Parts) -> bool {
        let early = |step: usize| match self.steps[step].op {
            Op::Pointwise(op) => commutes_with_division(op),
            _ => false,
        };
        parts.pv.is_none() || !parts.on_probabilities().all(early)
    }

    /// Attention without scores in memory; `None` where a head is too large for that. `threads`:
    /// those of a block, if other phases have a say in it.
    fn attention_phase(
        &self,
        parts: &Parts,
        input: TensorId,
        output: TensorId,
        threads: Option<u32>,
        parameters: &mut Parameters,
    ) -> Option<Phase> {
        let sizes = self.problem.sizes().attention()?;
        let work = Work {
            heads: sizes.b * sizes.h,
            queries: sizes.q,
            keys: sizes.kv,
            width: sizes.d,
            given: parts.qk.is_none(),
            values: parts.pv.is_some(),
            exact: self.needs_sums_first(parts),
            causal: sizes.causal,
        };
        let shape = TileShape::choose(self.device, self.problem.dtype(), &work, threads)?;

        let mut definitions = String::new();
        let mut steps = |name: &str, range: Range<usize>, parameters: &mut Parameters| {
            if range.is_empty() {
                return String::from("attention::Nothing{}");
            }
            let text = self.tail_text(name, range, parameters);
            definitions.push_str(&text.definition);
            text.construct
        };
        let on_scores = steps("on_scores", parts.on_scores(), parameters);
        let on_probabilities = steps("on_probabilities", parts.on_probabilities(), parameters);
        let on_output = steps("on_output", parts.on_output(), parameters);
        let mut tensor = |step: Option<usize>| match step {
            Some(step) => self.operands[step].first().map(|&id| parameters.read(id)),
            None => Some(String::from("nullptr")),
        };
        let (keys, values) = (tensor(parts.qk)?, tensor(parts.pv)?);
        let source = parameters.read(input);
        let target = parameters.write(output);
        let sharing = parameters.factor(sizes.group());
        let [heads, queries, key_count, width] =
            [sizes.h, sizes.q, sizes.kv, sizes.d].map(|size| parameters.size(size));
        let scale = scale_text(self.scores_scale(parts.qk, &sizes), parameters);
        let tile = format!(
            "{{ using Shape = {shape}; const attention::Problem<T> problem = {{{source}, {keys}, \
             {values}, {target}, {heads}, {sharing}, {queries}, {key_count}, {width}, {scale}}}; \
             attention::tile<Shape, {bytes}, {rows}>(tile, problem, {on_scores}, \
             {on_probabilities}, {on_output}); }}",
            shape = shape.text(),
            bytes = shape.shared_bytes(),
            rows = shape.queries(),
        );
        Some(Phase {
            cluster: 1,
            name: format!("attention_{}", shape.name()),
            headers: vec!["attention.h"],
            definitions,
            tile,
            tiles: work.heads * sizes.q.div_ceil(shape.queries()),
            threads: shape.threads(),
            shared_bytes: shape.shared_bytes(),
        })
    }

    /// Attention with scores in memory.
    fn attention_phases(
        &mut self,
        parts: &Parts,
        input: TensorId,
        output: TensorId,
        parameters: &mut Parameters,
    ) -> Option<Vec<Phase>> {
        let scores = match parts.pv {
            Some(_) => self.intermediate(parts.softmax, Role::Scratch),
            None => output,
        };
        let mut phases = Vec::new();
        let mut source = input;
        if let Some(qk) = parts.qk {
            phases.push(self.scores_phase(qk, parts.on_scores(), input, scores, parameters)?);
            source = scores;
        }
        let rows = parts.softmax..parts.pv.unwrap_or(parts.end);
        phases.push(self.rows_phase("rows", rows, source, scores, THREADS, parameters));
        if let Some(pv) = parts.pv {
            phases.push(self.values_phase(pv, parts.on_output(), scores, output, parameters)?);
        }
        Some(phases)
    }

    fn scores_phase(
        &self,
        step: usize,
        tail: Range<usize>,
        queries: TensorId,
        output: TensorId,
        parameters: &mut Parameters,
    ) -> Option<Phase> {
        let sizes = self.problem.sizes().attention()?;
        let AttentionSizes { b, h, q, kv, d, .. } = sizes;
        let keys = *self.operands[step].first()?;
        let gemm = Gemm {
            name: String::from("scores"),
            m: q,
            n: kv,
            k: d,
            batches: [b * h, 1],
            a: Left::Matrix(Operand { tensor: queries, stride: d, steps: [q * d, 0], sharing: 1 }),
            b: Operand { tensor: keys, stride: d, steps: [kv * d, 0], sharing: sizes.group() },
            given: Given::Columns,
            wide: false,
            scale: self.scores_scale(Some(step), &sizes),
            tail,
            pool: None,
            output,
        };
        self.attention_gemm(&gemm, parameters)
    }

    fn values_phase(
        &self,
        step: usize,
        tail: Range<usize>,
        probabilities: TensorId,
        output: TensorId,
        parameters: &mut Parameters,
    ) -> Option<Phase> {
        let sizes = self.problem.sizes().attention()?;
        let AttentionSizes { b, h, q, kv, d, .. } = sizes;
        let values = *self.operands[step].first()?;
        let gemm = Gemm {
            name: String::from("values"),
            m: q,
            n: d,
            k: kv,
            batches: [b, h],
            a: Left::Matrix(Operand {
                tensor: probabilities,
                stride: kv,
                steps: [h * q * kv, q * kv],
                sharing: 1,
            }),
            b: Operand {
                tensor: values,
                stride: d,
                steps: [h * kv * d, kv * d],
                sharing: sizes.group(),
            },
            given: Given::Rows,
            wide: false,
            scale: 1.0,
            tail,
            pool: None,
            output,
        };
        self.attention_gemm(&gemm, parameters)
    }

    fn attention_gemm(&self, gemm: &Gemm, parameters: &mut Parameters) -> Option<Phase> {
        if self.on_hopper() {
            self.hopper_gemm(gemm, parameters)
        } else {
            Some(self.gemm_phase(gemm, parameters))
        }
    }

    /// What GEMMs of queries and keys are multiplied by: a chain with a scale of its own
    /// applies that instead (see [`Op::Qk`]).
    fn scores_scale(&self, qk: Option<usize>, sizes: &AttentionSizes) -> f32 {
        let own = self.problem.chain().contains(&Op::Pointwise(Pointwise::Scale));
        if qk.is_none() || own { 1.0 } else { attention_scale(sizes.d) }
    }
}
