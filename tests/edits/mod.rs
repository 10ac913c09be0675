//! Every value of a calibration file is changed in every way, one at a time. Nothing is accepted but
//! what is listed in `free`, with the reason why nothing in the file speaks against it.

mod documents;
mod edit;
mod free;

use std::collections::{BTreeMap, BTreeSet};

use documents::documents;
use edit::{Change, Edit};
use free::{FREE, Free};
use fusion_cost_model::calibration::HardwareCalibration;
use toml::Table;

fn read(file: &Table) -> Result<HardwareCalibration, String> {
    let text = toml::to_string_pretty(file).unwrap();
    HardwareCalibration::from_toml(&text).map_err(|error| error.to_string())
}

/// What is in backticks behind a word of a message of serde's.
fn listed(message: &str, behind: &str) -> Vec<String> {
    let list = message.split_once(behind).map_or("", |(_, list)| list);
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The words that are known where a file has one that is not.
fn words(file: &Table) -> Vec<String> {
    let message = read(file).err().unwrap_or_default();
    let is_of_list = message.contains("unknown variant");
    if is_of_list { listed(&message, ", expected") } else { Vec::new() }
}

fn tables() -> [(&'static str, Table); 3] {
    documents().map(|(name, calibration)| {
        let text = calibration.to_toml().unwrap();
        assert_eq!(HardwareCalibration::from_toml(&text).unwrap(), calibration, "{name}");
        (name, text.parse().unwrap())
    })
}

/// Nothing would be said of a key that none of the files has.
#[test]
fn the_files_have_every_key() {
    let tables = tables();
    let paths: BTreeSet<String> = tables.iter().flat_map(|(_, file)| edit::paths(file)).collect();
    let mut missing = BTreeSet::new();
    let mut known = 0;
    for (name, file) in &tables {
        for (path, file) in edit::with_unknown_keys(file) {
            let message = read(&file).expect_err("a key that no table has");
            let keys = listed(&message, ", expected");
            // Tables by name: the sizes of a problem, and the options of a runtime.
            if keys.is_empty() {
                assert!(
                    ["fusion.extra_params", "runtime.options"].contains(&path.as_str()),
                    "{name}: {path}: {message}"
                );
            }
            known += keys.len();
            let keys = keys.into_iter().map(|key| format!("{path}.{key}"));
            missing.extend(keys.filter(|key| !paths.contains(key)));
        }
    }
    assert!(known > 300, "{known}");
    assert_eq!(missing, BTreeSet::new());
}

/// What came of all edits of some files.
#[derive(Default)]
struct Tried {
    edits: usize,
    /// One of the values that were accepted, by its keys and how it was changed.
    accepted: BTreeMap<(String, Change), String>,
    /// Messages that do not say where, by the keys.
    without_line: BTreeMap<String, String>,
}

impl Tried {
    fn with(mut self, other: Self) -> Self {
        self.edits += other.edits;
        self.accepted.extend(other.accepted);
        self.without_line.extend(other.without_line);
        self
    }
}

fn tried(name: &str, file: &Table) -> Tried {
    let mut tried = Tried::default();
    for Edit { path, change, value, file } in edit::edits(file, words) {
        tried.edits += 1;
        match read(&file) {
            Ok(_) => _ = tried.accepted.insert((path, change), format!("{name}: {value:?}")),
            // What is gone has no line, nor has what is missing beside an entry more, nor what stands
            // above all tables.
            Err(message) => {
                let is_there = !matches!(
                    change,
                    Change::Removed | Change::Emptied | Change::Shortened | Change::Lengthened
                );
                if is_there && path.contains('.') && !message.contains("line ") {
                    tried.without_line.insert(path, message);
                }
            }
        }
    }
    tried
}

/// What may be changed alone.
fn free() -> BTreeSet<(String, Change)> {
    let mut all = BTreeSet::new();
    for Free { why, keys } in FREE {
        for (changes, paths) in *keys {
            for (path, change) in
                paths.iter().flat_map(|path| changes.iter().map(move |one| (path, one)))
            {
                let is_new = all.insert(((*path).to_owned(), *change));
                assert!(is_new, "{path}, {change:?} is listed twice, the second time as: {why}");
            }
        }
    }
    all
}

#[test]
fn no_edit_is_accepted_that_something_speaks_against() {
    let tables = tables();
    let Tried { edits, accepted, without_line } = std::thread::scope(|scope| {
        let tries = tables.each_ref().map(|(name, file)| scope.spawn(|| tried(name, file)));
        tries.into_iter().map(|one| one.join().unwrap()).fold(Tried::default(), Tried::with)
    });
    assert!(edits > 5000, "{edits}");
    let free = free();
    let more: Vec<_> = accepted.iter().filter(|(edit, _)| !free.contains(*edit)).collect();
    let fewer: Vec<_> = free.iter().filter(|edit| !accepted.contains_key(*edit)).collect();
    assert!(more.is_empty() && fewer.is_empty(), "accepted: {more:#?}\nnot accepted: {fewer:#?}");
    assert!(without_line.is_empty(), "{without_line:#?}");
    println!("{edits} edits, {} accepted", accepted.len());
}
