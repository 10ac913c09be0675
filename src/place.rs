//! Where in the text of a file a key stands.

use toml::de::{DeTable, DeValue};

/// A table at the top of a file: the only one of its name, such as `[settings]`, or one of several,
/// such as `[[fusion]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    name: &'static str,
    /// Which of several, from 0.
    nth: Option<usize>,
}

impl Section {
    /// The only table of a name.
    pub(crate) const fn only(name: &'static str) -> Self {
        Self { name, nth: None }
    }

    /// One of several tables of a name, from 0.
    pub(crate) const fn nth(name: &'static str, nth: usize) -> Self {
        Self { name, nth: Some(nth) }
    }

    /// The line of its header, from 1, if it has one.
    pub(crate) fn line(self, text: &str) -> Option<usize> {
        let (header, nth) = match self.nth {
            None => (format!("[{}]", self.name), 0),
            Some(nth) => (format!("[[{}]]", self.name), nth),
        };
        let headers = text.lines().zip(1..).filter(|(line, _)| line.trim() == header);
        headers.map(|(_, number)| number).nth(nth)
    }

    /// Where one of its keys stands, in words: `settings.rounds at line 7`, or `[[noise]] at line 9,
    /// ratio at line 12`.
    pub(crate) fn describe(self, place: Place, text: &str) -> String {
        let header = self.line(text);
        let at =
            |line: Option<usize>| line.map_or_else(String::new, |line| format!(" at line {line}"));
        let key = place.name();
        let line = header.and_then(|header| place.line(text, self, header));
        // What is not there is missed in its section.
        let is_missed = line.is_none();
        let line = at(line);
        match self.nth {
            None if is_missed => format!("[{}]{}, {key}", self.name, at(header)),
            None => format!("{}.{key}{line}", self.name),
            Some(_) => format!("[[{}]]{}, {key}{line}", self.name, at(header)),
        }
    }
}

/// Where a key before all sections stands, in words: `num_records at line 5`.
pub(crate) fn describe_at_top(key: &str, text: &str) -> String {
    let lines = text.lines().map(str::trim).zip(1..);
    let mut lines = lines.take_while(|(line, _)| !line.starts_with('['));
    let at = lines.find(|(line, _)| is_key(line, key));
    at.map_or_else(|| key.to_owned(), |(_, line)| format!("{key} at line {line}"))
}

/// Whether a line gives the value of a key.
fn is_key(line: &str, key: &str) -> bool {
    line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// A key of a section, or of a table in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The table in the section, such as `unfused_timing`; empty for the section itself.
    table: &'static str,
    /// Which of several tables of this name, from 0.
    nth: usize,
    key: &'static str,
}

impl Place {
    /// A key of the section itself.
    pub(crate) const fn of(key: &'static str) -> Self {
        Self { table: "", nth: 0, key }
    }

    /// A key of a table in it.
    pub(crate) const fn within(table: &'static str, key: &'static str) -> Self {
        Self { table, nth: 0, key }
    }

    /// A key of one of several tables.
    pub(crate) const fn of_nth(table: &'static str, nth: usize, key: &'static str) -> Self {
        Self { table, nth, key }
    }

    /// The key in words: `unfused_timing.q1_ms`.
    pub(crate) fn name(self) -> String {
        let Self { table, nth, key } = self;
        match (table, nth) {
            ("", _) => key.to_owned(),
            (table, 0) => format!("{table}.{key}"),
            (table, nth) => format!("{table} {}, {key}", nth + 1),
        }
    }

    /// Where the key stands in a file that is one section, in words: `cores.count at line 7`. Its
    /// tables may be written in a line each.
    pub(crate) fn describe_in_file(self, text: &str) -> String {
        let key = self.name();
        let line = self.line_in_file(text);
        line.map_or_else(|| key.clone(), |line| format!("{key} at line {line}"))
    }

    fn line_in_file(self, text: &str) -> Option<usize> {
        let file = DeTable::parse(text).ok()?;
        let mut table = file.get_ref();
        if !self.table.is_empty() {
            let found = match table.get(self.table)?.get_ref() {
                DeValue::Array(all) => all.get(self.nth)?.get_ref(),
                one => one,
            };
            let DeValue::Table(found) = found else { return None };
            table = found;
        }
        let (key, _) = table.get_key_value(self.key)?;
        Some(1 + text[..key.span().start].matches('\n').count())
    }

