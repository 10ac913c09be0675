//! Kernels of stacks that the rules were not written from have the class of what they do.

use std::collections::HashSet;

use kernel_traces::classify::{Class, classify};

/// `class`, where such names come from, and a name as profilers write it.
const NAMES: &str = include_str!("data/names.tsv");

#[test]
fn names_of_other_stacks_have_their_class() {
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    for line in NAMES.lines().skip(1) {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        let [class, origin, name] = fields[..] else { panic!("odd line: {line}") };
        assert!(Class::from_name(class).is_some(), "no such class: {line}");
        assert!(seen.insert(name), "twice: {name}");
        let found = classify(name);
        if found.main.name() != class {
            wrong
                .push(format!("{class} found as {} ({}): {origin}: {name}", found.main, found.why));
        }
    }
    assert!(seen.len() >= 150, "{} names", seen.len());
    let right = 1.0 - wrong.len() as f64 / seen.len() as f64;
    println!("{:.1} % of {} names\n{}", 100.0 * right, seen.len(), wrong.join("\n"));
    assert!(right >= 0.99, "{:.1} %:\n{}", 100.0 * right, wrong.join("\n"));
}
