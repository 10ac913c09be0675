//! Which keys a query sees, by what the operators of attention were called with.

use super::{Shape, base};

/// Which keys a query sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mask {
    /// Those before it.
    Causal,
    /// All of them.
    None,
}

impl Mask {
    /// Of an operator, by its own input for that; `None` where it does not say, or where a tensor says
    /// it.
    pub(crate) fn of(op: &str, text: &str) -> Option<Self> {
        // Flash attention takes no tensor.
        let (place, tensor) = match base(op) {
            // By the number of its mask: none, or one of two that are causal.
            "_efficient_attention_forward" => (9, Some(3)),
            "_cudnn_attention_forward" => (10, Some(3)),
            "_scaled_dot_product_flash_attention" => (4, None),
            "scaled_dot_product_attention" => (5, Some(3)),
            "_scaled_dot_product_efficient_attention" | "_scaled_dot_product_cudnn_attention" => {
                (6, Some(3))
            }
            "_flash_attention_forward" => (8, None),
            _ => return None,
        };
        let shape = Shape::of(text);
        match shape.inputs.get(place)?.value.to_ascii_lowercase().as_str() {
            "1" | "2" | "true" => Some(Self::Causal),
            "0" | "false" => {
                let is_tensor = |place: usize| {
                    shape.inputs.get(place).is_some_and(|input| !input.dims.is_empty())
                };
                (!tensor.is_some_and(is_tensor)).then_some(Self::None)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_operators() {
        let one = "2x8x512x64 float";
        let all = format!("{one};{one};{one}");
        for (value, mask) in
            [("Scalar=True", Some(Mask::Causal)), ("Scalar=False", Some(Mask::None)), ("", None)]
        {
            let flash = format!("{all}; Scalar=0.; {value}; Scalar=False");
            assert_eq!(Mask::of("aten::_scaled_dot_product_flash_attention", &flash), mask);
            let forward = format!("{all};;;; ; Scalar=0.; {value}");
            assert_eq!(Mask::of("aten::_flash_attention_forward", &forward), mask);
        }
        // A tensor may hide anything, and adds to a mask that is causal.
        for (tensor, value, mask) in [
            ("", "0", Some(Mask::None)),
            ("", "1", Some(Mask::Causal)),
            ("1x1x512x512 float", "0", None),
            ("1x1x512x512 float", "1", Some(Mask::Causal)),
        ] {
            let text = format!("{all};{tensor};;;;; ; Scalar={value}");
            assert_eq!(Mask::of("aten::_efficient_attention_forward", &text), mask, "{text}");
        }
        assert_eq!(Mask::of("aten::mm", &all), None);
        assert_eq!(Mask::of("aten::_flash_attention_forward", &all), None);
    }
}