    /// The key's line, from 1, in the section whose header is at a line.
    fn line(self, text: &str, section: Section, header: usize) -> Option<usize> {
        let own = [format!("[{}.", section.name), format!("[[{}.", section.name)];
        let is_other = |line: &str| {
            line.starts_with('[') && !own.iter().any(|prefix| line.starts_with(prefix))
        };
        let lines = text.lines().map(str::trim).zip(1..).skip(header);
        let mut lines = lines.take_while(|(line, _)| !is_other(line));
        if !self.table.is_empty() {
            let headers = own.each_ref().map(|prefix| format!("{prefix}{}]", self.table));
            let is_header = |line: &str| {
                line == headers[0] || line.strip_suffix(']') == Some(headers[1].as_str())
            };
            lines.by_ref().filter(|(line, _)| is_header(line)).nth(self.nth)?;
        }
        lines
            .take_while(|(line, _)| !line.starts_with('['))
            .find(|(line, _)| is_key(line, self.key))
            .map(|(_, number)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
[settings]
ms = 0
[hardware]
id = 1
[hardware.cores]
count = 2
[[fusion]]
ms = 1
[fusion.one]
ms = 2
[[fusion.step]]
ms = 3
[[fusion.step]]
ms_low = 4
ms=5
[[fusion]]
ms = 6
";

    #[test]
    fn a_key_is_found_in_a_file_however_its_tables_are_written() {
        let text = "id = 1\ncores = { count = 2,\n  threads = 3 }\n[[cache]]\nbytes = 4\n\
                    [[cache]]\n'bytes' = 5\n[memory]\nbytes = 6\n";
        for (place, expected) in [
            (Place::of("id"), "id at line 1"),
            (Place::within("cores", "count"), "cores.count at line 2"),
            (Place::within("cores", "threads"), "cores.threads at line 3"),
            (Place::of_nth("cache", 0, "bytes"), "cache.bytes at line 5"),
            (Place::of_nth("cache", 1, "bytes"), "cache 2, bytes at line 7"),
            (Place::within("memory", "bytes"), "memory.bytes at line 9"),
            (Place::of("name"), "name"),
            (Place::of_nth("cache", 2, "bytes"), "cache 3, bytes"),
        ] {
            assert_eq!(place.describe_in_file(text), expected);
        }
    }

    #[test]
    fn a_key_is_found_in_its_own_table() {
        let (first, second) = (Section::nth("fusion", 0), Section::nth("fusion", 1));
        let (settings, hardware) = (Section::only("settings"), Section::only("hardware"));
        for (place, section, expected) in [
            (Place::of("ms"), first, Some(8)),
            (Place::within("one", "ms"), first, Some(10)),
            (Place::of_nth("step", 0, "ms"), first, Some(12)),
            (Place::of_nth("step", 1, "ms"), first, Some(15)),
            (Place::of_nth("step", 2, "ms"), first, None),
            (Place::of("ms"), second, Some(17)),
            (Place::within("one", "ms"), second, None),
            (Place::of("low"), first, None),
            (Place::of("ms"), settings, Some(2)),
            (Place::of("id"), settings, None),
            (Place::within("cores", "count"), hardware, Some(6)),
        ] {
            let header = section.line(TEXT).unwrap();
            assert_eq!(place.line(TEXT, section, header), expected, "{place:?}");
        }
        let described = first.describe(Place::of_nth("step", 1, "ms"), TEXT);
        assert_eq!(described, "[[fusion]] at line 7, step 2, ms at line 15");
        assert_eq!(first.describe(Place::within("one", "q"), TEXT), "[[fusion]] at line 7, one.q");
        let described = hardware.describe(Place::within("cores", "count"), TEXT);
        assert_eq!(described, "hardware.cores.count at line 6");
        assert_eq!(Section::only("tool").describe(Place::of("name"), TEXT), "[tool], name");
        let described = hardware.describe(Place::of_nth("cache", 3, "level"), TEXT);
        assert!(described.starts_with("[hardware] at line "), "{described}");
        assert!(described.ends_with(", cache 4, level"), "{described}");
    }
}
