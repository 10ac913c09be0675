//! How large the elements of tensors are.

/// The bytes of an element, by the name of its type: as PyTorch's operators write it (`float`,
/// `c10::BFloat16`) and as its collectives do (`Float`, `BFloat16`). None of what has no size.
pub(crate) fn bytes(kind: &str) -> Option<u64> {
    let name = kind.strip_prefix("c10::").unwrap_or(kind);
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "complex<double>" | "complexdouble" => 16,
        "double" | "long" | "long int" | "complex<float>" | "complexfloat" | "uint64"
        | "unsigned long" => 8,
        "float" | "int" | "uint32" | "unsigned int" | "complexhalf" | "complex<half>" => 4,
        "bfloat16" | "half" | "short" | "short int" | "uint16" | "unsigned short" => 2,
        "char" | "byte" | "bool" | "signed char" | "unsigned char" => 1,
        _ if name.starts_with("float8_") => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings() {
        for (names, size) in [
            (&["float", "Float", "int", "Int"][..], 4),
            (&["c10::BFloat16", "BFloat16", "c10::Half", "Half"], 2),
            (&["long int", "Long", "double", "Double", "c10::complex<float>"], 8),
            (&["bool", "Byte", "signed char", "c10::Float8_e4m3fnuz", "Float8_e5m2"], 1),
        ] {
            for name in names {
                assert_eq!(bytes(name), Some(size), "{name}");
            }
        }
        for name in ["", "TensorList", "Scalar", "QInt8", "c10::"] {
            assert_eq!(bytes(name), None, "{name}");
        }
    }
}
