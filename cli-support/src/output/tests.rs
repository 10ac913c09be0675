use super::*;

fn refusal(path: &Path, replace: Replace) -> String {
    Target::new(path, replace).unwrap_err().to_string()
}

fn write(path: &Path, replace: Replace) {
    let mut out = Destination::new(Some(Target::new(path, replace).unwrap())).unwrap();
    out.write_all(b"new").unwrap();
    out.finish().unwrap();
}

#[test]
fn what_cannot_be_written_is_said_before() {
    let folder = tempfile::tempdir().unwrap();
    let never = Replace::if_told(false);
    assert!(Target::new(&folder.path().join("x.toml"), never).is_ok());
    let message = refusal(&folder.path().join("no/x.toml"), never);
    assert!(message.contains("does not exist"), "{message}");
    let message = refusal(folder.path(), never);
    assert!(message.contains("is a folder"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn what_the_command_reads_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let [before, later] = ["before", "later"].map(|name| folder.path().join(name));
    for path in [&before, &later] {
        fs::write(path, "old").unwrap();
    }
    assert_eq!(input::text(&before, 100).unwrap(), "old");
    assert!(refusal(&before, Replace::Any).contains("this command reads it"));
    assert!(refusal(&before, Replace::known(false, |_| true)).contains("this command reads it"));

    // A list of files, or a folder, is known only when it was read.
    let begun = Target::new(&later, Replace::Any).unwrap();
    let mut written = Destination::new(Some(begun.clone())).unwrap();
    written.write_all(b"new").unwrap();
    input::remember(&later);
    assert!(Destination::new(Some(begun)).unwrap_err().to_string().contains("reads it"));
    assert!(written.finish().unwrap_err().to_string().contains("reads it"));
    for path in [&before, &later] {
        assert_eq!(fs::read_to_string(path).unwrap(), "old");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left");
}

#[test]
fn csv_is_made_plain_on_its_way() {
    let folder = tempfile::tempdir().unwrap();
    for (raw_cells, expected) in
        [(false, "a,'=1+1,-2\r\n'-x\\u{1b}"), (true, "a,=1+1,-2\r\n-x\\u{1b}")]
    {
        let path = folder.path().join(format!("{raw_cells}.csv"));
        let target = Target::new(&path, Replace::if_told(false)).unwrap();
        let mut out = Destination::for_csv(Some(target), raw_cells).unwrap();
        out.write_all(b"a,=1").unwrap();
        out.write_all(b"+1,-2\r\n-x\x1b").unwrap();
        out.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
}

#[test]
fn lines_of_json_are_made_plain_on_their_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    let target = Target::new(&path, Replace::if_told(false)).unwrap();
    let mut out = Destination::for_json_lines(Some(target)).unwrap();
    // A letter of two bytes in two pieces, a line end between, and a last line without one.
    for piece in [&b"{\"a\":\"\xc2"[..], b"\x9b2J\xe2\x80\xae\"}\n{\"b\":\"", b"\x7f\"}"] {
        out.write_all(piece).unwrap();
    }
    out.finish().unwrap();
    let expected = "{\"a\":\"\\u009b2J\\u202e\"}\n{\"b\":\"\\u007f\"}";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn files_that_are_not_ours_stay_unless_the_user_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thesis.tex");
    fs::write(&path, "years of work").unwrap();
    // What is there may well be an earlier result that nobody can know as one.
    let expected = "it is there already; name another file, or replace it with --overwrite";
    for replace in [Replace::if_told(false), Replace::known(false, |_| false)] {
        let message = refusal(&path, replace);
        assert!(message.ends_with(expected), "{message}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "years of work");
    write(&path, Replace::known(false, |path| fs::read(path).unwrap().starts_with(b"years")));
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    fs::write(&path, "other").unwrap();
    write(&path, Replace::if_told(true));
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    fs::write(&path, "").unwrap();
    write(&path, Replace::if_told(false));
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn what_a_command_line_names_twice_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let file = folder.join("x.toml");
    fs::write(&file, "measured").unwrap();
    let name = file.to_str().unwrap();
    let roundabout =
        format!("{}/../{}/x.toml", folder.display(), folder.file_name().unwrap().display());
    let twice = |words: &[&str]| {
        let words = std::iter::once("calibrate").chain(words.iter().copied());
        is_named_twice(&file, words.map(OsString::from))
    };
    for given in [
        &["report", name, "-o", name][..],
        &["report", name, &format!("-o{roundabout}")],
        &["report", &roundabout, &format!("--output={name}")],
        &["compare", &format!("--profile=other.toml,{name}"), "-o", name],
    ] {
        assert!(twice(given), "{given:?}");
    }
    for given in [
        &["report", "other.toml", "-o", name][..],
        &["report", "x.toml", &format!("--output={name}")],
        &["-", "--", "-o", "", name, "=", ",,"],
    ] {
        assert!(!twice(given), "{given:?}");
    }
}

#[test]
fn a_file_that_comes_while_results_are_computed_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let target = Target::new(&path, Replace::if_told(false)).unwrap();
    let mut out = Destination::new(Some(target)).unwrap();
    out.write_all(b"new").unwrap();
    fs::write(&path, "another's").unwrap();
    assert!(out.finish().is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
}

#[cfg(unix)]
#[test]
fn what_is_replaced_keeps_its_mode_and_what_is_write_protected_stays() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("private.toml");
    fs::write(&path, "old").unwrap();
    for mode in [0o600, 0o640, 0o664] {
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        write(&path, Replace::Any);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
    }
    fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    for replace in [Replace::Any, Replace::known(false, |_| true)] {
        let message = refusal(&path, replace);
        assert!(message.contains("write-protected"), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn links_lead_on_devices_take_all_and_fifos_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link, nowhere, fifo] =
        ["file", "link", "nowhere", "fifo"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let message = refusal(&link, Replace::Any);
    assert!(message.contains("does not exist"), "{message}");
    fs::write(&file, "").unwrap();
    write(&link, Replace::if_told(false));
    assert!(link.is_symlink(), "the link stays");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    let [one, other] = [&file, &link].map(|path| Target::new(path, Replace::Any).unwrap());
    assert_eq!(one.path(), other.path());

    std::os::unix::fs::symlink("/dev/null", &nowhere).unwrap();
    assert!(Target::new(&nowhere, Replace::if_told(false)).unwrap().is_device());
    write(&nowhere, Replace::if_told(false));
    assert!(nowhere.is_symlink());

    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let message = refusal(&fifo, Replace::Any);
    assert!(message.contains("FIFO"), "{message}");

    // `-o /dev/stdout | less`: a link to a pipe that has no name.
    let (_reader, pipe) = std::io::pipe().unwrap();
    let unnamed = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe));
    if fs::metadata(&unnamed).is_ok() {
        let message = refusal(Path::new(&unnamed), Replace::Any);
        assert!(message.contains("FIFO"), "{message}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_named() {
    let full = || {
        let target = Target::new(Path::new("/dev/full"), Replace::if_told(false)).unwrap();
        Destination::new(Some(target)).unwrap()
    };
    let at_once = full().write_all(&[b'x'; 100_000]).unwrap_err();
    let mut few = full();
    few.write_all(b"x").unwrap();
    let at_the_end = few.finish().unwrap_err();
    for message in [at_once.to_string(), format!("{at_the_end:#}")] {
        assert!(message.starts_with("cannot write /dev/full: "), "{message}");
    }
}
