//! Every single edit of a file: one value, in one place, changed in one way.

use std::collections::BTreeSet;

use toml::{Table, Value};

/// How a value was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// The key is gone.
    Removed,
    /// A number is 0.
    Zero,
    /// A number has the other sign; that of 0 is -1.
    Negative,
    /// A number is twice as large.
    Doubled,
    /// A number is half as large.
    Halved,
    /// A whole number is as large as one of 32 bits can be.
    Large,
    /// A number is 10^30 times as large; a whole one is as large as it can be.
    Huge,
    /// A number is 10^30 times as small.
    Tiny,
    /// A number is none.
    Nan,
    /// A number is infinite.
    Infinite,
    /// A switch is the other way.
    Flipped,
    /// A text has no letters.
    Blank,
    /// A text becomes another one that is in no list.
    Text,
    /// A text is another one of the same kind: another word of its list, another problem or time.
    Other,
    /// A list has no entries.
    Emptied,
    /// A list has lost its last entry.
    Shortened,
    /// A list has its last entry twice.
    Lengthened,
    /// A list is in the opposite order.
    Reversed,
}

/// A text that is in no list.
pub(crate) const TEXT: &str = "something else";

/// Texts of the kinds that have a form of their own.
const OTHERS: [&str; 5] =
    ["add_relu/f32/m8.n8", "2027-01-01T00:00:00Z", "vendor", "tiny@9.9", "auto"];

/// A file with one edit.
pub(crate) struct Edit {
    /// The keys that lead to the value: `fusion.unfused_timing.q1_ms`. All entries of a list have
    /// the same.
    pub(crate) path: String,
    pub(crate) change: Change,
    /// The value instead; `None` for none.
    pub(crate) value: Option<Value>,
    pub(crate) file: Table,
}

#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// Every edit of a file. `words_for` says of a file with an unknown word which words are known in its
/// place.
pub(crate) fn edits(file: &Table, words_for: impl Fn(&Table) -> Vec<String>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut at = Vec::new();
    for_each(&Value::Table(file.clone()), &mut at, &mut |at, value| {
        let is_entry = matches!(at.last(), Some(Step::Index(_)));
        let mut changes = changes(value);
        if value.is_str() {
            let words = words_for(&edited(file, at, Some(&Value::from(TEXT))));
            changes.extend(words.into_iter().map(|word| (Change::Other, Some(Value::from(word)))));
        }
        for (change, other) in changes {
            let is_edit = other.as_ref() != Some(value) && !(is_entry && other.is_none());
            if is_edit {
                let file = edited(file, at, other.as_ref());
                edits.push(Edit { path: path(at), change, value: other, file });
            }
        }
    });
    edits
}

/// The keys of every value in a file.
pub(crate) fn paths(file: &Table) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for_each(&Value::Table(file.clone()), &mut Vec::new(), &mut |at, _| {
        paths.insert(path(at));
    });
    paths
}

/// A file for each of its tables, with a key that no table has, and the keys that lead to the table.
pub(crate) fn with_unknown_keys(file: &Table) -> Vec<(String, Table)> {
    let mut files = Vec::new();
    for_each(&Value::Table(file.clone()), &mut Vec::new(), &mut |at, value| {
        if let Value::Table(table) = value {
            let mut table = table.clone();
            table.insert("no_such_key".to_owned(), Value::from(1));
            files.push((path(at), edited(file, at, Some(&Value::Table(table)))));
        }
    });
    files
}

fn path(at: &[Step]) -> String {
    let keys = at.iter().filter_map(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Index(_) => None,
    });
    keys.collect::<Vec<_>>().join(".")
}

/// A list with more entries than this is visited at both of its ends.
const MOST_ENTRIES: usize = 3;

/// Visits all values but the file itself.
fn for_each(value: &Value, at: &mut Vec<Step>, visit: &mut impl FnMut(&[Step], &Value)) {
    if !at.is_empty() {
        visit(at, value);
    }
    let mut inside = |step: Step, value: &Value| {
        at.push(step);
        for_each(value, at, visit);
        at.pop();
    };
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(key, value)| inside(Step::Key(key.clone()), value));
        }
        Value::Array(entries) => {
            let is_visited =
                |at: usize| entries.len() <= MOST_ENTRIES || at == 0 || at + 1 == entries.len();
            let visited = entries.iter().enumerate().filter(|(at, _)| is_visited(*at));
            visited.for_each(|(at, value)| inside(Step::Index(at), value));
        }
        _ => {}
    }
}

fn changes(value: &Value) -> Vec<(Change, Option<Value>)> {
    let mut all = vec![(Change::Removed, None)];
    let mut to = |change, value: Value| all.push((change, Some(value)));
    match value {
        Value::Integer(number) => {
            let negative = if *number == 0 { -1 } else { -number };
            to(Change::Zero, Value::from(0));
            to(Change::Negative, Value::from(negative));
            to(Change::Doubled, Value::from(number.saturating_mul(2)));
            to(Change::Halved, Value::from(number / 2));
            to(Change::Large, Value::from(u32::MAX));
            to(Change::Huge, Value::from(i64::MAX));
        }
        Value::Float(number) => {
            let size = if *number == 0.0 { 1.0 } else { *number };
            to(Change::Zero, Value::from(0.0));
            to(Change::Negative, Value::from(-size));
            to(Change::Doubled, Value::from(2.0 * number));
            to(Change::Halved, Value::from(0.5 * number));
            to(Change::Huge, Value::from(1e30 * size));
            to(Change::Tiny, Value::from(1e-30 * size));
            to(Change::Nan, Value::from(f64::NAN));
            to(Change::Infinite, Value::from(f64::INFINITY));
        }
        Value::Boolean(switch) => to(Change::Flipped, Value::from(!switch)),
        Value::String(_) => {
            to(Change::Blank, Value::from(" "));
            to(Change::Text, Value::from(TEXT));
            OTHERS.into_iter().for_each(|other| to(Change::Other, Value::from(other)));
        }
        Value::Array(entries) => {
            to(Change::Emptied, Value::Array(Vec::new()));
            to(Change::Reversed, Value::Array(entries.iter().rev().cloned().collect()));
            if let Some((last, others)) = entries.split_last() {
                to(Change::Shortened, Value::Array(others.to_vec()));
                to(Change::Lengthened, Value::Array([entries, &[last.clone()][..]].concat()));
            }
        }
        Value::Table(_) | Value::Datetime(_) => {}
    }
    all
}

fn edited(file: &Table, at: &[Step], value: Option<&Value>) -> Table {
    let mut whole = Value::Table(file.clone());
    let (last, before) = at.split_last().unwrap();
    let mut parent = &mut whole;
    for step in before {
        parent = match step {
            Step::Key(key) => &mut parent[key.as_str()],
            Step::Index(index) => &mut parent[*index],
        };
    }
    match (last, value) {
        (Step::Index(index), Some(value)) => parent[*index] = value.clone(),
        (Step::Index(index), None) => _ = parent.as_array_mut().unwrap().remove(*index),
        (Step::Key(key), Some(value)) => {
            _ = parent.as_table_mut().unwrap().insert(key.clone(), value.clone());
        }
        (Step::Key(key), None) => _ = parent.as_table_mut().unwrap().remove(key),
    }
    let Value::Table(file) = whole else { unreachable!("a file is a table") };
    file
}
