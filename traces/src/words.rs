//! Counts in sentences.

/// A number with its noun, which is given in the singular.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        _ if noun.ends_with("ss") || noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// The verb for a count: that of one, or that of several.
pub(crate) fn verb<'w>(count: u64, one: &'w str, several: &'w str) -> &'w str {
    if count == 1 { one } else { several }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_several() {
        for (count, expected) in [
            (0, "0 layers were there"),
            (1, "1 layer was there"),
            (2, "2 layers were there"),
            (u64::MAX, "18446744073709551615 layers were there"),
        ] {
            let found = format!("{} {} there", counted(count, "layer"), verb(count, "was", "were"));
            assert_eq!(found, expected);
        }
        assert_eq!((counted(1, "pass"), counted(2, "pass")), ("1 pass".into(), "2 passes".into()));
        assert_eq!(counted(2, "launch"), "2 launches");
    }
}
