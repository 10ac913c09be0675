//! Libraries of one test's own, with what they do and what was done to them.

use std::path::Path;

use super::libraries::{LIBRARIES, libraries};

/// A folder with libraries of one test's own, which share nothing with those of other tests.
pub(crate) struct StandIn {
    folder: tempfile::TempDir,
}

/// What lives in a stand-in, and what was done, in the order of `Counts` in `device.h`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Counts {
    pub(crate) allocations: i64,
    pub(crate) bytes: i64,
    pub(crate) modules: i64,
    pub(crate) events: i64,
    pub(crate) graphs: i64,
    pub(crate) streams: i64,
    pub(crate) contexts: i64,
    pub(crate) launches: i64,
    pub(crate) graph_launches: i64,
    pub(crate) programs: i64,
    pub(crate) compilations: i64,
}

impl Counts {
    /// Only what must be given back.
    pub(crate) fn alive(self) -> Self {
        Self { launches: 0, graph_launches: 0, compilations: 0, ..self }
    }
}

impl StandIn {
    /// Libraries that do what `settings` say, see `device.h`; `None` where none can be built.
    pub(crate) fn new(settings: &str) -> Option<Self> {
        let libraries = libraries()?;
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in LIBRARIES.map(|(name, _)| name) {
            std::fs::copy(libraries.join(name), folder.path().join(name)).unwrap();
        }
        let objects = libraries.join("objects");
        let settings = format!("objects {}\n{settings}\n", objects.display());
        std::fs::write(folder.path().join("stand_in.txt"), settings).unwrap();
        Some(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes a library away.
    pub(crate) fn without(self, library: &str) -> Self {
        std::fs::remove_file(self.folder().join(library)).unwrap();
        self
    }

    /// Takes a function out of a library: its name becomes another one.
    pub(crate) fn without_function(self, library: &str, function: &str) -> Self {
        let path = self.folder().join(library);
        let mut bytes = std::fs::read(&path).unwrap();
        let name = format!("\0{function}\0").into_bytes();
        let mut found = 0;
        for at in 0..bytes.len() - name.len() {
            if bytes[at..].starts_with(&name) {
                bytes[at + 1] = b'_';
                found += 1;
            }
        }
        assert!(found > 0, "{library} has no {function}");
        std::fs::write(path, bytes).unwrap();
        self
    }

    /// What one of the libraries counted in this process.
    pub(crate) fn counts(&self, library: &str) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: `device.h` declares the function so, and it writes as many numbers as there are.
        unsafe {
            let library = libloading::Library::new(self.folder().join(library)).unwrap();
            let function =
                library.get::<unsafe extern "C" fn(*mut Counts, i32)>(c"stand_in_counts").unwrap();
            function(&raw mut counts, i32::try_from(size_of::<Counts>() / 8).unwrap());
        }
        counts
    }
}
