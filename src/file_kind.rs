//! What a TOML file of the project says that it is, before anything else of it is read.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

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
        let table: toml::Table = text.parse().ok()?;
        let kind = table.get("kind")?.as_str()?;
        Self::ALL.into_iter().find(|known| known.name() == kind)
    }

    /// Checks that a text is a TOML file of this kind and version.
    ///
    /// A file of another kind or version may have keys that would make a worse message, so this
    /// comes before anything else of the file is read.
    ///
    /// # Errors
    ///
    /// An [`Error`] that says what the file is and what was expected, or where it is no TOML.
    pub fn expect(self, text: &str, schema_version: u32) -> Result<(), Error> {
        let table: toml::Table =
            text.parse().map_err(|error| Error::invalid_file(self.name(), error))?;
        let kind = table.get("kind").and_then(toml::Value::as_str);
        let version = table.get("schema_version");
        let known = Self::ALL.into_iter().find(|known| Some(known.name()) == kind);
        match (known, version.and_then(toml::Value::as_integer)) {
            (Some(found), _) if found != self => Err(self.wrong(format!(
                "it is {}, not {}; {}",
                found.with_article(),
                self.with_article(),
                found.advice()
            ))),
            (Some(_), Some(found)) if found == i64::from(schema_version) => Ok(()),
            (Some(_), Some(found)) => Err(self.other_version(found, schema_version)),
            (Some(_), None) if version.is_some() => {
                Err(Error::invalid_file(self.name(), "schema_version must be a whole number"))
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
                    "kind is `{kind}`; expected `{}` (the kinds are calibration, hardware, \
                     shapes, imported and workload)",
                    self.name()
                ),
                None => format!(
                    "it has no `kind` at its top level; expected kind = \"{}\"",
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
        assert!(message("kind = \"model\"").contains("kind is `model`; expected"));
        assert!(message("schema_version = 3").contains("expected kind = \"calibration\""));
        assert!(message("kind = 7").contains("expected kind = \"calibration\""));
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
        assert!(of("\"3\"").contains("must be a whole number"));
        assert!(message("kind = \"calibration\"").contains("no schema_version"));
        // Files from before they had a kind: their own old version, and another kind's.
        let old = message("schema_version = 2\n[fingerprint]\n");
        assert!(old.ends_with("reads only 3; calibrate again"), "{old}");
        let sheet = message("kind = \"cpu\"\nschema_version = 1\n[cores]\n");
        assert!(sheet.contains("kind is `cpu`; expected `calibration`"), "{sheet}");
    }
}
