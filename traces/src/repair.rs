//! Repairs of the JSON that profilers are known to get wrong.

/// The text with invalid UTF-8 replaced, raw control characters in strings escaped, and numbers
/// that JSON has no form for (`nan`, `inf`) as null.
pub(crate) fn repaired(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut result = String::with_capacity(text.len() + 16);
    let (mut in_string, mut is_escaped) = (false, false);
    let mut rest = &*text;
    while let Some(character) = rest.chars().next() {
        let mut used = character.len_utf8();
        match character {
            _ if in_string && is_escaped => {
                is_escaped = false;
                result.push(character);
            }
            '\0'..='\x1f' if in_string => {
                result.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            '"' => {
                in_string = !in_string;
                result.push('"');
            }
            '-' | 'a'..='z' | 'A'..='Z' if !in_string => {
                let in_word = |c: char| c == '-' || c == '.' || c == '+' || c.is_alphanumeric();
                used = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
                let word = rest.get(..used).unwrap_or_default();
                result.push_str(if is_no_number(word) { "null" } else { word });
            }
            _ => {
                is_escaped = in_string && character == '\\';
                result.push(character);
            }
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    result
}

fn is_no_number(word: &str) -> bool {
    let word = word.trim_start_matches('-');
    ["nan", "inf", "infinity"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs() {
        assert_eq!(
            repaired(b"{\"a\tb\": nan, \"c\": -Infinity, \"n\": -1.5e+3}"),
            "{\"a\\u0009b\": null, \"c\": null, \"n\": -1.5e+3}"
        );
        assert_eq!(repaired(b"\"\xff\\\"inf\""), "\"\u{fffd}\\\"inf\"");
    }
}
