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

/// The bytes of an element by the number of its type, as arguments of operators have it.
pub(crate) fn bytes_by_number(number: &str) -> Option<u64> {
    Some(match number.parse().ok()? {
        0_u8 | 1 | 11 | 23..=26 => 1,
        2 | 5 | 15 => 2,
        3 | 6 | 8 => 4,
        4 | 7 | 9 => 8,
        10 => 16,
        _ => return None,
    })
}

/// Which type the result of two operands has: the larger of these. Complex numbers win over floating
/// point, that over whole numbers, and these over truths; then the longer elements.
pub(crate) fn promotion(kind: &str) -> (u8, u64) {
    let name = kind.strip_prefix("c10::").unwrap_or(kind).to_ascii_lowercase();
    let category = match name.as_str() {
        "bool" => 0,
        "double" | "half" => 2,
        _ if name.starts_with("complex") => 3,
        _ if name.contains("float") => 2,
        _ => 1,
    };
    (category, bytes(kind).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_number() {
        // int8, f16, f32, bf16, f8.
        let of = |number| bytes_by_number(number);
        assert_eq!(["1", "5", "6", "15", "24"].map(of), [1, 2, 4, 2, 1].map(Some));
        assert_eq!(["", "-1", "99", "300", "True"].map(of), [None; 5]);
    }

    #[test]
    fn results_have_the_larger_type() {
        let kinds =
            ["bool", "signed char", "long int", "c10::Half", "float", "c10::complex<float>"];
        for (smaller, larger) in kinds.iter().zip(&kinds[1..]) {
            assert!(promotion(smaller) < promotion(larger), "{smaller} {larger}");
        }
    }

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
