//! The types of tensors' elements.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The type of a tensor's elements, or of those that a peak rate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// NVIDIA's 19-bit format inside matrix cores; tensors are stored as f32.
    Tf32,
    /// The upper half of an f32.
    Bf16,
    /// IEEE 754 binary16.
    F16,
    /// Eight-bit floating point (e4m3 or e5m2).
    F8,
    /// Eight-bit integers: unsigned ones times signed ones. Between the products of a chain and where
    /// they are requantised, numbers are f32.
    I8,
}

impl DType {
    /// Every dtype.
    pub const ALL: [Self; 7] =
        [Self::F64, Self::F32, Self::Tf32, Self::Bf16, Self::F16, Self::F8, Self::I8];

    /// The canonical name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::F8 => "f8",
            Self::I8 => "i8",
        }
    }

    /// Bytes of one element in memory.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::Tf32 => 4,
            Self::Bf16 | Self::F16 => 2,
            Self::F8 | Self::I8 => 1,
        }
    }

    /// Bytes of a number between the ops of a chain: those of an element, but for the sums of products
    /// of eight-bit integers.
    #[must_use]
    pub const fn sum_bytes(self) -> u64 {
        match self {
            Self::I8 => Self::F32.bytes(),
            _ => self.bytes(),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_prefix("torch.").unwrap_or(&lower);
        Ok(match name {
            "f64" | "fp64" | "float64" | "double" => Self::F64,
            "f32" | "fp32" | "float32" | "float" => Self::F32,
            "tf32" => Self::Tf32,
            "bf16" | "bfloat16" => Self::Bf16,
            "f16" | "fp16" | "float16" | "half" => Self::F16,
            "f8" | "fp8" | "float8" => Self::F8,
            "i8" | "int8" => Self::I8,
            // Of products of these, `i8` is the whole.
            "u8" | "uint8" | "s8" | "qint8" | "quint8" => {
                return Err(Error::foreign_name("dtype", text, Self::I8.name()));
            }
            _ => {
                return Err(Error::unknown_name(
                    "dtype",
                    text,
                    Self::ALL.iter().map(|dtype| dtype.name()),
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_frameworks_spellings_are_known() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
        }
        assert_eq!("torch.bfloat16".parse::<DType>().unwrap(), DType::Bf16);
        assert_eq!("FP16".parse::<DType>().unwrap(), DType::F16);
        let message = "f23".parse::<DType>().unwrap_err().to_string();
        assert!(message.contains("f32"), "{message}");
        for foreign in ["u8", "torch.quint8", "S8"] {
            let message = foreign.parse::<DType>().unwrap_err().to_string();
            assert_eq!(message, format!("unknown dtype `{foreign}`; did you mean `i8`?"));
        }
    }
}
