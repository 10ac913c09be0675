//! A trace that comes from its index is the trace that its file gives.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use kernel_traces::index::{self, IndexError, Unfit};
use kernel_traces::synthetic::{self, Plan};
use kernel_traces::{IndexPolicy, IndexUse, Options, Trace, trace_files};

fn load(path: &Path, options: &Options) -> Trace {
    Trace::load(path, options, &mut |_, _| {}).unwrap()
}

fn open(path: &Path, options: &Options, policy: &IndexPolicy) -> (Trace, IndexUse) {
    Trace::open(path, options, policy, &mut |_, _| {}).unwrap()
}

fn build(path: &Path, policy: &IndexPolicy) -> PathBuf {
    index::build(path, &Options::default(), policy, &mut |_, _| {}).unwrap()
}

/// Why a new index was written.
fn reason(used: &IndexUse) -> Option<&Unfit> {
    if let IndexUse::Written { was } = used { Some(was) } else { None }
}

fn without_frames() -> Options {
    Options { frames: false, ..Options::default() }
}

fn small() -> Vec<u8> {
    synthetic::text(&Plan { layers: 1, steps: 1, ..Plan::default() }).unwrap().0
}

/// Enough JSON for an index that nobody asked for.
fn large() -> Vec<u8> {
    synthetic::text(&Plan { layers: 10, steps: 60, ..Plan::default() }).unwrap().0
}

fn compress(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The files of a folder, also hidden ones.
fn files(folder: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|e| name(e.unwrap())).collect();
    names.sort();
    names
}

#[test]
fn the_second_load_comes_from_the_index() {
    let text = large();
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().join("a/cache");
    for (name, content) in [("rank0.json", text.clone()), ("rank1.json.gz", compress(&text))] {
        let path = home.path().join(name);
        fs::write(&path, &content).unwrap();
        let expected = load(&path, &Options::default());
        for policy in [IndexPolicy::Beside, IndexPolicy::In(cache.clone())] {
            let (first, used) = open(&path, &Options::default(), &policy);
            assert_eq!(reason(&used), Some(&Unfit::Missing), "{used:?}");
            let mut last = (0, 0);
            let (second, used) =
                Trace::open(&path, &Options::default(), &policy, &mut |done, all| {
                    last = (done, all);
                })
                .unwrap();
            assert!(matches!(used, IndexUse::Read), "{used:?}");
            assert_eq!(last, (content.len() as u64, content.len() as u64));
            assert!(first == expected && second == expected);
        }
        let (_, used) = open(&path, &Options::default(), &IndexPolicy::Off);
        assert!(matches!(used, IndexUse::Off), "{used:?}");
        let strict = Options { strict: true, ..Options::default() };
        let (trace, used) = open(&path, &strict, &IndexPolicy::Beside);
        assert!(matches!(used, IndexUse::Off) && trace == expected, "{used:?}");
    }
    // No index is taken for the trace of a rank.
    assert_eq!(trace_files(home.path()).unwrap().len(), 2);
    assert_eq!(files(home.path()).len(), 5);
    assert_eq!(files(&cache).len(), 2);
    assert!(trace_files(&cache).unwrap().is_empty());
}

#[test]
fn a_small_trace_has_an_index_only_if_it_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, small()).unwrap();
    let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
    assert!(matches!(used, IndexUse::TooSmall), "{used:?}");
    assert_eq!(files(home.path()), ["trace.json"]);
    let place = build(&path, &IndexPolicy::Beside);
    assert_eq!(place, home.path().join("trace.json.ktindex"));
    let (again, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
    assert!(matches!(used, IndexUse::Read) && again == trace, "{used:?}");
}

/// The tests next to the reader change every byte; this one changes some, to the end.
#[test]
fn a_damaged_index_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(
        &path,
        r#"[{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": 0, "tid": 7}]"#,
    )
    .unwrap();
    let expected = load(&path, &Options::default());
    let place = build(&path, &IndexPolicy::Beside);
    let whole = fs::read(&place).unwrap();
    let check = |content: &[u8], what: &str| {
        fs::write(&place, content).unwrap();
        let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
        let was = reason(&used).unwrap_or_else(|| panic!("{what}: {used:?}"));
        assert!(matches!(was, Unfit::Damaged(_) | Unfit::OtherVersion), "{what}: {was}");
        assert!(trace == expected, "{what}");
        assert!(fs::read(&place).unwrap() == whole, "{what}");
    };
    for at in (37..whole.len()).step_by(37) {
        let mut content = whole.clone();
        content[at] ^= 1 << (at % 8);
        check(&content, &format!("byte {at}"));
    }
    for length in (0..whole.len()).step_by(97) {
        check(&whole[..length], &format!("{length} bytes"));
    }
}

