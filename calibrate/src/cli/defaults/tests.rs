use super::*;

fn read(text: &str, variables: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, text).unwrap();
    let args = ["calibrate".into(), format!("--config={}", file.display()).into()];
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    };
    let defaults = Defaults::read(&args, &variable).map_err(|error| error.to_string())?;
    let said = |one: &Setting| {
        let source = one.source.to_string();
        let source = source.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        (format!("{}={}", one.key, one.values.join(",")), source)
    };
    Ok(defaults.settings.iter().map(said).collect())
}

/// A service whose home is no folder, or another user's.
#[cfg(unix)]
#[test]
fn a_file_that_nobody_named_may_be_out_of_reach() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for home in [file, folder.path().join("nowhere"), PathBuf::from("/dev/null")] {
        let variable = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
        let defaults = Defaults::read(&["calibrate".into()], &variable).unwrap();
        assert!(!defaults.is_there && defaults.settings.is_empty());
    }
    let named = ["calibrate".into(), "--config=/dev/null/x".into()];
    assert!(Defaults::read(&named, &|_| None).is_err());
}

#[test]
fn a_variable_comes_before_the_file() {
    let text = "# mine\nthreads = 2\nbackend = \"cuda\"\ngpu-lib-dir = [\"/a\", \"/b\"]\n";
    let variables = [("CALIBRATE_THREADS", "4"), ("CALIBRATE_ROUNDS", "")];
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        read(text, &variables).unwrap(),
        [
            pair("backend=cuda", "config.toml:3"),
            pair("gpu-lib-dir=/a,/b", "config.toml:4"),
            pair("threads=4", "CALIBRATE_THREADS"),
        ]
    );
    assert_eq!(read("", &[]).unwrap(), []);
}

#[test]
fn what_is_no_default_is_refused_with_its_line() {
    for (text, message) in [
        ("threads = 2\nthread = 3\n", "config.toml:2: unknown key `thread`; the keys are backend,"),
        ("\nthreads = 0", "config.toml:2: invalid value '0' for '--threads <N>': it must be a"),
        (
            "gpu-lib-dir = [\"/a\", \"lib\"]",
            "config.toml:1: gpu-lib-dir must be an absolute path, and `lib` is not",
        ),
        ("cache = \"hot\"", "config.toml:1: invalid value 'hot' for '--cache <CACHE>' [possible"),
        ("threads = true", "config.toml:1: threads must be a text or a whole number"),
        ("threads = [1]", "config.toml:1: threads must be a text or a whole number"),
        ("a = 1\nb = = 2", "config.toml:2: "),
        ("[run]\nthreads = 1", "config.toml:1: unknown key `run`"),
        ("problem = \"x\"", "config.toml:1: unknown key `problem`"),
    ] {
        let error = read(text, &[]).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let error = read("", &[("CALIBRATE_SPREAD", "soon")]).unwrap_err();
    assert!(error.starts_with("CALIBRATE_SPREAD: invalid value 'soon'"), "{error}");
    let args = ["calibrate".into(), "--config".into(), "/no/such.toml".into()];
    let error = Defaults::read(&args, &|_| None).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /no/such.toml: "), "{error}");
}

#[test]
fn what_all_commands_have_may_stand_before_them() {
    let moved = |text: &str| {
        let args = behind_the_command(text.split(' ').map(OsString::from).collect());
        args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
    };
    for (given, expected) in [
        ("c --color never show x", "c show --color never x"),
        ("c --config=f --color=never show x", "c show --config=f --color=never x"),
        ("c --color never --quick", "c --color never --quick"),
        ("c show --color never", "c show --color never"),
        ("c --color", "c --color"),
        ("c", "c"),
    ] {
        assert_eq!(moved(given), expected);
    }
}

#[test]
fn every_key_is_an_option_of_the_program() {
    let command = Cli::command();
    for key in KEYS {
        let arg = command.get_arguments().find(|arg| arg.get_id().as_str() == id(key));
        assert_eq!(arg.and_then(clap::Arg::get_long), Some(key));
    }
}

#[test]
fn the_command_line_comes_first() {
    let settings = |all: &[(&'static str, &str)]| Defaults {
        settings: all
            .iter()
            .map(|(key, value)| Setting {
                key,
                values: vec![(*value).to_owned()],
                source: Source::Variable("X".to_owned()),
            })
            .collect(),
        ..Defaults::default()
    };
    let parsed = |all: &[(&'static str, &str)], args: &[&str]| {
        let args = ["calibrate"].iter().chain(args);
        let matches = settings(all).applied_to(Cli::command()).get_matches_from(args);
        let mut cli = Cli::from_arg_matches(&matches).unwrap();
        leave_other_backends(&mut cli, &matches);
        cli.run
    };
    let all = [("threads", "3"), ("clock", "device"), ("rounds", "5")];
    let run = parsed(&all, &["--quick"]);
    assert_eq!((run.threads, run.gpu.clock, run.rounds), (Some(3), None, Some(5)));
    let run = parsed(&all, &["--threads", "1", "--rounds", "2"]);
    assert_eq!((run.threads, run.rounds), (Some(1), Some(2)));
    let run = parsed(&all, &["--backend", "cuda"]);
    assert!(run.threads.is_none() && run.gpu.clock.is_some());
    // What was asked for is refused as ever.
    let run = parsed(&all, &["--backend", "cuda", "--threads", "1"]);
    assert!(run.device().is_err());
}
