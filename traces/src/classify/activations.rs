//! Which activations a name may mean: two kernels compute the same one only if their names have one in
//! common.

use super::name;
use super::rules::has_word;

/// Some kinds of activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activations(u8);

const RELU: u8 = 1;
const GELU: u8 = 2;
const SILU: u8 = 4;

/// What parts of names mean. An activation that is written out in its operators is named after what
/// only it takes: the error function and `tanh` of GELU, the sigmoid of SiLU.
const PARTS: [(&str, u8); 7] = [
    ("relu", RELU),
    ("quick_gelu", SILU),
    ("gelu", GELU),
    ("geglu", GELU),
    ("silu", SILU),
    ("swish", SILU),
    ("swiglu", SILU),
];
const WORDS: [(&str, u8); 4] = [("clamp", RELU), ("erf", GELU), ("tanh", GELU), ("sigmoid", SILU)];

impl Activations {
    pub(crate) const NONE: Self = Self(0);
    /// Any: what a name that says nothing may mean.
    pub(crate) const ANY: Self = Self(u8::MAX);
    pub(crate) const RELU: Self = Self(RELU);
    pub(crate) const GELU: Self = Self(GELU);

    /// Those that a name may mean, of a kernel or of an operator.
    pub(crate) fn of(name: &str) -> Self {
        let name::Parts { words, args, .. } = name::Parts::of(name);
        let text = words + &args.replace(' ', "_");
        let parts = PARTS.iter().filter(|(part, _)| text.contains(part));
        let words = WORDS.iter().filter(|(word, _)| has_word(&text, word));
        match parts.chain(words).fold(0, |found, (_, kind)| found | kind) {
            0 => Self::ANY,
            found => Self(found),
        }
    }

    pub(crate) const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(crate) const fn meet(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_activations() {
        let gelu = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}, std::array<char*, 2ul> >(int)";
        let clamp = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar)::{lambda()#1}, std::array<char*, 2ul> >(int)";
        let gated = "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*)";
        for (name, kind) in [
            (gelu, GELU),
            (clamp, RELU),
            (gated, SILU),
            ("aten::relu_", RELU),
            ("_swiglu_forward_kernel", SILU),
            ("triton_poi_fused_add_mul_pow_tanh_4", GELU),
            ("triton_poi_fused_mul_sigmoid_3", SILU),
            ("act_and_mul_kernel", u8::MAX),
        ] {
            assert_eq!(Activations::of(name), Activations(kind), "{name}");
        }
        assert!(Activations::of(gelu).meet(Activations::of("fused_gelu_tanh_kernel")));
        assert!(!Activations::of(gelu).meet(Activations::of(gated)));
    }
}