/// A name is not enough to take something for an index.
#[test]
fn what_is_not_an_index_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, large()).unwrap();
    let expected = load(&path, &Options::default());
    let place = home.path().join("trace.json.ktindex");
    let build = || index::build(&path, &Options::default(), &IndexPolicy::Beside, &mut |_, _| {});
    for content in ["precious", "kt index", "{}"] {
        fs::write(&place, content).unwrap();
        let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
        assert!(matches!(used, IndexUse::NotWritten { .. }) && trace == expected, "{used:?}");
        assert!(build().unwrap_err().to_string().contains("not an index"), "{content}");
        assert_eq!(fs::read_to_string(&place).unwrap(), content);
    }
    // What broke off is an index all the same.
    fs::write(&place, "ktinde").unwrap();
    let (_, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
    assert!(matches!(used, IndexUse::Written { .. }), "{used:?}");
    fs::remove_file(&place).unwrap();
    #[cfg(unix)]
    for target in ["there", "nowhere"] {
        fs::write(home.path().join("there"), "precious").unwrap();
        std::os::unix::fs::symlink(target, &place).unwrap();
        let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
        assert!(matches!(used, IndexUse::NotWritten { .. }) && trace == expected, "{used:?}");
        assert!(place.is_symlink());
        assert_eq!(fs::read_to_string(home.path().join("there")).unwrap(), "precious");
        fs::remove_file(&place).unwrap();
    }
}

#[test]
fn a_trace_that_changed_is_read_again() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    let text = String::from_utf8(small()).unwrap();
    fs::write(&path, &text).unwrap();
    build(&path, &IndexPolicy::Beside);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let set_time =
        |time| File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let changed = |what: &str| {
        let expected = load(&path, &Options::default());
        let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
        assert_eq!(reason(&used), Some(&Unfit::Stale), "{what}: {used:?}");
        assert!(trace == expected, "{what}");
        let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
        assert!(matches!(used, IndexUse::Read) && trace == expected, "{what}: {used:?}");
    };
    set_time(time + Duration::from_millis(1));
    changed("another time");
    fs::write(&path, format!("{text}\n")).unwrap();
    set_time(time);
    changed("another size");
    fs::write(&path, text.replacen("H100", "H200", 1) + "\n").unwrap();
    set_time(time);
    changed("another content");
}

#[test]
fn a_trace_that_changes_while_it_is_read_has_no_index() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, large()).unwrap();
    let mut time = fs::metadata(&path).unwrap().modified().unwrap();
    let mut touch = |_, _| {
        time += Duration::from_secs(1);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    let (trace, used) =
        Trace::open(&path, &Options::default(), &IndexPolicy::Beside, &mut touch).unwrap();
    let is_told = matches!(
        used,
        IndexUse::NotWritten { was: Unfit::Missing, error: IndexError::Changed { .. } }
    );
    assert!(is_told, "{used:?}");
    assert_eq!(trace, load(&path, &Options::default()));
    let error = index::build(&path, &Options::default(), &IndexPolicy::Beside, &mut touch);
    assert!(matches!(error.unwrap_err(), IndexError::Changed { .. }));
    assert_eq!(files(home.path()), ["trace.json"]);
}

#[test]
fn an_index_that_cannot_be_written_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, large()).unwrap();
    let expected = load(&path, &Options::default());
    // Not by permissions, which some users do not have to keep.
    fs::write(home.path().join("file"), "").unwrap();
    let nowhere = IndexPolicy::In(home.path().join("file/cache"));
    let (trace, used) = open(&path, &Options::default(), &nowhere);
    let IndexUse::NotWritten { error, .. } = used else { panic!("{used:?}") };
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    assert!(trace == expected);
    assert!(index::build(&path, &Options::default(), &nowhere, &mut |_, _| {}).is_err());
    // Something else has its name.
    fs::create_dir(home.path().join("trace.json.ktindex")).unwrap();
    let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
    assert!(matches!(used, IndexUse::NotWritten { was: Unfit::Unreadable(_), .. }), "{used:?}");
    assert!(trace == expected);
    assert_eq!(files(home.path()), ["file", "trace.json", "trace.json.ktindex"]);
}

#[cfg(unix)]
#[test]
fn whoever_may_read_a_trace_may_read_its_index() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, small()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // What the user lets files have at all.
    let most = mode(&path);
    for wanted in [0o600, 0o644, 0o444] {
        fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        assert_eq!(mode(&build(&path, &IndexPolicy::Beside)), wanted & most, "{wanted:o}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_read_only() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, large()).unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(!trace.kernels.is_empty());
    assert!(matches!(used, IndexUse::NotWritten { .. }), "{used:?}");
    assert_eq!(files(home.path()), ["trace.json"]);
}

#[test]
fn traces_of_one_name_share_a_cache() {
    let home = tempfile::tempdir().unwrap();
    let policy = IndexPolicy::In(home.path().join("cache"));
    let mut paths = Vec::new();
    for (folder, text) in [("a", small()), ("b", large())] {
        let path = home.path().join(folder).join("rank0.json");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        build(&path, &policy);
        paths.push(path);
    }
    // The same file by another path is the same trace.
    paths.push(home.path().join("a/../a/rank0.json"));
    for path in &paths {
        let (trace, used) = open(path, &Options::default(), &policy);
        assert!(matches!(used, IndexUse::Read), "{used:?}");
        assert!(trace == load(path, &Options::default()));
    }
    let names = files(&home.path().join("cache"));
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.ends_with("-rank0.json.ktindex")), "{names:?}");
    assert_eq!(index::path_of(&home.path().join("c/rank0.json"), &policy), None);
}

