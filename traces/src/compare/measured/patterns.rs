//! Which measured patterns are closest to a fusion that was found in traces.
//!
//! Traces contain classes of kernels, calibration files contain ops. A trace does not say which
//! activation or which norm it is, so a fusion can have several patterns, or the nearest one.

/// What is fused, as sorted classes, and the patterns of `calibrate list patterns` for it.
struct Entry {
    /// Sorted; `ADD` for any arithmetic element by element but the gate of an activation, `MUL`.
    classes: &'static [&'static str],
    patterns: &'static [&'static str],
}

const TABLE: &[Entry] = &[
    Entry { classes: &["ADD", "NORM"], patterns: &["add_layernorm"] },
    Entry { classes: &["ADD", "GEMM"], patterns: &["linear_bias"] },
    Entry { classes: &["ACT", "GEMM"], patterns: &["linear_bias_relu", "linear_bias_gelu"] },
    Entry {
        classes: &["ACT", "ADD", "GEMM"],
        patterns: &["linear_bias_relu", "linear_bias_gelu", "linear_bias_relu_dropout"],
    },
    Entry { classes: &["ACT", "GEMM", "GEMM"], patterns: &["mlp"] },
    Entry { classes: &["ACT", "ADD"], patterns: &["add_relu", "mul_add_relu", "sigmoid_mul"] },
    Entry { classes: &["ACT", "MUL"], patterns: &["sigmoid_mul"] },
    Entry { classes: &["ADD", "CONV"], patterns: &["conv_bias"] },
    Entry { classes: &["ACT", "CONV"], patterns: &["conv_relu"] },
    Entry { classes: &["CONV", "NORM"], patterns: &["conv_bn"] },
    Entry { classes: &["ACT", "CONV", "NORM"], patterns: &["conv_bn_relu"] },
    Entry { classes: &["ATTN"], patterns: &["attention_head"] },
    Entry { classes: &["ATTN", "GEMM"], patterns: &["multihead_linear"] },
    Entry { classes: &["GEMM", "SOFTMAX"], patterns: &["attention_scores", "attention_output"] },
    Entry { classes: &["GEMM", "GEMM", "SOFTMAX"], patterns: &["attention_head"] },
];

/// The patterns of what a fused kernel does, as `ADD+NORM`, else of the separate kernels; none if
/// nothing like it can be measured.
pub(super) fn patterns(operation: &str, separate: &[String]) -> &'static [&'static str] {
    let fused = find(operation.split('+'));
    if !fused.is_empty() {
        return fused;
    }
    find(separate.iter().flat_map(|label| label.split('+')))
}

fn find<'c>(classes: impl Iterator<Item = &'c str>) -> &'static [&'static str] {
    let mut classes: Vec<&str> =
        classes.map(|class| if class == "ELEMENTWISE" { "ADD" } else { class }).collect();
    classes.sort_unstable();
    TABLE.iter().find(|entry| entry.classes == classes).map_or(&[], |entry| entry.patterns)
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Pattern;

    use super::*;
    use crate::classify::Class;

    #[test]
    fn every_entry_is_sorted_and_names_what_there_is() {
        for (at, Entry { classes, patterns }) in TABLE.iter().enumerate() {
            assert!(classes.is_sorted(), "{classes:?}");
            for class in classes.iter().filter(|class| !matches!(**class, "ADD" | "MUL")) {
                assert!(Class::from_name(class).is_some(), "{class}");
            }
            assert!(!patterns.is_empty(), "{classes:?}");
            for pattern in *patterns {
                assert!(Pattern::find(pattern).is_some_and(|found| found.name == *pattern));
            }
            assert!(TABLE[..at].iter().all(|before| before.classes != *classes), "{classes:?}");
        }
    }

    #[test]
    fn the_order_of_classes_does_not_matter_and_what_is_unknown_has_none() {
        let of = |operation: &str, separate: &[&str]| {
            let separate: Vec<String> = separate.iter().map(ToString::to_string).collect();
            patterns(operation, &separate)
        };
        assert_eq!(of("ADD+NORM", &["ELEMENTWISE", "NORM"]), ["add_layernorm"]);
        assert_eq!(of("NORM+ADD", &[]), ["add_layernorm"]);
        assert_eq!(of("ACT+MUL", &["ACT", "ELEMENTWISE"]), ["sigmoid_mul"]);
        assert_eq!(of("GEMM+ACT", &[]), ["linear_bias_relu", "linear_bias_gelu"]);
        assert_eq!(of("ATTN", &["GEMM", "SOFTMAX", "GEMM"]), ["attention_head"]);
        // What the fused kernel does says nothing, but what it stands for does.
        assert_eq!(of("GEMM", &["GEMM", "ACT"]), ["linear_bias_relu", "linear_bias_gelu"]);
        assert_eq!(of("UNCLASSIFIED", &["ELEMENTWISE", "NORM"]), ["add_layernorm"]);
        assert!(of("ROPE+KVCACHE", &["ROPE", "KVCACHE"]).is_empty());
        assert!(of("", &[]).is_empty());
    }
}
