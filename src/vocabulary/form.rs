//! The form of a chain: which anchor it has, and therefore which sizes.

use super::op::Op;

/// What a chain computes on, which decides the sizes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// Pointwise and row ops on a matrix: `m.n`.
    Rows,
    /// One linear op and a tail: `m.k.n`.
    Linear,
    /// Two linear ops: `m.k.n.o`.
    Mlp,
    /// A convolution and a pointwise tail.
    Conv,
    /// A convolution with a max-pool in its tail.
    ConvPool,
    /// A max-pool by itself.
    Pool,
    /// Scaled dot-product attention or a part of it: `b.h.q.kv.d`.
    Attention,
    /// Attention and a linear op on the joined heads: `b.h.q.kv.d.n`.
    MultiheadLinear,
}

impl Form {
    /// The form of a list of ops, or why it has none.
    pub(super) fn of(ops: &[Op]) -> Result<Self, String> {
        let [first, rest @ ..] = ops else {
            return Err("it is empty; name the ops joined with +".to_owned());
        };
        match first {
            Op::Linear => Self::of_linear(rest),
            Op::Conv2d => Self::of_conv(rest),
            Op::Qk => Self::of_attention(rest),
            Op::Softmax if ops.contains(&Op::Pv) => Self::of_attention_output(rest),
            Op::Pv => Self::of_attention_output(ops),
            Op::MaxPool if rest.is_empty() => Ok(Self::Pool),
            Op::MaxPool => Err("max_pool stands alone or behind a convolution".to_owned()),
            Op::Softmax | Op::LayerNorm | Op::RmsNorm | Op::Pointwise(_) => Self::of_rows(rest),
        }
    }

    fn of_rows(rest: &[Op]) -> Result<Self, String> {
        match rest.iter().find(|op| !op.is_pointwise() && !op.is_row()) {
            None => Ok(Self::Rows),
            Some(op) => Err(format!(
                "{op} must be the first op: only the results of a GEMM, and not its inputs, can be \
                 transformed in the same kernel"
            )),
        }
    }

    fn of_linear(rest: &[Op]) -> Result<Self, String> {
        let mut linears = 1;
        for op in rest {
            match op {
                Op::Linear => linears += 1,
                op if op.is_pointwise() || op.is_row() => {}
                op => {
                    return Err(format!(
                        "{op} cannot follow linear; pointwise ops, softmax, layer_norm, rms_norm \
                         and one more linear can"
                    ));
                }
            }
        }
        match linears {
            1 => Ok(Self::Linear),
            2 => Ok(Self::Mlp),
            _ => Err(format!("it has {linears} linear ops; at most two can be one kernel")),
        }
    }

    fn of_conv(rest: &[Op]) -> Result<Self, String> {
        let mut pools = 0;
        for op in rest {
            match op {
                Op::MaxPool => pools += 1,
                op if op.is_pointwise() => {}
                op => {
                    return Err(format!(
                        "{op} cannot follow conv2d; pointwise ops and one max_pool can"
                    ));
                }
            }
        }
        match pools {
            0 => Ok(Self::Conv),
            1 => Ok(Self::ConvPool),
            _ => Err(format!("it has {pools} max_pool ops; at most one can be fused")),
        }
    }

    /// `qk pointwise* [softmax pointwise* [pv pointwise* [linear pointwise*]]]`
    fn of_attention(rest: &[Op]) -> Result<Self, String> {
        let softmax = rest.iter().position(|op| !op.is_pointwise());
        match softmax.map(|at| (rest[at], &rest[at + 1..])) {
            Some((Op::Softmax, rest)) => Self::of_attention_output(rest),
            Some((op, _)) => Err(format!("{op} cannot follow qk; softmax must come first")),
            None => Ok(Self::Attention),
        }
    }

    /// What may follow the scores of an attention chain: `pointwise* [pv pointwise* [linear
    /// pointwise*]]`.
    fn of_attention_output(rest: &[Op]) -> Result<Self, String> {
        let mut form = Self::Attention;
        let mut has_output = false;
        for op in rest {
            match op {
                Op::Pv if !has_output => has_output = true,
                Op::Linear if has_output && form == Self::Attention => form = Self::MultiheadLinear,
                op if op.is_pointwise() => {}
                op => {
                    return Err(format!(
                        "{op} cannot stand there; after the softmax come pv and then linear, \
                         each with pointwise ops"
                    ));
                }
            }
        }
        Ok(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Result<Form, String> {
        let ops: Vec<Op> = text.split('+').map(|name| name.parse().unwrap()).collect();
        Form::of(&ops)
    }

    #[test]
    fn chains_that_can_be_one_kernel() {
        for (text, expected) in [
            ("add+relu", Form::Rows),
            ("relu", Form::Rows),
            ("linear", Form::Linear),
            ("conv2d", Form::Conv),
            ("softmax+scale", Form::Rows),
            ("add+layer_norm+relu", Form::Rows),
            ("linear+bias+silu+mul", Form::Linear),
            ("linear+bias+add+layer_norm", Form::Linear),
            ("linear+bias+gelu+linear+bias+add+layer_norm", Form::Mlp),
            ("conv2d+bias+hardswish", Form::Conv),
            ("conv2d+relu+max_pool+add", Form::ConvPool),
            ("max_pool", Form::Pool),
            ("qk+scale+add+softmax", Form::Attention),
            ("softmax+pv", Form::Attention),
            ("qk", Form::Attention),
            ("qk+scale", Form::Attention),
            ("pv", Form::Attention),
            ("pv+relu+linear", Form::MultiheadLinear),
            ("qk+softmax+dropout+pv+linear+bias", Form::MultiheadLinear),
        ] {
            assert_eq!(form(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn chains_that_cannot_say_why() {
        for (text, reason) in [
            ("relu+linear", "linear must be the first op"),
            ("linear+conv2d", "conv2d cannot follow linear"),
            ("linear+relu+linear+relu+linear", "at most two"),
            ("conv2d+softmax", "softmax cannot follow conv2d"),
            ("conv2d+max_pool+max_pool", "at most one"),
            ("qk+pv", "softmax must come first"),
            ("softmax+pv+pv", "pv cannot stand there"),
            ("max_pool+relu", "stands alone or behind a convolution"),
            ("pv+softmax", "softmax cannot stand there"),
            ("pv+pv", "pv cannot stand there"),
        ] {
            let message = form(text).unwrap_err();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}
