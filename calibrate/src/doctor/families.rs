//! The families of kernels, each with a problem that takes little time and leaves tiles with edges.

/// A family: its name, a chain and sizes.
pub(super) type Family = (&'static str, &'static str, &'static str);

/// All of them.
pub(super) const FAMILIES: [Family; 15] = [
    ("elementwise", "add_relu", "m130.n72"),
    ("normalised rows", "add_layernorm", "m33.n520"),
    ("softmax and RMS norm", "bias+rms_norm+softmax", "m33.n130"),
    ("rows that no block holds", "layer_norm+relu", "m2.n33001"),
    ("linear layer", "linear_bias_relu", "m130.k72.n136"),
    ("linear layer and rows", "linear+bias+add+layer_norm", "m33.k16.n40"),
    ("two linear layers", "mlp", "m66.k40.n72.o24"),
    ("convolution", "conv_bn_relu", "n1.c8.h9.w11.k24.r3.s3.pad1"),
    ("depthwise convolution", "conv_bn_relu", "n1.c16.h9.w11.k16.r3.s3.pad1.groups16"),
    ("pooling", "max_pool", "n2.c18.h7.w9.pool3.pstride2.ppad1"),
    ("convolution and pooling", "conv_bn_relu_maxpool", "n1.c3.h16.w16.k8.r3.s3.pad1.pool2"),
    ("attention", "attention_head", "b1.h2.q70.kv130.d64"),
    ("attention with a causal mask", "attention_head", "b1.h4.q67.kv131.d64.kvh2.causal1"),
    ("scores and softmax", "attention_scores", "b1.h2.q65.kv72.d64"),
    ("attention and linear layer", "multihead_linear", "b1.h2.q65.kv40.d64.n72"),
];

#[cfg(test)]
mod tests {
    use fusion_cost_model::{Chain, PATTERNS, Problem};

    use super::*;

    #[test]
    fn every_form_of_a_pattern_is_in_a_family() {
        let form_of = |(_, chain, sizes): &Family| {
            let problem: Problem = format!("{chain}/f32/{sizes}").parse().unwrap();
            problem.chain().form()
        };
        let forms: Vec<_> = FAMILIES.iter().map(form_of).collect();
        for pattern in PATTERNS {
            let form = pattern.name.parse::<Chain>().unwrap().form();
            assert!(forms.contains(&form), "{}: {form:?}", pattern.name);
        }
    }

    #[test]
    fn names_are_distinct() {
        for (index, (name, ..)) in FAMILIES.iter().enumerate() {
            assert!(FAMILIES[..index].iter().all(|(other, ..)| other != name), "{name}");
        }
    }
}
