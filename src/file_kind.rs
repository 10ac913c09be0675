//! What a TOML file of the project says that it is, before anything else of it is read.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, shortened};
use crate::place::describe_at_top;

/// The `kind` at the top of each of the project's TOML files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileKind {
    /// What was measured on a machine.
    Calibration,
    /// The data sheet of a machine.
    Hardware,
    /// Which sizes to measure.
    Shapes,
    /// What another calibrator measured.
    Imported,
    /// A model, as the layers that it runs.
    Workload,
}

impl FileKind {
    /// Every kind.
    const ALL: [Self; 5] =
        [Self::Calibration, Self::Hardware, Self::Shapes, Self::Imported, Self::Workload];

    /// The word in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Hardware => "hardware",
            Self::Shapes => "shapes",
            Self::Imported => "imported",
            Self::Workload => "workload",
        }
    }

    /// What a text says that it is; `None` where it says nothing that is known, or is no TOML.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::said_in(&top(text).ok()?)
    }

    fn said_in(table: &toml::Table) -> Option<Self> {
        let kind = table.get("kind")?.as_str()?;
        Self::ALL.into_iter().find(|known| known.name() == kind)
    }

    /// Checks that a text is a TOML file of this kind and version.
    ///
    /// A file of another kind or version may have keys that would make a worse message, so this
    /// comes before anything else of the file is read. What comes after the first table is parsed
    /// only where the keys before it do not say what the file is.
    ///
    /// # Errors
    ///
    /// An [`Error`] that says what the file is and what was expected, or where it is no TOML.
    pub fn expect(self, text: &str, schema_version: u32) -> Result<(), Error> {
        let no_toml = |error| Error::invalid_file(self.name(), error);
        let mut table = top(text).map_err(no_toml)?;
        if Self::said_in(&table).is_none() {
            table = text.parse().map_err(no_toml)?;
        }
        let given = table.get("kind");
        let kind = given.and_then(toml::Value::as_str).map(shortened);
        let version = table.get("schema_version");
        match (Self::said_in(&table), version.and_then(toml::Value::as_integer)) {
            (Some(found), _) if found != self => Err(self.wrong(format!(
                "it is {}, not {}; {}",
                found.with_article(),
                self.with_article(),
                found.advice()
            ))),
            (Some(_), Some(found)) if found == i64::from(schema_version) => Ok(()),
            (Some(_), Some(found)) => Err(self.other_version(found, schema_version)),
            (Some(_), None) if version.is_some() => {
                let key = describe_at_top("schema_version", text);
                Err(Error::invalid_file(self.name(), format!("{key} must be a whole number")))
            }
            (Some(_), None) => {
                Err(Error::invalid_file(self.name(), "it has no schema_version at its top level"))
            }
            // Before it had a kind, a file could only be known by its contents.
            (None, Some(found))
                if found < i64::from(schema_version) && table.contains_key(self.landmark()) =>
            {
                Err(self.other_version(found, schema_version))
            }
            (None, _) => Err(self.wrong(match kind {
                Some(kind) => format!(
                    "{} is `{kind}`; expected `{}` (the kinds are calibration, hardware, shapes, \
                     imported and workload)",
                    describe_at_top("kind", text),
                    self.name()
                ),
                None => format!(
                    "{}; expected kind = \"{}\"",
                    match given {
                        None => "it has no `kind` at its top level".to_owned(),
                        Some(_) => format!("{} is not a text", describe_at_top("kind", text)),
                    },
                    self.name()
                ),
            })),
        }
    }

    fn wrong(self, reason: String) -> Error {
        ErrorKind::WrongFile { path: None, reason }.into()
    }

    fn other_version(self, found: i64, known: u32) -> Error {
        let is_newer = found > i64::from(known);
        let advice = match (self, is_newer) {
            (Self::Calibration, true) => "use a newer version of the tool, or calibrate again",
            (Self::Calibration, false) => "calibrate again",
            (Self::Imported, false) => "import it again",
            (_, true) => "use a newer calibrate",
            (_, false) => "write it in the format of the files that come with calibrate",
        };
        ErrorKind::OtherVersion { path: None, found, known, advice }.into()
    }

    /// A key that only files of this kind have at their top level.
    const fn landmark(self) -> &'static str {
        match self {
            Self::Calibration => "fingerprint",
            Self::Hardware => "cores",
            Self::Shapes => "description",
            Self::Imported => "source",
            Self::Workload => "blocks",
        }
    }

    const fn with_article(self) -> &'static str {
        match self {
            Self::Calibration => "a calibration",
            Self::Hardware => "a hardware profile",
            Self::Shapes => "a set of shapes",
            Self::Imported => "an imported profile",
            Self::Workload => "a workload",
        }
    }

    /// What such a file is for.
    const fn advice(self) -> &'static str {
        match self {
            Self::Calibration => "`calibrate show` prints it",
            Self::Hardware => "name it with --hardware when you calibrate",
            Self::Shapes => "name it with --shapes when you calibrate",
            Self::Imported => {
                "its times have no intervals to decide by; `calibrate compare` takes it"
            }
            Self::Workload => "`calibrate workload` predicts and measures it",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The keys before the first table, or the whole file where these are not to be had alone, since a
/// value reaches over a line that looks like the beginning of a table.
fn top(text: &str) -> Result<toml::Table, toml::de::Error> {
    let end = if text.starts_with('[') { Some(0) } else { text.find("\n[").map(|at| at + 1) };
    let keys = end.and_then(|end| text.get(..end));
    keys.and_then(|keys| keys.parse().ok()).map_or_else(|| text.parse(), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        FileKind::Calibration.expect(text, 3).unwrap_err().to_string()
    }

    #[test]
    fn a_file_says_what_it_is() {
        let right = "kind = \"calibration\"\nschema_version = 3\n";
        assert!(FileKind::Calibration.expect(right, 3).is_ok());
        assert_eq!(FileKind::of(right), Some(FileKind::Calibration));
        assert_eq!([FileKind::of("kind = 7"), FileKind::of("{}")], [None, None]);
        assert_eq!(
            message("kind = \"hardware\"\nschema_version = 2\n"),
            "it is a hardware profile, not a calibration; name it with --hardware when you \
             calibrate"
        );
        assert_eq!(
            FileKind::Hardware.expect(right, 2).unwrap_err().to_string(),
            "it is a calibration, not a hardware profile; `calibrate show` prints it"
        );
        assert!(message("kind = \"model\"").contains("kind at line 1 is `model`; expected"));
        assert!(message("schema_version = 3").contains("expected kind = \"calibration\""));
        assert_eq!(
            message("kind = 7"),
            "kind at line 1 is not a text; expected kind = \"calibration\""
        );
        assert!(message(&format!("kind = \"{}\"", "x".repeat(1 << 20))).len() < 2500);
    }

    #[test]
    fn only_what_stands_before_all_tables_says_it() {
        let kind = "kind = \"calibration\"\nschema_version = 3\n";
        let wide = "text = \"\"\"\n[x]\n\"\"\"\n";
        for text in [format!("{kind}[a]\nb = "), format!("{wide}{kind}[a]\n")] {
            assert!(FileKind::Calibration.expect(&text, 3).is_ok(), "{text}");
            assert_eq!(FileKind::of(&text), Some(FileKind::Calibration), "{text}");
        }
        assert_eq!(FileKind::of(&format!("[a]\n{kind}")), None);
        assert!(message(&format!("[a]\n{kind}")).contains("it has no `kind` at its top level"));
        assert!(message("[a]\nb = ").contains("line 2"), "what is no TOML has no kind");
    }

    #[test]
    fn versions_come_after_the_kind() {
        let of = |version| message(&format!("kind = \"calibration\"\nschema_version = {version}"));
        assert_eq!(
            of("4"),
            "schema_version is 4, but this version reads only 3; use a newer version of the tool, \
             or calibrate again"
        );
        assert!(of("2").ends_with("reads only 3; calibrate again"));
        assert!(of("\"3\"").contains("schema_version at line 2 must be a whole number"));
        assert!(message("kind = \"calibration\"").contains("no schema_version"));
        // Files from before they had a kind: their own old version, and another kind's.
        let old = message("schema_version = 2\n[fingerprint]\n");
        assert!(old.ends_with("reads only 3; calibrate again"), "{old}");
        let sheet = message("kind = \"cpu\"\nschema_version = 1\n[cores]\n");
        assert!(sheet.contains("kind at line 1 is `cpu`; expected `calibration`"), "{sheet}");
    }
}
