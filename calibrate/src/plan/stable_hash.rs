//! Numbers for texts.

use std::hash::Hasher;

use fnv::FnvHasher;

/// A number for a text, the same in every process, on every machine and in every version: seeds and
/// parts of a plan depend on it, so that another hash would draw other inputs and deal other parts.
#[must_use]
pub fn stable_hash(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that are published for FNV-1a.
    #[test]
    fn it_is_the_hash_of_all_versions() {
        assert_eq!(stable_hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(stable_hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(stable_hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
