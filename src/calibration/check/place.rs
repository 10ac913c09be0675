//! Where in the text of a file a key stands.

/// A key of a record, or of a table in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The table in the record, such as `unfused_timing`; empty for the record itself.
    table: &'static str,
    /// Which of several tables of this name, from 0.
    nth: usize,
    key: &'static str,
}

impl Place {
    /// A key of the record itself.
    pub(super) const fn of(key: &'static str) -> Self {
        Self { table: "", nth: 0, key }
    }

    /// A key of a table in it.
    pub(super) const fn within(table: &'static str, key: &'static str) -> Self {
        Self { table, nth: 0, key }
    }

    /// A key of one of several tables.
    pub(super) const fn of_nth(table: &'static str, nth: usize, key: &'static str) -> Self {
        Self { table, nth, key }
    }

    /// The key in words: `unfused_timing.q1_ms`.
    fn name(self) -> String {
        let Self { table, nth, key } = self;
        match (table, nth) {
            ("", _) => key.to_owned(),
            (table, 0) => format!("{table}.{key}"),
            (table, nth) => format!("{table} {}, {key}", nth + 1),
        }
    }

    /// Where the key stands in the `index`-th record of a text.
    pub(super) fn describe(self, text: &str, index: usize) -> String {
        let record = line_of_record(text, index);
        let at = format!("[[fusion]] at line {record}");
        match self.line(text, record) {
            Some(line) => format!("{at}, {} at line {line}", self.name()),
            None => format!("{at}, {}", self.name()),
        }
    }

    /// The key's line, from 1, in the record whose header is at a line.
    fn line(self, text: &str, record: usize) -> Option<usize> {
        let lines = text.lines().map(str::trim).zip(1..).skip(record);
        let mut lines = lines.take_while(|(line, _)| *line != "[[fusion]]");
        if !self.table.is_empty() {
            let headers =
                [format!("[fusion.{}]", self.table), format!("[[fusion.{}]]", self.table)];
            lines
                .by_ref()
                .filter(|(line, _)| headers.iter().any(|one| line == one))
                .nth(self.nth)?;
        }
        let is_key = |line: &str| {
            line.strip_prefix(self.key).is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        lines
            .take_while(|(line, _)| !line.starts_with('['))
            .find(|(line, _)| is_key(line))
            .map(|(_, number)| number)
    }
}

/// The line of the `index`-th `[[fusion]]` header, from 1.
pub(super) fn line_of_record(text: &str, index: usize) -> usize {
    let headers = text.lines().zip(1..).filter(|(line, _)| line.trim() == "[[fusion]]");
    headers.map(|(_, number)| number).nth(index).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
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
    fn a_key_is_found_in_its_own_table() {
        for (place, index, expected) in [
            (Place::of("ms"), 0, Some(2)),
            (Place::within("one", "ms"), 0, Some(4)),
            (Place::of_nth("step", 0, "ms"), 0, Some(6)),
            (Place::of_nth("step", 1, "ms"), 0, Some(9)),
            (Place::of_nth("step", 2, "ms"), 0, None),
            (Place::of("ms"), 1, Some(11)),
            (Place::within("one", "ms"), 1, None),
            (Place::of("low"), 0, None),
        ] {
            assert_eq!(place.line(TEXT, line_of_record(TEXT, index)), expected, "{place:?}");
        }
        let described = Place::of_nth("step", 1, "ms").describe(TEXT, 0);
        assert_eq!(described, "[[fusion]] at line 1, step 2, ms at line 9");
        let described = Place::within("one", "q").describe(TEXT, 0);
        assert_eq!(described, "[[fusion]] at line 1, one.q");
    }
}
