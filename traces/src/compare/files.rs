//! What to call two traces by their files.

use std::path::Path;

use crate::ranks::rank_in;

/// Longer names would make sentences unreadable.
const LONGEST: usize = 40;

/// What stands behind the name of a trace.
const ENDINGS: [&str; 5] = [".gz", ".json", ".trace", ".pt", ".pftrace"];

/// The names of two files without what both have; their places if that says nothing.
pub(super) fn labels(names: [&str; 2]) -> [String; 2] {
    let files = names.map(|name| stem(Path::new(name)));
    let folders = names.map(|name| Path::new(name).parent().map(stem).unwrap_or_default());
    // Of two runs over several ranks, the rank is not what tells them apart.
    let are_ranks = files.iter().all(|file| rank_in(file).is_some());
    let order = if are_ranks { [folders, files] } else { [files, folders] };
    order
        .into_iter()
        .filter_map(different)
        .find(|labels| labels.iter().all(|label| label.chars().count() <= LONGEST))
        .unwrap_or_else(|| ["first", "second"].map(str::to_owned))
}

/// The last part of a path without its endings.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut name: &str = &name;
    while let Some(shorter) = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)) {
        name = shorter;
    }
    // It stands in sentences, where a control character is none of its own.
    name.chars().filter(|letter| !letter.is_control()).collect()
}

/// Two names without the words that both begin and end with; none if they are alike.
fn different([first, second]: [String; 2]) -> Option<[String; 2]> {
    if first == second || first.is_empty() || second.is_empty() {
        return None;
    }
    let words = [&first, &second].map(|name| name.split_inclusive(['_', '.']).collect::<Vec<_>>());
    let [a, b] = &words;
    let before = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let rest = words.each_ref().map(|words| words.get(before..).unwrap_or_default());
    let [a, b] = rest;
    let behind = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let short = rest.map(|words| {
        let own = words.get(..words.len().saturating_sub(behind)).unwrap_or_default().concat();
        own.trim_end_matches(['_', '.']).to_owned()
    });
    // A number alone does not say what it is the number of.
    let says_something = |label: &String| label.contains(|letter: char| letter.is_alphabetic());
    if short.iter().all(says_something) && short[0] != short[1] {
        Some(short)
    } else {
        Some([first, second])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_files_apart() {
        for (names, expected) in [
            (["a/base.json", "b/test.json.gz"], ["base", "test"]),
            (["model_bs2.json.gz", "model_bs128.json.gz"], ["bs2", "bs128"]),
            (["h100_bert_eager.json", "h100_gpt2_eager.json"], ["bert", "gpt2"]),
            (["before/rank0.json", "after/rank1.json"], ["before", "after"]),
            (["run/rank0.json", "run/rank1.json"], ["rank0", "rank1"]),
            (["before/trace.json", "after/trace.json"], ["before", "after"]),
            (["run_1.pt.trace.json", "run_2.pt.trace.json"], ["run_1", "run_2"]),
            (["t.json", "t.json.gz"], ["first", "second"]),
            (["", "x"], ["first", "second"]),
        ] {
            assert_eq!(labels(names), expected, "{names:?}");
        }
        let long = format!("{}.json", "x".repeat(50));
        assert_eq!(labels([&long, "y.json"]), ["first", "second"]);
    }
}
