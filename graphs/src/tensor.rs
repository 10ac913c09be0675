//! Tensors: the type of their elements, their declared shape, and where they come from.

use std::fmt;

use fusion_cost_model::DType;

use crate::dims::Dim;

/// A tensor's place in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TensorId(pub(crate) usize);

/// What is declared of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) element: Option<Element>,
    pub(crate) shape: Option<Vec<Dim>>,
    pub(crate) source: Source,
}

/// Where a tensor comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// Given to every run.
    Input,
    /// Known ahead of time, with its elements in order where they are few.
    Constant(Option<Vec<f64>>),
    /// Written by a node, by its index.
    Node(usize),
}

/// At most this many elements of a constant are kept: shapes, axes and single numbers are what
/// decides about a graph, and weights are not.
pub(crate) const MAX_VALUES: usize = 64;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    /// One that problems can have.
    Number(DType),
    /// Another one, by ONNX's name for it.
    Other(&'static str),
}

/// The names of ONNX for the element types that problems cannot have.
const OTHERS: [&str; 14] = [
    "uint8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "string",
    "bool",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
    "uint4",
    "int4",
    "float4e2m1",
];

impl Element {
    pub(crate) const INT64: Self = Self::Other("int64");
    pub(crate) const BOOL: Self = Self::Other("bool");

    /// The element type with a name of ONNX, PyTorch or this project.
    pub(crate) fn parse(name: &str) -> Result<Self, fusion_cost_model::Error> {
        let bare = name.strip_prefix("torch.").unwrap_or(name).to_ascii_lowercase();
        let short = match bare.as_str() {
            "i64" | "long" => "int64",
            "i32" | "int" => "int32",
            "i16" | "short" => "int16",
            "u8" | "byte" => "uint8",
            other => other,
        };
        if let Some(&other) = OTHERS.iter().find(|&&other| other == short) {
            return Ok(Self::Other(other));
        }
        short.parse().map(Self::Number)
    }

    /// The element type with a number of ONNX's `TensorProto.DataType`.
    pub(crate) fn from_onnx(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::Number(DType::F32),
            2 => Self::Other("uint8"),
            3 => Self::Number(DType::I8),
            4 => Self::Other("uint16"),
            5 => Self::Other("int16"),
            6 => Self::Other("int32"),
            7 => Self::INT64,
            8 => Self::Other("string"),
            9 => Self::BOOL,
            10 => Self::Number(DType::F16),
            11 => Self::Number(DType::F64),
            12 => Self::Other("uint32"),
            13 => Self::Other("uint64"),
            14 => Self::Other("complex64"),
            15 => Self::Other("complex128"),
            16 => Self::Number(DType::Bf16),
            17..=20 => Self::Number(DType::F8),
            21 => Self::Other("uint4"),
            22 => Self::Other("int4"),
            23 => Self::Other("float4e2m1"),
            _ => return None,
        })
    }

    /// Whether a division of such numbers drops the remainder.
    pub(crate) fn is_integer(self) -> bool {
        match self {
            Self::Number(dtype) => dtype == DType::I8,
            Self::Other(name) => name.contains("int"),
        }
    }

    /// The dtype, where problems can have it.
    pub(crate) const fn dtype(self) -> Option<DType> {
        match self {
            Self::Number(dtype) => Some(dtype),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(dtype) => dtype.fmt(f),
            Self::Other(name) => f.pad(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_frameworks_are_element_types() {
        for (name, element) in [
            ("f32", Element::Number(DType::F32)),
            ("torch.float16", Element::Number(DType::F16)),
            ("torch.int64", Element::INT64),
            ("i64", Element::INT64),
            ("bool", Element::BOOL),
        ] {
            assert_eq!(Element::parse(name).unwrap(), element, "{name}");
        }
        let message = Element::parse("flaot32").unwrap_err().to_string();
        assert!(message.contains("unknown dtype `flaot32`"), "{message}");
    }

    #[test]
    fn numbers_of_onnx_are_element_types() {
        assert_eq!(Element::from_onnx(1), Some(Element::Number(DType::F32)));
        assert_eq!(Element::from_onnx(16), Some(Element::Number(DType::Bf16)));
        assert_eq!(Element::from_onnx(0), None);
        assert_eq!(Element::from_onnx(99), None);
        assert!(Element::INT64.is_integer() && !Element::BOOL.is_integer());
    }
}