#[test]
fn an_index_without_frames_does_not_serve_whoever_wants_them() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, large()).unwrap();
    let with = load(&path, &Options::default());
    let without = load(&path, &without_frames());
    assert!(!with.frames.is_empty() && without.frames.is_empty());
    let policy = IndexPolicy::Beside;
    let (trace, used) = open(&path, &without_frames(), &policy);
    assert!(reason(&used) == Some(&Unfit::Missing) && trace == without, "{used:?}");
    let (trace, used) = open(&path, &without_frames(), &policy);
    assert!(matches!(used, IndexUse::Read) && trace == without, "{used:?}");
    let report = index::inspect(&path, &policy).unwrap();
    assert_eq!((report.unfit, report.has_frames), (None, false));
    let (trace, used) = open(&path, &Options::default(), &policy);
    assert!(reason(&used) == Some(&Unfit::NoFrames) && trace == with, "{used:?}");
    let (trace, used) = open(&path, &Options::default(), &policy);
    assert!(matches!(used, IndexUse::Read) && trace == with, "{used:?}");
    // With frames it serves both; only the numbers of names and threads are others.
    let (trace, used) = open(&path, &without_frames(), &policy);
    assert!(matches!(used, IndexUse::Read), "{used:?}");
    assert!(trace.frames.is_empty() && trace.kernels.start_ns == without.kernels.start_ns);
    let names = |trace: &Trace| -> Vec<String> {
        trace.kernels.name.iter().map(|&name| trace.names.text(name).to_owned()).collect()
    };
    assert_eq!(names(&trace), names(&without));
}

#[test]
fn many_loads_at_once() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, large()).unwrap();
    let expected = load(&path, &Options::default());
    for round in 0..3 {
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let (trace, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
                    assert!(matches!(used, IndexUse::Read | IndexUse::Written { .. }), "{used:?}");
                    assert!(trace == expected);
                });
            }
        });
        assert_eq!(files(home.path()), ["trace.json", "trace.json.ktindex"]);
        let (_, used) = open(&path, &Options::default(), &IndexPolicy::Beside);
        assert!(matches!(used, IndexUse::Read), "{used:?}");
        if round == 1 {
            fs::write(home.path().join("trace.json.ktindex"), "ktindex\0damaged").unwrap();
        }
    }
}

/// The trace of an index that is gone, or another one, is still there.
#[test]
fn a_new_index_does_not_change_what_the_old_one_gave() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    fs::write(&path, large()).unwrap();
    let expected = load(&path, &Options::default());
    build(&path, &IndexPolicy::Beside);
    let (trace, _) = open(&path, &Options::default(), &IndexPolicy::Beside);
    fs::write(&path, small()).unwrap();
    let place = build(&path, &IndexPolicy::Beside);
    assert!(trace == expected);
    fs::remove_file(place).unwrap();
    assert!(trace == expected);
}

#[test]
fn what_is_in_an_index() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    let inspect = || index::inspect(&path, &IndexPolicy::Beside);
    assert!(inspect().unwrap_err().to_string().starts_with("cannot read "));
    fs::write(&path, small()).unwrap();
    let report = inspect().unwrap();
    assert_eq!((report.unfit, report.bytes), (Some(Unfit::Missing), 0));
    build(&path, &IndexPolicy::Beside);
    let report = inspect().unwrap();
    assert_eq!((report.unfit, report.has_frames), (None, true));
    assert_eq!(report.bytes, fs::metadata(&report.path).unwrap().len());
    let kernels = load(&path, &Options::default()).kernels.len() as u64;
    let size_of = |name: &str| {
        report.sections.iter().find(|section| section.name == name).map(|section| section.bytes)
    };
    assert_eq!(size_of("Kernels.start_ns"), Some(8 * kernels));
    assert_eq!(size_of("Kernels.work"), Some(kernels));
    fs::write(&path, large()).unwrap();
    assert_eq!(inspect().unwrap().unfit, Some(Unfit::Stale));
    fs::write(&report.path, "").unwrap();
    assert!(matches!(inspect().unwrap().unfit, Some(Unfit::Damaged(_))));
    assert!(index::inspect(&path, &IndexPolicy::Off).is_err());
}

#[test]
fn what_is_no_trace_says_so_as_without_an_index() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("trace.json");
    let error = || {
        let policy = IndexPolicy::Beside;
        Trace::open(&path, &Options::default(), &policy, &mut |_, _| {}).unwrap_err().to_string()
    };
    assert!(error().starts_with("cannot read "));
    fs::write(&path, "{}").unwrap();
    assert!(error().contains("is not a profiler trace"));
    assert_eq!(files(home.path()), ["trace.json"]);
}
