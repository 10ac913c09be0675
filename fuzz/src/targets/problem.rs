//! The text of a problem, and the names in it.

use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{Backend, Chain, Clock, DType, Implementation, Op, Problem, Rewrite};

use super::text;
use crate::Target;

/// A problem has one text, and its flops and bytes can be counted; every name parses to what writes
/// a name that parses to the same.
pub(super) const PROBLEM: Target = Target {
    name: "problem",
    seeds: || {
        [
            "linear_bias_relu/f32/m512.k512.n512",
            "linear+bias+relu+linear+bias/bf16/m8.k16.n32.n2_8",
            "conv_bn_relu_maxpool/f16/n1.c64.h56.w56.k64.r3.s3.stride2.pad1.pool3.pool_stride2",
            "attention_head/f32/b1.h2.q32.kv64.d32",
            "add_layernorm/f64/m64.n1024",
            "nn.Linear+BatchNormalization+aten::add",
            "bn_folded",
            "cuda",
            "device",
        ]
        .map(Into::into)
        .to_vec()
    },
    run: |bytes| text(bytes, read),
};

fn read(text: &str) -> String {
    let _ = text.parse::<Op>().map(|op| assert_eq!(op.to_string().parse::<Op>().unwrap(), op));
    let _ =
        text.parse::<DType>().map(|it| assert_eq!(it.to_string().parse::<DType>().unwrap(), it));
    let _ = text.parse::<Backend>();
    let _ = text.parse::<Clock>();
    let _ = text.parse::<Implementation>();
    let _ = text.parse::<Rewrite>();
    if let Ok(chain) = text.parse::<Chain>() {
        assert_eq!(chain.name().parse::<Chain>().unwrap(), chain);
    }
    match text.parse::<Problem>() {
        Ok(problem) => {
            assert_eq!(problem.to_string().parse::<Problem>().unwrap(), problem);
            let traffic = Traffic::of(&problem);
            assert!(traffic.fused_bytes <= traffic.unfused_bytes, "{problem}: {traffic:?}");
            assert!(traffic.memory_reduction() < 1.0, "{problem}: {traffic:?}");
            String::new()
        }
        Err(error) => error.to_string(),
    }
}
